"""Tells its own stacks: each scene burns CPU in one place, and says when that was and what sys._getframe saw there.

Usage: python_oracle.py SCENE[,SCENE..] SECONDS WINDOW_MS KNOWN [LIBRARY]. The scenes begin when the file KNOWN is there: until then
it runs as in one of them, so that it can be found and looked at. LIBRARY is python_oracle.c, compiled: with it a C function tells each
stack too, by CPython's C API, and the two must agree; the scenes `inside` and `between` want it, and have its functions in their
stacks. A scene's time begins and ends with a window; one of stacks is
entered before and left after it, so that all of its time is in one place. A line of JSON each:
{"scene", "from", "until" (Unix milliseconds), "stack" (root first)}; of a split {"shares"} of thread CPU time instead, by
function, by function and line (`lines`), or of Python code and numpy's (`numpy`, which wants numpy).
Runs on Python 3.8 and newer.
"""

import asyncio
import functools
import json
import os
import random
import sys
import threading
import time

told = []
# Made before the scenes: that takes up to a tenth of a second.
loop = asyncio.new_event_loop()
library = None


def load(path):
    import ctypes

    loaded = ctypes.PyDLL(path)
    names, function = ctypes.py_object, ctypes.py_object
    loaded.python_oracle_tells.argtypes, loaded.python_oracle_tells.restype = [names], None
    loaded.python_oracle_spins.argtypes, loaded.python_oracle_spins.restype = [names, ctypes.c_double], None
    loaded.python_oracle_calls.argtypes = [names, function, ctypes.py_object]
    loaded.python_oracle_calls.restype = ctypes.py_object
    return loaded


def stack_of(frame):
    """Root first: qualified names from 3.11 on, else names."""
    names = []
    while frame is not None:
        code = frame.f_code
        names.append(getattr(code, "co_qualname", code.co_name))
        frame = frame.f_back
    return names[::-1]


def agree(ours, theirs):
    """The stack by sys._getframe, root first, and the same by a C function, root last."""
    if ours != theirs[::-1]:
        raise AssertionError(f"sys._getframe tells {ours}, the C API {theirs[::-1]}")


def tell():
    """The caller's stack."""
    if library is not None:
        names = []
        library.python_oracle_tells(names)
        agree(stack_of(sys._getframe()), names)
    told.append(stack_of(sys._getframe(1)))


def burn(until, tell=tell, now=time.time):
    tell()
    while now() < until:
        pass
    return True


def recursion(until, depth=100):
    return recursion(until, depth - 1) if depth else burn(until)


def deep(until, depth=500):
    return deep(until, depth - 1) if depth else burn(until)


def generators(until):
    def inner():
        yield burn(until)

    def outer():
        yield from inner()

    return next(outer())


def comprehensions(until):
    return {x: [burn(until) for _ in range(1)] for x in (y for y in range(1))}


def callbacks(until):
    key = lambda _: functools.reduce(lambda a, b: list(map(burn, [until])), [1, 2])
    return sorted([1], key=key)


def exceptions(until):
    try:
        try:
            raise ValueError(until)
        except ValueError as error:
            raise KeyError from error
    except KeyError:
        return burn(until)
    finally:
        pass


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


class Base:
    def __init__(self, until):
        self.until = until
        self.done = self.value + len(self)

    @property
    def value(self):
        return int(self.static(self.until))

    @staticmethod
    @decorated
    def static(until):
        return until

    def __len__(self):
        return int(burn(self.until))


class Derived(Base):
    def __init__(self, until):
        super().__init__(until)


def decorated(until):
    def logged(function):
        @functools.wraps(function)
        def wrapper(*arguments, **named):
            return function(*arguments, **named)

        return wrapper

    @logged
    @functools.lru_cache(maxsize=None)
    @logged
    def inner(until):
        return burn(until)

    return inner(until)


def classes(until):
    return Derived(until)


