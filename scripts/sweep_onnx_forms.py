#!/usr/bin/env python3
"""Models of one ONNX operator in forms at the border of what its versions allow, run under ONNX
Runtime and heddle.

  scripts/sweep_onnx_forms.py --heddle build/release/heddle [--seed S] [--count N] [--only KIND]
  scripts/sweep_onnx_forms.py --record tests/python/onnx_forms.npz [--seed S] [--count N]
  scripts/sweep_onnx_forms.py --record tests/python/onnx_bodies.npz \
      --only branch_of_texts,loop_over_texts,map_of_texts,ms_attention,\
ms_group_query_attention,ms_images,ms_multi_head_attention,ms_norms,ms_products,ms_rotary,\
ms_shapes,ms_skips,ms_words,ngrams_of_texts,optional_of_texts,scan,scan_of_batches,\
scan_of_texts,sequence_of_texts,tokenizer [--seed S] [--count N]

Old opsets, attributes that became inputs, optional operands left out or empty, negative axes, empty
tensors, limits in the wrong order, odd padding. Each form is drawn from the seed and its number, by
a function of scripts/onnx_forms. ONNX Runtime decides what is right; a form that it refuses is left
out, and so are those of which a comment beside the function says that heddle keeps to ONNX's text.

Needs numpy, onnx and onnxruntime (pip install onnx==1.23.2 onnxruntime==1.32.0). Exit status: 0, or
1 when a form is wrong or refused."""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import numpy_helper

from onnx_forms import (bodies, decoders, elements, images, layouts, lists,  # noqa: F401
                        makers, microsoft, picks, products, reductions, texts, windows)
from onnx_forms.form import FORMS, tensor_of

WAYS = (["--opt", "2", "--threads", "1"], ["--opt", "1", "--threads", "2"],
        ["--opt", "0", "--threads", "1"])


def make(kind, seed, number):
    return FORMS[kind](np.random.default_rng([seed, number, sorted(FORMS).index(kind)]))


def expected(form, model):
    """ONNX Runtime's answers; raises where it refuses the model."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options,
                                   providers=["CPUExecutionProvider"])
    feeds = {n: a.astype(object) if a.dtype.kind == "U" else a for n, a in form.inputs}
    return [np.asarray(value) for value in session.run(None, feeds)]


def difference(got, want):
    """None, or what differs."""
    if got.shape != want.shape:
        return f"shape {got.shape}, not {want.shape}"
    if want.dtype.kind in "OU":
        bad = [(str(a), str(b)) for a, b in zip(got.ravel(), want.ravel()) if str(a) != str(b)]
        return f"texts {bad[:2]}" if bad else None
    if got.dtype != want.dtype:
        return f"type {got.dtype}, not {want.dtype}"
    if want.dtype.kind == "f":
        tolerance = 3e-3 if want.dtype.itemsize == 2 else 2e-5
        with np.errstate(all="ignore"):
            g, w = got.astype("f8"), want.astype("f8")
            near = np.isfinite(w) & (np.abs(g - w) <= tolerance * (1 + np.abs(w)))
            right = (g == w) | (np.isnan(g) & np.isnan(w)) | near
    else:
        right = got == want
    right = np.asarray(right)
    if right.all():
        return None
    at = np.unravel_index(int(np.argmin(right.ravel())), right.shape)
    return (f"{(~right).sum()} of {right.size} elements, first at {tuple(map(int, at))}: "
            f"{got[at]}, not {want[at]}")


class Case:
    """A form with ONNX Runtime's answers, in a folder as `heddle run-cases` takes it."""

    def __init__(self, name, form, model, want, folder):
        self.name, self.form, self.want, self.folder = name, form, want, folder
        self.out, data = folder / "out", folder / "test_data_set_0"
        data.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        for k, (operand, array) in enumerate(form.inputs):
            (data / f"input_{k}.pb").write_bytes(tensor_of(array, operand).SerializeToString())

    def got(self):
        """The outputs that were written."""
        outputs = []
        for k in range(len(self.want)):
            path = self.out / f"output_{k}.pb"
            if not path.exists():
                break
            tensor = onnx.TensorProto.FromString(path.read_bytes())
            if tensor.data_type == onnx.TensorProto.STRING:
                texts = [text.decode("utf-8", "replace") for text in tensor.string_data]
                outputs.append(np.array(texts, object).reshape(tuple(tensor.dims)))
            else:
                outputs.append(numpy_helper.to_array(tensor))
        return outputs

    def problem(self, said):
        """None, or what is wrong after a run that said this."""
        got = self.got()
        if len(got) != len(self.want):
            line = next((x for x in said.splitlines() if str(self.folder) in x), "no output")
            return "refused: " + line.replace(str(self.folder), "").strip()[:300]
        for k, (g, w) in enumerate(zip(got, self.want)):
            if why := difference(g, w):
                return f"wrong: output {k}: {why}"
        return None

    def __str__(self):
        f = self.form
        inputs = [(n, str(x.dtype), x.shape) for n, x in f.inputs]
        inits = [(n, str(x.dtype), x.shape, x.ravel()[:8].tolist()) for n, x in f.inits]
        return (f"{self.name} {f.op} opset {f.opset} {f.attrs} inputs {inputs} initializers "
                f"{inits}")


