// Tensors with slices changed by updates, one after another: by tuples of indices or by rows.
#include "kernels/elementwise/unary_map.h"
#include "kernels/index/nd_indices.h"
#include "kernels/operands/narrow.h"

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
struct ScatterSlices {
  static Status Infer(ShapeContext& ctx) { return InferScatter(ctx, kRows); }
  template <typename T>
  static Status Run(KernelContext& ctx) {
    return RunScatter(ctx, kRows, kHow, &Apply<T>);
  }
};

template <Update kHow, bool kRows, typename... Ts>
void DefineScatter(OpDef& op, const char* doc) {
  using S = ScatterSlices<kHow, kRows>;
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
