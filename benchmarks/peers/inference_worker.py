"""A process that holds one inference engine with one program loaded and runs it when asked.

  inference_worker.py '{"engine": "onnxruntime" | "openvino" | "paddle", "model": file,
                        "params": file, "feeds": {name: file}, "threads": N, "setting": {…}}'

Talks in lines of JSON. First: how long loading and the first run took (without importing the
library), and the process's peak memory beyond that of Python with numpy alone. Then for each line
it reads: {"slice": seconds} runs for that long; {"clients": n, "slice": seconds} lets n threads ask
at the same time; {"outputs": folder} writes what the last run gave; an empty object ends.
"""

import gc
import json
import sys
import threading
import time

from talk import Answers, load_arrays, status_mb


class OnnxRuntime:
    """`setting`: parallel (side by side, instead of all threads in one operator), bound (inputs and
    outputs stay where they are, so that nothing is made or copied in a run), basic (no layout or
    fusion changes), unoptimized (the graph as it is)."""

    def __init__(self, spec):
        import onnxruntime as ort

        self.version = "ONNX Runtime " + ort.__version__
        start = time.perf_counter()
        setting, options = spec["setting"], ort.SessionOptions()
        options.intra_op_num_threads = spec["threads"]
        options.inter_op_num_threads = spec["threads"] if setting.get("parallel") else 1
        if setting.get("parallel"):
            options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
        if setting.get("basic"):
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
        if setting.get("unoptimized"):
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = ort.InferenceSession(spec["model"], options,
                                            providers=["CPUExecutionProvider"])
        self.names = [o.name for o in self.session.get_outputs()]
        self.feed = {i.name: spec["arrays"][i.name] for i in self.session.get_inputs()}
        if setting.get("bound"):
            self.binding = self.session.io_binding()
            for name, array in self.feed.items():
                self.binding.bind_cpu_input(name, array)
            for name, array in zip(self.names, self.session.run(None, self.feed)):
                self.binding.bind_ortvalue_output(name, ort.OrtValue.ortvalue_from_numpy(array))
            self.run = lambda: self.session.run_with_iobinding(self.binding)
            self.outputs = self.binding.copy_outputs_to_cpu
        self.load_ms = (time.perf_counter() - start) * 1e3

    def run(self):
        self.out = self.session.run(None, self.feed)

    def outputs(self):
        return self.out

    def client(self):
        return lambda: self.session.run(None, self.feed)


class OpenVino:
    """`setting`: static (told the input shapes before compiling), streams, throughput."""

    def __init__(self, spec):
        import openvino as ov

        self.version = "OpenVINO " + ov.__version__.split("-")[0]
        start = time.perf_counter()
        core, setting = ov.Core(), spec["setting"]
        model = core.read_model(spec["model"])
        arrays = {n: spec["arrays"][n] for i in model.inputs for n in i.get_names()
                  if n in spec["arrays"]}
        if setting.get("static"):
            model.reshape({name: list(array.shape) for name, array in arrays.items()})
        config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": spec["threads"],
                  "PERFORMANCE_HINT": "THROUGHPUT" if setting.get("throughput") else "LATENCY"}
        if setting.get("streams"):
            config["NUM_STREAMS"] = str(setting["streams"])
        self.model, self.feed = core.compile_model(model, "CPU", config), arrays
        self.request = self.model.create_infer_request()
        self.load_ms = (time.perf_counter() - start) * 1e3

    def run(self):
        self.request.infer(self.feed, share_inputs=True, share_outputs=True)

    def outputs(self):
        return [self.request.get_output_tensor(k).data for k in range(len(self.model.outputs))]

    def client(self):
        request = self.model.create_infer_request()
        return lambda: request.infer(self.feed, share_inputs=True, share_outputs=True)


def paddle(spec):
    from worker import PaddleInference

    side = PaddleInference({"program": spec["model"], "params": spec["params"],
                            "threads": spec["threads"], "arrays": spec["arrays"],
                            **spec["setting"]})
    side.version = "Paddle Inference " + side.version
    return side


def percentile(times, share):
    return times[min(len(times) - 1, int(len(times) * share))] / 1e6


def summary(times, seconds):
    times.sort()
    return {"median_ms": percentile(times, 0.5), "p90_ms": percentile(times, 0.9),
            "p99_ms": percentile(times, 0.99), "runs": len(times),
            "runs_per_s": len(times) / seconds}


def timed(run, seconds, least=3):
    clock, times = time.perf_counter_ns, []
    end = clock() + int(seconds * 1e9)
    while True:
        start = clock()
        run()
        now = clock()
        times.append(now - start)
        if now >= end and len(times) >= least:
            return times


def run_slice(engine, seconds):
    for _ in range(3):  # wakes threads, warms caches after the pause
        engine.run()
    gc.disable()
    times = timed(engine.run, seconds)
    gc.enable()
    return summary(times, sum(times) / 1e9)


def run_clients(engine, seconds, clients):
    calls, times = [engine.client() for _ in range(clients)], [[] for _ in range(clients)]

    def serve(k):
        calls[k]()
        times[k] = timed(calls[k], seconds, 1)

    threads = [threading.Thread(target=serve, args=(k,)) for k in range(clients)]
    start = time.perf_counter()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return summary(sum(times, []), time.perf_counter() - start)


def main():
    answers = Answers()
    spec = json.loads(sys.argv[1])
    spec["arrays"] = load_arrays(spec["feeds"])
    bare_mb = status_mb("VmHWM")
    engine = {"onnxruntime": OnnxRuntime, "openvino": OpenVino,
              "paddle": paddle}[spec["engine"]](spec)
    start = time.perf_counter()
    engine.run()
    answers.say({"load_ms": engine.load_ms, "first_ms": (time.perf_counter() - start) * 1e3,
                 "version": engine.version, "peak_mb": status_mb("VmHWM") - bare_mb})
    answers.serve(engine, run_slice, run_clients)


if __name__ == "__main__":
    main()
