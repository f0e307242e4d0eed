"""Paddle's side of benchmarks/training.py: holds one recorded training program, steps it when
asked.

  paddle_worker.py '{"folder": …, "inplace": bool, "perturb": seed}'

With "perturb", floating-point state starts off by up to one unit in the last place. The number of
OpenMP threads is OMP_NUM_THREADS of the environment. Talks in lines of JSON, as heddle_worker.cc
does: {"slice": seconds}, {"steps": N, "folder": F}, {}.
"""

import gc
import json
import os
import sys
import time


def status_mb(field):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    return 0.0


def read_tensors(path):
    """The records of a combined parameter file as arrays."""
    import struct

    import numpy as np

    types = {0: "?", 1: "<i2", 2: "<i4", 3: "<i8", 5: "<f4", 6: "<f8", 20: "<u1", 21: "<i1"}
    with open(path, "rb") as file:
        data = file.read()
    at = 0
    while at < len(data):
        levels = struct.unpack_from("<Q", data, at + 4)[0]
        at += 12
        for _ in range(levels):
            at += 8 + struct.unpack_from("<Q", data, at)[0]
        size = struct.unpack_from("<i", data, at + 4)[0]
        described, at = data[at + 8:at + 8 + size], at + 8 + size
        fields, k = [], 0
        while k < len(described):  # every field is a varint
            key, value, shift = described[k], 0, 0
            k += 1
            while True:
                value |= (described[k] & 0x7F) << shift
                shift += 7
                k += 1
                if described[k - 1] < 0x80:
                    break
            fields.append((key >> 3, value))
        dtype = np.dtype(types[next(v for f, v in fields if f == 1)])
        shape = [v for f, v in fields if f == 2]
        count = int(np.prod(shape)) if shape else 1
        yield np.frombuffer(data, dtype, count, at).reshape(shape).copy()
        at += count * dtype.itemsize


class Trainer:
    def __init__(self, spec):
        import numpy as np
        import paddle

        self.np, self.paddle = np, paddle
        self.version = paddle.__version__
        self.imported_mb = status_mb("VmHWM")
        start = time.perf_counter()
        self.dir = spec["folder"]
        with open(f"{self.dir}/meta.json") as file:
            self.meta = json.load(file)
        paddle.enable_static()
        with open(f"{self.dir}/main.pdmodel", "rb") as file:
            self.program = paddle.static.Program.parse_from_string(file.read())
        self.inplace, self.perturb = spec.get("inplace", False), spec.get("perturb")
        self.fetches = [f["fetch"] for f in self.meta["fetches"]]
        arrays = {f["name"]: np.load(f"{self.dir}/in_{f['name']}.npy") for f in self.meta["feeds"]}
        count = len(next(iter(arrays.values())))
        self.batches = [{k: np.ascontiguousarray(v[i]) for k, v in arrays.items()}
                        for i in range(count)]
        self.executor = paddle.static.Executor(paddle.CPUPlace())
        self.restart()
        self.load_ms = (time.perf_counter() - start) * 1e3

    def restart(self):
        self.scope = self.paddle.static.Scope()
        random = self.np.random.default_rng(self.perturb)
        tensors = read_tensors(f"{self.dir}/init.pdiparams")
        for name, array in zip(sorted(self.meta["state"]), tensors):
            if self.perturb is not None and array.dtype.kind == "f" and array.size > 1:
                towards = random.choice([-1, 0, 1], array.shape) * self.np.inf
                moved = self.np.nextafter(array, towards.astype(array.dtype))
                array = self.np.where(self.np.isnan(towards) | (array == 0), array, moved)
            self.scope.var(name).get_tensor().set(array, self.paddle.CPUPlace())
        self.at = 0
        self.compiled = self.program
        if self.inplace:  # bound to the scope of its first run
            strategy = self.paddle.static.BuildStrategy()
            strategy.enable_inplace = strategy.enable_addto = True
            self.compiled = self.paddle.static.CompiledProgram(self.program,
                                                               build_strategy=strategy)

    def step(self):
        feed = self.batches[self.at % len(self.batches)]
        self.at += 1
        return self.executor.run(self.compiled, feed=feed, fetch_list=self.fetches,
                                 scope=self.scope)

    def slice(self, seconds):
        clock = time.perf_counter_ns
        for _ in range(2):  # wakes threads, warms caches after the pause
            self.step()
        times = []
        gc.collect()
        gc.disable()
        end = clock() + int(seconds * 1e9)
        while True:
            start = clock()
            self.step()
            now = clock()
            times.append(now - start)
            if now >= end:
                break
        gc.enable()
        times.sort()
        return {"median_ms": times[len(times) // 2] / 1e6,
                "p90_ms": times[len(times) * 9 // 10] / 1e6, "min_ms": times[0] / 1e6,
                "runs": len(times), "vmhwm_mb": status_mb("VmHWM")}

    def record(self, steps, folder):
        np = self.np
        self.restart()
        outs = [[] for _ in self.fetches]
        for _ in range(steps):
            for kept, value in zip(outs, self.step()):
                kept.append(np.asarray(value).ravel())
        for k, values in enumerate(outs):
            np.save(f"{folder}/out_{k}.npy", np.stack(values))
        np.savez(f"{folder}/state.npz", **{name: np.array(self.scope.find_var(name).get_tensor())
                                           for name in self.meta["state"]})
        return {"ok": True}


def main():
    # What the libraries print must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(message):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    trainer = Trainer(json.loads(sys.argv[1]))
    start = time.perf_counter()
    trainer.step()
    say({"version": trainer.version, "load_ms": trainer.load_ms,
         "first_ms": (time.perf_counter() - start) * 1e3, "imported_mb": trainer.imported_mb,
         "vmhwm_mb": status_mb("VmHWM")})
    for line in sys.stdin:
        request = json.loads(line)
        if "slice" in request:
            say(trainer.slice(request["slice"]))
        elif "steps" in request:
            say(trainer.record(request["steps"], request["folder"]))
        else:
            break
    answers.flush()
    os._exit(0)  # without the libraries' own goodbyes, which take time


if __name__ == "__main__":
    main()
