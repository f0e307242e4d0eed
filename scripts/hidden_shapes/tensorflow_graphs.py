"""Random TensorFlow graphs whose ranks are not known when they are read.

A graph hides the shape of what is fed (unknown rank, a reshape to a fed shape or to a slice of
one, a loop whose value grows, a function), then applies operators whose meaning depends on the
rank: axes from the end, all axes, ellipses, layouts, orders of axes. TensorFlow gives the answers.

  tensorflow_graphs.py --out DIR --seed S --count N     writes N cases and list.txt
"""

import argparse
import os
import random
import shutil
import sys
from pathlib import Path

import numpy as np

os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

WAYS = ("random",)
MOST = 400  # elements of a value


def axis_of(rng, shape):
    """An axis, counted from either end."""
    axis = rng.randrange(len(shape))
    return axis - len(shape) if rng.random() < 0.7 else axis


def some_axes(rng, shape):
    axes = rng.sample(range(len(shape)), rng.randint(1, len(shape)))
    return [a - len(shape) if rng.random() < 0.5 else a for a in axes]


# Each maker takes the random numbers, TensorFlow, the shape and whether elements are floats, and
# returns a function of a tensor, or None where the shape does not fit.


def softmax(rng, tf, shape, floats):
    if not shape or not floats:
        return None
    return rng.choice([tf.nn.softmax, tf.nn.log_softmax])


def reduce(rng, tf, shape, floats):
    f = rng.choice([tf.reduce_sum, tf.reduce_max, tf.reduce_min, tf.reduce_mean, tf.reduce_prod])
    if not shape or 0 in shape:
        return None
    keep = rng.random() < 0.5
    if rng.random() < 0.25:
        return lambda x: f(x, keepdims=keep)
    axes = some_axes(rng, shape)
    return lambda x: f(x, axis=axes, keepdims=keep)


def bias(rng, tf, shape, floats):
    if len(shape) < 2:
        return None
    first = len(shape) > 2 and rng.random() < 0.5
    values = np.arange(shape[1 if first else -1]) + 1
    layout = "NCHW" if first else "NHWC"
    return lambda x: tf.raw_ops.BiasAdd(value=x, bias=tf.cast(values, x.dtype),
                                        data_format=layout)


def transpose(rng, tf, shape, floats):
    kind = rng.randrange(3)
    if kind == 0 or len(shape) < 2:
        return tf.transpose
    if kind == 1:
        return tf.linalg.matrix_transpose
    order = rng.sample(range(len(shape)), len(shape))
    return lambda x: tf.transpose(x, order)


def slices(rng, tf, shape, floats):
    if not shape:
        return None
    kind = rng.randrange(6)
    if kind == 0:
        return lambda x: x[..., -1]
    if kind == 1:
        return lambda x: x[..., tf.newaxis]
    if kind == 2:
        return lambda x: x[..., ::-1]
    if kind == 3 and len(shape) > 1:
        return lambda x: x[1:, ..., :-1]
    if kind == 4:
        return lambda x: x[tf.newaxis, ..., 0]
    return lambda x: x[0]


def squeeze(rng, tf, shape, floats):
    ones = [a for a, d in enumerate(shape) if d == 1]
    if not ones or rng.random() < 0.4:
        return tf.squeeze
    axes = [a - len(shape) if rng.random() < 0.6 else a
            for a in rng.sample(ones, rng.randint(1, len(ones)))]
    return lambda x: tf.squeeze(x, axes)


def expand(rng, tf, shape, floats):
    if len(shape) > 5:
        return None
    axis = rng.randint(-len(shape) - 1, len(shape))
    return lambda x: tf.expand_dims(x, axis)


def join(rng, tf, shape, floats):
    if not shape:
        return lambda x: tf.stack([x, x + x])
    axis = axis_of(rng, shape)
    kind = rng.randrange(3)
    if kind == 0:
        return lambda x: tf.concat([x, x + x], axis)
    if kind == 1 and len(shape) < 5:
        return lambda x: tf.stack([x, x * x], axis)
    return lambda x: tf.concat([x, tf.reverse(x, [axis])], axis)


def parts(rng, tf, shape, floats):
    if not shape:
        return None
    axis = axis_of(rng, shape)
    size = shape[axis]
    if size < 1:
        return None
    if rng.random() < 0.5:
        return lambda x: tf.add_n(tf.split(x, size, axis))
    return lambda x: tf.add_n(tf.unstack(x, size, axis))


