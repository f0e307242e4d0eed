// Tensors with slices changed by updates, one after another: by tuples of indices or by rows.
#include "kernels/elementwise/unary_map.h"
#include "kernels/tf/narrow.h"
#include "kernels/tf/nd_indices.h"

namespace heddle {
namespace {

Status CheckUpdates(const Shape& data, const NdIndices& nd, const Shape& updates, bool scalar) {
  if (scalar && updates.rank() == 0) return Status::Ok();
  Shape want = nd.leading;
  if (want.rank() + data.rank() - static_cast<int>(nd.k) <= Shape::kMaxRank) {
    for (int i = static_cast<int>(nd.k); i < data.rank(); ++i) want.push_back(data[i]);
    if (want == updates) return Status::Ok();
  }
  return InvalidArgument("updates has shape ", updates.ToString(), ", expected ", want.ToString());
}

// Changes `out` in place.
template <typename T>
Status Apply(Update how, const NdIndices& nd, const Tensor& indices, const Tensor& updates,
             Tensor& out) {
  const T* from = updates.data<T>();
  T* to = out.mutable_data<T>();
  const bool one = updates.rank() == 0 && nd.tuples * nd.row != 1;
  if constexpr (std::is_integral_v<T>)
    if (how == Update::kDiv) HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(updates));
  return ForEachSlice(nd, out.shape(), indices, [&](int64_t at, int64_t i) {
    for (int64_t j = 0; j < nd.row; ++j)
      to[at + j] = Combined(how, to[at + j], from[one ? 0 : i * nd.row + j]);
  });
}
using ApplyFn = Status(Update how, const NdIndices& nd, const Tensor& indices,
                       const Tensor& updates, Tensor& out);

constexpr Key DataOf(bool rows) { return rows ? Key("ref") : Key("tensor"); }
constexpr Key OutOf(bool rows) { return rows ? Key("output_ref") : Key("output"); }

// `rows`: each index names one row; else tuples.
Status InferScatter(ShapeContext& ctx, bool rows) {
  const Key data = DataOf(rows);
  if (ctx.InDType("updates") != ctx.InDType(data))
    return InvalidArgument("updates is ", Name(ctx.InDType("updates")), ", ", data.name, " ",
                           Name(ctx.InDType(data)));
  ctx.SetOut(OutOf(rows), ctx.InShape(data), ctx.InDType(data));
  return Status::Ok();
}
Status RunScatter(KernelContext& ctx, bool rows, Update how, ApplyFn* apply) {
  const Tensor &x = ctx.In(DataOf(rows)), &indices = ctx.In("indices");
  Tensor& out = ctx.Out(OutOf(rows));
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "indices"));
  Shape tuples = indices.shape();
  if (rows) {
    if (x.rank() == 0 || tuples.rank() == Shape::kMaxRank)
      return InvalidArgument("ref has shape ", x.shape().ToString(), " and indices ",
                             tuples.ToString(), ", expected rows to change");
    tuples.push_back(1);
  }
  HEDDLE_ASSIGN_OR_RETURN(const NdIndices nd, NdIndicesOf(x.shape(), tuples));
  Tensor copy;
  const Tensor& updates = Apart(ctx, ctx.In("updates"), out, &copy);
  HEDDLE_RETURN_IF_ERROR(CheckUpdates(x.shape(), nd, updates.shape(), rows || nd.k > 0));
  Tensor index_copy;
  const Tensor& index = Apart(ctx, indices, out, &index_copy);
  if (out.raw() != x.raw()) CopyBytes(ctx, x.raw(), out.mutable_raw(), x.bytes());
  return apply(how, nd, index, updates, out);
}

// Operators share one loop for each dtype.
template <Update kHow, bool kRows>
struct Scatter {
  static Status Infer(ShapeContext& ctx) { return InferScatter(ctx, kRows); }
  template <typename T>
  static Status Run(KernelContext& ctx) {
    return RunScatter(ctx, kRows, kHow, &Apply<T>);
  }
};

template <Update kHow, bool kRows, typename... Ts>
void DefineScatter(OpDef& op, const char* doc) {
  using S = Scatter<kHow, kRows>;
  const std::string_view data = DataOf(kRows).name, out = OutOf(kRows).name;
  op.Doc(doc).Input(data).Input("indices").Input("updates").Output(out);
  op.Inplace(data, out).InferShape(&S::Infer).KernelKey(data);
  (op.Kernel(kDTypeOf<Ts>, &S::template Run<Ts>), ...);
}
template <Update kHow, bool kRows>
void DefineSum(OpDef& op, const char* doc) {
  DefineScatter<kHow, kRows, float, double, float16, bfloat16, uint8_t, int8_t, int16_t, int32_t,
                int64_t, complex64, complex128, bool>(op, doc);
}
template <Update kHow, bool kRows>
void DefineReal(OpDef& op, const char* doc) {
  DefineScatter<kHow, kRows, float, double, float16, bfloat16, uint8_t, int8_t, int16_t, int32_t,
                int64_t>(op, doc);
}

