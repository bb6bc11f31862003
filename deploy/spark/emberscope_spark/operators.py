"""Which operator of Spark SQL a stack works for, by the names of its frames: docs/operators.md.

In: the frames of a stack from the root, and the rules. Out: an operator's name, as the daemon's `operator` label has it. The rules
are the daemon's own: operators.json is written by its tests, which hold it equal to profiler/model/src/operator. What is done
with them is as there, and tests hold the answers of both against each other.

This file is sent to the executors by value: it imports nothing of this package.
"""

import json
import os

#: The name by which graphs are grouped by it.
LABEL = "operator"
#: Signs of frames that are kept: beyond it they are made anew.
_MOST_KNOWN = 200_000
_SILENT_KINDS = ("kernel", "label", "class", "unknown")
#: What is told before the first frame.
_NOTHING = (None, None, None, False, False)
_SPARK = "org.apache.spark."
_EXECUTION = "org.apache.spark.sql.execution."


def rules():
    """The rules, read from the package."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "operators.json")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def _node(class_name, rules):
    """The operator of `org.apache.spark.sql.execution.joins.SortMergeJoinExec$$anon$1`."""
    outer = class_name.split("$")[0]
    if not outer.startswith(_EXECUTION) or not outer.endswith("Exec"):
        return None
    name = outer[len(_EXECUTION) :].rpartition(".")[2][: -len("Exec")]
    return name if name in rules["nodes"] else None


def _of_class(class_name, rules):
    """(operator, claim): the class itself, then the one that it stands in, then its package."""
    if not class_name.startswith(_SPARK):
        engine = next((name for package, name in rules["engines"].items() if class_name.startswith(package)), None)
        return (engine, "around") if engine else None
    below, classes = class_name[len(_SPARK) :], rules["classes"]
    outer, found = below, None
    while found is None:
        found = classes.get(outer)
        if "$" not in outer:
            break
        outer = outer[: outer.rfind("$")]
    if found is None:
        name = _node(class_name, rules)
        found = (name, "own") if name else None
    package = below
    for _ in range(2):
        if found is None and "." in package:
            package = package[: package.rfind(".")]
            found = classes.get(package + ".")
    return None if found is None or found[1] == "silent" else found


def _of_beginning(name, rules):
    """(operator, claim) of a method whose class says nothing."""
    if not name.startswith(_SPARK):
        return None
    below = name[len(_SPARK) :]
    return next((found for begins, found in rules["beginnings"].items() if below.startswith(begins)), None)


def _of_method(name, rules):
    prefix, bar, rest = name.partition("_")
    if not bar:
        return None
    return rules["prefixes"].get(prefix) or rules["words"].get(rest.split("_")[0])


def _generated(rest, method, rules):
    """Of `3` and `processNext`, or of `3$hashAgg_FastHashMap_0` and `findOrInsert`."""
    number, _, inner = rest.partition("$")
    if not (number.isascii() and number.isdigit()) or len(number) > 9 or int(number) > rules["max_stage"]:
        return None
    return ("generated", int(number), _of_method(inner, rules) or _of_method(method, rules))


def _library(kind, module, rules):
    """The engine whose library a native frame is in."""
    if kind != "native" or not module:
        return None
    file = module.rpartition("/")[2]
    return next((name for begins, name in rules["libraries"].items() if file.startswith(begins)), None)


def _sign(kind, name, rules):
    """What one frame says: None, ("generated", stage, operator or None), ("iterates", whether it gives its next element), ("projects",), or (claim, operator)."""
    if kind in _SILENT_KINDS:
        return None
    before, colon, line = name.rpartition(":")
    if colon and line and line.isascii() and line.isdigit():
        name = before
    if name in rules["workers"]:
        return ("python", rules["python_name"])
    class_name, dot, method = name.rpartition(".")
    if not dot:
        return None
    if method in rules["iterate"] and class_name.startswith(rules["iterators"]):
        return ("iterates", method == rules["iterate"][0])
    if class_name in rules["projections"]:
        return ("projects",)
    if class_name.startswith(rules["generated"]):
        return _generated(class_name[len(rules["generated"]) :], method, rules)
    found = _of_class(class_name, rules) or _of_beginning(name, rules)
    return (found[1], found[0]) if found else None


def _then(state, sign, rules):
    """(told, around, stage, iterated, below) after one frame more: whether the last frame is an iterator of Scala's that gives its
    next element; whether the operator that is told calls such iterators, and no frame since tells whose they are."""
    told, around, stage, iterated, below = state
    state = told, around, stage, False, below
    if sign is None:
        return state
    claim = sign[0]
    if claim == "iterates":
        return told, around, stage, sign[1], told is not None
    if claim == "projects":
        return (rules["project"], None, None, False, False) if iterated else state
    if claim == "generated":
        if sign[2] is None and stage == sign[1] and around is None:
            return told, around, stage, False, False
        return sign[2], None, sign[1], False, False
    name = sign[1]
    if claim == "around" or claim == "ground" and state == _NOTHING:
        return told, name, stage, False, below
    if claim == "python":
        if told in rules["python"]:
            return told, around, stage, False, False
        return told, name, stage, False, below
    if claim == "own" or claim.startswith("unless ") and told != claim[len("unless ") :]:
        return name, None, None, False, False
    if claim == "shared" and (told is None or below):
        return name, None, stage, False, False
    return state


def of_frames(frames, rules):
    """The operator of a stack's frames (kind, name, ...), root first. Signs of frames are kept: frames stand in many stacks."""
    known, state = rules.setdefault("known", {}), _NOTHING
    if len(known) > _MOST_KNOWN:
        known.clear()
    for frame in frames:
        key = frame[:3]
        if key not in known:
            engine = _library(frame[0], frame[2], rules)
            known[key] = ("around", engine) if engine else _sign(frame[0] or "", frame[1] or "", rules)
        state = _then(state, known[key], rules)
    told, around, stage, _, below = state
    codegen = None if stage is None else "WholeStageCodegen (%d)" % stage
    return around or (rules["iterated"] if below else told) or codegen or rules["unknown"]
