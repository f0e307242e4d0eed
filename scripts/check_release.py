#!/usr/bin/env python3
"""Makes the wheels and the archive (scripts/release.sh) and tries them as their users would.

The wheel of the build's Python is installed into a bare environment and runs examples/digits; that
for any Python does so in the same and in each other one from 3.9 on that is found here. The archive
is unpacked in another place, its tool runs the same model with the same result bit for bit, and the
consumer of tests/package is built against it. None may load a shared library of this system but for
those of the C and C++ run time. Status 77 where pip can bring neither auditwheel nor NumPy.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIGITS = ROOT / "examples/digits"
ONEDNN = ROOT / ".deps/onednn/lib/libdnnl.so.3"
BARE = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
SYSTEM = re.compile(r"/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|z|gcc_s|stdc\+\+|util))\.so[^/]*$")
# Prints the shared libraries that the process holds in the end.
RUN_WHEEL = """
import sys, numpy, heddle
model = heddle.load(sys.argv[1], threads=1)
output = model(numpy.load(sys.argv[1] + "/input.npy"))
output = output[0] if isinstance(output, (list, tuple)) else output
numpy.save(sys.argv[2], numpy.asarray(output))
import heddle.build, heddle.inference, heddle.onnx, heddle.static
session = heddle.onnx.InferenceSession(sys.argv[1] + "/onnx/model.onnx")
(again,) = session.run(None, {"x": numpy.load(sys.argv[1] + "/input.npy")})
assert (again.argmax(-1) == output.argmax(-1)).all()
lines = open("/proc/self/maps").read().split("\\n")
print("\\n".join({line.split()[-1] for line in lines if ".so" in line}))
"""
# The same without what needs the extension.
RUN_ANY = """
import sys, numpy, heddle
assert "static" not in heddle.__all__ and not heddle._whole
model = heddle.load(sys.argv[1], threads=1)
output = model(numpy.load(sys.argv[1] + "/input.npy"))
numpy.save(sys.argv[2], output)
again = heddle.load(sys.argv[1] + "/onnx/model.onnx")(numpy.load(sys.argv[1] + "/input.npy"))
assert (again.argmax(-1) == output.argmax(-1)).all()
lines = open("/proc/self/maps").read().split("\\n")
print("\\n".join({line.split()[-1] for line in lines if ".so" in line}))
"""
COMPARE = """
import sys, numpy
a, b = (numpy.load(path) for path in sys.argv[1:])
sys.exit(0 if a.shape == b.shape and a.tobytes() == b.tobytes() else "the results differ")
"""


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode == 77:
        print(done.stdout, end="")
        sys.exit(77)
    if done.returncode:
        sys.exit(f"failed ({done.returncode}): {' '.join(map(str, words))}\n{done.stdout}")
    return done.stdout


def only(folder, pattern):
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        sys.exit(f"{folder} holds {len(found)} of {pattern}")
    return found[0]


def check_libraries(paths, home):
    """Each library is of `home` or one that every Linux has."""
    strange = [p for p in paths if home not in Path(p).resolve().parents and not SYSTEM.search(p)]
    if strange:
        sys.exit("loaded from this system: " + ", ".join(sorted(strange)))


def check_onednn(binary, python):
    """oneDNN, which heddle opens itself, lies where `binary` looks for it, and loads there."""
    if not ONEDNN.exists():
        return
    said = run("readelf", "-d", binary)
    folders = re.search(r"R(?:UN)?PATH.*\[(.*)\]", said)
    origin = str(Path(binary).resolve().parent)
    for folder in folders[1].replace("$ORIGIN", origin).split(":") if folders else []:
        for name in ("libheddle_dnnl.so", "libdnnl.so.3"):
            if folder.startswith(origin) and (Path(folder) / name).exists():
                run(python, "-I", "-c", f"import ctypes; ctypes.CDLL({str(Path(folder) / name)!r})",
                    env=BARE)
                return
    sys.exit(f"{binary} does not find oneDNN: {folders and folders[1]}")


def try_wheel(wheel, python, work):
    if "manylinux" not in wheel.name:
        sys.exit(f"{wheel.name} follows no manylinux policy")
    bare = work / "bare"
    run(python, "-m", "venv", bare)
    pip = [bare / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
    if subprocess.run([str(word) for word in pip + ["numpy"]], check=False).returncode:
        print("skipped: no NumPy from pip")
        sys.exit(77)
    run(*pip, "--no-index", wheel)
    held = run(bare / "bin/python", "-I", "-c", RUN_WHEEL, DIGITS, work / "wheel.npy", env=BARE,
               cwd=work)
    extension = [line for line in held.split() if "heddle" in line]
    if not extension:
        sys.exit("the process holds no library of heddle's")
    packages = only(bare / "lib", "python*") / "site-packages"
    check_libraries(extension, packages.resolve())
    needed = run("ldd", only(packages / "heddle", "_heddle.*.so"), env=BARE)
    check_libraries(re.findall(r"=> (/\S+)", needed), packages.resolve())
    check_onednn(only(packages / "heddle", "_heddle.*.so"), bare / "bin/python")
    return bare / "bin/python"


def try_any_wheel(wheel, pythons, work):
    """The environments in which it has run."""
    if "manylinux" not in wheel.name:
        sys.exit(f"{wheel.name} follows no manylinux policy")
    ran = []
    for number, python in enumerate(pythons):
        bare = work / f"any_{number}"
        if subprocess.run([python, "-m", "venv", bare], check=False, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode:
            continue
        pip = [bare / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check",
               "install"]
        if subprocess.run([*pip, "--only-binary=:all:", "numpy"], check=False,
                          stderr=subprocess.DEVNULL).returncode:
            continue  # of some Pythons there is no NumPy that needs no compiler
        run(*pip, "--no-index", "--no-deps", wheel)
        output = work / f"any_{number}.npy"
        held = run(bare / "bin/python", "-I", "-c", RUN_ANY, DIGITS, output, env=BARE, cwd=work)
        packages = only(bare / "lib", "py*") / "site-packages"
        check_libraries([line for line in held.split() if "heddle" in line], packages.resolve())
        check_onednn(packages / "heddle/lib/libheddle_c.so", bare / "bin/python")
        ran.append(Path(python).name)
    return ran


def try_archive(archive, options, work):
    run("tar", "-C", work, "-xf", archive)
    root = only(work, "heddle-*-linux-*").rename(work / "elsewhere")
    said = run("ldd", root / "bin/heddle", env=BARE)
    if "not found" in said:
        sys.exit(said)
    check_libraries(re.findall(r"=> (/\S+)", said), root.resolve())
    if ONEDNN.exists() and "oneDNN" not in run(root / "bin/heddle", "doctor", env=BARE):
        sys.exit("the archive's tool does not find oneDNN")
    out = work / "out"
    # The package plans for speed; a single run of the tool would plan for a quick start.
    run(root / "bin/heddle", "run", DIGITS, "--feed", f"x={DIGITS}/input.npy", "--no-lean",
        "--out", out,
        "--threads", 1, env=BARE, cwd=work)
    run(options.cmake, f"-DWORK={work / 'consumer'}", f"-DPREFIX={root}",
        f"-DSOURCE_DIR={ROOT / 'tests/package'}", f"-DGENERATOR={options.generator}",
        f"-DCXX={options.cxx}", f"-DCC={options.cc}", "-DBUILD_TYPE=Release",
        "-P", ROOT / "tests/package/run.cmake", cwd=work)
    return only(out, "*.npy")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build/release")
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--generator", default="Ninja")
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    options = parser.parse_args()
    build = options.build.resolve()
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    python = re.search(r"^HEDDLE_PYTHON_EXECUTABLE:\w+=(.*)$", cache, re.MULTILINE).group(1)
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        work = Path(folder).resolve()
        run(ROOT / "scripts/release.sh", "--build", build, "--no-build", "--out", work / "dist")
        bare = try_wheel(only(work / "dist", "*-cp*.whl"), python, work)
        names = ["python3.9", "python3.10", "python3.12", "python3.13", "pypy3"]
        pythons = [python, *filter(None, map(shutil.which, names))]
        ran = try_any_wheel(only(work / "dist", "*-py3-none-*.whl"), pythons, work)
        run(bare, "-I", "-c", COMPARE, work / "wheel.npy", work / "any_0.npy")
        output = try_archive(only(work / "dist", "*.tar.xz"), options, work)
        run(bare, "-I", "-c", COMPARE, work / "wheel.npy", output)
        sizes = ", ".join(f"{path.name} {path.stat().st_size >> 20} MiB"
                          for path in sorted((work / "dist").iterdir()))
    print(f"all run examples/digits, without extension in {', '.join(ran)}: {sizes}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
