#!/usr/bin/env bash
# Installs what heddle is built with, on Debian 12 (as root, or with sudo): packages through apt,
# oneDNN through pip into .deps/onednn, what the Python package is built and tested with into
# .deps/python. Does nothing, within a second, where all is there.
#
#   --no-apt      leave the system's packages alone
#   --no-onednn   do without oneDNN (Eigen kernels serve)
#   --no-python   do without the Python package
#   --with-browser  Chromium as well (300 MB), in which the report's page is tested
#   --with-clang    Clang and clang-format as well, which check threads and form
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ cmake ninja-build ccache lld patchelf pkg-config
  libeigen3-dev libtbb-dev protobuf-compiler libprotobuf-dev libgoogle-glog-dev libxxhash-dev
  zlib1g-dev libcli11-dev nlohmann-json3-dev libgtest-dev libgmock-dev libbenchmark-dev valgrind
  libpng-dev python3 python3-dev python3-venv python3-pip python3-numpy
  xz-utils unzip git ca-certificates
)

say() { echo "setup: $*"; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "need root or sudo to run: $*" >&2
    return 1
  fi
}

# install_packages WHAT NAME…: installs those that are missing.
install_packages() {
  local what=$1
  shift
  if ! command -v apt-get >/dev/null; then
    say "no apt here: install the equivalents of: $*" >&2
    return 0
  fi
  local missing=() name
  local installed form='${Package} ${db:Status-Abbrev}\n'
  installed=$(dpkg-query -W -f "$form" "$@" 2>/dev/null || true)
  for name in "$@"; do
    grep -q "^$name ii" <<<"$installed" || missing+=("$name")
  done
  if [ ${#missing[@]} = 0 ]; then
    say "$what: installed"
    return 0
  fi
  say "installing with apt: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

# Unpacks one wheel's data folder: include/ and lib/ are what we use of it.
unpack_wheel() { unzip -qo "$1" '*.data/data/*' -d "$2"; }

install_onednn() {
  local target=.deps/onednn stamp
  stamp=$( (cat scripts/onednn-wheels.txt cmake/intel_shim.c; declare -f install_onednn) |
    sha256sum)
  if [ "$(cat $target/.stamp 2>/dev/null)" = "$stamp" ]; then
    say "oneDNN is in $target"
    return 0
  fi
  if [ "$(uname -m)" != x86_64 ]; then
    say "no oneDNN package for $(uname -m): the Eigen kernels serve"
    return 0
  fi
  say "fetching oneDNN with pip into $target"
  local work=.deps/onednn.work root file
  rm -rf $work
  mkdir -p $work/wheels $work/unpacked $work/out/include $work/out/lib $work/out/licenses
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --require-hashes -r scripts/onednn-wheels.txt -d $work/wheels
  for file in "$work"/wheels/*.whl; do unpack_wheel "$file" $work/unpacked; done
  for root in "$work"/unpacked/*.data/data; do
    [ ! -d "$root/include" ] || cp -r "$root"/include/. $work/out/include/
    [ ! -f "$root/lib/libdnnl.so.3" ] || cp "$root/lib/libdnnl.so.3" $work/out/lib/
    cp "$root"/share/doc/onednn/* $work/out/licenses/
  done
  chmod -R u+w $work/out
  ln -s libdnnl.so.3 $work/out/lib/libdnnl.so
  # Two run-time libraries that oneDNN names, from our own source (see the file).
  for file in libimf.so libintlc.so.5; do
    g++ -x c -O2 -shared -fPIC -fno-builtin -Wl,--no-as-needed -Wl,-soname,$file \
      cmake/intel_shim.c -lm -o $work/out/lib/$file
  done
  # They are found beside libdnnl, whoever loads it.
  patchelf --set-rpath "\$ORIGIN" $work/out/lib/libdnnl.so.3
  chmod 755 $work/out/lib/*.so*
  echo "$stamp" >$work/out/.stamp
  rm -rf $target
  mv $work/out $target
  rm -rf $work
}

install_python() {
  local target=.deps/python stamp
  stamp=$( (cat scripts/python-requirements.txt; python3 -VV) | sha256sum)
  if [ "$(cat $target/.stamp 2>/dev/null)" = "$stamp" ]; then
    say "what the Python package needs is in $target"
    return 0
  fi
  say "fetching what the Python package needs with pip into $target"
  rm -rf $target
  python3 -m venv $target
  $target/bin/python -m pip install --quiet --disable-pip-version-check \
    -r scripts/python-requirements.txt
  echo "$stamp" >$target/.stamp
}

install_clang() { install_packages "Clang" clang-14 clang-format-14; }

with_apt=1 with_onednn=1 with_python=1 with_clang=0
for arg in "$@"; do
  case $arg in
    --no-apt) with_apt=0 ;;
    --no-onednn) with_onednn=0 ;;
    --no-python) with_python=0 ;;
    --with-browser) packages+=(chromium) ;;
    --with-clang) with_clang=1 ;;
    *)
      echo "usage: $0 [--no-apt] [--no-onednn] [--no-python] [--with-browser] [--with-clang]" >&2
      exit 2
      ;;
  esac
done
[ $with_apt = 0 ] || install_packages "system packages" "${packages[@]}"
# try FUNCTION MESSAGE: says MESSAGE where FUNCTION failed. Not `if ! (…)`: a condition would switch
# off errexit inside.
try() {
  local status
  set +e
  (set -e; "$1")
  status=$?
  set -e
  [ $status = 0 ] || say "$2" >&2
}
[ $with_apt = 0 ] || [ $with_clang = 0 ] ||
  try install_clang "Clang could not be installed: what it checks is skipped"
[ $with_onednn = 0 ] ||
  try install_onednn "oneDNN could not be installed: the build goes on with Eigen kernels"
[ $with_python = 0 ] ||
  try install_python "nanobind could not be installed: the build goes on without the Python package"
say "done"
