"""A process that holds one peer with one program loaded and runs it when asked.

  worker.py '{"kind": "executor" | "inference" | "onnxruntime", "program": …, "params": …,
              "feeds": {name: file}, "threads": N, …}'

Talks in lines of JSON: after loading and one run it says how long those took; then, for each line
it reads, {"slice": seconds} runs the program for that long, {"outputs": folder} writes what the
last run gave, an empty object ends. Between requests it blocks on its standard input.
"""

import gc
import json
import sys
import time

from talk import Answers, load_arrays, status_mb


class PaddleExecutor:
    """paddle.static.Executor: the executor programs are written for."""

    def __init__(self, spec):
        import paddle
        from paddle import static

        self.version = paddle.__version__
        self.imported_mb = status_mb("VmHWM")
        start = time.perf_counter()
        paddle.enable_static()
        self.executor = static.Executor(paddle.CPUPlace())
        prefix = spec["program"][: -len(".pdmodel")]
        given = {}
        if spec["params"] and spec["params"] != prefix + ".pdiparams":
            with open(spec["params"], "rb") as file:
                given["params_filename"] = file.read()
            with open(spec["program"], "rb") as file:
                given["model_filename"] = file.read()
            prefix = None
        self.program, self.names, self.fetches = static.load_inference_model(
            prefix, self.executor, **given)
        self.feed = {name: spec["arrays"][name] for name in self.names}
        self.load_ms = (time.perf_counter() - start) * 1e3

    def run(self):
        self.out = self.executor.run(self.program, feed=self.feed, fetch_list=self.fetches)

    def outputs(self):
        return self.out


class PaddleInference:
    """paddle.inference.Predictor. `border`: "shared" binds the input once and leaves the output
    where it is, so that only Predictor.run is timed; "copied" copies both in every run. (There is
    also Predictor.run(list of tensors); in 2.6.2 it ends in a segmentation fault.)"""

    def __init__(self, spec):
        import paddle
        from paddle import inference

        self.version = paddle.__version__
        self.imported_mb = status_mb("VmHWM")
        start = time.perf_counter()
        config = inference.Config(spec["program"], spec["params"] or "")
        config.disable_gpu()
        config.disable_glog_info()
        config.set_cpu_math_library_num_threads(spec["threads"])
        config.switch_ir_optim(True)
        if spec.get("onednn", True):
            config.enable_mkldnn()
            if spec.get("cache") is not None:
                config.set_mkldnn_cache_capacity(spec["cache"])
        else:
            config.disable_mkldnn()
        if spec.get("memory_optim"):
            config.enable_memory_optim()
        self.predictor = inference.create_predictor(config)
        self.names = self.predictor.get_input_names()
        self.arrays = [spec["arrays"][name] for name in self.names]
        self.border = spec.get("border", "shared")
        self.handles = [self.predictor.get_input_handle(n) for n in self.names]
        self.run = self.run_shared if self.border == "shared" else self.run_copied
        if self.border == "shared":
            self.tensors = [paddle.base.core.LoDTensor() for _ in self.arrays]
            for handle, tensor, array in zip(self.handles, self.tensors, self.arrays):
                tensor.set(array, paddle.CPUPlace())
                handle.share_external_data(tensor)
        self.results = None
        self.load_ms = (time.perf_counter() - start) * 1e3

    def run_shared(self):
        self.predictor.run()

    def run_copied(self):
        for handle, array in zip(self.handles, self.arrays):
            handle.copy_from_cpu(array)
        self.predictor.run()
        if self.results is None:
            self.results = [self.predictor.get_output_handle(n)
                            for n in self.predictor.get_output_names()]
        self.out = [r.copy_to_cpu() for r in self.results]

    def outputs(self):
        if self.border == "copied":
            return self.out
        return [self.predictor.get_output_handle(n).copy_to_cpu()
                for n in self.predictor.get_output_names()]


class OnnxRuntime:
    def __init__(self, spec):
        import onnxruntime as ort

        self.version = ort.__version__
        self.imported_mb = status_mb("VmHWM")
        start = time.perf_counter()
        options = ort.SessionOptions()
        options.intra_op_num_threads = spec["threads"]
        options.inter_op_num_threads = 1
        if not spec.get("optimise", True):
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.add_session_config_entry("session.intra_op.allow_spinning", "1")
        self.session = ort.InferenceSession(spec["onnx"], options,
                                            providers=["CPUExecutionProvider"])
        self.feed = {i.name: spec["arrays"][i.name] for i in self.session.get_inputs()}
        self.load_ms = (time.perf_counter() - start) * 1e3

    def run(self):
        self.out = self.session.run(None, self.feed)

    def outputs(self):
        return self.out


def run_slice(peer, seconds):
    clock = time.perf_counter_ns
    run = peer.run
    for _ in range(2):  # wakes threads, warms caches after the pause
        run()
    times = []
    gc.collect()
    gc.disable()
    end = clock() + int(seconds * 1e9)
    while True:
        start = clock()
        run()
        now = clock()
        times.append(now - start)
        if now >= end:
            break
    gc.enable()
    times.sort()
    return {"median_ms": times[len(times) // 2] / 1e6, "p90_ms": times[len(times) * 9 // 10] / 1e6,
            "min_ms": times[0] / 1e6, "runs": len(times), "vmhwm_mb": status_mb("VmHWM")}


def main():
    answers = Answers()
    spec = json.loads(sys.argv[1])
    spec["arrays"] = load_arrays(spec["feeds"])
    kinds = {"executor": PaddleExecutor, "inference": PaddleInference, "onnxruntime": OnnxRuntime}
    peer = kinds[spec["kind"]](spec)
    start = time.perf_counter()
    peer.run()
    first_ms = (time.perf_counter() - start) * 1e3
    answers.say({"load_ms": peer.load_ms, "first_ms": first_ms, "version": peer.version,
                 "imported_mb": peer.imported_mb, "vmhwm_mb": status_mb("VmHWM")})
    answers.serve(peer, run_slice)


if __name__ == "__main__":
    main()