def draw(kinds, seed, count, folder, show_left_out):
    """The cases, and how many forms ONNX Runtime refuses."""
    cases, left_out = [], 0
    for kind in kinds:
        for number in range(count):
            form = make(kind, seed, number)
            model = form.model()
            try:
                want = expected(form, model)
            except Exception as error:
                left_out += 1
                if show_left_out:
                    print("left out:", kind, number, form.op, form.opset, str(error)[:150])
                continue
            name = f"{kind}_{number}"
            cases.append(Case(name, form, model, want, folder / name))
    return cases, left_out


def run(heddle, cases, folder):
    """What is wrong, by case."""
    listing = folder / "list"
    listing.write_text("".join(f"{case.folder}\t{case.out}\n" for case in cases))
    problems = {}
    for way in WAYS:
        for case in cases:
            shutil.rmtree(case.out, ignore_errors=True)
            case.out.mkdir()
        ran = subprocess.run([heddle, "run-cases", "--list", listing, *way], check=False,
                             capture_output=True, text=True)
        for case in cases:
            if case.name not in problems and (why := case.problem(ran.stdout + ran.stderr)):
                problems[case.name] = f"{why} ({' '.join(way)})"
    return problems


def record(path, kinds, seed, count):
    """Writes forms with ONNX Runtime's answers as tests/python/test_onnx_forms.py reads them."""
    names, arrays = {}, {}
    for kind in kinds:
        number = 0
        while len(names.setdefault(kind, [])) < count:
            form = make(kind, seed, number)
            name = f"{kind}_{number}"
            number += 1
            try:
                model = form.model()
                want = expected(form, model)
            except Exception:  # of ONNX Runtime, which refuses the form
                continue
            names[kind].append(name)
            arrays[f"{name}/model"] = np.frombuffer(model.SerializeToString(), "u1")
            for where, values in (("in", [x for _, x in form.inputs]), ("out", want)):
                for k, x in enumerate(values):
                    arrays[f"{name}/{where}{k}"] = x.astype("U") if x.dtype.kind == "O" else x
    np.savez_compressed(path, names=json.dumps(names), **arrays)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--heddle", help="the tool")
    add("--record", help="write forms and answers to this file, and run nothing else")
    add("--seed", type=int, default=1)
    add("--count", type=int, default=20, help="forms of each kind [20]")
    add("--only", default="", help="functions of scripts/onnx_forms, by commas [all]")
    add("--keep", type=Path, help="folder for the cases that differ")
    add("--show-left-out", action="store_true", help="print what ONNX Runtime refuses")
    options = parser.parse_args()
    kinds = [kind for kind in sorted(FORMS)
             if options.only == "" or kind in options.only.split(",")]
    if options.record:
        record(options.record, kinds, options.seed, options.count)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        cases, left_out = draw(kinds, options.seed, options.count, Path(folder),
                               options.show_left_out)
        problems = run(options.heddle, cases, Path(folder))
        for case in cases:
            if case.name not in problems:
                continue
            print(f"{case}\n    {problems[case.name]}")
            if options.keep:
                shutil.copytree(case.folder, options.keep / case.name, dirs_exist_ok=True)
    refused = sum(why.startswith("refused") for why in problems.values())
    print(f"{len(cases) - len(problems)} right, {len(problems) - refused} wrong, {refused} refused,"
          f" {left_out} left out")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
