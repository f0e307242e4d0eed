"""The two sides of a comparison: heddle's command line, and a peer in a worker process."""

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORKER = Path(__file__).with_name("worker.py")
PATIENCE_S = 600  # for one answer, unless told otherwise


class Failed(Exception):
    """A side could not do what was asked."""


class Heddle:
    def __init__(self, binary, threads):
        self.binary, self.threads = str(binary), threads

    def command(self, verb, case):
        command = [self.binary, verb, str(case.program), "--threads", str(self.threads)]
        if case.params:
            command += ["--params", str(case.params)]
        for name, file in case.feeds.items():
            command += ["--feed", f"{name}={file}"]
        return command

    @staticmethod
    def _call(command):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise Failed(f"heddle: no end in {PATIENCE_S} s")
        if done.returncode != 0:
            raise Failed("heddle: " + (done.stderr.strip().splitlines() or ["(no message)"])[-1])
        return done.stdout

    def check(self, case, extra=("--no-lean",)):
        """Whether the outputs are those recorded, computed the way `bench` does unless told
        otherwise."""
        with tempfile.TemporaryDirectory() as folder:
            from peers.models import compare  # needs the numpy of the peers' environment

            self._call(self.command("run", case) + ["--out", folder, *extra])
            return compare(case, Path(folder))

    def bench(self, case, seconds, warmup=2, clients=1, extra=()):
        """A fresh process: load, first run, then runs for so long."""
        return json.loads(self._call(self.command("bench", case) + [
            "--seconds", str(seconds), "--warmup", str(warmup), "--clients", str(clients), "--json",
            *extra]))

    def build_ms(self, case):
        """Building the plan alone, in a fresh process."""
        return json.loads(self._call(self.command("plan", case) + ["--json"])).get("build_ms")


class Process:
    """A program that answers lines of JSON, and sleeps between requests. Says something first."""

    def __init__(self, command, env, patience=PATIENCE_S):
        self.patience = patience
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([str(c) for c in command], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log)
        try:
            self.facts = self._answer()
        except Failed:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], self.patience)
        if not ready:
            raise Failed(f"the peer: no answer in {self.patience:g} s")
        line = self.process.stdout.readline()
        if not line:
            raise Failed("the peer died: " + self._last_words())
        return json.loads(line)

    def _last_words(self):
        self.log.seek(0)
        lines = [s.strip() for s in self.log.read().decode(errors="replace").splitlines()]
        telling = [s for s in lines if "Error" in s and "Summary" not in s]
        return (telling or [s for s in lines if s] or ["(it said nothing)"])[-1][:200]

    def _ask(self, request):
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failed("the peer died: " + self._last_words())
        return self._answer()

    def slice(self, seconds):
        return self._ask({"slice": seconds})

    def close(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.write("{}\n")
                self.process.stdin.close()
                self.process.wait(10)
            except (BrokenPipeError, subprocess.TimeoutExpired):
                self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.log.close()


class HeddleProcess(Process):
    """heddle with one program loaded, as peers are."""

    def __init__(self, heddle, case, extra=()):
        command = heddle.command("bench", case) + ["--on-request", *extra]
        super().__init__(command, dict(os.environ))

    def clients(self, count, seconds):
        return self._ask({"clients": count, "slice": seconds})

    def round_trip_ns(self):
        """Between a signal of one processor and the answer of another; 0 where there is one
        only."""
        return self._ask({"round_trip": True})["round_trip_ns"]


class Worker(Process):
    """A peer with one program loaded."""

    def __init__(self, python, case, kind, threads, settings=None):
        spec = {"kind": kind, "program": str(case.program), "threads": threads,
                "params": str(case.params) if case.params else None,
                "feeds": {k: str(v) for k, v in case.feeds.items()}, **(settings or {})}
        self.case = case
        super().__init__([python, WORKER, json.dumps(spec)],
                         dict(os.environ, GLOG_minloglevel="3", PYTHONWARNINGS="ignore"))

    def check(self):
        with tempfile.TemporaryDirectory() as folder:
            from peers.models import compare

            self._ask({"outputs": folder})
            return compare(self.case, Path(folder))


def settle():
    """OpenMP's threads spin for 200 ms after their last work: let them, before the other side."""
    time.sleep(0.3)


def note(text):
    print(text, file=sys.stderr, flush=True)
