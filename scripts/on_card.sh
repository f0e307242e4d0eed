#!/usr/bin/env bash
# Tries and measures the CUDA device on a machine with a card, without a network.
#
#   scripts/on_card.sh pack DEPS.tar.xz         on Debian 12 with what scripts/setup.sh installs:
#                                               headers and libraries that the build needs
#   scripts/on_card.sh all --out OUT --deps DEPS.tar.xz --shared DIR     on the card's machine
#
# Instead of `all`, one or more of the stages, in this order:
#   build        the tool and the device's tests, for one architecture
#   conformance  the device conformance suite; by itself, under memcheck and under racecheck
#   models       inference models and training programs, against the host (check_card.py)
#   cases        recorded operator cases, at --place cuda
#   cudnn        which convolutions are cuDNN's, and their time against heddle's own
#   figures      latency of inference models there, also with --precision bf16, and on the host
#                (`heddle bench`)
#   trace        Nsight Systems, three programs
#
#   --arch 90      compute capability to build for       [the card's]
#   --shared DIR   models/ and opcases/, as the tests take them; what is not there is not run
#   --seconds 530  ends with status 75 after that time: the same command then goes on where it ended
#   --heddle FILE  a tool that is built already
#   --place cuda   another device, to try this script itself
#
# A stage is made of steps. OUT/steps.tsv holds one line for each that ended: stage, step, status,
# seconds; OUT/log/ their output. A step that failed is not tried again unless its line is deleted.
# Needs nvcc, CMake, Ninja, Python with numpy; compute-sanitizer and nsys where they are to be used.
# cuDNN is used where the machine has it: its headers beside CUDA's, or in HEDDLE_CUDNN_INCLUDE, its
# library where programs find it, or in HEDDLE_CUDNN_LIB.
set -uo pipefail
tree=$(cd "$(dirname "$0")/.." && pwd)

packages=(
  libeigen3-dev libtbb-dev libtbb12 libtbbmalloc2 libtbbbind-2-5 protobuf-compiler
  libprotobuf-dev libprotobuf32 libprotobuf-lite32 libprotoc32 libgoogle-glog-dev libgoogle-glog0v6
  libgflags-dev
  libgflags2.2 libunwind-dev libunwind8 liblzma-dev liblzma5 libxxhash-dev zlib1g-dev zlib1g
  libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev libpng-dev libpng16-16
)

usage() { sed -n '2,33s/^# \{0,1\}//p' "$0" >&2; exit 2; }

