"""ONNX Runtime as a further peer: programs converted by paddle2onnx."""

import subprocess
from pathlib import Path

from peers.sides import Failed


class Onnx:
    def __init__(self, python, build):
        self.python, self.build = Path(python), build

    def convert(self, case):
        target = self.build / case.model / "model.onnx"
        if target.exists():
            return target
        target.parent.mkdir(parents=True, exist_ok=True)
        call = ("import sys, paddle2onnx; paddle2onnx.export(*sys.argv[1:4], opset_version=13, "
                "enable_onnx_checker=False)")
        done = subprocess.run([str(self.python), "-c", call, str(case.program),
                               str(case.params or ""), str(target)], capture_output=True, text=True)
        if done.returncode != 0 or not target.exists():
            lines = done.stderr.strip().splitlines() or ["failed"]
            raise Failed("paddle2onnx: " + lines[-1][:160])
        return target
