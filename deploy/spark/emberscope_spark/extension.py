"""`%load_ext emberscope_spark`: the magics, in IPython.

In: an IPython shell. Out: `%emberscope OPTIONS` (what later cells begin with, and whether the daemon answers) and `%%emberscope`.
"""

import shlex
import sys

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, line_magic, magics_class
from IPython.display import display

from . import magic
from .daemon import DaemonError

#: What may go wrong with a profile: nobody answers, a file cannot be written, an answer has not the shape of one.
_EXPECTED = (DaemonError, OSError, ValueError, LookupError, TypeError, AttributeError)


def _say(text):
    print("Emberscope: %s" % text, file=sys.stderr)


@magics_class
class Emberscope(Magics):
    """The magics."""

    def __init__(self, shell):
        super().__init__(shell)
        self.defaults = []

    @line_magic("emberscope")
    def settings(self, line):
        """Sets the options of later `%%emberscope` cells; asks the daemon whether it answers."""
        try:
            options = magic.words(line, [])
            self.defaults = shlex.split(line)
            watch = magic.begin(options)
        except magic._Told:
            return
        except _EXPECTED as error:
            _say(error)
            return
        print("Emberscope: the daemon of %s answers; a window has %g s." % (watch.node, watch.windows))

    @cell_magic("emberscope")
    def profiled(self, line, cell):
        """Runs the cell, and shows the flame graph of the Spark application meanwhile, and the queries that began in it."""
        if self.shell.should_run_async(cell, transformed_cell=self.shell.transform_cell(cell)):
            raise UsageError("%%emberscope: a cell with `await` at its top does not run under a magic: await it in a function")
        watch = None
        try:
            options = magic.words(line, self.defaults)
            watch = magic.begin(options)
        except magic._Told:
            return
        except _EXPECTED as error:
            _say("%s. The cell runs without a profile." % error)
        apps = {magic.application()}
        if watch:
            watch.begin()
        # Its output and its errors are shown as they always are.
        result = self.shell.run_cell(cell, store_history=False)
        if watch:
            watch.end()
            apps = {options.app} if options.app else {app for app in apps | {magic.application()} if app}
        if watch and result.error_before_exec is None:
            self._show(watch, apps, options)
        error = result.error_in_exec if result.error_before_exec is None else result.error_before_exec
        if error is not None:
            raise _once(error)

    def _show(self, watch, apps, options):
        try:
            graph = magic.profile(watch, apps, options)
            if options.save:
                graph.save(options.save)
            if options.into:
                self.shell.user_ns[options.into] = graph
            display(graph)
        except KeyboardInterrupt:
            _say("interrupted while it waited for the window; there is no profile of this cell.")
        except _EXPECTED as error:
            _say("there is no profile of this cell: %s" % error)
        else:
            if options.queries > 0:
                self._list(watch, apps, options, graph)

    @staticmethod
    def _list(watch, apps, options, graph):
        try:
            graph.queries = watch.queries(apps, options)
            if graph.queries:
                display(graph.queries)
        except KeyboardInterrupt:
            _say("interrupted while it waited for what Spark says of this cell's queries.")
        except _EXPECTED as error:
            _say("the queries of this cell are not known: %s" % error)


def _once(error):
    """The cell's error, so that the notebook stops at it; its traceback has been shown."""
    if isinstance(error, SyntaxError):
        # IPython shows these in a way of its own, whatever they say.
        error = type(type(error).__name__, (Exception,), {})(str(error))
    try:
        error._render_traceback_ = lambda *_: ["%s: %s (its traceback is above)" % (type(error).__name__, error)]
    except AttributeError:
        pass
    return error


def load(shell):
    """Registers them."""
    shell.register_magics(Emberscope(shell))