// Zeros of a shape with the updates added up.
Status ScatterNdShape(ShapeContext& ctx) {
  if (!Known(ctx, "shape")) return OpenShape(ctx, "shape", "output", ctx.InDType("updates"));
  HEDDLE_ASSIGN_OR_RETURN(const ShortInts dims, IntsIn(ctx, "shape"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims, "shape"));
  ctx.SetOut("output", shape, ctx.InDType("updates"));
  return Status::Ok();
}

template <typename T>
struct ScatterNd {
  static Status Run(KernelContext& ctx) {
    const Tensor &indices = ctx.In("indices"), &updates = ctx.In("updates");
    Tensor& out = ctx.Out("output");
    HEDDLE_RETURN_IF_ERROR(CheckIntDType(indices.dtype(), "indices"));
    HEDDLE_ASSIGN_OR_RETURN(const NdIndices nd, NdIndicesOf(out.shape(), indices.shape()));
    HEDDLE_RETURN_IF_ERROR(CheckUpdates(out.shape(), nd, updates.shape(), false));
    ZeroBytes(ctx, out.mutable_raw(), out.bytes());
    return Apply<T>(Update::kAdd, nd, indices, updates, out);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_scatter_nd) {
  op.Doc("zeros of a shape, with updates added to the slices that indices names");
  op.Input("indices").Input("updates").Input("shape", kShapeValue).Output("output");
  op.InferShape(ScatterNdShape).KernelKey("updates");
  op.Kernels<ScatterNd, float, double, float16, bfloat16, uint8_t, int8_t, int16_t, int32_t,
             int64_t, complex64, complex128, bool>();
}
HEDDLE_OP(tf_tensor_scatter_update) {
  DefineSum<Update::kSet, false>(op, "tensor with the slices that indices names replaced");
}
HEDDLE_OP(tf_tensor_scatter_add) {
  DefineSum<Update::kAdd, false>(op, "tensor with updates added to the slices of indices");
}
HEDDLE_OP(tf_tensor_scatter_sub) {
  DefineSum<Update::kSub, false>(op, "tensor with updates taken from the slices of indices");
}
HEDDLE_OP(tf_tensor_scatter_min) {
  DefineReal<Update::kMin, false>(op, "tensor with slices lowered to updates");
}
HEDDLE_OP(tf_tensor_scatter_max) {
  DefineReal<Update::kMax, false>(op, "tensor with slices raised to updates");
}
HEDDLE_OP(tf_scatter_update) {
  DefineSum<Update::kSet, true>(op, "ref with the rows of indices replaced");
}
HEDDLE_OP(tf_scatter_add) {
  DefineSum<Update::kAdd, true>(op, "ref with updates added to the rows of indices");
}
HEDDLE_OP(tf_scatter_sub) {
  DefineSum<Update::kSub, true>(op, "ref with updates taken from the rows of indices");
}
HEDDLE_OP(tf_scatter_mul) {
  DefineSum<Update::kMul, true>(op, "ref with the rows of indices multiplied");
}
HEDDLE_OP(tf_scatter_div) {
  DefineReal<Update::kDiv, true>(op, "ref with the rows of indices divided");
}
HEDDLE_OP(tf_scatter_min) {
  DefineReal<Update::kMin, true>(op, "ref with the rows of indices lowered to updates");
}
HEDDLE_OP(tf_scatter_max) {
  DefineReal<Update::kMax, true>(op, "ref with the rows of indices raised to updates");
}

HEDDLE_EXAMPLES(tf_scatter_nd, R"(
example recorded case 1
in indices int64 [3, 1] 0 1 1
in updates int64 [3] 7 -2 -3
in shape int64 [1] 3
out output int64 [3] 7 -5 0
)")

HEDDLE_EXAMPLES(tf_tensor_scatter_update, R"(
example recorded case 1
in tensor int32 [3] -2 -8 -6
in indices int64 [1, 1] 1
in updates int32 [1] -8
out output int32 [3] -2 -8 -6
)")

HEDDLE_EXAMPLES(tf_tensor_scatter_add, R"(
example recorded case 1
in tensor float32 [5] 2.1273048 0.340755 -0.04193513 2.4084864 -0.8595047
in indices int64 [5, 1] 1 2 2 2 3
in updates float32 [5] -2.8355734 -0.8447337 -0.912089 2.863853 1.7162001
out output float32 [5] 2.1273048 -2.4948184 1.0650952 4.1246862 -0.8595047
)")

HEDDLE_EXAMPLES(tf_tensor_scatter_sub, R"(
example recorded case 1
in tensor float32 [4] -2.7283037 -1.1320922 0.8559258 -1.7595826
in indices int32 [4, 1] 2 1 1 0
in updates float32 [4] -0.5281778 0.86889446 -0.42791894 0.022522764
out output float32 [4] -2.7508264 -1.5730677 1.3841035 -1.7595826
)")

HEDDLE_EXAMPLES(tf_tensor_scatter_min, R"(
example recorded case 1
in tensor float32 [2] -1.1870102 3.9196255
in indices int32 [2, 1] 0 1
in updates float32 [2] -0.97758746 -0.049126983
out output float32 [2] -1.1870102 -0.049126983
)")

HEDDLE_EXAMPLES(tf_tensor_scatter_max, R"(
example recorded case 1
in tensor float32 [5] 0.7029116 0.6236539 -2.6889741 0.26911822 0.48647988
in indices int64 [5, 1] 0 2 2 3 4
in updates float32 [5] 2.1533139 0.035530917 -2.188734 -0.11250899 -2.1784072
out output float32 [5] 2.1533139 0.6236539 0.035530917 0.26911822 0.48647988
)")

HEDDLE_EXAMPLES(tf_scatter_update, R"(
example rows, one of them twice
in ref float32 [3, 2] 1 2 3 4 5 6
in indices int32 [3] 2 0 2
in updates float32 [3, 2] 0.5 -2 4 8 2 7
out output_ref float32 [3, 2] 4 8 3 4 2 7

example integers, one number for all
in ref int32 [3, 2] 1 2 3 4 5 6
in indices int64 [1, 2] 1 0
in updates int32 [] 3
out output_ref int32 [3, 2] 3*4 5 6
)")

HEDDLE_EXAMPLES(tf_scatter_add, R"(
example rows, one of them twice
in ref float32 [3, 2] 1 2 3 4 5 6
in indices int32 [3] 2 0 2
in updates float32 [3, 2] 0.5 -2 4 8 2 7
out output_ref float32 [3, 2] 5 10 3 4 7.5 11

example integers, one number for all
in ref int32 [3, 2] 1 2 3 4 5 6
in indices int64 [1, 2] 1 0
in updates int32 [] 3
out output_ref int32 [3, 2] 4 5 6 7 5 6
)")

HEDDLE_EXAMPLES(tf_scatter_sub, R"(
example rows, one of them twice
in ref float32 [3, 2] 1 2 3 4 5 6
in indices int32 [3] 2 0 2
in updates float32 [3, 2] 0.5 -2 4 8 2 7
out output_ref float32 [3, 2] -3 -6 3 4 2.5 1

example integers, one number for all
in ref int32 [3, 2] 1 2 3 4 5 6
in indices int64 [1, 2] 1 0
in updates int32 [] 3
out output_ref int32 [3, 2] -2 -1 0 1 5 6
)")

HEDDLE_EXAMPLES(tf_scatter_mul, R"(
example rows, one of them twice
in ref float32 [3, 2] 1 2 3 4 5 6
in indices int32 [3] 2 0 2
in updates float32 [3, 2] 0.5 -2 4 8 2 7
out output_ref float32 [3, 2] 4 16 3 4 5 -84

example integers, one number for all
in ref int32 [3, 2] 1 2 3 4 5 6
in indices int64 [1, 2] 1 0
in updates int32 [] 3
out output_ref int32 [3, 2] 3 6 9 12 5 6
)")

HEDDLE_EXAMPLES(tf_scatter_div, R"(
example rows, one of them twice
in ref float32 [3, 2] 1 2 3 4 5 6
in indices int32 [3] 2 0 2
in updates float32 [3, 2] 0.5 -2 4 8 2 7
out output_ref float32 [3, 2] 0.25 0.25 3 4 5 -0.42857143

example integers, one number for all
in ref int32 [3, 2] 1 2 3 4 5 6
in indices int64 [1, 2] 1 0
in updates int32 [] 3
out output_ref int32 [3, 2] 0 0 1 1 5 6
)")

HEDDLE_EXAMPLES(tf_scatter_min, R"(
example rows, one of them twice
in ref float32 [3, 2] 1 2 3 4 5 6
in indices int32 [3] 2 0 2
in updates float32 [3, 2] 0.5 -2 4 8 2 7
out output_ref float32 [3, 2] 1 2 3 4 0.5 -2

example integers, one number for all
in ref int32 [3, 2] 1 2 3 4 5 6
in indices int64 [1, 2] 1 0
in updates int32 [] 3
out output_ref int32 [3, 2] 1 2 3 3 5 6
)")

HEDDLE_EXAMPLES(tf_scatter_max, R"(
example rows, one of them twice
in ref float32 [3, 2] 1 2 3 4 5 6
in indices int32 [3] 2 0 2
in updates float32 [3, 2] 0.5 -2 4 8 2 7
out output_ref float32 [3, 2] 4 8 3 4 5 7

example integers, one number for all
in ref int32 [3, 2] 1 2 3 4 5 6
in indices int64 [1, 2] 1 0
in updates int32 [] 3
out output_ref int32 [3, 2] 3 3 3 4 5 6
)")
