#!/usr/bin/env python3
"""Checks who may include whom. Prints each breach as file:line and fails if there is one."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SUFFIXES = {".h", ".inc", ".cc", ".c", ".cu", ".cuh"}

# folder -> the folders it may see besides itself. "include" is include/heddle, the public headers;
# "core:values" and "include:values" are those that know nothing of programs (see PROGRAM_HEADERS).
ALLOWED = {
    "include": set(),
    "core": {"include", "kernels/all_ops.inc", "kernels/all_tiles.inc", "kernels/all_scalars.inc"},
    "formats": {"core", "include", "proto", "gradient/gradient_calls.h"},
    "builder": {"core", "include"},
    "memory": {"core:values", "include:values"},
    "scheduler": {"core:values", "include:values"},
    "ranks": {"core:values", "include:values"},
    "device": {"core", "include", "kernels/all_cuda_kernels.inc"},
    "kernels": {"core", "include", "ranks/communicator.h"},
    "passes": {"core", "include", "passes/all_passes.inc",
               "kernels/conv/conv_stripes.h"},
    "executor": {"core", "memory", "scheduler", "device", "passes", "include",
                 "formats/program_source.h", "ranks/communicator.h"},
    "partition": {"core", "include", "formats/json.h",
                  "formats/paddle/format.h", "formats/wire_fields.h"},
    "offload": {"core", "include", "partition", "formats/program_source.h",
                "formats/wire_fields.h", "passes/partitions/partitions.h"},
    "gradient": {"core", "include", "formats/program_source.h", "passes/facts/infer_facts.h"},
    "training": {"include", "gradient/gradient.h", "gradient/minimize.h", "gradient/recompute.h",
                 "gradient/tuning/tuning.h", "tools/directory.h", "tools/values/durable.h",
                 "tools/values/npy.h", "tools/values/sequences.h", "tools/values/values.h"},
    "engines": {"include", "offload/engine_table.h"},
    "tools": {"include", "partition/partition.h", "partition/parts.h", "partition/target.h",
              "gradient/gradient.h", "gradient/minimize.h", "gradient/tuning/tuning.h",
              "training", "core/thread_annotations.h"},
    "python": {"include", "core/thread_annotations.h", "gradient/minimize.h",
               "gradient/tuning/tuning.h", "training/batches.h", "training/fine_tuning.h"},
    "capi": {"include"},
}
# Device kernels, kernels/*/*.cu and .cuh: part of the CUDA device that stands beside the operators.
DEVICE_KERNELS = {"core", "include", "device"}
FOLDERS = set(ALLOWED) | {"proto"}

# Rooms of a folder -> those beside itself that each may see. What lies in the folder itself, and in
# no room, may see all of them and is seen by none.
ROOMS = {
    "executor": {"plan": set(), "tune": set(), "run": {"plan"}, "device": {"plan", "run"},
                 "report": {"plan", "run"}},
}

# A value header reaches none of these, directly or through others.
PROGRAM_HEADERS = re.compile(
    r"^core/programs/|^(core|heddle)/(program|op|op_def|bound_op|op_context|op_registry|"
    r"shape_context|kernel_context|block_runner|scope|executor|pass|heddle)\.h$|\.pb\.h$")

# Libraries that a user of the public headers must not need.
PRIVATE_LIBRARIES = re.compile(
    r"^(glog|gflags|google/protobuf|tbb|oneapi|Eigen|unsupported|cuda|cudnn|cublas|nccl|nlohmann|"
    r"CLI)(/|[._a-z0-9]*\.h|$)|^(xxhash|dnnl|cuda|cublas|cudnn)\w*\.(h|hpp)$|\.pb\.h$")
# The library reports through Status and observers; only the tool logs.
LOGGING = re.compile(r"^(glog|gflags)/")

INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(2)


def locate(name):
    """The file of this repository that an include names, or None."""
    for base in (ROOT / "include", ROOT):
        if (base / name).is_file():
            return base / name
    return None


def is_value_header(name, seen=None):
    seen = set() if seen is None else seen
    if name in seen:
        return True
    seen.add(name)
    if PROGRAM_HEADERS.search(name):
        return False
    path = locate(name)
    return path is None or all(is_value_header(inner, seen) for _, inner in includes(path))


def folder_of(name):
    first = name.split("/", 1)[0]
    if "/" not in name:
        return None
    if first == "heddle":
        return "include"
    return first if first in FOLDERS else None


def room_breach(path, name):
    """Why the room that `path` lies in must not include `name`, or None."""
    folder, *inner = path.parts
    own = inner[0] if len(inner) > 1 else None
    if own not in ROOMS.get(folder, {}) or not name.startswith(folder + "/"):
        return None
    target = name.split("/")[1]
    if target == own or target in ROOMS[folder][own] or name.endswith(".inc"):
        return None
    return f"{folder}/{own} may not see {name}"


def breach(folder, name, allowed):
    """Why `folder`, which may see `allowed`, must not include `name`, or None."""
    if folder == "include" and PRIVATE_LIBRARIES.search(name):
        return "a public header needs a private library"
    if folder not in ("tools", "include") and LOGGING.search(name):
        return "only tools/ logs"
    if name.startswith("../") or "/../" in name:
        return "include from the root, not through .."
    target = folder_of(name)
    if target is None or target == folder:
        return None
    if target in allowed or name in allowed:
        return None
    if f"{target}:values" in allowed:
        if is_value_header(name):
            return None
        return f"{folder}/ sees value headers of {target} only"
    return f"{folder}/ may not see {target}"


def circles(uses):
    """The circles of a graph {room: {rooms that it uses}}, each as a sorted list of rooms."""
    reached = {}
    for start in uses:
        seen, open_rooms = set(), [start]
        while open_rooms:
            for room in uses.get(open_rooms.pop(), ()):
                if room not in seen:
                    seen.add(room)
                    open_rooms.append(room)
        reached[start] = seen
    return sorted({tuple(sorted({room} | {other for other in reached[room]
                                          if room in reached.get(other, ())}))
                   for room in uses if room in reached[room]})


def family_circles():
    """Families of kernels/ that include each other, with the includes that make it so."""
    uses, lines = {}, {}
    for path in sorted((ROOT / "kernels").glob("*/*")):
        if path.suffix not in SUFFIXES:
            continue
        own = path.parent.name
        for number, name in includes(path):
            parts = name.split("/")
            if parts[0] != "kernels" or len(parts) != 3 or parts[1] == own:
                continue
            uses.setdefault(own, set()).add(parts[1])
            lines.setdefault((own, parts[1]), f"{path.relative_to(ROOT)}:{number}: {name}")
    for circle in circles(uses):
        for (own, other), line in sorted(lines.items()):
            if own in circle and other in circle:
                yield f"{line}: families in a circle: {', '.join(circle)}"


def main():
    breaches, files = list(family_circles()), 0
    for folder in sorted(ALLOWED):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SUFFIXES or not path.is_file():
                continue
            files += 1
            device = folder == "kernels" and path.suffix in (".cu", ".cuh")
            for number, name in includes(path):
                why = (breach(folder, name, DEVICE_KERNELS if device else ALLOWED[folder]) or
                       room_breach(path.relative_to(ROOT), name))
                if why:
                    breaches.append(f"{path.relative_to(ROOT)}:{number}: {name}: {why}")
    print("\n".join(breaches + [f"{files} files, {len(breaches)} breaches"]))
    return 1 if breaches else 0


if __name__ == "__main__":
    sys.exit(main())
