"""Which samples are meant: labels, a span of time, and the kind.

In: what a user writes, as keywords. Out: a Selection, which makes the conditions for DataFrames with the label columns.
As by HTTP: a label given several values means either; a span of time means all windows that share an instant with it.
"""

import copy
import re
from datetime import datetime, timezone

from pyspark.sql import functions as F

#: The closed list of labels, in the order in which label sets keep them.
LABELS = (
    "service_name",
    "node",
    "deploy",
    "app",
    "app_name",
    "app_run",
    "user",
    "spark_user",
    "role",
    "executor",
    "container",
    "stage",
    "stage_attempt",
    "task_index",
    "task_attempt",
    "task",
    "thread_class",
    "wait",
    "lock",
    "lock_owner",
    "event",
    "process",
    "pid",
    "source",
)

#: Labels that no label set has: what a stage is of, by what Spark said (words.py). Both are numbers within an application.
TOLD = ("spark_job", "sql")
_OF_TOLD = re.compile(r"\b(?:%s)\b" % "|".join(TOLD))


def nanoseconds(time):
    """Nanoseconds since 1970 of a datetime (UTC where it says no zone), an RFC 3339 text, or Unix seconds."""
    if time is None or isinstance(time, bool):
        if time is None:
            return None
        raise ValueError("a time is a datetime, a text or a number of seconds, not %r" % (time,))
    if isinstance(time, int):
        return time * 1_000_000_000
    if isinstance(time, float):
        return int(round(time * 1e6)) * 1000
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.replace("Z", "+00:00"))
        except ValueError as error:
            raise ValueError("%r is no time: write it as 2026-11-22T08:00:00Z" % (time,)) from error
    if not isinstance(time, datetime):
        raise ValueError("a time is a datetime, a text or a number of seconds, not %r" % (time,))
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    since = time - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return ((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000


def texts(value):
    """The values of a label, of one or of several of them."""
    several = value if isinstance(value, (list, tuple, set, frozenset)) else [value]
    return sorted(str(one) for one in several)


class Selection:
    """Samples of some labels, in a span of time.

    `labels` are keywords: a text, or a list of texts of which any. `since` (inclusive) and `until` (exclusive) are a
    datetime, RFC 3339 or Unix seconds. `kind` is what was sampled. `where` is a condition on label columns, as SQL or a
    Column, for what labels alone do not say.
    """

    def __init__(self, since=None, until=None, kind="cpu", where=None, **labels):
        unknown = sorted(set(labels) - set(LABELS + TOLD))
        if unknown:
            raise ValueError("%r is no label; there are: %s" % (unknown[0], ", ".join(LABELS + TOLD)))
        self.since_ns = nanoseconds(since)
        self.until_ns = nanoseconds(until)
        self.kind = kind
        self.where = where
        self.labels = {key: texts(value) for key, value in labels.items() if value is not None}

    @classmethod
    def of(cls, selection, keywords):
        """A Selection as it is, a dict of its keywords, or the keywords of a call."""
        if selection is None:
            return cls(**keywords)
        if keywords:
            raise ValueError("give a selection or keywords, not both")
        return selection if isinstance(selection, cls) else cls(**selection)

    def is_told(self):
        """Whether its conditions want the columns of TOLD."""
        named = self.where is not None and _OF_TOLD.search(str(self.where))
        return bool(named) or not set(TOLD).isdisjoint(self.labels)

    def without(self, labels):
        """The same without conditions on some labels."""
        other = copy.copy(self)
        other.labels = {label: values for label, values in self.labels.items() if label not in labels}
        return other

    def touches(self, from_ns, until_ns):
        """Whether a span shares an instant with it; for numbers and for Columns."""
        fits = None
        if self.since_ns is not None:
            fits = until_ns > self.since_ns
        if self.until_ns is not None:
            before = from_ns < self.until_ns
            fits = before if fits is None else fits & before
        return fits

    def of_labels(self, frame):
        """The lines of a DataFrame with label columns that it means. A label that is not set reads as the empty text."""
        for key, values in self.labels.items():
            frame = frame.where(F.coalesce(F.col(key), F.lit("")).isin(values))
        return frame if self.where is None else frame.where(self.where)

    def of_windows(self, frame):
        """The lines of a DataFrame with `from_ns` and `until_ns` that it means."""
        fits = self.touches(F.col("from_ns"), F.col("until_ns"))
        return frame if fits is None else frame.where(fits)
