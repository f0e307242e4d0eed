#!/usr/bin/env python3
"""Executes the shell commands and compiles the C and C++ of the documents:
check_docs.py --heddle TOOL [--cc CC] [--cxx CXX].

Every fenced block of README.md, HACKING.md, docs/, examples/ and benchmarks/ is looked at; one that
nothing executes is an error. Commands run in a folder that looks like the repository, in which the
names that documents use for anybody's model (`model_dir`, `resnet50/`, …) are the example's. What
another test executes is listed here with that test."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "HACKING.md", "docs/*.md", "examples/**/*.md", "benchmarks/**/*.md"]

# Commands that are not run here: a pattern, and what runs them.
ELSEWHERE = [
    (r"scripts/setup\.sh", "scripts/test.sh begins with it"),
    (r"python3 -m venv env( && env/bin/pip install \.)?", "scripts/try_newcomer.sh"),
    (r"env/bin/pip install \.", "scripts/try_newcomer.sh"),
    (r"cmake --preset release && cmake --build build/release.*", "scripts/test.sh"),
    (r"cmake --preset dev && .*|ctest --preset dev -L core|scripts/test\.sh asan",
     "CMakePresets.json is checked here"),
    (r"cmake --install build/release --prefix <prefix>", "the test package.consumer"),
    (r"PYTHONPATH=build/release/python .* -m pytest tests/python", "the tests python.*"),
    (r"cmake -S \. -B build/cuda .*|build/cuda/heddle .*", "needs CUDA; see docs/gpu.md"),
    (r"examples/ocr/(get_models\.sh|ocr\.py) .*", "the test examples.ocr"),
    (r"examples/digits/train/accuracy\.py predictions", "needs NumPy; the test docs.accuracy"),
    (r"heddle train --forward model\.onnx .*", "tests/tools/training/fine_tune_test.cc"),
    (r"benchmarks/scheduling.*|build/release/heddle_bench_.*|cmake -S benchmarks/scheduling .*",
     "benchmarks, which take long and fetch their peers"),
]

# What documents leave out.
MEANT = [("heddle train … ", "heddle train --startup examples/digits/train/startup.pdmodel "
          "--main examples/digits/train/main.pdmodel --data examples/digits/train/train.npz "
          "--batch-size 32 --epochs 20 ")]

# Documents whose console blocks scripts/check_console.py runs, and whose Python test_docs.py runs.
CONSOLE = {"docs/errors.md"}
# (scripts/paddle_frontend.py runs that of docs/training.md, which needs Paddle.)
PYTHON = {"README.md", "docs/building.md", "docs/python.md", "docs/training.md",
          "docs/from-onnxruntime.md", "docs/from-paddle-inference.md", "docs/from-paddle3.md",
          "docs/from-tensorflow.md"}

EMBEDDED = ("#include <iostream>\nvoid f(heddle::Executor& executor, "
            "const heddle::CompiledProgram& compiled, heddle::Tensor x) {\n", "\n}\n")

# What a piece of C++ or C needs around it: (part of the block, before, after).
CPP = [
    ("LoadModel(\"model_dir\")", "heddle::Tensor x;\nvoid f() {\n", "\n}\n"),
    ("OpenDevice(\"emulated\")", "#include <heddle/device.h>\n"
     "void f(heddle::Result<heddle::Program>& m, heddle::Model* model) {\n", "\n}\n"),
    ("heddle::ProgramBuilder b(", "#include <heddle/heddle.h>\n", ""),
    ("heddle::Engine::Load(", "", ""),
    ("heddle::Generator generator", "#include <heddle/heddle.h>\nvoid f(heddle::Program* startup, "
     "heddle::Program* main, heddle::Tensor x, heddle::Tensor y) {\n", "\n}\n"),
    *((part, *EMBEDDED) for part in ("Tensor::Of(", "BoundRun run(", "RunOptions options;",
                                     "check_nan_inf = true")),
    ("heddle::FunctionsOf(", "#include <heddle/functions.h>\n#include <heddle/heddle.h>\n"
     "#include <iostream>\nvoid f(heddle::Model* model) {\n", "\n}\n"),
    ("heddle::NewRanks(2)", "#include <heddle/heddle.h>\n#include <thread>\n"
     "void f(heddle::Program* program, std::vector<heddle::Feed> feeds_a,"
     " std::vector<heddle::Feed> feeds_b) {\n"
     "heddle::Result<std::vector<heddle::Tensor>> outputs_a = std::vector<heddle::Tensor>();\n"
     "auto outputs_b = outputs_a;\n", "\n}\n"),
    ("heddle::ReaderQueue>(8)", "#include <heddle/heddle.h>\n#include <thread>\n"
     "heddle::Status f(heddle::Executor& executor, const heddle::CompiledProgram& compiled,"
     " std::shared_ptr<heddle::Scope> scope,"
     " const std::vector<heddle::ReaderQueue::Batch>& batches) {\n",
     "\nreturn heddle::Status::Ok();\n}\n"),
    ("heddle_queue_new", "#include <heddle.h>\n"
     "void f(heddle_model* model, const heddle_tensor* const* batch, size_t num_tensors,"
     " int pushed) {\n", "\n}\n"),
    ("heddle_ranks_new", "#include <heddle.h>\nvoid f(heddle_executor* executor) {\n", "\n}\n"),
    ("heddle_executor_new",
     "#include <stdio.h>\nvoid f(heddle_executor* executor, heddle_model* model,"
     " const char* const* names, const heddle_tensor* const* inputs, heddle_tensor** outputs) {\n",
     "\n}\n"),
]
EXCERPTS = {"HEDDLE_OP(relu)": "kernels/activation/relu.cc",
            "HEDDLE_TILE(relu)": "kernels/activation/relu.cc"}


def blocks(text):
    """(line, language, text) of each fenced block."""
    for match in re.finditer(r"^```(\w*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield text.count("\n", 0, match.start()) + 2, match.group(1), match.group(2)


def commands(text):
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        line = re.sub(r"\s+#\s.*$", "", line).strip()
        if line and not line.startswith("#"):
            yield line


def scratch(heddle):
    folder = Path(tempfile.mkdtemp(prefix="heddle_docs_"))
    for entry in ROOT.iterdir():
        if entry.name not in ("build", ".git", "examples"):
            (folder / entry.name).symlink_to(entry)
    shutil.copytree(ROOT / "examples", folder / "examples")
    digits = folder / "examples" / "digits"
    for name in ("model_dir", "resnet50", "model"):
        shutil.copytree(digits, folder / name)
    subprocess.run([heddle, "convert", digits, "--to", "pir", "-o", folder / "paddle3_model"],
                   check=True, stdout=subprocess.DEVNULL)
    for name in ("in.npy", "x.npy"):
        shutil.copy(digits / "input.npy", folder / name)
    for name in ("bin", "build/release", "dumps"):
        (folder / name).mkdir(parents=True)
    for name in ("bin/heddle", "build/release/heddle"):
        (folder / name).symlink_to(heddle)
    for engine in heddle.parent.glob("heddle_engine_*"):
        (folder / "build/release" / engine.name).symlink_to(engine)
    return folder


def run_shell(command, folder):
    env = dict(os.environ, PATH=f"{folder / 'bin'}:{os.environ['PATH']}", HOME=str(folder),
               XDG_CACHE_HOME=str(folder / "cache"))
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=env, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          stdin=subprocess.DEVNULL)
    return "" if done.returncode == 0 else f"status {done.returncode}: {done.stdout[-400:]}"


def compile_piece(text, language, options):
    """Wraps the piece and has the compiler look at it; includes go to the front."""
    for part, before, after in CPP:
        if part in text:
            break
    else:
        return "scripts/check_docs.py does not know what to put around it"
    includes = "".join(re.findall(r"^#include.*\n", text, re.MULTILINE))
    body = re.sub(r"^#include.*\n", "", text, flags=re.MULTILINE).replace("for (…)", "for (;;)")
    header = "" if includes or language == "c" else "#include <heddle/heddle.h>\n"
    if language == "c":
        body = body.replace("heddle_error* error =", "heddle_error* error =", 1)
    compiler = [options.cc, "-std=c99", "-pedantic", "-xc"] if language == "c" else [
        options.cxx, "-std=c++20", "-xc++"]
    done = subprocess.run([*compiler, "-fsyntax-only", "-Wall", "-Werror", "-Wno-unused",
                           "-I", str(ROOT / "include"), "-"], text=True, capture_output=True,
                          input=header + includes + before + body + after)
    return "" if done.returncode == 0 else done.stderr[:600]


def look_at(page, language, text, folder, options):
    """What is wrong with one block, and how many of its commands were executed."""
    if language == "console":
        return ([] if page in CONSOLE else ["no test runs it: list it in CONSOLE"]), 0
    if language == "python":
        return ([] if page in PYTHON else ["no test runs it: list it in PYTHON"]), 0
    if language in ("cpp", "c"):
        for part, file in EXCERPTS.items():
            if text.startswith(part):
                found = part in (ROOT / file).read_text(encoding="utf-8")
                return ([] if found else [f"{file} has no {part}"]), 0
        wrong = compile_piece(text, language, options)
        return ([wrong] if wrong else []), 1
    if language == "cmake":
        consumer = (ROOT / "tests/package/CMakeLists.txt").read_text(encoding="utf-8")
        lines = [re.escape(line).replace("app", r"\w+").replace(r"heddle\ REQUIRED",
                                                                r"heddle\b.* REQUIRED")
                 for line in text.splitlines() if line]
        return [f"tests/package has nothing like: {line}" for line in lines
                if not re.search(line, consumer)], len(lines)
    if language != "sh":
        return [], 0  # a drawing, or what something prints
    wrong, count = [], 0
    for command in commands(text):
        if any(re.fullmatch(pattern, command) for pattern, _ in ELSEWHERE):
            continue
        count += 1
        for short, meant in MEANT:
            command = command.replace(short, meant)
        failure = run_shell(command, folder)
        if failure:
            wrong.append(f"$ {command}\n  {failure}")
    return wrong, count


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", type=Path, required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    options = parser.parse_args()
    failed = executed = 0
    pages = sorted({p for pattern in PAGES for p in ROOT.glob(pattern)})
    for path in pages:
        page = path.relative_to(ROOT).as_posix()
        folder = scratch(options.heddle.resolve())
        try:
            for line, language, text in blocks(path.read_text(encoding="utf-8")):
                wrong, count = look_at(page, language, text, folder, options)
                executed += count
                failed += len(wrong)
                for what in wrong:
                    print(f"{page}:{line}: {what}")
        finally:
            shutil.rmtree(folder)
    presets = (ROOT / "CMakePresets.json").read_text(encoding="utf-8")
    for name in ("dev", "release", "asan", "tsan", "ubsan"):
        if f'"name": "{name}"' not in presets:
            failed += 1
            print(f"CMakePresets.json has no preset {name}")
    print(f"{len(pages)} pages, {executed} commands and pieces, {failed} wrong")
    return 1 if failed or not executed else 0


if __name__ == "__main__":
    sys.exit(main())
