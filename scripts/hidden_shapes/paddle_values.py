"""What the cases of Paddle's formats share: their inputs and outputs, and how they are compared."""

import fnmatch
import json
import tarfile
from pathlib import Path

import numpy as np


class Unfit(Exception):
    """The case cannot be said in this way."""


def parts(entry):
    if entry["type"] == "tensor_array":
        return [(i["file"], i["dtype"]) for i in entry["items"]]
    return [(entry["file"], entry["dtype"])]


def widened(array, dtype):
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def difference(got, want, dtype, check, rtol, atol):
    """None where the arrays are equal enough, or what is wrong."""
    if got.shape != want.shape:
        return f"shape {got.shape}, expected {want.shape}"
    if got.dtype != want.dtype:
        return f"dtype {got.dtype}, expected {want.dtype}"
    if check == "shape" or want.size == 0:
        return None
    if want.dtype.kind in "biu" and dtype != "bfloat16":
        same = got == want
    else:
        with np.errstate(all="ignore"):
            g, w = widened(got, dtype), widened(want, dtype)
            same = (g == w) | ((g != g) & (w != w))
            if check == "close":
                same |= np.isfinite(g) & np.isfinite(w) & (np.abs(g - w) <= atol + rtol * abs(w))
    same = np.asarray(same)
    return None if same.all() else f"{(~same).sum()} of {same.size} elements differ"


def judged_by(folder, meta):
    def judge(out):
        for entry in meta["outputs"]:
            files = parts(entry)
            if entry["type"] == "selected_rows":
                files.append((entry["rows_file"], "int64"))
            for file, dtype in files:
                if not (out / file).exists():
                    return f"{entry['name']} was not written"
                why = difference(np.load(out / file), np.load(folder / file), dtype,
                                 entry["check"], entry["rtol"], entry["atol"])
                if why:
                    return f"{entry['name']}: {why}"
        return None

    return judge


def io_text(meta):
    """io.txt of these inputs and outputs."""

    def shape(entry):
        return ",".join(map(str, entry["shape"])) or "-"

    def lod(entry):
        return "|".join(",".join(map(str, level)) for level in entry["lod"]) or "-"

    lines = ["opcase 1"]
    for side, word in (("inputs", "in"), ("outputs", "out")):
        for e in meta[side]:
            line = [word, e["role"], e["type"]]
            if word == "out":
                line += [e["check"], f"{e['rtol']:.3g}", f"{e['atol']:.3g}"]
            if "items" in e:
                lines.append("\t".join([*line, str(len(e["items"])), e["name"]]))
                lines += ["\t".join(["item", i["file"], i["dtype"], shape(i), lod(i)])
                          for i in e["items"]]
                continue
            line += [e["file"], e["dtype"], shape(e), lod(e)]
            if e["type"] == "selected_rows":
                line += [e["rows_file"], str(e["height"])]
            lines.append("\t".join([*line, e["name"]]))
    return "\n".join(lines) + "\n"


def write(folder, target, program, data, meta, arrays):
    """A rewritten case: its program, what it is fed, links to the values of the recorded one."""
    target.mkdir(parents=True, exist_ok=True)
    (target / program).write_bytes(data)
    (target / "meta.json").write_text(json.dumps(meta))
    (target / "io.txt").write_text(io_text(meta))
    for path in folder.glob("*.npy"):
        link = target / path.name
        if not link.is_symlink():
            link.symlink_to(path)
    for name, value in arrays.items():
        np.save(target / name, value)


def fed_shape(name, shape, number):
    """An input entry for the shape that another input is reshaped to."""
    return {"name": name, "role": "feed", "type": "dense", "file": f"shape_{number}.npy",
            "dtype": "int64", "shape": [len(shape)], "lod": []}


def can_reshape(entry):
    return (entry["role"] == "feed" and entry["type"] == "dense" and not entry["lod"]
            and not entry.get("no_buffer") and 0 not in entry["shape"])


def recorded(root, options):
    """Folders of the cases in main.txt, with what their meta.json says."""
    names = (root / "main.txt").read_text().split()
    if options.share < 1:
        names = names[::max(1, round(1 / options.share))]
    for name in names:
        folder = root / name
        if options.only and not any(fnmatch.fnmatch(folder.name, g) for g in options.only):
            continue
        yield folder, json.loads((folder / "meta.json").read_text())


def unpacked(archives, scratch):
    """The corpora in the archives, unpacked below `scratch`."""
    for archive in archives:
        root = scratch / Path(archive).name.split(".")[0]
        if not (root / "main.txt").exists():
            with tarfile.open(archive) as packed:
                packed.extractall(scratch, filter="data")
        yield root
