"""Thirty functions of known shares, some calls deep: burn CPU for a time, or do a fixed amount of work.

    python_work.py seconds SECONDS      burns so long, wall time
    python_work.py rounds ROUNDS GO     as soon as the file GO is there, so many rounds

Prints the facts `ready` (its pid) and, of rounds, `cpu` and `wall` (seconds). Function number k, from 1 to 30, has k of 665 parts,
from 11 on k + 10: which are the first twenty does not hang on the sampling.
"""

import os
import random
import sys
import time

FUNCTIONS = 30
# Iterations of a part.
PART = 200

SOURCE = """
def work_{k:02}(n):
    x = 0
    for i in range(n):
        x += i & {k}
    return x
"""


def fact(name, value):
    print(f"fact {name}={value}", flush=True)


def made():
    names = {}
    for k in range(1, FUNCTIONS + 1):
        exec(compile(SOURCE.format(k=k), f"work_{k:02}.py", "exec"), names)
    return [names[f"work_{k:02}"] for k in range(1, FUNCTIONS + 1)]


def called(function, n, depth):
    return called(function, n, depth - 1) if depth else function(n)


def one_round(functions, order):
    # Of another length and order each time: equal ones beat with the sampling.
    random.shuffle(order)
    part = random.randrange(PART // 2, PART * 3 // 2)
    for k in order:
        called(functions[k], (k + 1 if k < 10 else k + 11) * part, 8)


def main():
    functions, order = made(), list(range(FUNCTIONS))
    random.seed(1)
    fact("ready", os.getpid())
    if sys.argv[1] == "seconds":
        until = time.time() + float(sys.argv[2])
        while time.time() < until:
            one_round(functions, order)
        return
    while not os.path.exists(sys.argv[3]):
        time.sleep(0.02)
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(int(sys.argv[2])):
        one_round(functions, order)
    fact("cpu", time.process_time() - cpu)
    fact("wall", time.perf_counter() - wall)


main()
