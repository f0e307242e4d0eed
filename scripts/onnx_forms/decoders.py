"""Attention, rotary embeddings and normalised sums of com.microsoft, with every optional operand
there and left out."""

import numpy as np
from onnx import TensorProto

from .form import Form, data, form, pick


def one(r, op, outputs=1):
    return Form(r, op, 17, outputs=outputs, domain="com.microsoft")


def small(r, *shape):
    return (data(r, shape) / 4).astype("float32")


def some(r, chance=0.5):
    return bool(r.random() < chance)


def wants(r, f, chance=0.6):
    """Leaves outputs behind the first out, now and then."""
    for k in range(1, len(f.outputs)):
        if not some(r, chance):
            f.outputs[k] = ""
    while f.outputs[-1] == "":
        f.outputs.pop()


def mask_of(r, batch, length, total, kinds):
    # The first key is never masked: of rows without any, little is left beside -10000.
    kind = pick(r, *kinds)
    if kind == "ends":
        return r.integers(1, total + 1, [batch]).astype("int32")
    if kind == "ends and begins":
        begins = r.integers(0, total, [batch])
        return np.concatenate([r.integers(begins + 1, total + 1), begins]).astype("int32")
    if kind == "one column":
        return r.integers(0, 2, [batch, 1]).astype("int32")
    made = r.integers(0, 2, [batch, total] if kind == "keys" else [batch, length, total])
    made[..., 0] = 1
    return made.astype("int32")


def addend(r, batch, heads, length, total):
    return small(r, pick(r, 1, batch), pick(r, 1, heads), length, total)


@form
def ms_multi_head_attention(r):
    f = one(r, "MultiHeadAttention", outputs=4)
    batch, heads, length, size = (int(d) for d in r.integers(1, 5, 4))
    keys = int(r.integers(1, 5))
    across = some(r, 0.15)  # keys and values of another text, as they are kept
    past = 0 if across else int(pick(r, 0, 0, 2, 3))
    wide = size if across or past else int(r.integers(1, 5))
    total = past + keys
    f.attr(num_heads=heads, scale=pick(r, None, 0.5), mask_filter_value=pick(r, None, -50.0))
    # ONNX Runtime's last query sees all keys, also where there are more keys than queries.
    if some(r, 0.4) and not across:
        f.attr(unidirectional=1)
        keys = length
        total = past + keys
    f.add(small(r, batch, length, heads * size), const=False)
    if across:
        f.add(small(r, batch, heads, keys, size), const=False)
        f.add(small(r, batch, heads, keys, size), const=False)
    else:
        f.add(small(r, batch, keys, heads * size), const=False)
        f.add(small(r, batch, keys, heads * wide), const=False)
    f.add(small(r, heads * (2 * size + wide)) if some(r) else None)
    f.add(mask_of(r, batch, length, total, ["ends", "keys", "keys", "all"]) if some(r) else None,
          const=False)
    f.add(addend(r, batch, heads, length, total) if some(r) else None)
    if past:
        f.add(small(r, batch, heads, past, size), const=False)
        f.add(small(r, batch, heads, past, wide), const=False)
    if not past:  # with old keys, ONNX Runtime reads them from these outputs
        wants(r, f, 0.3)
    if f.outputs[-1] == "y3":
        f.types["y3"] = TensorProto.FLOAT
    return f


@form
def ms_attention(r):
    f = one(r, "Attention", outputs=2)
    batch, heads, length, size = (int(d) for d in r.integers(1, 5, 4))
    width, wide, past = int(r.integers(1, 6)), size, int(pick(r, 0, 0, 2, 3))
    if some(r, 0.3) and not past:
        wide = int(r.integers(1, 5))
        f.attr(qkv_hidden_sizes=[heads * size, heads * size, heads * wide])
    f.attr(num_heads=heads, scale=pick(r, None, 0.5), mask_filter_value=pick(r, None, -50.0))
    if some(r, 0.4):
        f.attr(unidirectional=1)
    f.add(small(r, batch, length, width), const=False)
    columns = heads * (2 * size + wide)
    f.add(small(r, width, columns), const=True)
    f.add(small(r, columns) if some(r, 0.7) else None, const=True)
    total = past + length
    kinds = ["ends", "keys", "all", "one column"]
    if "unidirectional" not in f.attrs:
        kinds.append("ends and begins")
    f.add(mask_of(r, batch, length, total, kinds) if some(r) else None, const=False)
    f.add(small(r, 2, batch, heads, past, size) if past else None, const=False)
    f.add(addend(r, batch, heads, length, total) if some(r) and not past else None)
    if not past:
        f.outputs.pop()
    return f


def tables(r, places, half):
    angles = np.arange(places)[:, None] / 3.0 ** np.arange(half)
    return np.cos(angles).astype("f4"), np.sin(angles).astype("f4")


