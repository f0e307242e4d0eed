#!/usr/bin/env python3
"""Runs static-graph scripts under Paddle and, with one import changed, under heddle, and compares.

    scripts/paddle_frontend.py [SCRIPT.py ...] [--record FILE.npz]

The scripts (tests/python/scripts/*.py without arguments) say `from paddle import static` and
collect arrays in the list `results`; for heddle the line becomes `from heddle import static`. Needs
paddle and heddle (PYTHONPATH=build/release/python). With --record, what the executor was given and
what Paddle computed is written to a file, which tests/python/test_replay.py runs without Paddle.
"""

import argparse
import io
import json
import sys
import traceback
import warnings
import zipfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
RTOL, ATOL = 1e-4, 1e-5
THEIRS, OURS = "from paddle import static", "from heddle import static"


def run_script(path, text, paddle, static=None):
    """The results of one script, in programs and a scope of its own. Warnings are not shown: heddle
    tells what it leaves to Paddle, and `main` asks for that by `left_to_paddle`."""
    base = paddle.static
    paddle.seed(2024)
    namespace = {"__name__": "script", "__file__": str(path)}
    with paddle.utils.unique_name.guard(), base.scope_guard(base.Scope()), \
            base.program_guard(base.Program(), base.Program()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(text, str(path), "exec")
        if static is not None:
            original, paddle.static = paddle.static, static
        try:
            exec(code, namespace)  # noqa: S102
        finally:
            if static is not None:
                paddle.static = original
    return [np.asarray(value) for value in namespace["results"]]


def differences(theirs, ours):
    if len(theirs) != len(ours):
        return [f"{len(ours)} results, Paddle has {len(theirs)}"]
    found = []
    for i, (want, got) in enumerate(zip(theirs, ours)):
        if want.shape != got.shape or want.dtype != got.dtype:
            found.append(f"result {i}: {got.dtype}{list(got.shape)}, Paddle has "
                         f"{want.dtype}{list(want.shape)}")
        elif not np.allclose(got, want, RTOL, ATOL, equal_nan=True):
            worst = np.max(np.abs(got.astype("f8") - want.astype("f8")))
            found.append(f"result {i}: differs by up to {worst:.3g} (first: {got.flat[0]}, Paddle "
                         f"{want.flat[0]})")
    return found


class Recorder:
    """Stands for paddle.static and notes what its Executor is asked."""

    def __init__(self, paddle):
        self._paddle, self._static = paddle, paddle.static
        self.steps, self.arrays, self.programs = [], {}, {}
        self.scopes, self.refused = [], ""
        recorder = self

        class Executor(paddle.static.Executor):
            def run(self, program=None, feed=None, fetch_list=None, *args, **kwargs):
                out = super().run(program, feed, fetch_list, *args, **kwargs)
                recorder.note(program, feed, fetch_list, args, kwargs, out)
                return out

        self.Executor = Executor

    def __getattr__(self, name):
        return getattr(self._static, name)

    def keep(self, array):
        key = f"a{len(self.arrays)}"
        self.arrays[key] = np.asarray(array)
        return key

    def note(self, program, feed, fetch_list, args, kwargs, out):
        if args or kwargs.get("use_prune"):
            self.refused = "uses what only a program of Paddle's can be asked"
        program = program or self._static.default_main_program()
        program = getattr(program, "_program", None) or program
        feed = feed[0] if isinstance(feed, list) else feed
        if any(op.type == "py_func" for op in program.global_block().ops):
            self.refused = "calls Python"
        data = program.desc.serialize_to_string()
        key = self.programs.setdefault(data, f"p{len(self.programs)}")
        step = {"program": key, "feed": {}, "fetch": [], "out": [],
                "numpy": kwargs.get("return_numpy", True)}
        scope = kwargs.get("scope") or self._static.global_scope()
        if scope not in self.scopes:
            self.scopes.append(scope)
        step["scope"] = self.scopes.index(scope)
        step["seed"] = self._paddle.base.core.default_cpu_generator().initial_seed()
        if hasattr(program, "lr_scheduler"):
            name = program.lr_scheduler._var_name
            step["set"] = {name: self.keep(np.array(scope.find_var(name).get_tensor()))}
        for name, value in (feed or {}).items():
            lod = value.lod() if hasattr(value, "lod") else None
            array = np.array(value)
            dtype = program.global_block().var(name).dtype
            if not hasattr(value, "shape"):
                array = array.astype(self._paddle.base.data_feeder.convert_dtype(dtype))
            step["feed"][name] = [self.keep(array), lod]
        for item, value in zip(fetch_list or [], out or []):
            if isinstance(item, tuple) or isinstance(value, list):
                self.refused = "fetches what is no tensor"
                continue
            step["fetch"].append(item if isinstance(item, str) else item.name)
            lod = value.lod() if hasattr(value, "lod") else None
            step["out"].append([self.keep(np.array(value)), lod])
        self.steps.append(step)


def why_not_recorded(text, recorder):
    """What a script does besides asking its executor."""
    for word, why in (("tempfile", "uses files"), (".set(", "writes to variables"),
                      ("set_program_state", "writes to variables"),
                      ("set_state_dict", "writes to variables"),
                      ("paddle.seed", "seeds in between"),
                      ("average.apply", "exchanges variables"),
                      ("amp.bf16", "is compared roughly")):
        if word in text:
            return why
    return "" if any(step["out"] for step in recorder.steps) else "fetches nothing"


def save_recording(path, recordings):
    """One archive: <script>/steps.json, programs and arrays."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        def put(name, data):
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data,
                             zipfile.ZIP_DEFLATED)

        for name, recorder in recordings.items():
            put(f"{name}/steps.json", json.dumps(recorder.steps))
            for data, key in recorder.programs.items():
                put(f"{name}/{key}.pdmodel", data)
            stream = io.BytesIO()
            np.savez(stream, **recorder.arrays)
            put(f"{name}/arrays.npz", stream.getvalue())


def run_document(paddle):
    """docs/training.md shows how programs are written with Paddle; the same is done here, and what
    it writes is trained with by heddle. The differences found."""
    import os
    import re
    import tempfile
    from heddle import static
    text = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
    block = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL).group(1)
    here, folder = os.getcwd(), tempfile.mkdtemp()
    try:
        os.chdir(folder)
        exec(block, {"paddle": paddle, "static": paddle.static})  # noqa: S102
        startup, main = (Path(name + ".pdmodel").read_bytes() for name in ("startup", "main"))
        infer = _heddle_program("infer.pdmodel")
    finally:
        os.chdir(here)
    exe, scope = static.Executor(), static.Scope()
    exe.run(startup, scope=scope)
    random = np.random.RandomState(0)
    batch = {"x": random.rand(8, 784).astype("float32"), "label": random.randint(0, 10, (8, 1))}
    losses = [float(exe.run(main, feed=batch, scope=scope, fetch_list=[_loss(main)])[0])
              for _ in range(5)]
    wrong = [] if losses[-1] < losses[0] else [f"the loss does not fall: {losses}"]
    if [info.name for info in infer.inputs] != ["x"]:
        wrong.append(f"infer.pdmodel has inputs {infer.inputs}")
    return wrong


def _heddle_program(path):
    import heddle
    return heddle.Program.load(path)


def _loss(data):
    import heddle
    return heddle.Program.parse(data).loss


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scripts", nargs="*", type=Path)
    parser.add_argument("--record", type=Path, metavar="FILE")
    parser.add_argument("--traceback", action="store_true", help="show where a script failed")
    options = parser.parse_args()
    try:
        import paddle
    except ImportError as error:
        print(f"skipped: {error}")
        return 77
    import heddle.static  # noqa: F401

    scripts = options.scripts or sorted((ROOT / "tests/python/scripts").glob("*.py"))
    failed, left, recordings = 0, 0, {}
    for path in scripts:
        text = path.read_text(encoding="utf-8")
        if THEIRS not in text:
            print(f"{path.stem}: has no line '{THEIRS}'")
            failed += 1
            continue
        try:
            if options.record:
                recorder = Recorder(paddle)
                theirs = run_script(path, text, paddle, recorder)
                why = recorder.refused or why_not_recorded(text, recorder)
                if why:
                    print(f"{path.stem}: not recorded: {why}")
                else:
                    recordings[path.stem] = recorder
            else:
                theirs = run_script(path, text, paddle)
            before = heddle.static.left_to_paddle()
            found = differences(theirs, run_script(path, text.replace(THEIRS, OURS), paddle))
            by_paddle = heddle.static.left_to_paddle() - before
        except Exception as error:  # noqa: BLE001
            found, by_paddle = [f"{type(error).__name__}: {error}"], 0
            if options.traceback:
                traceback.print_exc()
        failed += bool(found)
        left += not found and by_paddle > 0
        fine = "ok" if not by_paddle else f"not run: Paddle runs {by_paddle} of its programs"
        print(f"{path.stem}: " + (fine if not found else "; ".join(found[:3])), flush=True)
    if not options.scripts:
        paddle.enable_static()
        found = run_document(paddle)
        failed += bool(found)
        print("docs/training.md: " + ("ok" if not found else "; ".join(found)))
    if options.record:
        save_recording(options.record, recordings)
    passed = len(scripts) + (not options.scripts) - failed - left
    print(f"{passed} passed, {left} not run, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