def running(rng, tf, shape, floats):
    if not shape:
        return None
    axis, exclusive, back = axis_of(rng, shape), rng.random() < 0.5, rng.random() < 0.5
    f = rng.choice([tf.cumsum, tf.math.cumprod])
    return lambda x: f(x, axis, exclusive=exclusive, reverse=back)


def extremes(rng, tf, shape, floats):
    if not shape or 0 in shape:
        return None
    axis = axis_of(rng, shape)
    f = rng.choice([tf.argmax, tf.argmin])
    return lambda x: f(x, axis)


def gather(rng, tf, shape, floats):
    if not shape or 0 in shape:
        return None
    axis = axis_of(rng, shape)
    rows = [rng.randrange(shape[axis]) for _ in range(rng.randint(1, 3))]
    return lambda x: tf.gather(x, rows, axis=axis)


def normalize(rng, tf, shape, floats):
    if not shape or not floats or 0 in shape:
        return None

    def layer(x):
        mean = tf.reduce_mean(x, -1, keepdims=True)
        square = tf.reduce_mean(tf.math.squared_difference(x, mean), -1, keepdims=True)
        return (x - mean) * tf.math.rsqrt(square + 0.5)

    def across(x):
        axes = tf.range(1, tf.rank(x))
        return x - tf.reduce_mean(x, axes, keepdims=True)

    return rng.choice([layer, across, lambda x: tf.math.l2_normalize(x, -1, 1e-3)])


def reshape(rng, tf, shape, floats):
    if not shape or 0 in shape:
        return None
    kind = rng.randrange(4)
    if kind == 0:
        return lambda x: tf.reshape(x, [-1, tf.shape(x)[-1]])
    if kind == 1:
        return lambda x: tf.reshape(x, tf.concat([tf.shape(x)[:-1], [1, -1]], 0))
    if kind == 2:
        return lambda x: tf.reshape(x, tf.shape(x)[::-1])
    return lambda x: tf.reshape(x, [-1])


def sizes(rng, tf, shape, floats):
    """Values made of the rank and the shape."""
    kind = rng.randrange(4)
    if kind == 0:
        return lambda x: x * tf.cast(tf.rank(x), x.dtype)
    if kind == 1:
        return lambda x: x + tf.cast(tf.size(x), x.dtype)
    if kind == 2:
        return lambda x: x + tf.cast(tf.reduce_sum(tf.shape(x)), x.dtype)
    return lambda x: tf.broadcast_to(x, tf.concat([[2], tf.shape(x)], 0))


def spread(rng, tf, shape, floats):
    if not shape or len(shape) > 4:
        return None
    axis = axis_of(rng, shape)
    kind = rng.randrange(4)
    if kind == 0:
        return lambda x: tf.tile(x, tf.ones([tf.rank(x)], tf.int32) * 2)
    if kind == 1:
        return lambda x: tf.roll(x, 1, axis)
    if kind == 2:
        pads = [[rng.randrange(2), rng.randrange(2)] for _ in shape]
        return lambda x: tf.pad(x, pads)
    return lambda x: tf.one_hot(tf.cast(tf.cast(x, tf.int32) % 3, tf.int64), 3, axis=-1)


def order(rng, tf, shape, floats):
    if not shape or 0 in shape:
        return None
    if rng.random() < 0.5:
        return lambda x: tf.sort(x)
    return lambda x: tf.nn.top_k(x, 1).values


def products(rng, tf, shape, floats):
    if len(shape) < 2 or not floats:
        return None
    kind = rng.randrange(3)
    if kind == 0:
        return lambda x: tf.matmul(x, x, transpose_b=True)
    if kind == 1:
        return lambda x: tf.einsum("...ij->...ji", x)
    return lambda x: tf.matmul(x, tf.ones([shape[-1], 2]))


def casts(rng, tf, shape, floats):
    kind = rng.randrange(3)
    if kind == 0:
        return lambda x: tf.cast(tf.cast(x, tf.int32), tf.float32)
    if kind == 1:
        return lambda x: tf.cast(x > tf.zeros([], x.dtype), tf.int64)
    return lambda x: tf.cast(tf.cast(x, tf.float64) * 0.5, tf.float32)


def picks(rng, tf, shape, floats):
    kind = rng.randrange(3)
    if kind == 0:
        return lambda x: tf.where(x > tf.zeros_like(x), x, -x)
    if kind == 1:
        return lambda x: tf.cond(tf.rank(x) > 1, lambda: tf.reduce_sum(x, -1), lambda: x + x)
    return lambda x: tf.maximum(x, tf.zeros([2] + [1] * len(shape), x.dtype))


