#!/usr/bin/env python3
"""Runs a command under the system-call filter of a systemd unit, where systemd is not there to do it.

In: a unit file and a command. The unit's SystemCallFilter= lines are read as systemd.exec(5) says (a list
without ~ allows, one with ~ takes away again; groups by `systemd-analyze syscall-filter`), made into a
seccomp filter that answers EPERM, and put on before the command starts. x86_64 and aarch64.
"""

import ctypes
import os
import re
import subprocess
import sys

ALLOW, ERRNO_EPERM = 0x7FFF0000, 0x00050001
ARCH = {"x86_64": (0xC000003E, "unistd_64.h"), "aarch64": (0xC00000B7, "unistd.h")}


def numbers(header):
    for folder in ("/usr/include/x86_64-linux-gnu/asm", "/usr/include/asm", "/usr/include/asm-generic"):
        path = os.path.join(folder, header)
        if os.path.exists(path):
            text = open(path).read()
            return {n: int(v) for n, v in re.findall(r"#define __NR_(\w+)\s+(\d+)", text)}
    sys.exit("no list of system calls: apt-get install linux-libc-dev")


def group(name, seen=()):
    out = set()
    listing = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", name], capture_output=True, text=True, check=True
    ).stdout
    for line in listing.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@") and word not in seen:
            out |= group(word, (*seen, name))
        elif word and not word.startswith(("#", "@")):
            out.add(word)
    return out


def allowed(unit):
    out = set()
    for line in open(unit):
        if not line.startswith("SystemCallFilter="):
            continue
        words = line.split("=", 1)[1].split()
        take = words[0].startswith("~")
        for word in words:
            word = word.lstrip("~")
            calls = group(word) if word.startswith("@") else {word}
            out = out - calls if take else out | calls
    # systemd always lets these through, so that the command can be started at all.
    return out | group("@default") | {"execve"}


def install(unit):
    machine = os.uname().machine
    if machine not in ARCH:
        sys.exit(f"not written for {machine}")
    arch, header = ARCH[machine]
    table = numbers(header)
    code = [(0x20, 0, 0, 4), (0x15, 1, 0, arch), (0x06, 0, 0, ERRNO_EPERM), (0x20, 0, 0, 0)]
    for number in sorted(table[name] for name in allowed(unit) if name in table):
        code += [(0x15, 0, 1, number), (0x06, 0, 0, ALLOW)]
    code.append((0x06, 0, 0, ERRNO_EPERM))

    class Insn(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint)]

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Insn))]

    insns = (Insn * len(code))(*[Insn(*c) for c in code])
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0:
        sys.exit("prctl(PR_SET_NO_NEW_PRIVS) failed")
    if libc.prctl(22, 2, ctypes.byref(Program(len(code), insns)), 0, 0) != 0:
        sys.exit(f"prctl(PR_SET_SECCOMP) failed: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: seccomp-exec.py UNIT COMMAND [ARGUMENT ...]")
    install(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
