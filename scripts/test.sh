#!/usr/bin/env bash
# Sets up, builds everything and runs all tests: scripts/test.sh [PRESET] [ctest arguments…]
# PRESET is one of CMakePresets.json (release when left out). Ends with "operators exercised: N of
# M" and "N passed, M failed"; the exit status is that of the tests.
set -euo pipefail
cd "$(dirname "$0")/.."

preset=release
case ${1:-} in
  "" | -*) ;;
  *) preset=$1; shift ;;
esac

./scripts/setup.sh --with-clang
# The CUDA device is compiled where there is all that it takes.
cuda=OFF
if [[ $preset == release ]] && command -v nvcc > /dev/null; then
  trial=$(mktemp -d)
  printf '#include <cublas_v2.h>\nint main() { return 0; }\n' > "$trial/trial.cu"
  if nvcc "$trial/trial.cu" -o "$trial/trial" -lcublas > /dev/null 2>&1; then cuda=ON; fi
  rm -r "$trial"
fi
cmake --preset "$preset" -DHEDDLE_CUDA_CHECK="$cuda"
cmake --build "build/$preset" -j "$(nproc)"

report="$PWD/build/$preset/ctest.xml"
exercised="build/$preset/operators_exercised.txt"  # written by ops.every_operator.has_an_example
rm -f "$report" "$exercised"
set +e
ctest --test-dir "build/$preset" -j "$(nproc)" --output-on-failure --output-junit "$report" "$@"
status=$?
set -e

if [[ -f $exercised ]]; then cat "$exercised"; fi
python3 - "$report" <<'PY'
import sys
import xml.etree.ElementTree as ElementTree

state = {"run": 0, "fail": 0}
for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
    status = case.get("status")
    if status == "fail":
        print("failed:", case.get("name"))
    state[status] = state.get(status, 0) + 1
skipped = sum(count for status, count in state.items() if status not in ("run", "fail"))
if skipped:
    print(f"{skipped} skipped")
print(f"{state['run']} passed, {state['fail']} failed")
PY
exit $status
