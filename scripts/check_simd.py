#!/usr/bin/env python3
"""Checks that code for one instruction set stands in kernels/simd alone.

Intrinsics, target attributes, vector types, macros of instruction sets and questions to the
processor: prints each that stands elsewhere as file:line, and fails if there is one.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".h", ".hpp", ".inc", ".c", ".cc", ".cu", ".cuh"}
FOLDERS = ("include", "builder", "core", "memory", "scheduler", "device", "formats", "kernels",
           "passes", "executor",
           "gradient", "training", "partition", "tools", "python", "capi", "examples", "tests",
           "benchmarks")

# Where such code may stand, and why.
ALLOWED = {
    "kernels/simd/": "the SIMD layer",
    "core/machine.cc": "asks the processor what it has",
    "scheduler/spin.h": "pause and the time stamp counter, which are no vector code",
}

FORBIDDEN = {
    "an intrinsic": re.compile(
        r"\b_mm\d*_\w+|\b__m(?:64|128|256|512)[di]?\b|\b__builtin_(?:ia32|arm|neon)_\w+|"
        r"\bv(?:ld|st)[1-4]q?_[fsu]\d+\b"),
    "a header of intrinsics": re.compile(
        r"#\s*include\s*<(?:\w*intrin|arm_neon|arm_sve|cpuid)\.h>"),
    "a target attribute": re.compile(
        r"\bgnu::(?:__)?target|__attribute__\s*\(\(.*\b(?:__)?target(?:_clones)?(?:__)?\s*\(|"
        r"#\s*pragma\s+(?:GCC|clang)\s+(?:target|attribute)"),
    "a vector type": re.compile(r"\b(?:__)?(?:ext_)?vector_(?:size|type)(?:__)?\s*\("),
    "a question to the processor": re.compile(
        r"\b__builtin_cpu_(?:supports|init|is)\b|\b__(?:get_)?cpuid\w*\b|"
        r"\b_?xgetbv\b|\bgetauxval\b"),
    "a macro of an instruction set": re.compile(
        r"\b__(?:AVX|SSE|FMA|BMI|AMX|ARM_NEON|ARM_FEATURE)\w*\b"),
}

# Comments and literals, which may name what they like.
PROSE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def blank(match):
    """As many lines of nothing."""
    return "\n" * match.group(0).count("\n")


def findings(text):
    code = PROSE.sub(blank, text)
    for number, line in enumerate(code.split("\n"), 1):
        for what, pattern in FORBIDDEN.items():
            found = pattern.search(line)
            if found:
                yield number, what, found.group(0).strip()


def allowed(name):
    return any(name.startswith(place) if place.endswith("/") else name == place
               for place in ALLOWED)


def main():
    breaches, files = [], 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            name = path.relative_to(ROOT).as_posix()
            files += 1
            if allowed(name):
                continue
            for number, what, found in findings(path.read_text(encoding="utf-8")):
                breaches.append(f"{name}:{number}: {found}: {what} outside of kernels/simd")
    print("\n".join(breaches + [f"{files} files, {len(breaches)} breaches"]))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
