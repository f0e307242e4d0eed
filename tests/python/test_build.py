"""heddle.build: programs made by hand."""

import numpy as np
import pytest

import heddle


def ones(*shape):
    return np.ones(shape, "float32")


def test_results_and_shapes():
    b = heddle.build.Builder("net")
    x = b.feed("x", "float32", [-1, 3, 8, 8])
    w = b.parameter("w", ones(4, 3, 3, 3))
    y = b.op("conv2d", Input=x, Filter=w, strides=[1, 1], paddings=[1, 1])
    assert y.shape == (-1, 4, 8, 8) and y.dtype == "float32"
    z = b.op("reduce_mean", X=y, dim=[1, 2, 3], out="z")
    b.fetch(z)
    model = b.finish(threads=1)
    assert [(i.name, i.shape) for i in model.outputs] == [("z", (-1,))]
    out = model(ones(2, 3, 8, 8))
    assert out.shape == (2,) and out[0] > 0
    again = heddle.Program.parse(model.program.serialize())
    assert again.op_counts == model.program.op_counts
    assert (heddle.Model(again, model.scope)(ones(2, 3, 8, 8)) == out).all()


def test_attributes_of_all_kinds():
    b = heddle.build.Builder()
    x = b.feed("x", "float32", [2, 3])
    assert b.op("cast", X=x, in_dtype="float32", out_dtype="int64").dtype == "int64"
    assert b.op("transpose2", X=x, axis=(1, 0)).shape == (3, 2)
    assert b.op("reduce_sum", X=x, dim=np.array([1]), keep_dim=np.True_).shape == (2, 1)
    assert b.op("scale", X=x, scale=np.float32(2)).shape == (2, 3)
    assert b.op("squeeze2", X=b.op("unsqueeze2", X=x, axes=[0]), axes=[]).shape == (2, 3)
    with pytest.raises(heddle.InvalidArgument, match="'axis' is an int, not a float"):
        b.op("softmax", X=x, axis=0.5)
    # The value of an attribute from a variable: nothing is known of the result's shape.
    k = b.feed("k", "int32", [1])
    assert b.op("reduce_sum", X=x, dim=k).shape is None


def test_refusals_name_operator_slot_and_line():
    b = heddle.build.Builder()
    x = b.feed("x", "float32", [2, 3])
    with pytest.raises(heddle.Unimplemented, match="did you mean 'relu'"):
        b.op("rellu", X=x)
    with pytest.raises(heddle.InvalidArgument, match="input slot 'Y' is required") as caught:
        b.op("matmul_v2", X=x)
    assert caught.value.op_type == "matmul_v2" and caught.value.op_index == 0
    assert "test_build.py" in caught.value.call_stack
    with pytest.raises(heddle.InvalidArgument, match="float32") as caught:
        b.assign(x, to=b.parameter("whole", np.array([1])))
    assert "test_build.py" in caught.value.call_stack
    with pytest.raises(heddle.InvalidArgument, match="has no attribute 'factor'"):
        b.op("scale", X=x, factor=2.0)
    with pytest.raises(heddle.InvalidArgument, match="another program"):
        heddle.build.Builder().op("relu", X=x)
    with pytest.raises(heddle.InvalidArgument, match="there is one of this name"):
        b.op("relu", X=x, out="x")
    with pytest.raises(heddle.InvalidArgument, match="neither value nor shape"):
        b.parameter("w")
    with pytest.raises(ValueError, match="attribute 'axis': 2361183241434822606848 is too large"):
        b.op("softmax", X=x, axis=2 ** 71)
    with pytest.raises(heddle.InvalidArgument, match="output slot 'Out' cannot have"):
        b.op("split", X=x, axis=1, num=3, out=2 ** 40)
    b.fetch(b.op("relu", X=x))
    assert b.finish().program.num_ops == 1
    with pytest.raises(heddle.InvalidArgument, match="another program"):
        b.fetch(x)  # the builder has begun anew


def test_a_loop_and_a_branch():
    b = heddle.build.Builder()
    n = b.feed("n", "int64", [1])
    total = b.op("fill_constant", shape=[1], dtype="int64", value=0.0)
    i = b.op("fill_constant", shape=[1], dtype="int64", value=0.0)
    two = b.parameter("two", np.array([2], "int64"))
    zero = b.parameter("zero", np.array([0], "int64"))
    more = b.op("less_than", X=i, Y=n)
    with b.loop(more):
        odd = b.op("not_equal", X=b.op("elementwise_mod", X=i, Y=two), Y=zero)
        with b.when(odd):
            b.assign(b.op("elementwise_add", X=total, Y=i), to=total)
        b.op("increment", X=i, step=1.0, out=i)
        b.op("less_than", X=i, Y=n, out=more)
    b.fetch(total)
    model = b.finish(threads=1)
    assert model.program.num_blocks == 3
    assert model(np.array([10], "int64")).tolist() == [1 + 3 + 5 + 7 + 9]


def test_an_exception_in_a_block_leaves_it_open():
    b = heddle.build.Builder()
    yes = b.feed("yes", "bool", [1])
    with pytest.raises(KeyError):
        with b.when(yes):
            raise KeyError
    with pytest.raises(heddle.InvalidArgument, match="begun and not ended"):
        b.finish()


def test_arrays_and_declarations():
    b = heddle.build.Builder()
    x = b.feed("x", "float32", [2])
    at = b.parameter("at", np.array([0], "int64"))
    items = b.array("items", "float32")
    b.op("write_to_array", X=x, I=at, out=items)
    item = b.op("read_from_array", X=items, I=at)
    assert item.shape == (2,)
    b.fetch(b.op("relu", X=item))
    assert b.finish()(np.array([-1, 3], "float32")).tolist() == [0, 3]


def test_items_of_arrays_that_nothing_is_written_to():
    b = heddle.build.Builder()
    at = b.parameter("at", np.array([0], "int64"))
    # Nothing is known of such an item until it is declared.
    other = b.op("read_from_array", X=b.array("others", "float32"), I=at)
    assert other.shape is None
    b.declare(other, "float32", [2])
    assert b.op("relu", X=other).shape == (2,)
    b.fetch(b.feed("x", "float32", [2]))
    with pytest.raises(heddle.OutOfRange, match="was never written"):
        b.finish()(np.array([-1, 3], "float32"))
