"""The page's flame graph as one script: the modules of profiler/ui that it needs, joined.

In: notebook.js and what it imports. Out: the text of one module without imports, and of the page's styles. There is one
flame graph, the daemon's page's: the wheel carries copies that wheel_of.py makes when it is built, and a checkout's are read
where they lie. This file imports nothing of the package: it is run while the wheel is built, where there is no Spark.

Modules are joined as the page writes them: `import { a, b } from './c.js';` and `export` before a function, a class or a
constant, each at the begin of a line. Another form is an error, not a script that is half right.
"""

import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
#: Where notebook.js says that the page's modules are.
_PAGE = "../../../profiler/ui/"
#: The module that begins.
FIRST = "notebook.js"
STYLES = ("style.css", "graph.css")

_IMPORT = re.compile(r"^import \{([^}]*)\} from '([^']+)';$", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const) \*?([\w$]+))", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://.*|/\*\*.*\*/)\n", re.MULTILINE)
_OTHER = re.compile(r"^(?:import|export)\b.*$", re.MULTILINE)


def directory():
    """Where the page's modules are: in the wheel, else in the checkout."""
    for place in (os.path.join(HERE, "ui"), os.path.normpath(os.path.join(HERE, _PAGE))):
        if os.path.isfile(os.path.join(place, STYLES[0])):
            return place
    raise FileNotFoundError(
        "the page's modules are neither in %s nor in a checkout around it: install the package anew, from a whole checkout"
        " (pip before 21.3 copies deploy/spark alone: `pip install --upgrade pip` first)" % os.path.join(HERE, "ui")
    )


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def _text(name):
    return _read(os.path.join(HERE, name) if name == FIRST else os.path.join(directory(), *name.split("/")))


def _named(module, given):
    """The name below the page's directory of what a module imports."""
    if module == FIRST:
        if not given.startswith(_PAGE):
            raise ValueError("%s imports %s, which is no module of the page" % (module, given))
        return given[len(_PAGE) :]
    return os.path.normpath(os.path.join(os.path.dirname(module), given)).replace(os.sep, "/")


def modules():
    """(name, text) of all modules, each after those that it imports."""
    done, order, under_way = {}, [], []

    def take(name):
        if name in under_way:
            raise ValueError("modules import each other in a circle: %s" % ", ".join(under_way))
        if name in done:
            return
        under_way.append(name)
        done[name] = _text(name)
        for found in _IMPORT.finditer(done[name]):
            take(_named(name, found.group(2)))
        under_way.pop()
        order.append(name)

    take(FIRST)
    return [(name, done[name]) for name in order]


def joined():
    """All modules as the text of one."""
    listed, parts = modules(), []
    places = {name: "m%d" % number for number, (name, _) in enumerate(listed)}
    for name, text in listed:
        exports = _EXPORT.findall(text)
        taken = lambda found, of=name: "const {%s} = %s;" % (found.group(1), places[_named(of, found.group(2))])
        body = _EXPORT.sub("", _IMPORT.sub(taken, _COMMENT.sub("", text)))
        other = _OTHER.search(body)
        if other:
            raise ValueError("%s: this cannot be joined: %s" % (name, other.group()))
        # `</script` and `<!--` end or change a script's element wherever they stand.
        if re.search(r"</script|<!--", body, re.IGNORECASE):
            raise ValueError("%s cannot stand in a page" % name)
        parts.append("// %s\nconst %s = (() => {\n%s\nreturn { %s };\n})();" % (name, places[name], body, ", ".join(exports)))
    return "\n".join(parts) + "\n"


def styles():
    """The page's styles."""
    return "\n".join(_read(os.path.join(directory(), name)) for name in STYLES)


def carried():
    """(name, text) of what the wheel carries of the page."""
    files = [(name, text) for name, text in modules() if name != FIRST]
    return files + [(name, _read(os.path.join(directory(), name))) for name in STYLES]