def loop(rng, tf, shape, floats):
    """A loop whose value grows, in rank or in length, or loses axes."""
    trips = rng.randint(0, 3)
    kind = rng.randrange(6)
    if len(shape) + trips > 5:
        return None

    def body(x):
        if kind == 0:
            return tf.nn.softmax(tf.expand_dims(x, -1) * [1, 2]) if floats else tf.expand_dims(x, 0)
        if kind == 1:
            return tf.concat([x, tf.reduce_max(x, -1, keepdims=True)], -1)
        if kind == 2:
            return tf.stack([x, x + x], -1)
        if kind == 3:
            return tf.reduce_sum(x, -1)
        if kind == 4:
            return tf.transpose(tf.expand_dims(x, -1))
        return x[..., tf.newaxis] - tf.reduce_max(x)

    if kind == 1 and not shape or kind == 3 and len(shape) < trips or 0 in shape:
        return None

    def run(x):
        first = tf.constant(0)
        grown = tf.while_loop(lambda i, _: i < trips, lambda i, v: (i + 1, body(v)), [first, x],
                              shape_invariants=[first.shape, tf.TensorShape(None)])
        return grown[1]

    return run


def rows(rng, tf, shape, floats):
    """Something done to each row, by TensorArrays or TensorLists."""
    if not shape or shape[0] < 1 or 0 in shape:
        return None
    kind = rng.randrange(3)

    def row(r):
        return [r + r, tf.reduce_sum(r), tf.expand_dims(r, -1)][kind]

    return lambda x: tf.map_fn(row, x)


def uneven(rng, tf, shape, floats):
    """Items of several shapes in one array, or in one list."""
    if not shape or 0 in shape or len(shape) > 4:
        return None
    kind = rng.randrange(3)

    def arrays(x):
        array = tf.TensorArray(x.dtype, 2, infer_shape=False, element_shape=tf.TensorShape(None),
                               clear_after_read=False)
        array = array.write(0, tf.expand_dims(x, -1))
        array = array.write(1, tf.reduce_sum(x, -1))
        return tf.nn.softmax(tf.cast(array.read(0), tf.float32)) + tf.cast(
            tf.reduce_max(array.read(1)), tf.float32)

    def lists(x):
        handle = tf.raw_ops.TensorListReserve(element_shape=tf.constant(-1), num_elements=2,
                                              element_dtype=x.dtype)
        handle = tf.raw_ops.TensorListSetItem(input_handle=handle, index=0, item=x[..., None])
        handle = tf.raw_ops.TensorListSetItem(input_handle=handle, index=1, item=x[0])
        get = tf.raw_ops.TensorListGetItem(input_handle=handle, index=0, element_dtype=x.dtype,
                                           element_shape=tf.constant(-1))
        other = tf.raw_ops.TensorListGetItem(input_handle=handle, index=1, element_dtype=x.dtype,
                                             element_shape=tf.constant(-1))
        return tf.reduce_max(get, [-1, -2]) - tf.reduce_sum(other)

    def loops(x):
        array = tf.TensorArray(x.dtype, 3, infer_shape=False, element_shape=tf.TensorShape(None),
                               clear_after_read=False)
        filled = tf.while_loop(
            lambda i, v, a: i < 3,
            lambda i, v, a: (i + 1, tf.expand_dims(v, -1), a.write(i, v)),
            [tf.constant(0), x, array],
            shape_invariants=[tf.TensorShape([]), tf.TensorShape(None), tf.TensorShape(None)])
        return filled[2].read(2) + filled[2].read(1)[..., tf.newaxis]

    return [arrays, lists, loops][kind]


def truth(rng, tf, shape, floats):
    """A branch on a tensor: a scalar's value, whether others have elements."""
    dims = rng.choice([[], [0], [1], [2], [2, 0]])
    values = np.array(rng.choice([0, 0, 1]) + np.zeros(dims), np.float32)

    def branch(x):
        yes = tf.function(lambda v: v + v, autograph=False)
        no = tf.function(lambda v: v - 1, autograph=False)
        spec = tf.TensorSpec(None, x.dtype)
        condition = tf.reshape(tf.constant(values), tf.cast(
            tf.constant(dims, tf.float32) + 0 * tf.cast(tf.size(x), tf.float32), tf.int32))
        return tf.raw_ops.StatelessIf(cond=condition, input=[x], Tout=[x.dtype],
                                      then_branch=yes.get_concrete_function(spec),
                                      else_branch=no.get_concrete_function(spec))[0]

    return branch


