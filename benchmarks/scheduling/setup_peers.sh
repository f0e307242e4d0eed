#!/usr/bin/env bash
# Brings the schedulers that heddle is compared with and that Debian does not package into
# .deps/peers/: Taskflow and dispenso, each at one release, by git. oneTBB, Eigen and Google
# Benchmark are Debian's (libtbb-dev, libeigen3-dev, libbenchmark-dev: scripts/setup.sh).
#
# Without the network, name folders that hold the sources of those releases:
#
#   TASKFLOW_DIR=…/taskflow DISPENSO_DIR=…/dispenso benchmarks/scheduling/setup_peers.sh
#
# They are copied. Does nothing where the right release is already there.
set -euo pipefail
cd "$(dirname "$0")/../.."

say() { echo "setup_peers: $*"; }

# name, release, address, folder to take instead, file that shows that the sources are there
bring() {
  local name=$1 release=$2 address=$3 given=$4 proof=$5
  local target=.deps/peers/$name stamp=.deps/peers/$name/.release
  if [ -z "$given" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$release" ]; then
    say "$name $release is in $target"
    return 0
  fi
  rm -rf "$target.part"
  mkdir -p .deps/peers
  if [ -n "$given" ]; then
    if [ ! -e "$given/$proof" ]; then
      say "$given holds no $proof: not the sources of $name" >&2
      return 1
    fi
    # The library alone: its documents and images are many times as large.
    mkdir -p "$target.part"
    cp -r "$given/${proof%%/*}" "$given"/LICENSE* "$target.part"
  else
    git -c advice.detachedHead=false clone --quiet --depth 1 --branch "$release" "$address" \
      "$target.part"
  fi
  [ -e "$target.part/$proof" ]
  echo "$release" >"$target.part/.release"
  rm -rf "$target"
  mv "$target.part" "$target"
  say "$name $release: $target"
}

bring taskflow v3.11.0 https://github.com/taskflow/taskflow.git "${TASKFLOW_DIR:-}" \
  taskflow/taskflow.hpp
bring dispenso v1.6.2 https://github.com/facebookincubator/dispenso.git "${DISPENSO_DIR:-}" \
  dispenso/graph_executor.h
