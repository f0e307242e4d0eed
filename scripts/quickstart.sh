#!/usr/bin/env bash
# From a bare checkout to a first prediction: sets up, builds the command line tool and runs the
# embedded example model, examples/digits.
set -euo pipefail
cd "$(dirname "$0")/.."

# The example: a model directory for `heddle run`, with an input of its own and a program that
# prints what the outputs mean.
model=examples/digits
input=x=$model/input.npy
show=$model/show.py

# The tool needs nothing of the Python package; scripts/test.sh and pip fetch it.
./scripts/setup.sh --no-python
cmake --preset release >/dev/null
cmake --build build/release --target heddle_cli -j "$(nproc)"

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
echo "+ build/release/heddle run $model --feed $input --out $out"
build/release/heddle run "$model" --feed "$input" --out "$out"
# NumPy comes with the system's Python, which need not be the first one on the path.
python=python3
"$python" -c 'import numpy' 2>/dev/null || python=/usr/bin/python3
"$python" "$show" "$out"
