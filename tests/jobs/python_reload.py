"""Workers that make code, drop it and make other code at the same addresses, and end after a fifth of a second of CPU time.

    python_reload.py WORKERS

Each reloads one module five times. Worker W's generation G has functions `outer_wWgG` and `inner_wWgG`, in a file `wWgG.py`, that begin
PAD lines further down than those of other generations: PAD = (7 W + 13 G) mod 40, `outer` stands at PAD + 1 and calls in the
next line, `inner` at PAD + 5 and works in the next two. Two workers at a time are forked by one process, which has run such code
itself: they begin with the same objects at the same addresses. Prints a line `worker W PID` of each, and the fact `done`.
"""

import importlib
import importlib.util
import os
import sys
import time

GENERATIONS = 5
SECONDS = 0.04

SOURCE = """def outer_{tag}(until, now):
    return inner_{tag}(until, now)


def inner_{tag}(until, now):
    while now() < until:
        pass
"""


class Maker:
    """Finds and loads the module `made`: the code of a generation."""

    def __init__(self):
        self.place = (0, 0)

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name == "made" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        worker, generation = self.place
        tag = f"w{worker}g{generation}"
        for name in [name for name in vars(module) if name.startswith(("outer_", "inner_"))]:
            delattr(module, name)
        lines = "\n" * ((7 * worker + 13 * generation) % 40)
        exec(compile(lines + SOURCE.format(tag=tag), f"/made/{tag}.py", "exec"), vars(module))
        module.run = getattr(module, f"outer_{tag}")


def work(maker, module, worker):
    for generation in range(GENERATIONS):
        maker.place = (worker, generation)
        importlib.reload(module)
        module.run(time.process_time() + SECONDS, time.process_time)


def main():
    maker = Maker()
    sys.meta_path.insert(0, maker)
    module = importlib.import_module("made")
    work(maker, module, 0)
    running = set()
    for worker in range(1, int(sys.argv[1]) + 1):
        pid = os.fork()
        if pid == 0:
            work(maker, module, worker)
            os._exit(0)
        print(f"worker {worker} {pid}", flush=True)
        running.add(pid)
        while len(running) >= 2:
            running.discard(os.wait()[0])
    while running:
        running.discard(os.wait()[0])
    print("fact done=1", flush=True)


main()
