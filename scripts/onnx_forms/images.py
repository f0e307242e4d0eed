"""Resizing, sampling and boxes."""

import numpy as np

from .form import Form, data, form, pick


@form
def resize(r):
    op = pick(r, 10, 11, 11, 13, 18, 19)
    rank = int(r.integers(1, 6))
    mode = pick(r, "nearest", "nearest", "linear", "cubic")
    if mode == "cubic":
        rank = 4
    if mode == "linear":
        rank = pick(r, 2, 4, 4, 3, 5)
    # ONNX Runtime interpolates integers in float32 and cuts: its rounding decides where the result
    # is a whole number. With antialias it has an arithmetic of its own for each type.
    t = "float32" if mode != "nearest" or r.random() < 0.6 else pick(r, "uint8", "int8", "int32")
    s = tuple(int(v) for v in r.integers(1, 6, rank))
    free = [i for i in range(rank) if r.random() < 0.7 and (i >= 2 or rank < 4)]
    if mode != "nearest":
        free = [i for i in free if i >= rank - 2]
    scales = [
        float(np.float32(pick(r, 0.5, 2, 1.5, 0.6, 3, 0.8, 2.5))) if i in free else 1.0
        for i in range(rank)
    ]
    x = data(r, s, t)
    if op == 10:
        return (
            Form(r, "Resize", 10)
            .add(x, False)
            .add(np.array(scales, "float32"), True)
            .attr(mode=mode if mode != "cubic" else "linear")
        )
    coord = pick(
        r,
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
        *(["tf_half_pixel_for_nn"] * 2 if op < 13 else ["tf_half_pixel_for_nn"]),
        *(["half_pixel_symmetric"] if op >= 19 else [])
    )
    f = Form(r, "Resize", op).add(x, False)
    f.attr(mode=mode, coordinate_transformation_mode=coord)
    if mode == "nearest" and r.random() < 0.8:
        f.attr(nearest_mode=pick(r, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
    if mode == "cubic":
        f.attr(exclude_outside=int(r.integers(2)), cubic_coeff_a=pick(r, -0.75, -0.5))
    if coord == "align_corners":
        # Of a length that is not whole, ONNX Runtime takes the whole part; ONNX's own case
        # resize_downsample_scales_linear_align_corners counts all of it.
        scales = [2.0 if v != 1 else 1.0 for v in scales]
    if coord == "tf_crop_and_resize":
        lo, hi = r.random(rank) * 0.4, 0.5 + r.random(rank) * 0.7
        lo, hi = np.where([i in free for i in range(rank)], lo, 0), np.where(
            [i in free for i in range(rank)], hi, 1
        )
        f.add(np.concatenate([lo, hi]).astype("float32"), True).attr(
            extrapolation_value=float(np.float32(r.random()))
        )
    else:
        f.add(np.zeros(0, "float32") if op == 11 or r.random() < 0.3 else None, True)
    use_sizes = r.random() < 0.4
    axes = None
    if op >= 18 and r.random() < 0.3 and free and coord != "tf_crop_and_resize":
        axes = free
        f.attr(
            axes=[a - rank if r.random() < 0.3 else a for a in axes] if r.random() < 0.5 else axes
        )
    if op >= 18 and mode != "nearest" and r.random() < 0.3:
        f.attr(antialias=1)
    if use_sizes:
        sizes = [max(1, int(round(s[i] * scales[i]))) for i in range(rank)]
        if op >= 18 and r.random() < 0.3 and all(a >= 0 for a in f.attrs.get("axes", [])):
            f.attr(keep_aspect_ratio_policy=pick(r, "stretch", "not_larger", "not_smaller"))
        f.add(np.zeros(0, "float32") if op == 11 else None, True)
        return f.add(np.array([sizes[a] for a in axes] if axes else sizes, "int64"), True)
    return f.add(np.array([scales[a] for a in axes] if axes else scales, "float32"), True)


@form
def upsample(r):
    op = pick(r, 7, 9)
    mode = pick(r, "nearest", "linear")
    rank = int(r.integers(1, 5)) if mode == "nearest" else pick(r, 2, 4)
    s = tuple(int(v) for v in r.integers(1, 5, rank))
    scales = [
        float(np.float32(pick(r, 1, 2, 1.5, 3))) if rank < 3 or i >= 2 else 1.0 for i in range(rank)
    ]
    t = "float32" if mode == "linear" else pick(r, "float32", "float32", "uint8", "int32")
    f = Form(r, "Upsample", op).add(data(r, s, t), False)
    f.attr(mode=mode if r.random() < 0.8 or mode != "nearest" else None)
    return f.attr(scales=scales) if op < 9 else f.add(np.array(scales, "float32"), True)


@form
def detection(r):
    kind = pick(r, "NonMaxSuppression", "RoiAlign", "MaxRoiPool", "GridSample")
    if kind == "NonMaxSuppression":
        lo = r.random((1, 6, 2))
        boxes = np.concatenate([lo, lo + 0.2 + r.random((1, 6, 2)) * 0.5], -1).astype("float32")
        f = (
            Form(r, kind, pick(r, 10, 11))
            .add(boxes, False)
            .add(r.random((1, 2, 6)).astype("float32"))
        )
        f.add(np.array([3], "int64").reshape(pick(r, (), (1,))) if r.random() < 0.8 else None)
        f.add(np.array([0.4], "float32").reshape(pick(r, (), (1,))) if r.random() < 0.6 else None)
        f.add(np.array([0.2], "float32").reshape(pick(r, (), (1,))) if r.random() < 0.5 else None)
        return f.attr(center_point_box=1) if r.random() < 0.3 else f
    if kind == "RoiAlign":
        op = pick(r, 10, 16)
        rois = np.array([[0, 0, 3, 4], [1.5, 1, 4, 4.5], [2, 2, 2.2, 2.1]], "float32")
        f = (
            Form(r, kind, op)
            .add(data(r, (2, 2, 6, 6)), False)
            .add(rois)
            .add(np.array([0, 1, 1], "int64"))
        )
        f.attr(
            mode=pick(r, None, "avg", "max"),
            output_height=pick(r, None, 2, 3),
            output_width=pick(r, None, 2),
            sampling_ratio=pick(r, None, 0, 2),
            spatial_scale=pick(r, None, 0.5),
        )
        return (
            f.attr(coordinate_transformation_mode=pick(r, "half_pixel", "output_half_pixel"))
            if op >= 16 and r.random() < 0.6
            else f
        )
    if kind == "MaxRoiPool":
        rois = np.array([[0, 0, 0, 3, 4], [0, 1, 1, 4, 4]], "float32")
        return (
            Form(r, kind, 7)
            .add(data(r, (1, 2, 6, 6)), False)
            .add(rois)
            .attr(pooled_shape=[2, 2], spatial_scale=pick(r, None, 0.5))
        )
    op = pick(r, 16, 20)
    g = (r.random((2, 3, 4, 2)) * 2.6 - 1.3).astype("float32")
    mode = (
        pick(r, None, "bilinear", "nearest", "bicubic")
        if op < 20
        else pick(r, None, "linear", "nearest", "cubic")
    )
    return (
        Form(r, kind, op)
        .add(data(r, (2, 2, 4, 5)), False)
        .add(g)
        .attr(
            mode=mode,
            padding_mode=pick(r, None, "zeros", "border", "reflection"),
            align_corners=pick(r, None, 0, 1),
        )
    )
