"""A flame graph that shows itself in a notebook.

In: an answer in columns (a node's caller, its frame, its own value and samples; a caller before its callees, the root first), as
the daemon gives it or `grown` makes it of stacks. Out: HTML, files, folded text, pandas. Limits: MOST_NODES nodes; what goes from
under a node is one node `other` there, so that totals stay whole, and the drawing says how many went.
"""

from . import page
from .stacks import clean

#: Most nodes of a drawing: with an `other` under each, fewer than a browser would shape in a worker, which a cell has not.
MOST_NODES = 9_999
#: Nodes of a drawing, where nobody says another number.
NODES = 5_000
#: Most nodes that are held while a tree grows.
_MOST_GROWN = 400_000
_OTHER = ("label", "other", None)


class FlameGraph:
    """A flame graph. In a notebook it shows itself: zoom by a click, search, tooltips, callers first, a table of methods."""

    def __init__(self, answer, title="", lines=()):
        self.answer = answer
        self.title = title or "Flame graph"
        #: Sentences above the graph.
        self.lines = list(lines)
        #: The queries of the cell that it is of.
        self.queries = None
        if answer.get("cut_nodes"):
            self.lines.append(
                "{:,} of {:,} nodes are not drawn: the smallest, taken together as `other`.".format(
                    answer["cut_nodes"], answer["cut_nodes"] + len(answer["columns"]["parent"])
                )
            )

    @property
    def samples(self):
        """How many samples it rests on."""
        return self.answer["quality"]["samples"]

    @property
    def quality(self):
        """Samples, those lost and those cut short, frames without a name, with the reasons: as in every answer of the daemon."""
        return self.answer["quality"]

    def html(self):
        """A page of its own."""
        state = {"type": self.answer.get("type", "cpu")}
        return page.document(self.answer, self.title, self.lines, state)

    def _repr_html_(self):
        return page.cell(self.html(), self.title, 560)

    def __repr__(self):
        unit = self.answer["unit"]
        total = self.answer["total"]
        amount = "%.2f s" % (total / 1e9) if unit == "ns" else "%s %s" % (format(total, ","), unit)
        head = "<FlameGraph %r: %s, %s samples>" % (self.title, amount, format(self.samples, ","))
        return "\n".join([head, *self.lines])

    def paths(self):
        """(frames from the root, own value, own samples) of each node that has any."""
        columns, frames = self.answer["columns"], self.answer["frames"]
        above = [()] * len(columns["parent"])
        for at, (parent, frame) in enumerate(zip(columns["parent"], columns["frame"])):
            if at:
                above[at] = above[parent] + (frames[frame],)
            if columns["self"][at] or columns["self_samples"][at]:
                yield above[at], columns["self"][at], columns["self_samples"][at]

    def folded(self, weight=False):
        """Folded stacks, a line each, sorted: samples, or with `weight` what they weigh."""
        sums = {}
        for frames, own, samples in self.paths():
            text = _text(frames)
            sums[text] = sums.get(text, 0) + (own if weight else samples)
        return "".join("%s %d\n" % line for line in sorted(sums.items()) if line[1])

    def to_pandas(self):
        """A pandas DataFrame with `stack` (folded), `samples` and `weight`."""
        import pandas

        rows = [(_text(frames), samples, own) for frames, own, samples in self.paths()]
        frame = pandas.DataFrame(rows, columns=["stack", "samples", "weight"])
        return frame.groupby("stack", as_index=False).sum().sort_values("weight", ascending=False, ignore_index=True)

    def save(self, path):
        """Writes a file: folded stacks where the name ends in `.folded` or `.txt`, else the page."""
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(self.folded() if str(path).endswith((".folded", ".txt")) else self.html())


def _text(frames):
    return ";".join(clean(frame["name"]) for frame in frames) or "(no frames)"


class _Tree:
    """Nodes in columns; equal siblings are one."""

    def __init__(self, root):
        self.frames = {root: 0}
        self.places = {}
        self.parent, self.frame, self.own, self.samples = [0], [0], [0], [0]

    def child(self, parent, frame):
        known = self.frames.setdefault(frame, len(self.frames))
        at = self.places.get((parent, known))
        if at is None:
            at = self.places[parent, known] = len(self.parent)
            for column, value in ((self.parent, parent), (self.frame, known), (self.own, 0), (self.samples, 0)):
                column.append(value)
        return at

    def add(self, path, own, samples):
        at = 0
        for frame in path:
            if len(self.parent) >= _MOST_GROWN:
                at = self.child(at, _OTHER)
                break
            at = self.child(at, frame)
        self.own[at] += own
        self.samples[at] += samples

    def totals(self, column):
        out = list(column)
        for at in range(len(out) - 1, 0, -1):
            out[self.parent[at]] += out[at]
        return out

    def pruned(self, most):
        """(tree of the largest nodes, how many went)."""
        if len(self.parent) <= most:
            return self, 0
        totals = self.totals(self.own)
        # A caller is no smaller than its callees, and stands before them: the largest are a tree.
        kept = sorted(sorted(range(1, len(totals)), key=lambda at: (-totals[at], at))[: most - 1])
        names = list(self.frames)
        out, place = _Tree(names[0]), [-1] * len(totals)
        place[0] = 0
        for at in kept:
            place[at] = out.child(place[self.parent[at]], names[self.frame[at]])
        under = list(place)
        for at in range(len(totals)):
            if place[at] < 0:
                up = self.parent[at]
                under[at] = under[up] if place[up] < 0 else out.child(place[up], _OTHER)
            out.own[under[at]] += self.own[at]
            out.samples[under[at]] += self.samples[at]
        return out, len(totals) - 1 - len(kept)


def grown(stacks, most=NODES):
    """The tree of (frames, own value, own samples), a frame being (kind, name, module): what of an answer is about nodes."""
    if not 2 <= most <= MOST_NODES:
        raise ValueError("max_nodes is from 2 to %d, not %r" % (MOST_NODES, most))
    tree = _Tree(("label", "total", None))
    for path, own, samples in stacks:
        tree.add(path, own, samples)
    tree, cut = tree.pruned(most)
    as_object = lambda kind, name, module: {"name": name, "kind": kind, **({"module": module} if module else {})}
    return {
        "cut_nodes": cut,
        "total": sum(tree.own),
        "frames": [as_object(*frame) for frame in tree.frames],
        "columns": {
            "parent": tree.parent,
            "frame": tree.frame,
            "self": tree.own,
            "total": tree.totals(tree.own),
            "self_samples": tree.samples,
            "total_samples": tree.totals(tree.samples),
        },
    }
