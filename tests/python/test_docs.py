"""The Python in the documents runs as it stands there."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ["docs/building.md", "docs/python.md", "docs/from-paddle-inference.md",
             "docs/from-paddle3.md", "docs/from-onnxruntime.md",
             "docs/from-tensorflow.md", "README.md"]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_code_blocks(name, monkeypatch, tmp_path):
    # A folder that looks like the repository, so that files written there do not stay in it.
    for entry in ROOT.iterdir():
        (tmp_path / entry.name).symlink_to(entry)
    monkeypatch.chdir(tmp_path)
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = [(text.count("\n", 0, m.start(1)), m.group(1))
              for m in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)]
    assert blocks
    namespace = {}
    for line, block in blocks:
        code = compile("\n" * line + block, os.fspath(ROOT / name), "exec")
        exec(code, namespace)  # noqa: S102