def sides(rng, tf, shape, floats):
    """Branches that give other ranks than each other."""
    return lambda x: tf.cond(tf.size(x) > 2, lambda: tf.expand_dims(x, 0),
                             lambda: tf.reduce_max(x) + tf.zeros([2], x.dtype))


def gradient(rng, tf, shape, floats):
    if not shape or not floats or 0 in shape:
        return None
    makers = [softmax, reduce, transpose, slices, squeeze, expand, join, parts, running, gather,
              normalize, reshape, products, loop, bias]
    steps, dims = [], tf.constant(np.ones(shape, np.float32))
    for _ in range(rng.randint(1, 3)):
        step = rng.choice(makers)(rng, tf, tuple(dims.shape), True)
        if step is None:
            continue
        dims = step(dims)
        steps.append(step)
        if len(dims.shape) > 5 or int(tf.size(dims)) > MOST or not int(tf.size(dims)):
            return None

    def run(x):
        y = x
        if not tf.executing_eagerly():
            for step in steps:
                y = step(y)
            return tf.convert_to_tensor(tf.gradients(y, x)[0])
        with tf.GradientTape() as tape:
            tape.watch(x)
            for step in steps:
                y = step(y)
        return tf.convert_to_tensor(tape.gradient(y, x))

    return run if steps else None


def images(rng, tf, shape, floats):
    """Windows and layouts; the value becomes an image first."""
    if not floats or not shape or 0 in shape:
        return None
    size = int(np.prod(shape))
    kind = rng.randrange(6)
    same = rng.choice(["SAME", "VALID"])

    def image(x):  # [1, size, 2, 2]
        return tf.reshape(x, tf.stack([1, tf.size(x), 1, 1])) * tf.reshape(
            tf.constant([1., 2., 3., -4.]), [1, 1, 2, 2])

    if kind == 0:
        return lambda x: tf.nn.max_pool2d(image(x), 2, 1, same)
    if kind == 1:
        return lambda x: tf.nn.avg_pool2d(image(x), [2, 1], [1, 2], same)
    if kind == 2:
        return lambda x: tf.nn.conv2d(image(x), tf.ones([1, 2, 2, 3]) * 0.1, 1, same)
    if kind == 3:
        return lambda x: tf.nn.depthwise_conv2d(image(x), tf.ones([1, 2, 2, 2]), [1, 1, 1, 1],
                                                same)
    if kind == 4:
        return lambda x: tf.compat.v1.nn.fused_batch_norm(
            image(x), tf.constant([1., 2.]), tf.constant([0., 1.]), tf.constant([0.5, 0.]),
            tf.constant([1., 2.]), is_training=False)[0]
    return lambda x: tf.image.resize(image(x), [size + 1, 3])


def matrices(rng, tf, shape, floats):
    if len(shape) < 2 or not floats or 0 in shape:
        return None
    kind = rng.randrange(6)
    if kind == 0:
        return lambda x: tf.linalg.band_part(x, 0, -1)
    if kind == 1:
        return lambda x: tf.linalg.diag_part(x)
    if kind == 2:
        return lambda x: tf.linalg.adjoint(x)
    if kind == 3:
        side = shape[-1]
        return lambda x: tf.linalg.solve(tf.eye(side) * 3 + tf.ones([side, side]),
                                         tf.linalg.matrix_transpose(x), adjoint=True)
    if kind == 4:
        return lambda x: tf.raw_ops.MatrixInverse(
            input=tf.matmul(x, x, transpose_b=True) + tf.eye(shape[-2]) * 2, adjoint=True)
    return lambda x: tf.einsum("...ij,...kj->...ik", x, x)


MAKERS = [uneven, truth, sides, gradient, gradient, images, matrices, softmax, reduce, reduce, bias,
          transpose, slices, slices, squeeze, expand, join, parts, running, extremes, gather,
          normalize, reshape, sizes, spread, order, products, casts, picks, loop, loop, rows]


def hide(rng, tf, tensor, feeds):
    """The value whose shape is fed or worked out; `feeds` gets what has to be fed besides."""
    kind = rng.randrange(5)
    value = feeds[0][1]
    shape = np.array(value.shape, np.int32)
    if kind == 1:
        dims = tf.compat.v1.placeholder(tf.int32, None if rng.random() < 0.5 else [None], "dims")
        feeds.append((dims, shape))
        return tf.reshape(tensor, dims)
    if kind == 2:
        dims = tf.compat.v1.placeholder(tf.int32, None, "dims")
        rank = tf.compat.v1.placeholder(tf.int32, [], "rank")
        feeds += [(dims, np.append(shape, [7, 7]).astype(np.int32)), (rank, np.int32(len(shape)))]
        return tf.reshape(tensor, dims[:rank])
    if kind == 3:
        return tf.function(lambda x: tf.identity(x), autograph=False)(tensor)
    if kind == 4:
        grown = tf.while_loop(lambda i, _: i < 1, lambda i, v: (i + 1, v + v),
                              [tf.constant(0), tensor],
                              shape_invariants=[tf.TensorShape([]), tf.TensorShape(None)])
        return grown[1]
    return tensor