def evaluated(until):
    code = compile("def made(until):\n    return eval('burn(until)')\n", "<made>", "exec")
    names = {"burn": burn}
    exec(code, names)
    return names["made"](until)


def coroutines(until):
    async def inner():
        await asyncio.sleep(0)
        return burn(until)

    async def outer():
        return await asyncio.gather(inner())

    return loop.run_until_complete(outer())


def inside(until):
    names = []
    library.python_oracle_spins(names, until)
    agree(stack_of(sys._getframe()), names)
    told.append(names[::-1] + ["python_oracle_spins"])


def between(until):
    names = []
    library.python_oracle_calls(names, burn, until)
    above = stack_of(sys._getframe())
    agree(above, names)
    # As burn told it, to which the C function is not there.
    told[-1][len(above) : len(above)] = ["python_oracle_calls"]


def threads(until):
    thread = threading.Thread(target=burn, args=(until,))
    thread.start()
    thread.join()


def seventy(n):
    for _ in range(7 * n):
        pass


def thirty(n):
    for _ in range(3 * n):
        pass


def split(until, now=time.time, cpu=time.thread_time):
    sums = [0.0, 0.0]
    while now() < until:
        # Of all lengths: equal ones beat with the sampling.
        n = random.randrange(1_000, 20_000)
        begun = cpu()
        seventy(n)
        between = cpu()
        thirty(n)
        sums[0] += between - begun
        sums[1] += cpu() - between
    return {"seventy": sums[0] / sum(sums), "thirty": sums[1] / sum(sums)}


def two_lines(n, cpu):
    begun = cpu()
    for _ in range(7 * n): _ + n
    between = cpu()
    for _ in range(3 * n): _ + n
    return between - begun, cpu() - between


def lines(until, now=time.time, cpu=time.thread_time):
    sums = [0.0, 0.0]
    while now() < until:
        for place, used in enumerate(two_lines(random.randrange(1_000, 20_000), cpu)):
            sums[place] += used
    first = two_lines.__code__.co_firstlineno
    return {f"two_lines:{first + 2}": sums[0] / sum(sums), f"two_lines:{first + 4}": sums[1] / sum(sums)}


def numpy(until, now=time.time, cpu=time.thread_time):
    import numpy

    # The clock stands right around each half, and a call of numpy's takes milliseconds: what the interpreter does before and
    # after it is 20 to 100 microseconds, since numpy's data has taken the place of its own in the caches. With some hundred
    # microseconds a call that was one to two percent of what the clock gave to numpy.
    remainder, values, sums = numpy.remainder, numpy.linspace(1.0, 2.0, 1_000_000), [0.0, 0.0]
    while now() < until:
        n, part = random.randrange(10_000, 200_000), values[: random.randrange(100_000, 1_000_000)]
        begun = cpu()
        seventy(n)
        between = cpu()
        sums[0] += between - begun
        begun = cpu()
        remainder(part, 3.0, part)
        between = cpu()
        sums[1] += between - begun
    return {"python": sums[0] / sum(sums), "numpy": sums[1] / sum(sums)}


def main():
    global library
    if len(sys.argv) > 5:
        library = load(sys.argv[5])
    seconds, window = float(sys.argv[2]), int(sys.argv[3]) / 1000
    sys.setrecursionlimit(5000)
    while not os.path.exists(sys.argv[4]):
        generators(time.time() + 0.1)
    for name in sys.argv[1].split(","):
        shared = name in ("split", "lines", "numpy")
        early, late = (0.0, -0.005) if shared else (0.4 * window, 0.1 * window)
        start = ((time.time() + early) // window + 1) * window
        time.sleep(max(0.0, start - early - time.time()))
        until = start + seconds
        told.clear()
        # Shares end before the window's last instant: what comes after the scene is not in them.
        shares = globals()[name](until + late)
        line = {"scene": name, "from": int(start * 1000), "until": int(until * 1000)}
        if shared:
            line["shares"] = shares
        else:
            line["stack"] = told[0]
        print(json.dumps(line), flush=True)


main()
