"""Stacks as paths of frames, in the executors' Python.

In: a block's frames, nodes and stacks as one stream, frames first, then nodes in preorder, each followed by the stacks
that end there. Out: for each stack its frames from the root. Memory: one block's frames and one path.

This file is sent to the executors by value: it imports nothing of this package, so nothing need be installed there.
"""

import re

#: What stands in the stream's column `tag`.
FRAME, NODE, STACK = 0, 1, 2

#: Characters that no line can carry; for Python's regular expressions and for Java's.
UNFIT = "[\\x00-\\x1f\\x7f-\\x9f\\u2028-\\u202e\\u2066-\\u2069\\ufffe\\uffff]"
_UNFIT = re.compile(UNFIT)
_LAST_NUMBER = re.compile(r"^(.*?)\s* ([0-9.]*)$", re.DOTALL)


def clean(name, between="_"):
    """A name as folded stacks can carry it, as the daemon writes it: one line, no `;`, no number as its last word."""
    name = _UNFIT.sub(" ", name.replace(";", ":")).strip()
    if not name:
        return "(empty)"
    last = _LAST_NUMBER.match(name)
    return last.group(1) + between + last.group(2) if last else name


class Broken(Exception):
    """A block's tables do not fit each other."""


#: Ways in which a method of Java runs.
JAVA = ("java", "java-inlined", "java-interpreted")


#: What a stripped C library's two functions that start a thread are named.
THREAD_START = "[thread start]"


def shown(kind, name):
    """A frame's name in a graph: of methods by which scalac hands calls on, the one that they hand them on to."""
    if kind not in JAVA:
        return name
    method = name.rpartition(".")[2]
    if method.startswith("$"):
        lambda_of = method.startswith("$anonfun$") and method.endswith("$adapted")
        return name[: -len("$adapted")] if lambda_of else name
    return name[:-1] if method.endswith("$") and len(method) > 1 else name


def _calls(frames):
    """(name, frame) of each call: one that only hands on, to a method of its name and another signature, is one with it."""
    calls, before = [], None
    for frame in frames:
        kind, signature = frame[0], frame[4]
        name = shown(kind, frame[1])
        one = (
            before is not None
            and name == before[0]
            and (
                kind in JAVA
                and before[1][0] in JAVA
                and None not in (signature, before[1][4])
                and signature != before[1][4]
                or kind == before[1][0] == "native"
                and name == THREAD_START
            )
        )
        if one:
            # Of a recursion through such methods each round stays.
            before = None
        else:
            before = (name, frame)
            calls.append(before)
    return calls


def _folded(frames, suffixes):
    if suffixes:
        return ";".join(clean(frame[1]) + suffixes.get(frame[0], "") for frame in frames)
    return ";".join(clean(name) for name, _ in _calls(frames))


def _methods(frames, _):
    """(name, module, own) of each method once: where one stands in several modules, the least."""
    modules = {}
    named = [(shown(frame[0], frame[1]), frame[2]) for frame in frames]
    for name, module in named:
        modules[name] = min(module, modules.get(name, module))
    leaf = named[-1][0] if named else None
    return [(name, module, name == leaf) for name, module in modules.items()]


def _frames(frames, _):
    return [frame[:4] for frame in frames]


def _drawn(frames, _):
    return [(frame[0], name, frame[2]) for name, frame in _calls(frames)]


#: What a path is made into.
FORMS = {"folded": _folded, "methods": _methods, "frames": _frames, "drawn": _drawn}


def paths(lines, made, more):
    """(block, stack, end, path) for each stack, the path as `made` makes it of its frames and `more`.

    `lines` are (block, tag, id, a, b, text, module, kind, line, signature). A frame has its name in `text`; a node how many levels
    up from the node before its caller is in `a` and its frame in `b`; a stack stands at its leaf's node, with its number
    in `a` and how it ended in `text`.
    """
    block, at, frames, path = None, 0, {}, []
    for own, tag, number, a, b, text, module, kind, line, signature in lines:
        if own != block:
            block, at, frames, path = own, 0, {}, []
        if tag == FRAME:
            frames[number] = (kind, text, module, line, signature)
        elif tag == NODE:
            if not 0 <= a <= len(path) or b not in frames:
                raise Broken("node %d of block %s has no caller or no frame" % (number, block))
            del path[len(path) - a :]
            path.append(frames[b])
            at = number
        else:
            # Stacks of node 0 have no frame; they come before all nodes.
            if number != at:
                raise Broken("stack %d of block %s has no node" % (a, block))
            yield block, a, text, made(path, more)