# Writes the files of the packages, without documentation, under usr/ as they are installed.
pack() {
  local files
  files=$(mktemp)
  for name in "${packages[@]}"; do
    dpkg -L "$name" >>"$files.all" || { echo "on_card: $name is not installed" >&2; exit 1; }
  done
  while read -r path; do
    case $path in
      */share/doc/* | */share/man/* | */share/lintian/* | *.a | */unsupported/*) ;;
      /lib/*) [ -f "$path" ] && echo "/usr$path" ;;  # /lib is a link to /usr/lib
      *) if [ -f "$path" ] || [ -L "$path" ]; then echo "$path"; fi ;;
    esac
  done <"$files.all" | sed 's,^/,,' | sort -u >"$files"
  # Google Test is all in archives.
  dpkg -L libgtest-dev libgmock-dev | grep '\.a$' | sed 's,^/,,' >>"$files"
  tar -C / -cJf "$1" -T "$files" || exit 1
  rm -f "$files" "$files.all"
  echo "on_card: $1, $(du -h "$1" | cut -f1)"
}

if [ "${1:-}" = pack ]; then
  [ $# = 2 ] || usage
  pack "$2"
  exit 0
fi

out='' deps='' arch='' shared='' seconds=530 heddle='' place=cuda stages=()
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=$2; shift ;;
    --deps) deps=$2; shift ;;
    --arch) arch=$2; shift ;;
    --shared) shared=$(cd "$2" && pwd) || exit 2; shift ;;
    --seconds) seconds=$2; shift ;;
    --heddle) heddle=$(realpath "$2"); shift ;;
    --place) place=$2; shift ;;
    all) stages=(build conformance models cases cudnn figures trace) ;;
    build | conformance | models | cases | cudnn | figures | trace) stages+=("$1") ;;
    *) usage ;;
  esac
  shift
done
[ -n "$out" ] && [ ${#stages[@]} -gt 0 ] || usage
python3 -c 'import numpy' || exit 2
mkdir -p "$out/log" "$out/results"
out=$(cd "$out" && pwd)
build=$out/build
tool=${heddle:-$build/heddle}
[ -n "${HEDDLE_CUDNN_LIB:-}" ] &&
  export LD_LIBRARY_PATH=$HEDDLE_CUDNN_LIB${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
touch "$out/steps.tsv"
end=$((SECONDS + seconds))

say() { echo "on_card: $*"; }
left() { echo $((end - SECONDS)); }
ended() { grep -qP "^$1\t$2\t" "$out/steps.tsv"; }
record() { printf '%s\t%s\t%s\t%s\n' "$@" >>"$out/steps.tsv"; }

# step STAGE NAME NEEDS COMMAND…: runs the command unless it ended before. With less than NEEDS
# seconds left it is not begun; one that runs out of time is begun anew by the next call.
step() {
  local stage=$1 name=$2 needs=$3 status begin=$SECONDS
  shift 3
  ended "$stage" "$name" && return 0
  if [ "$(left)" -lt "$needs" ]; then
    say "time is over before $stage $name: run the same command again"
    exit 75
  fi
  timeout --kill-after=5 "$(left)" "$@" >"$out/log/$stage-$name.log" 2>&1
  status=$?
  if [ $status = 124 ] || [ $status = 137 ]; then
    if [ $((SECONDS - begin)) -lt $((seconds - 30)) ]; then
      say "time is over in $stage $name: run the same command again"
      exit 75
    fi
    status=too_long
  fi
  record "$stage" "$name" "$status" $((SECONDS - begin))
  local word="FAILED ($status)"
  [ "$status" = 0 ] && word=passed
  say "$stage $name: $word, $((SECONDS - begin)) s"
  [ "$status" = 0 ]
}

skip() {  # STAGE NAME WHY
  ended "$1" "$2" || { record "$1" "$2" "not run: $3" 0; say "$1 $2: not run: $3"; }
}

card_arch() { nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .; }

stage_build() {
  [ -n "$heddle" ] && return 0
  if [ -n "$deps" ] && [ ! -d "$out/deps/usr" ]; then
    mkdir -p "$out/deps" && tar -C "$out/deps" -xJf "$deps" || exit 1
  fi
  local options=(-DCMAKE_BUILD_TYPE=Release -DHEDDLE_CUDA=ON -DHEDDLE_ONEDNN=OFF
    -DHEDDLE_PYTHON=OFF -DHEDDLE_BUILD_BENCHMARKS=OFF
    "-DCMAKE_CUDA_ARCHITECTURES=${arch:-$(card_arch)}")
  [ -n "${HEDDLE_CUDNN_INCLUDE:-}" ] && options+=("-DHEDDLE_CUDNN_INCLUDE=$HEDDLE_CUDNN_INCLUDE")
  if [ -n "$deps" ]; then
    local lib=$out/deps/usr/lib/x86_64-linux-gnu
    options+=("-DCMAKE_PREFIX_PATH=$out/deps/usr" -DCMAKE_LIBRARY_ARCHITECTURE=x86_64-linux-gnu
      "-DProtobuf_PROTOC_EXECUTABLE=$out/deps/usr/bin/protoc" "-DCMAKE_BUILD_RPATH=$lib"
      "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,$lib")
    export LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  fi
  step build machine 1 bash -c 'nvidia-smi; nvcc --version; lscpu; cmake --version' || true
  step build configure 20 cmake -S "$tree" -B "$build" -G Ninja "${options[@]}" || exit 1
  # Ninja goes on where it was stopped.
  step build compile 60 cmake --build "$build" --target heddle_cli heddle_device_tests || exit 1
}

# Whether convolutions are to be cuDNN's or heddle's own is part of what is measured.
stage_cudnn() {
  if ! grep -q '^HEDDLE_CUDNN_INCLUDE:PATH=.*[^D]$' "$build/CMakeCache.txt" 2>/dev/null; then
    skip cudnn plan "built without cuDNN"
    return
  fi
  local model=resnet18 way
  [ -d "$shared/models/$model" ] || { skip cudnn plan "there is no $model"; return; }
  step cudnn plan 15 bash -c '"$@" | tee /dev/stderr | grep -q "cudnn, engine"' plan \
    "$tool" plan "$(model_dir $model)" --place "$place" --random-feed
  for way in cudnn:depthwise:patches patches:depthwise; do
    step cudnn "$model-${way%%:*}" 15 bash -c '"$@" >"$0"' \
      "$out/results/bench-$model-${way%%:*}.json" "$tool" bench "$(model_dir $model)" \
      --random-feed --seconds 2 --json --place "$place" --force "conv=$way"
  done
}

stage_conformance() {
  local tests=$build/heddle_device_tests filter='--gtest_filter=*/cuda*:*Cuda*'
  if [ ! -x "$tests" ]; then
    skip conformance suite "there is no $tests"
    return
  fi
  step conformance suite 60 "$tests" "$filter"
  local check
  for check in memcheck racecheck; do
    if command -v compute-sanitizer >/dev/null; then
      step conformance $check 120 compute-sanitizer --tool $check --error-exitcode 9 \
        "$tests" "$filter"
    else
      skip conformance $check "there is no compute-sanitizer"
    fi
  done
}

