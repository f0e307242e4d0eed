#!/usr/bin/env python3
"""Checks that heddle reads TensorFlow's meta graphs and checkpoints as TensorFlow does.

  check_meta_graphs.py --heddle TOOL --python PYTHON_WITH_TENSORFLOW [--cases N] [--seed S]
  check_meta_graphs.py --python PYTHON_WITH_TENSORFLOW --record DIR

TensorFlow makes N random graphs in the manner of its first version: reference and resource
variables of many dtypes, some of them partitioned or with names of their own in the saver, whole
and sharded checkpoints in both layouts, savers of some variables, graphs saved in training (with
losses, an optimizer, placeholders with defaults, dropout and batch normalisation that a placeholder
turns off), meta graphs without a saver, in text form, in folders with several checkpoints, and
SavedModels with several meta graphs. It runs each; heddle runs the files, at levels 0 and 2, on one
thread and two. One line a case that differs; the last one: N right, M wrong. Status 1 when any is
wrong. --record writes one small case in each
layout for the tests."""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

# Runs in TensorFlow's Python.
MAKER = r'''
import json, os, random, re, sys
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="")
import numpy as np
import tensorflow as tf
v1 = tf.compat.v1
v1.disable_eager_execution()
v1.logging.set_verbosity(v1.logging.ERROR)

DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "int16", "int8", "uint8",
          "bool", "complex64"]


def number(rng, dtype, shape):
    a = rng.integers(-9, 9, shape)
    if dtype in ("uint8",):
        a = abs(a)
    if dtype == "bool":
        return a > 0
    return (a / 4 if "float" in dtype or dtype == "complex64" else a).astype(
        tf.as_dtype(dtype).as_numpy_dtype)


def normalised(variable, rng, value, training, name):
    """Batch normalisation with moving statistics, which training updates."""
    mean = variable(name + "_mean", number(rng, "float32", (6,)), trainable=False)
    var = variable(name + "_var", np.abs(number(rng, "float32", (6,))) + 1, trainable=False)
    now = tf.nn.moments(value, [0])
    for moving, new in zip((mean, var), now):
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS,
                             v1.assign(moving, moving * 0.9 + new * 0.1))
    used = tf.cond(training, lambda: [tf.identity(t) for t in now],
                   lambda: [tf.identity(mean), tf.identity(var)])
    gamma = variable(name + "_gamma", number(rng, "float32", (6,)))
    return tf.nn.batch_normalization(value, used[0], used[1], None, gamma, 1e-3)


def make(case, folder):
    (v1.disable_control_flow_v2 if case["old_control_flow"] else v1.enable_control_flow_v2)()
    rng, pick = np.random.default_rng(case["seed"]), random.Random(case["seed"])
    graph = tf.Graph()
    with graph.as_default():
        v1.set_random_seed(1)
        x = v1.placeholder(tf.float32, [None, 6], name="x")
        training = v1.placeholder_with_default(case["training"], [], name="training")
        value, variables, assigns = x, [], []

        def variable(name, array, **more):
            v = v1.get_variable(name, initializer=tf.constant(array), **more)
            variables.append(v)
            return v

        fetches = []
        with v1.variable_scope("net", use_resource=case["resource"]):
            for i in range(case["layers"]):
                width = 6
                if case["partitioned"] and i == 0:
                    w = v1.get_variable(
                        f"w{i}", [6, width], partitioner=v1.fixed_size_partitioner(3),
                        initializer=v1.random_uniform_initializer(-1, 1, seed=i))
                    value = tf.matmul(value, tf.convert_to_tensor(w))
                else:
                    w = variable(f"w{i}", number(rng, "float32", (6, width)))
                    value = tf.matmul(value, w)
                b = variable(f"b{i}", number(rng, "float32", (width,)))
                value = tf.nn.bias_add(value, b)
                if pick.random() < 0.5:
                    value = normalised(variable, rng, value, training, f"bn{i}")
                value = tf.nn.relu(value)
                if pick.random() < 0.5:
                    value = tf.cond(training, lambda v=value: tf.nn.dropout(v, rate=0.5),
                                    lambda v=value: tf.identity(v))
            fetches.append(tf.identity(value, name="y"))
            for i, dtype in enumerate(case["dtypes"]):
                shape = [(), (3,), (2, 3), (0, 2)][pick.randrange(4)]
                v = variable(f"v{i}_{dtype}", number(rng, dtype, shape))
                fetches.append(tf.identity(v, name=f"read{i}"))
        if case["table"]:
            table = v1.get_variable("table", initializer=tf.constant(
                number(rng, "float32", (50, 4))), use_resource=case["resource"])
            fetches.append(tf.gather(table, tf.constant([3, 0, 49]), name="rows"))
        if case["optimizer"]:
            loss = tf.reduce_mean(value * value)
            with tf.control_dependencies(v1.get_collection(v1.GraphKeys.UPDATE_OPS)):
                v1.train.AdamOptimizer(0.01).minimize(
                    loss, global_step=v1.train.create_global_step())
        every = v1.global_variables()
        saver = None
        if case["saver"] == "mapping":
            # A partitioned variable has no name of its own to give.
            names = None if case["partitioned"] else {"saved/" + v.op.name: v for v in every}
            saver = v1.train.Saver(names, write_version=case["version"], sharded=case["sharded"])
        else:
            saver = v1.train.Saver(write_version=case["version"], sharded=case["sharded"])
        feeds = {"x": rng.standard_normal((4, 6)).astype("float32")}
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            changes = [v1.assign(v, np.abs(rng.standard_normal(v.shape)) + 0.5) for v in every
                       if v.dtype.base_dtype == tf.float32 and v.shape == (6,)]
            session.run(changes)  # other values than the graph's initial ones
            prefix = os.path.join(folder, case["name"])
            if case["layout"] == "saved_model":
                save_model(session, graph, folder, x, fetches, case)
                model, params = folder, []
            else:
                if case["older"]:
                    saver.save(session, os.path.join(folder, "older"), global_step=1)
                step = 7 if case["older"] else None
                written = saver.save(session, prefix, global_step=step, write_meta_graph=False)
                kind = case["layout"]
                written = re.sub(r"-[?0-9]+-of-[0-9]+$", "", written)  # as TensorFlow names it
                meta = written + ".meta"
                if kind == "no_saver":
                    v1.train.export_meta_graph(meta, graph=graph)
                else:
                    saver.export_meta_graph(meta, as_text=kind == "text",
                                            clear_devices=case["clear"])
                model = {"folder": folder, "prefix": written}.get(kind, meta)
            off = {"training:0": False}
            wanted = session.run(fetches, {x: feeds["x"], training: False})
            outs = []
            for k, (t, a) in enumerate(zip(fetches, wanted)):
                a = np.asarray(a)
                if a.dtype.name == "bfloat16":
                    a = a.view("uint16")
                np.save(os.path.join(folder, f"want_{k}.npy"), a)
                outs.append(t.op.name)
            np.save(os.path.join(folder, "x.npy"), feeds["x"])
            np.save(os.path.join(folder, "off.npy"), np.asarray(False))
    return {"model": model, "fetches": outs}


def save_model(session, graph, folder, x, fetches, case):
    signature = v1.saved_model.build_signature_def(
        {"x": v1.saved_model.build_tensor_info(x)},
        {f"o{k}": v1.saved_model.build_tensor_info(t) for k, t in enumerate(fetches)}, "predict")
    where = os.path.join(folder, "saved")
    builder = v1.saved_model.Builder(where)
    tags = case["tags"]
    for k, names in enumerate(tags):
        key = "serving_default" if k == case["chosen"] else "other"
        if k == 0:
            builder.add_meta_graph_and_variables(session, names, {key: signature})
        else:
            builder.add_meta_graph(names, {key: signature})
    builder.save()
    for name in os.listdir(where):
        os.rename(os.path.join(where, name), os.path.join(folder, name))


for line in sys.stdin:
    case = json.loads(line)
    try:
        print(json.dumps(make(case, case["folder"])), flush=True)
    except Exception as e:
        print(json.dumps({"error": f"{type(e).__name__}: {e}"[:500]}), flush=True)
'''

DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "int16", "int8", "uint8",
          "bool", "complex64"]
TAGS = [[["serve"]], [["train"], ["serve"]], [["serve", "gpu"], ["serve"]], [["train"], ["eval"]],
        [["eval"]], [["serve", "tpu"], ["train"]]]


def random_case(rng):
    layout = rng.choice(["meta", "meta", "folder", "prefix", "text", "no_saver", "saved_model"])
    tags = TAGS[rng.integers(len(TAGS))]
    serving = [k for k, t in enumerate(tags) if "serve" in t]
    chosen = min(serving, key=lambda k: len(tags[k])) if serving else 0
    version = 2 if layout in ("saved_model",) or rng.random() < 0.75 else 1
    dtypes = [d for d in rng.permutation(DTYPES)[:rng.integers(0, 6)].tolist()]
    if version == 1:  # which TensorFlow cannot write in it
        dtypes = [d for d in dtypes if d not in ("bfloat16", "float16", "complex64", "int16")]
    optimizer = bool(rng.integers(2))
    # Which parts a variable has, the graph says in its saver alone.
    partitioned = bool(layout != "no_saver" and rng.random() < 0.3)
    return {
        "old_control_flow": optimizer or bool(rng.integers(2)), "optimizer": optimizer,
        "seed": int(rng.integers(1 << 30)),
        "name": str(rng.choice(["model.ckpt", "m", ".", "a.b"])),
        "layers": int(rng.integers(1, 4)), "training": bool(rng.integers(2)),
        "resource": bool(rng.integers(2)), "partitioned": partitioned,
        "dtypes": dtypes, "table": bool(rng.integers(2)),
        "saver": "all" if layout == "no_saver" else str(rng.choice(["all", "all", "mapping"])),
        "version": version, "sharded": bool(rng.random() < 0.3), "layout": str(layout),
        "older": bool(layout == "folder" and rng.integers(2)), "clear": bool(rng.integers(2)),
        "tags": tags, "chosen": int(chosen),
    }


