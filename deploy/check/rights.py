#!/usr/bin/env python3
"""Tries what the daemon does to other users' processes, one need at a time, without the daemon.

In: the pid of a process of another user that holds a file of mode 0600 in its /tmp, `rights-PID`, and
catches SIGQUIT (rights.sh starts one). Out: a line a need, with the errno that refused it. Exit code 0 when
all were met, 1 when one was not.
"""

import ctypes
import errno
import os
import signal
import struct
import sys

pid = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
failed = 0


def need(name):
    def run(work):
        global failed
        try:
            work()
            print(f"  ok      {name}")
        except OSError as error:
            failed = 1
            print(f"  REFUSED {name}: {error.strerror}")

    return run


def read(path, size=4096):
    with open(path, "rb") as file:
        data = file.read(size)
    # Without the right to look, some files of /proc open and are empty.
    if not data:
        raise OSError(1, "it reads as empty")
    return data


@need("memory map")
def _():
    read(f"/proc/{pid}/maps")


@need("attaching a uprobe")
def _():
    with open("/sys/bus/event_source/devices/uprobe/type") as file:
        kind = int(file.read())
    # struct perf_event_attr without a file's name: the right is looked at first, and then EINVAL comes.
    attr = struct.pack("=II", kind, 128) + bytes(120)
    buffer = ctypes.create_string_buffer(attr, len(attr))
    numbers = {"x86_64": 298, "aarch64": 241}
    if libc.syscall(numbers[os.uname().machine], buffer, -1, 0, -1, 0) < 0 and ctypes.get_errno() != errno.EINVAL:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@need("environment")
def _():
    read(f"/proc/{pid}/environ")


@need("files in its root")
def _():
    os.stat(f"/proc/{pid}/root/etc")


@need("a file that only its user may read (a perf map)")
def _():
    read(f"/proc/{pid}/root/tmp/rights-{pid}")


@need("a mapped file that was replaced (map_files)")
def _():
    first = next(line for line in open(f"/proc/{pid}/maps") if "/" in line).split()[0]
    read(f"/proc/{pid}/map_files/{first}")


@need("its memory (process_vm_readv)")
def _():
    class Iov(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("len", ctypes.c_size_t)]

    start = int(open(f"/proc/{pid}/maps").readline().split("-")[0], 16)
    buffer = ctypes.create_string_buffer(16)
    local, remote = Iov(ctypes.addressof(buffer), 16), Iov(start, 16)
    if libc.process_vm_readv(pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) != 16:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@need("kernel addresses (/proc/kallsyms)")
def _():
    line = open("/proc/kallsyms").readlines(1000)[1]
    if int(line.split()[0], 16) == 0:
        raise OSError(1, "all addresses are 0")


@need("being its user for a while: a file in its /tmp, a signal to it")
def _():
    owner = os.stat(f"/proc/{pid}")
    uids, gids = os.getresuid(), os.getresgid()
    os.setresgid(-1, owner.st_gid, -1)
    try:
        os.setresuid(-1, owner.st_uid, -1)
        try:
            path = f"/proc/{pid}/root/tmp/.attach_rights{pid}"
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
            made = os.stat(path).st_uid
            os.unlink(path)
            if made != owner.st_uid:
                raise OSError(1, "the file is not its user's")
            signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGQUIT)
        finally:
            os.setresuid(-1, uids[1], -1)
    finally:
        os.setresgid(-1, gids[1], -1)


sys.exit(failed)
