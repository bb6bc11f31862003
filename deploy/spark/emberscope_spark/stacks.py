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


def _folded(frames, suffixes):
    return ";".join(clean(name) + suffixes.get(kind, "") for kind, name, _, _ in frames)


def _methods(frames, _):
    """(name, module, own) of each method once: where one stands in several modules, the least."""
    modules = {}
    for _kind, name, module, _line in frames:
        modules[name] = min(module, modules.get(name, module))
    leaf = frames[-1][1] if frames else None
    return [(name, module, name == leaf) for name, module in modules.items()]


def _frames(frames, _):
    return list(frames)


#: What a path is made into.
FORMS = {"folded": _folded, "methods": _methods, "frames": _frames}


def paths(lines, form, suffixes):
    """(block, stack, end, path) for each stack, the path in a form of FORMS.

    `lines` are (block, tag, id, a, b, text, module, kind, line). A frame has its name in `text`; a node how many levels
    up from the node before its caller is in `a` and its frame in `b`; a stack stands at its leaf's node, with its number
    in `a` and how it ended in `text`.
    """
    made = FORMS[form]
    block, at, frames, path = None, 0, {}, []
    for own, tag, number, a, b, text, module, kind, line in lines:
        if own != block:
            block, at, frames, path = own, 0, {}, []
        if tag == FRAME:
            frames[number] = (kind, text, module, line)
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
            yield block, a, text, made(path, suffixes)