def differs(got, want):
    """None, or what is different."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} {list(got.shape)}, not {want.dtype} {list(want.shape)}"
    if want.dtype.kind in "fc":
        near = np.abs(got - want) <= 1e-5 + 1e-4 * np.abs(want)
    else:
        near = got == want
    return None if near.all() else f"{int((~near).sum())} of {near.size} elements differ"


def check(tool, case, made, folder):
    """What is wrong with it, in a list."""
    wrong = []
    for level, threads in ((0, 1), (2, 1), (2, 2)):
        out = folder / f"out_{level}_{threads}"
        command = [tool, "run", made["model"], "--opt", str(level), "--threads", str(threads),
                   "--feed", f"x={folder}/x.npy", "--feed", f"training={folder}/off.npy",
                   "--out", str(out)]
        if case["layout"] == "saved_model" and not any("serve" in t for t in case["tags"]) \
                and len(case["tags"]) > 1:
            command += ["--signature", "serving_default"]
        for name in made["fetches"]:
            command += ["--fetch", name]
        ran = subprocess.run(command, capture_output=True, text=True)
        if ran.returncode:
            wrong.append(ran.stderr.strip()[-400:])
            break
        for k, name in enumerate(made["fetches"]):
            bad = differs(np.load(out / f"out_{k}.npy"), np.load(folder / f"want_{k}.npy"))
            if bad:
                wrong.append(f"level {level}: {name}: {bad}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--heddle")
    p.add_argument("--python", required=True)
    p.add_argument("--cases", type=int, default=100)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--record", metavar="DIR")
    a = p.parse_args()
    maker = subprocess.Popen([a.python, "-c", MAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, text=True)

    def make(case, folder):
        maker.stdin.write(json.dumps(dict(case, folder=str(folder))) + "\n")
        maker.stdin.flush()
        return json.loads(maker.stdout.readline())

    if a.record:
        case = {"seed": 5, "name": "m", "layers": 1, "training": True, "resource": False,
                "partitioned": True, "dtypes": ["float64", "int8", "bool"], "table": False,
                "optimizer": False, "old_control_flow": True, "saver": "all", "sharded": True,
                "layout": "meta", "older": False, "clear": True, "tags": [], "chosen": 0}
        for version, name in ((1, "first_layout"), (2, "bundle")):
            folder = Path(a.record) / name
            folder.mkdir(parents=True, exist_ok=True)
            print(make(dict(case, version=version), folder))
        return 0
    rng = np.random.default_rng(a.seed)
    right = failed = not_made = 0
    for _ in range(a.cases):
        case = random_case(rng)
        with tempfile.TemporaryDirectory() as tmp:
            made = make(case, tmp)
            if "error" in made:
                not_made += 1
                print("NOT MADE", made["error"][:200], {k: case[k] for k in ("layout", "version")})
                continue
            wrong = check(a.heddle, case, made, Path(tmp))
        right += not wrong
        failed += bool(wrong)
        if wrong:
            print("WRONG", json.dumps(case))
            for w in wrong:
                print("    ", w)
        sys.stdout.flush()
    print(f"{right} right, {failed} wrong, {not_made} that TensorFlow does not make")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
