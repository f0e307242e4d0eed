#!/usr/bin/env bash
# What a newcomer does on a bare Debian 12, in the README's words, with the time each step takes:
#
#   scripts/try_newcomer.sh DIR          (as root; needs debootstrap, and the network)
#
# DIR becomes a minimal Debian (a former one is taken as it is). The committed state of this
# repository is cloned there; then come the README's commands: the set-up, the Python package, and
# the README's Python; then (unless PYTHON_ONLY is set) the first of its two, and the training. DIR
# stays. The host's settings of apt, pip and certificates are taken along, and a compiler cache
# where CCACHE_DIR is set (times are then not a newcomer's).
set -euo pipefail
[ $# = 1 ] || { echo "usage: $0 DIR" >&2; exit 2; }
root=$(realpath -m "$1")
here=$(cd "$(dirname "$0")/.." && pwd)

[ -x "$root/bin/bash" ] || debootstrap --variant=minbase bookworm "$root" >/dev/null
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/apt/apt.conf.d/99* /etc/apt/auth.conf; do
  [ ! -f "$file" ] || install -D "$file" "$root$file"
done
# Certificates of the host, for networks that have their own.
[ ! -f /etc/ssl/certs/ca-certificates.crt ] ||
  install -D /etc/ssl/certs/ca-certificates.crt "$root/usr/local/share/host-certificates.crt"

mounted=()
finish() { for at in "${mounted[@]}"; do umount -l "$at"; done; }
trap finish EXIT
attach() { mkdir -p "$root$2"; mount --bind "$1" "$root$2"; mounted=("$root$2" "${mounted[@]}"); }
attach /proc /proc
attach /dev /dev
mkdir -p /dev/shm && attach /dev/shm /dev/shm
[ -z "${CCACHE_DIR:-}" ] || attach "$CCACHE_DIR" /ccache

rm -rf "$root/src"
git clone -q "$here" "$root/src/heddle"

cat >"$root/newcomer.sh" <<'STEPS'
set -euo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
export SSL_CERT_FILE=/usr/local/share/host-certificates.crt
export PIP_CERT=$SSL_CERT_FILE
[ -f "$SSL_CERT_FILE" ] || unset SSL_CERT_FILE PIP_CERT
[ ! -d /ccache ] || export CCACHE_DIR=/ccache CCACHE_BASEDIR=/src/heddle CCACHE_NOHASHDIR=1
cd /src/heddle
scratch=$(mktemp -d)
step() {
  local start=$SECONDS
  "$@" >"$scratch/step.log" 2>&1 || { tail -30 "$scratch/step.log"; echo "FAILED: $*"; exit 1; }
  printf '%5d s  %s\n' $((SECONDS - start)) "$*"
}
readme_python() {
  python3 - <<'PY' >"$scratch/readme.py"
import re
text = open("README.md", encoding="utf-8").read()
print("\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)))
PY
  env/bin/python "$scratch/readme.py"
}
readme_train() {
  python3 - <<'PY' >"$scratch/train.sh"
import re
text = open("README.md", encoding="utf-8").read()
print(re.search(r"## Train digits.*?```sh\n(.*?)^```", text, re.M | re.S).group(1))
PY
  bash -e "$scratch/train.sh"
}
step ./scripts/setup.sh
# Its packages have brought a list of certificates without the host's own.
[ -z "${SSL_CERT_FILE:-}" ] || cp "$SSL_CERT_FILE" /etc/ssl/certs/ca-certificates.crt
rm -rf env
step bash -c 'python3 -m venv env && env/bin/pip install .'
step readme_python
echo "$SECONDS s to a model's run in Python"
[ -n "${PYTHON_ONLY:-}" ] || { step ./scripts/quickstart.sh; step readme_train; }
echo "$SECONDS s all in all"
STEPS
PYTHON_ONLY=${PYTHON_ONLY:-} chroot "$root" /bin/bash /newcomer.sh
