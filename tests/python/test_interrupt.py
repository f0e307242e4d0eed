"""Ctrl-C and other signals during a run that would not end by itself."""

import subprocess
import sys
from pathlib import Path

import pytest

# A loop whose trip count is fed, as tests/python/scripts/while_loop.py built it: a thousand million
# rounds take hours.
COMMON = """
import os, signal, sys, threading, zipfile
import numpy as np
import heddle
from heddle import static
archive = zipfile.ZipFile(sys.argv[1])
startup, main = (archive.read(f"while_loop/p{k}.pdmodel") for k in (0, 1))
exe, scope = static.Executor(threads=int(sys.argv[2])), static.Scope()
exe.run(startup, scope=scope)
x = np.ones((2, 3), "float32")
def run(trips):
    return exe.run(main, feed={"x": x.copy(), "limit": np.array([trips], "int64")}, scope=scope,
                   fetch_list=["mean_0.tmp_0"])
run(3)
threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
"""
INTERRUPTED = COMMON + """
names = [info.name for info in heddle.Program.parse(main).persistables if info.name in scope]
weights = {name: scope[name].copy() for name in names}
try:
    run(10 ** 9)
except KeyboardInterrupt:
    print("interrupted")
assert weights and all(np.array_equal(scope[name], value) for name, value in weights.items())
assert np.isfinite(run(3)[0])
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("and again")
"""
OWN_HANDLER = COMMON + """
signal.signal(signal.SIGINT, lambda number, frame: print("mine"))
run(60000)  # goes on to its end
print("done")
"""

HANDLERS = COMMON.replace("SIGINT", "SIGALRM") + """
class Enough(Exception):
    pass
def raises(number, frame):
    raise Enough
seen = []
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
signal.signal(signal.SIGALRM, raises)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
try:
    run(10 ** 9)
except Enough:
    print("enough", len(seen))
assert np.isfinite(run(3)[0])
assert signal.getsignal(signal.SIGALRM) is raises
signal.raise_signal(signal.SIGUSR1)
print(len(seen))
"""

# Another library puts a handler before heddle's during a run, which goes on calling heddle's.
CHAINED = COMMON + """
import faulthandler
seen, quiet = [], open(os.devnull, "w")
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
threading.Timer(0.2, faulthandler.register, (signal.SIGUSR1,),
                {"file": quiet, "chain": True}).start()
def interrupted():
    try:
        run(10 ** 9)
    except KeyboardInterrupt:
        return True
assert interrupted()
for _ in range(6):
    for after, number in (0.2, signal.SIGUSR1), (0.4, signal.SIGINT):
        threading.Timer(after, os.kill, (os.getpid(), number)).start()
    before = len(seen)
    assert interrupted() and len(seen) == before + 1
    signal.raise_signal(signal.SIGUSR1)
    assert len(seen) == before + 2
faulthandler.unregister(signal.SIGUSR1)
signal.raise_signal(signal.SIGUSR1)
print(len(seen))
"""

# Products of which one takes some 10 ms, in generated code that uses the stack in its own way.
PRODUCTS = """
import os, signal, sys, threading, time
import numpy as np
from heddle.build import Builder
def products(dtype, side, count):
    b = Builder()
    x = b.feed("x", dtype, [side, side])
    z = x
    for _ in range(count):
        z = b.op("tanh", X=b.op("matmul_v2", X=z, Y=x))
    b.fetch(z)
    return b.finish(threads=int(sys.argv[2]))
"""
SIGNALLED = PRODUCTS + """
model = products("float32", 1200, 10)
feed = {"x": np.full((1200, 1200), 0.001, "float32")}
right = model.run(feed)[0].copy()
seen = []
signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
going = True
def send():
    while going:
        time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGUSR1)
sender = threading.Thread(target=send)
sender.start()
end = time.monotonic() + 1.5
while time.monotonic() < end:
    assert np.array_equal(model.run(feed)[0], right)
going = False
sender.join()
print(len(seen) > 0)
"""
LATE = PRODUCTS + """
import heddle
model = products("float16", 700, 6)
feed = {"x": np.full((700, 700), 0.01, "float16")}
begin = time.monotonic()
right = model.run(feed)[0].copy()
whole = time.monotonic() - begin
late = 0
for k in range(1, 20):
    try:
        model.run(feed, timeout=whole * k / 20)
    except heddle.DeadlineExceeded:
        late += 1
assert np.array_equal(model.run(feed)[0], right)
print(late > 0)
"""


def script(text, threads):
    recording = Path(__file__).parent / "scripts.npz"
    return subprocess.run([sys.executable, "-c", text, str(recording), str(threads)],
                          capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_is_interrupted(threads):
    done = script(INTERRUPTED, threads)
    assert (done.returncode, done.stdout) == (0, "interrupted\nand again\n"), done.stderr


def test_a_handler_of_the_scripts_own_is_left_alone():
    done = script(OWN_HANDLER, 1)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["done", "mine"], done.stdout


@pytest.mark.parametrize("threads", [1, 2])
def test_handlers_of_other_signals_run_meanwhile(threads):
    done = script(HANDLERS, threads)
    assert (done.returncode, done.stdout) == (0, "enough 1\n2\n"), done.stderr


def test_handlers_that_call_each_other_do_so_once():
    done = script(CHAINED, 1)
    assert (done.returncode, done.stdout) == (0, "13\n"), done.stderr


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("text", [SIGNALLED, LATE], ids=["signalled", "late"])
def test_products_bear_signals_and_deadlines(text, threads):
    ended = script(text, threads)
    assert (ended.returncode, ended.stdout) == (0, "True\n"), ended.stderr