def write_case(folder, graph_def, feeds, fetched):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "graph.pb").write_bytes(graph_def.SerializeToString())
    lines = []

    def dims(value):
        return ",".join(map(str, value.shape)) or "-"

    for k, (name, value) in enumerate(feeds):
        np.save(folder / f"in_{k}.npy", value)
        lines.append(["in", name, f"in_{k}.npy", value.dtype.name, dims(value), "exact", "-", "-"])
    for k, (name, value) in enumerate(fetched):
        np.save(folder / f"out_{k}.npy", value)
        check = "close" if value.dtype.kind == "f" else "exact"
        lines.append(["out", name, f"out_{k}.npy", value.dtype.name, dims(value), check,
                      "1e-4", "1e-5"])
    (folder / "io.txt").write_text("".join("\t".join(line) + "\n" for line in lines))


def chosen_steps(rng, tf, value):
    """Functions, and what the last of them gives."""
    steps, said = [], []
    x = tf.constant(value)
    for _ in range(rng.randint(1, 5)):
        maker = rng.choice(MAKERS)
        step = maker(rng, tf, tuple(x.shape), x.dtype.is_floating)
        if step is None:
            continue
        made = step(x)
        if int(tf.size(made)) > MOST or len(made.shape) > 6:
            continue
        if made.dtype.is_floating and not np.isfinite(made.numpy()).all():
            continue
        if float(tf.reduce_max(tf.abs(tf.cast(made, tf.float64)))) > 1e4 if int(
                tf.size(made)) else False:
            continue
        x = made
        steps.append(step)
        said.append(maker.__name__)
    return steps, said


def make(seed, folder):
    """Writes the case of this seed and says what it is made of; None where there is none."""
    import tensorflow as tf

    rng = random.Random(seed)
    shape = [rng.choice([1, 1, 2, 3, 4]) for _ in range(rng.randint(0, 4))]
    values = np.random.default_rng(seed)
    floats = rng.random() < 0.75
    value = (values.standard_normal(shape).astype(np.float32) if floats
             else np.array(values.integers(-4, 5, shape), np.int32))
    steps, said = chosen_steps(rng, tf, value)
    if not steps:
        return None
    old = rng.random() < 0.35
    graph = tf.Graph()
    (tf.compat.v1.disable_control_flow_v2 if old else tf.compat.v1.enable_control_flow_v2)()
    with graph.as_default():
        x = tf.compat.v1.placeholder(value.dtype, None, "x")
        feeds = [(x, value)]
        y = hide(rng, tf, x, feeds)
        for step in steps:
            y = step(y)
        y = tf.identity(y, "y")
        with tf.compat.v1.Session() as session:
            made = np.asarray(session.run(y, dict(feeds)))
    tf.compat.v1.enable_control_flow_v2()
    write_case(folder, graph.as_graph_def(), [(t.op.name, v) for t, v in feeds], [("y", made)])
    return ("old " if old else "") + " ".join(said)


def cases(options, scratch):
    """As hidden_shapes.cases has it: each graph counts as its own recorded case."""
    from hidden_shapes.cases import Case, PLAIN
    from hidden_shapes.tensorflow_cases import judged_by

    for seed in range(options.seed, options.seed + options.count):
        folder = scratch / f"seed_{seed}"
        if make(seed, folder) is None:
            continue
        for way in (PLAIN, *WAYS):
            yield Case(folder.name, way, folder, judged_by(folder))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    written = []
    for seed in range(options.seed, options.seed + options.count):
        folder = options.out / f"seed_{seed}"
        try:
            said = make(seed, folder)
        except Exception as error:  # TensorFlow does not take it
            print(f"seed {seed}: {type(error).__name__} {str(error).splitlines()[0][:150]}",
                  file=sys.stderr)
            continue
        if said is not None:
            written.append(f"{folder.name}\t{said}\n")
    (options.out / "list.txt").write_text("".join(written))
    print(f"{len(written)} cases")
    return 0


if __name__ == "__main__":
    sys.exit(main())