# The folder of a model; a copy where its parameters are to be made first.
model_dir() {
  local given=$shared/models/$1 copy=$out/models/$1
  if [ -f "$given/params_spec.json" ] && [ ! -f "$given/model.pdiparams" ]; then
    if [ ! -f "$copy/model.pdiparams" ]; then
      mkdir -p "$out/models" && cp -rT "$given" "$copy" && chmod -R u+w "$copy" &&
        python3 "$shared/models/tools/regen_params.py" "$copy" >/dev/null
    fi
    echo "$copy"
  else
    echo "$given"
  fi
}

# One step a model, so that a call may end between two.
stage_models() {
  local model
  for model in "$shared"/models/*/; do
    model=$(basename "$model")
    [ -f "$shared/models/$model/meta.json" ] || continue
    step models "$model" 30 python3 "$tree/scripts/check_card.py" --heddle "$tool" \
      --place "$place" --model "$(model_dir "$model")" --out "$out/results/$model"
  done
}

stage_cases() {
  local list kind corpus=$out/opcases
  for kind in generated captured; do
    [ -f "$shared/opcases/$kind.tar.xz" ] || { skip cases $kind "no recorded cases"; continue; }
    if [ ! -d "$corpus/$kind" ]; then
      mkdir -p "$corpus/$kind" &&
        tar -C "$corpus/$kind" -xJf "$shared/opcases/$kind.tar.xz" || exit 1
    fi
    list=$(find "$corpus/$kind" -maxdepth 2 -name main.txt -printf '%h\n' -quit)
    step cases $kind 120 python3 "$shared/opcases/check_cases.py" "${list:-$corpus/$kind}" \
      --batch "$tool run-cases --place $place --list {list}"
  done
}

stage_figures() {
  local model way feeds file more
  for model in "$shared"/models/*/; do
    [ -f "$model/model.pdmodel" ] || continue
    feeds=()
    for file in "$model"in_*.npy; do
      [ -f "$file" ] && feeds+=(--feed "$(basename "${file%.npy}" | cut -c4-)=$file")
    done
    model=$(basename "$model")
    for way in cpu "$place" "$place-bf16"; do
      more=()
      [ "$way" = "$place-bf16" ] && more=(--precision bf16)
      step figures "$model-$way" 15 bash -c '"$@" >"$0"' "$out/results/bench-$model-$way.json" \
        "$tool" bench "$(model_dir "$model")" "${feeds[@]}" --seconds 2 --json \
        --place "${way%-bf16}" "${more[@]}"
    done
  done
}

stage_trace() {
  local model
  for model in resnet18 bert_tiny tiny_dag2000_s1; do
    if ! command -v nsys >/dev/null; then
      skip trace $model "there is no nsys"
    elif [ -d "$shared/models/$model" ]; then
      step trace $model 60 nsys profile --force-overwrite true --output "$out/results/$model" \
        "$tool" bench "$(model_dir "$model")" --random-feed --seconds 1 --place "$place"
    fi
  done
}

for stage in "${stages[@]}"; do
  if [ "$stage" != build ] && [ "$stage" != conformance ] && [ -z "$shared" ]; then
    skip "$stage" all "no --shared"
    continue
  fi
  "stage_$stage"
done
awk -F'\t' '{n++; if ($3 == "0") p++; else if ($3 ~ /^not run/) s++}
  END {printf "on_card: %d steps, %d passed, %d not run, %d failed\n", n, p, s, n - p - s
       exit n - p - s > 0}' "$out/steps.tsv"
