"""A flame graph as HTML: a document of its own, and a cell of a notebook with that document in a frame.

In: an answer in columns, as the daemon's `/api/v1/flamegraph?columns=1` gives it, and words. Out: text. Nothing is loaded from
anywhere, and the document forbids it (its content policy). Names are a process's own and may be anything: they go in as JSON
without a character that means something in HTML, and the page shows them as text. In a cell the frame has no origin, so what
is in it reaches neither the notebook nor its server.
"""

import html
import json
import os

from . import scripts

_POLICY = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:"
_made = {}


def _joined():
    """(script, styles), read once."""
    if not _made:
        with open(os.path.join(scripts.HERE, "notebook.css"), encoding="utf-8") as file:
            own = file.read()
        _made["both"] = scripts.joined(), scripts.styles() + own
    return _made["both"]


def as_json(value):
    """JSON that can stand in an element of HTML: ASCII, and none of `<`, `>`, `&`."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, "\\u%04x" % ord(character))
    return text


def _needed(answer):
    """What the view reads of an answer: sums are made there."""
    columns = {name: answer["columns"][name] for name in ("parent", "frame", "self", "self_samples")}
    frames = [{name: value for name, value in frame.items() if name != "signature"} for frame in answer["frames"]]
    return {**answer, "columns": columns, "frames": frames}


def document(answer, title, lines, state):
    """The whole page. `lines` are sentences above the graph, `state` what the view begins with."""
    script, styles = _joined()
    given = as_json({"answer": _needed(answer), "title": title, "lines": list(lines), "state": state})
    return (
        '<!doctype html>\n<html lang="en" data-theme="light"><head><meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="%s">\n<title>%s</title>\n<style>\n%s</style></head>\n'
        '<body><div id="app"></div>\n<script type="application/json" id="given">%s</script>\n'
        '<script type="module">\n%s</script></body></html>\n'
    ) % (_POLICY, html.escape(title), styles, given, script)


def cell(page, title, height):
    """The page in a frame, `height` pixels high, for a notebook's output."""
    # In single quotes, for JSON is full of the others.
    attribute = page.replace("&", "&amp;").replace("<", "&lt;").replace("'", "&#39;")
    return (
        '<iframe title="%s" sandbox="allow-scripts allow-downloads" style="width:100%%;height:%dpx;border:0" srcdoc=\'%s\'></iframe>'
    ) % (html.escape(title), height, attribute)
