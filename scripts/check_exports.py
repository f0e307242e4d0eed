#!/usr/bin/env python3
"""Checks that libheddle_c.so exports the functions of heddle.h, no more and no fewer:
check_exports.py LIBRARY [NM]"""

import re
import subprocess
import sys
from pathlib import Path

header = Path(__file__).resolve().parent.parent / "include" / "heddle.h"
declared = set(re.findall(r"^HEDDLE_(?:API|TRY)[^;]*?\b(heddle_\w+)\(", header.read_text(),
                          re.MULTILINE))
nm = sys.argv[2] if len(sys.argv) > 2 else "nm"
listing = subprocess.run([nm, "-D", "--defined-only", "--format=posix", sys.argv[1]],
                         capture_output=True, text=True, check=True).stdout
# The version tag itself is listed as an absolute symbol. Sanitizers add their own.
exported = {line.split("@")[0].split()[0] for line in listing.splitlines() if " A " not in line}
exported = {name for name in exported if not name.startswith(("__asan", "__odr_asan", "__tsan"))}
for name in sorted(declared - exported):
    print(f"declared, not exported: {name}")
for name in sorted(exported - declared):
    print(f"exported, not declared: {name}")
sys.exit(0 if declared and declared == exported else 1)
