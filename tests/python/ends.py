"""How processes that use the package end, and what they do meanwhile: forks, signals, exits with
runs under way.

    ends.py SEED SCRIPTS.npz     one such process; `ok` on stdout when it has come to its end

What is drawn: what threads do, what happens then, and how the process ends. The exit status is that
which Python gives to such an end. test_misuse.py runs it.
"""

from __future__ import annotations

import atexit
import gc
import os
import random
import signal
import sys
import threading
import time
import weakref
import zipfile

import numpy as np

import heddle
from heddle import static

RNG = random.Random(int(sys.argv[1]))
ENDLESS = 10 ** 9


class Odd(Exception):
    pass


def small(threads=2):
    b = heddle.build.Builder()
    x = b.feed("x", "float32", [-1, 4])
    b.fetch(b.op("exp", X=b.op("relu", X=x)), b.op("scale", X=x, scale=2.0))
    return b.finish(threads=threads)


def endless():
    """A call that runs a loop, and ends after `timeout` seconds by an error."""
    archive = zipfile.ZipFile(sys.argv[2])
    startup, main = (archive.read(f"while_loop/p{k}.pdmodel") for k in (0, 1))
    exe, scope = static.Executor(threads=RNG.choice([1, 2])), static.Scope()
    exe.run(startup, scope=scope)
    program = heddle.Program.parse(main)
    session = heddle._heddle.Executor(RNG.choice([1, 2])).compile(program, scope._scope,
                                                                 ["mean_0.tmp_0"])
    feeds = {"x": np.ones((2, 3), "f4"), "limit": np.array([ENDLESS], "i8")}

    def run(timeout):
        session.run(feeds, timeout)

    return run


def check(model):
    x = np.arange(8, dtype="f4").reshape(2, 4)
    out = model.run({"x": x})
    assert np.allclose(out[0], np.exp(x)) and np.array_equal(out[1], 2 * x)
    return out


MODEL = small(RNG.choice([1, 2]))
LOOP = endless()
SOURCE = np.ones([4, 4], "f4")
SOURCE.flags.writeable = False
KEPT = [check(MODEL), heddle.Tensor(SOURCE), heddle.Tensor(bytes(64)).numpy(),
        memoryview(heddle.Tensor(SOURCE)), heddle.Tensor(SOURCE).__dlpack__(max_version=(1, 0)),
        MODEL.run({"x": SOURCE}, lod=True), MODEL.run_async({"x": SOURCE})]
KEPT[-1].result()
stop = threading.Event()


# What threads do until they are told to stop.

def runs():
    while not stop.is_set():
        check(MODEL)


def drops():
    local = []
    while not stop.is_set():
        local += MODEL.run({"x": np.ones([64, 4], "f4")})
        local.append(heddle.Tensor(SOURCE).numpy())
        if len(local) > 30:
            local.clear()


def makes():
    while not stop.is_set():
        check(small())


def loops():
    while not stop.is_set():
        try:
            LOOP(0.3)
        except heddle.DeadlineExceeded:
            pass


# What a child process does.

def child_drops():
    KEPT.clear()
    gc.collect()
    heddle.Tensor(bytes(8))


def child_makes():
    check(small())


def child_uses():
    for _ in range(3):
        check(MODEL)


def child_starts():
    MODEL.run_async({"x": SOURCE}).result(20)
    KEPT[-1].result(20)


def child_deadline():
    begin = time.monotonic()
    try:
        LOOP(0.2)
    except heddle.DeadlineExceeded:
        pass
    assert time.monotonic() - begin < 5


def child_threads():
    threads = [threading.Thread(target=child_uses) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def child_loses_the_model():
    global MODEL, LOOP
    MODEL = LOOP = None
    child_drops()


def fork(acts):
    for act in acts:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            stop.set()
            try:
                act()
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            if RNG.randrange(2):
                os._exit(0)
            sys.exit(0)  # takes all down as a process does
        status = os.waitpid(child, 0)[1]
        assert status == 0, (act.__name__, status)


def signals():
    how = RNG.randrange(5)
    seen = []

    def handler(_number, _frame):
        seen.append(1)
        if how == 0:
            raise Odd
        if how == 1:
            try:
                check(MODEL)  # a run in a run
            except heddle.Error as error:
                assert "another run" in str(error), error
        elif how == 2:
            gc.collect()
            heddle.Tensor(SOURCE).numpy()
        elif how == 3:
            KEPT.clear()
        elif how == 4:
            check_in_child()
        if len(seen) > 5:
            raise Odd
        signal.setitimer(signal.ITIMER_REAL, 0.1)  # the next one, when this one is over

    def check_in_child():
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.15)
    try:
        LOOP(20)
        raise AssertionError("it ended")
    except Odd:
        pass
    check(MODEL)


def interrupt():
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        LOOP(20)
        raise AssertionError("it ended")
    except KeyboardInterrupt:
        pass
    check(MODEL)


def lose_the_model():
    global MODEL
    MODEL = small()  # while threads run the other one
    gc.collect()


# How it ends.

class Late:
    """Something that works while all else is taken down, for a moment or for longer."""

    def __init__(self):
        self.model, self.kept = MODEL, KEPT
        self.loop = RNG.choice([None, LOOP])

    def __del__(self):
        try:
            check(self.model)
            if self.loop is not None:
                self.loop(0.15)
            self.kept.clear()
        except (heddle.Error, TypeError, AttributeError, RuntimeError, ImportError):
            pass  # modules may be gone


def long_exit():
    try:
        LOOP(0.15)
    except heddle.DeadlineExceeded:
        pass


def leave_something():
    global LATE
    how = RNG.randrange(7)
    if how == 0:
        LATE = Late()
    elif how == 1:
        LATE = Late()
        LATE.me = LATE
    elif how == 2:
        atexit.register(check, MODEL)
    elif how == 3:
        LATE = threading.local()
        LATE.late = Late()
    elif how == 4:
        weakref.finalize(SOURCE, check, MODEL)
    elif how == 5:
        atexit.register(long_exit)
    else:
        sys.late = Late()


def main():
    todo = RNG.choices([runs, drops, makes, loops], k=RNG.choice([0, 1, 3]))
    busy = any(act in (runs, drops) for act in todo)
    daemons = RNG.randrange(2) == 1
    event = RNG.choice(["fork", "fork", "fork", "signals", "interrupt", "lose", "none"])
    threads = [threading.Thread(target=act, daemon=daemons) for act in todo]
    for thread in threads:
        thread.start()
    time.sleep(0.02)
    print([act.__name__ for act in todo], event, daemons, file=sys.stderr, flush=True)
    if event == "fork":
        # A child uses what is its own, or what nobody used while it was forked.
        acts = [child_drops, child_makes] + ([] if busy else [
            child_uses, child_starts, child_threads, child_loses_the_model])
        if loops not in todo:
            acts.append(child_deadline)
        fork(RNG.choices(acts, k=4))
    elif event == "signals":
        signals()
    elif event == "interrupt":
        interrupt()
    elif event == "lose":
        lose_the_model()
    if RNG.randrange(2):
        leave_something()
    if not daemons or RNG.randrange(2):
        stop.set()
    print("ok", flush=True)
    end = RNG.randrange(5)
    if end == 1:
        sys.exit(3)
    if end == 2:
        raise Odd
    if end == 3:
        os._exit(0)
    if end == 4:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)


main()
