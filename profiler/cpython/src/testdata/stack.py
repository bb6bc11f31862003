"""Tells its own stack, innermost first, and waits in it: for the tests of what is read from outside."""

import functools
import sys
import threading


def stack():
    frame, lines = sys._getframe(1), []
    while frame is not None:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        lines.append("%s\t%s\t%d\t%d" % (name, code.co_filename, code.co_firstlineno, frame.f_lineno))
        frame = frame.f_back
    return "\n".join(lines)


def wait(_=None):
    print(stack() + "\n.", flush=True); sys.stdin.readline()
    return 0


class Holder:
    def __init__(self, depth):
        self.method(depth)

    def method(self, depth):
        if depth > 0:
            return self.method(
                depth - 1,
            )
        return functools.reduce(
            lambda _, x: wait(x),
            [1, 2],
        )


def generator():
    yield [
        x
        for x in (Holder(3) for _ in range(1))
    ]


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@decorated
def caller():
    try:
        raise ValueError
    except ValueError:
        return list(map(lambda x: next(generator()), sorted([2, 1], key=lambda k: k)))


exec(compile("def in_exec_é(f):\n\n  return f()\n", "<текст>", "exec"))
thread = threading.Thread(target=in_exec_é, args=(caller,))
thread.start()
thread.join()
eval("in_exec_é(caller)")