@form
def ms_group_query_attention(r):
    f = one(r, "GroupQueryAttention", outputs=3)
    batch, groups, length = (int(d) for d in r.integers(1, 4, 3))
    heads, size = groups * int(r.integers(1, 4)), int(pick(r, 16, 32))
    f.attr(num_heads=heads, kv_num_heads=groups, scale=pick(r, None, 0.5))
    f.attr(softcap=pick(r, None, None, 5.0))
    f.attr(**pick(r, {}, {}, {"local_window_size": 2}, {"local_window_size": 3}, {"causal": 0}))
    # The first call of a text has no keys before; later ones have, of another number for each item.
    first = some(r, 0.4)
    if not first and length > 1:
        batch = 1
    past = np.zeros(batch, int) if first else r.integers(1, 5, batch)
    total = int(past.max()) + length
    if some(r, 0.3):
        f.add(small(r, batch, length, (heads + 2 * groups) * size), const=False)
        f.add(None).add(None)
    else:
        f.add(small(r, batch, length, heads * size), const=False)
        for _ in range(2):
            f.add(small(r, batch, length, groups * size), const=False)
    if first and some(r):
        f.add(None).add(None)
    else:
        for _ in range(2):
            cache = small(r, batch, groups, int(past.max()), size)
            for b in range(batch):
                cache[b, :, past[b]:] = 0
            f.add(cache, const=False)
    f.add((past + length - 1).astype("int32"), const=False)
    f.add(np.array(total, "int32"), const=bool(some(r, 0.3)))
    rotary = some(r)
    if rotary:
        f.attr(do_rotary=1, rotary_interleaved=int(r.integers(2)))
        for table in tables(r, total + 2, size // pick(r, 2, 2, size // 8)):
            f.add(table)
        given = past[:, None] + np.arange(length)
        f.add(given.astype("int64") if some(r, 0.3) else None, const=False)
    else:
        f.add(None).add(None).add(None)
    f.add(addend(r, batch, heads, length, total) if some(r, 0.3) else None, const=False)
    f.add(small(r, heads) if some(r, 0.25) else None)
    if some(r, 0.15):
        f.attr(smooth_softmax=1)
    return f


@form
def ms_rotary(r):
    f = one(r, "RotaryEmbedding")
    batch, heads, length = (int(d) for d in r.integers(1, 4, 3))
    size, places = 2 * int(r.integers(1, 5)), 9
    turned = 2 * int(r.integers(1, size // 2 + 1)) if some(r, 0.3) else size
    f.attr(interleaved=int(r.integers(2)))
    if turned != size:
        f.attr(rotary_embedding_dim=turned, num_heads=heads)
    elif some(r, 0.3):
        f.attr(num_heads=heads)
    shape = [batch, heads, length, size] if some(r, 0.3) else [batch, length, heads * size]
    f.add(small(r, *shape), const=False)
    if some(r):
        f.add(r.integers(0, places - length, [1]).astype("int64"))
    else:
        f.add(r.integers(0, places, [batch, length]).astype("int64"))
    for table in tables(r, places, turned // 2):
        f.add(table)
    return f


@form
def ms_skips(r):
    """Sums, normalised."""
    simple = some(r)
    f = one(r, "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization",
            outputs=4)
    f.outputs[1] = f.outputs[2] = ""
    if some(r):
        f.outputs = f.outputs[:1]
    batch, words, width = (int(d) for d in r.integers(1, 5, 3))
    t = pick(r, "float32", "float32", "float16")
    shape = [batch, words, width] if some(r, 0.7) else [words, width]
    f.attr(epsilon=pick(r, None, 1e-5, 1e-2))
    f.add(data(r, shape, t), const=False)
    other = pick(r, shape, shape, *([[1, *shape[1:]], shape[1:]] if len(shape) == 3 else []))
    f.add(data(r, other, t), const=False).add(data(r, [width], t))
    if not simple:
        f.add(data(r, [width], t) if some(r) else None)
    f.add(data(r, [width], t) if some(r) else None)
    return f


@form
def ms_words(r):
    """Rows of words, places and segments, normalised."""
    f = one(r, "EmbedLayerNormalization", outputs=int(r.integers(2, 4)))
    batch, words, width = (int(d) for d in r.integers(1, 5, 3))
    f.attr(epsilon=pick(r, None, 1e-5))
    if len(f.outputs) == 3:
        f.attr(mask_index_type=pick(r, None, 0))
    f.add(r.integers(0, 5, [batch, words]).astype("int32"), const=False)
    segments = some(r)
    f.add(r.integers(0, 2, [batch, words]).astype("int32") if segments else None, const=False)
    f.add(data(r, [5, width]), const=True).add(data(r, [6, width]), const=True)
    f.add(data(r, [2, width]) if segments else None, const=True)
    f.add(data(r, [width]), const=True).add(data(r, [width]), const=True)
    f.add(r.integers(0, 2, [batch, words]).astype("int32") if some(r) else None, const=False)
    if some(r):
        places = r.integers(0, 6, [pick(r, 1, batch), words])
        f.add(places.astype("int32"), const=False)
    return f
