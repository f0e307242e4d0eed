// assign, share_data, share_buffer and the copies between places, which are one here: a copy of a
// tensor, an array or selected rows.
#include "core/op_traits.h"
#include "core/operands/slot_kinds.h"
#include "core/shapes.h"
#include "heddle/string_tensor.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

Tensor Copy(const KernelContext& ctx, const Tensor& t) {
  if (!t.initialized()) return t;
  Tensor copy = ctx.Scratch(t.dtype(), t.shape());
  CopyBytes(ctx, copy.mutable_raw(), t.raw(), static_cast<int64_t>(t.bytes()));
  if (t.has_lod()) copy.set_lod(t.lod());
  return copy;
}

Status AssignShape(ShapeContext& ctx) {
  const Value* in = ctx.InVar("X");
  if (in != nullptr && in->is_array() && in->initialized() && in->array().size() == 1) {
    // Before a run, an item without contents stands for all of an array.
    const Tensor& item = in->array()[0];
    if (!item.initialized() && item.dtype() != DType::kUnknown && item.shape().is_static())
      ctx.SetOut("Out", item.shape(), item.dtype());
  }
  if (in == nullptr || !in->is_tensor()) return Status::Ok();
  // A copy of nothing holds nothing.
  const Tensor& x = in->tensor();
  if (!x.initialized() && x.dtype() == DType::kUnknown && x.shape().known_rank())
    return Status::Ok();
  return SameShape(ctx);
}

Status RunAssign(KernelContext& ctx) {
  const Value* in = ctx.InVar("X");
  Value* out = ctx.OutVar("Out");
  if (in == nullptr || in == out) return Status::Ok();
  if (in->is_array()) {
    TensorArray& copy = out->mutable_array();  // not that of `in`, which it may have shared
    copy.clear();
    for (const Tensor& t : in->array()) copy.push_back(Copy(ctx, t));
  } else if (in->is_rows()) {
    const SelectedRows& x = in->rows();
    SelectedRows copy{x.rows, x.height, Copy(ctx, x.value)};
    out->mutable_rows() = std::move(copy);
  } else if (in->is_tensor()) {
    const Tensor& x = in->tensor();
    if (x.initialized())
      CopyBytes(ctx, out->tensor().mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
  } else if (StringsIn(*in) != nullptr) {
    *out = *in;  // nobody changes the strings, which both share
  } else {
    return InvalidArgument("input X holds neither a tensor nor an array, selected rows or strings");
  }
  return Status::Ok();
}

Status ShareShape(ShapeContext& ctx) {
  if (ctx.InCount("X") != ctx.OutCount("Out"))
    return InvalidArgument("X and Out must be equally many");
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    ctx.SetOut("Out", ctx.InShape("X", i), ctx.InDType("X", i), i);
    ctx.SetOut("XOut", ctx.InShape("X", i), ctx.InDType("X", i), i);
  }
  return Status::Ok();
}

Status RunShare(KernelContext& ctx) {
  for (int i = 0; i < ctx.InCount("X"); ++i) {
    const Tensor& x = ctx.In("X", i);
    for (Tensor* out : {ctx.OutOpt("Out", i), ctx.OutOpt("XOut", i)})
      if (out != nullptr && out->raw() != x.raw())
        CopyBytes(ctx, out->mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
  }
  return Status::Ok();
}

Status RunShadow(KernelContext& ctx) {
  const Tensor& x = ctx.In("x");
  CopyBytes(ctx, ctx.Out("out").mutable_raw(), x.raw(), static_cast<int64_t>(x.bytes()));
  return Status::Ok();
}

void DefineAssign(OpDef& op, unsigned input_flags) {
  op.Doc("A copy of X.")
      .Input("X", input_flags | kAnyKind | kTakesAll)
      .Output("Out", kAnyKind | kTakesAll)
      .View("X", "Out");
  op.InferShape(AssignShape).AnyKernel(RunAssign);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(assign) { DefineAssign(op, kOptional); }
HEDDLE_OP(share_data) {
  DefineAssign(op, 0);
  op.Doc("X under another name: a later write to one changes the other.").Traits(kSharesStorage);
}
HEDDLE_OP(share_buffer) {
  op.Doc(
        "Each of X under another name: a later write to one changes the other. XOut is X, for the "
        "order of operators.")
      .Input("X", kList)
      .Output("Out", kList)
      .Output("XOut", kList | kOptional)
      .Attr("share_dims_and_dtype", Ints{})
      .View("X", "Out");
  op.Traits(kSharesStorage).InferShape(ShareShape).AnyKernel(RunShare);
}
HEDDLE_OP(memcpy) {
  DefineAssign(op, 0);
  op.Doc("A copy of X at another place.").Attr("dst_place_type", -1).Traits(kToHost | kToDevice);
}
HEDDLE_OP(memcpy_h2d) {
  DefineAssign(op, 0);
  op.Doc("A copy of X on the device.").Traits(kToDevice);
}
HEDDLE_OP(memcpy_d2h) {
  DefineAssign(op, 0);
  op.Doc("A copy of X on the host.").Traits(kToHost);
}
HEDDLE_OP(shadow_output) {
  op.Doc("x under another name.")
      .Input("x", kAnyKind | kTakesAll)
      .Output("out", kTakesAll)
      .Attr("name", "")
      .View("x", "out");
  op.InferShape(&SameShape).AnyKernel(RunShadow);
}

HEDDLE_EXAMPLES(assign, R"(
example float32 4
in X float32 [4] -0.17499998 0.453 0.175 -0.53499997
out Out float32 [4] -0.17499998 0.453 0.175 -0.53499997

example float32 1x4
in X float32 [1, 4] 0.48499998 0.565 0.04000002 0.45999998
out Out float32 [1, 4] 0.48499998 0.565 0.04000002 0.45999998

example float32 3x4x3
in X float32 [3, 4, 3] 0.48 0.74 0.9 -0.42 0.59 -0.68 0.32 -0.1 0.11 0.27 -0.94 0.8 -0.57 0.53 0.64
  -0.79 -0.89 0.85 -0.73 -0.31 0.22 0.16 0.38 0.01 -0.63 0.69 0.43 -0.15 -0.21 0.06 -0.26 -0.47
  -0.36 -0.84 -0.52 -0.05
out Out float32 [3, 4, 3] 0.48 0.74 0.9 -0.42 0.59 -0.68 0.32 -0.1 0.11 0.27 -0.94 0.8 -0.57 0.53
  0.64 -0.79 -0.89 0.85 -0.73 -0.31 0.22 0.16 0.38 0.01 -0.63 0.69 0.43 -0.15 -0.21 0.06 -0.26 -0.47
  -0.36 -0.84 -0.52 -0.05

example float64 4
in X float64 [4] -0.17499998 0.453 0.175 -0.53499997
out Out float64 [4] -0.17499998 0.453 0.175 -0.53499997

example int32 4
in X int32 [4] 0*4
out Out int32 [4] 0*4

example int64 4
in X int64 [4] 0*4
out Out int64 [4] 0*4

example bool 4
in X bool [4] 0 0 0 1
out Out bool [4] 0 0 0 1

example complex64 4
in X complex64 [4] -0.17499998+0.8j 0.453+0.3j 0.175+0.5j -0.53499997-0.7j
out Out complex64 [4] -0.17499998+0.8j 0.453+0.3j 0.175+0.5j -0.53499997-0.7j

example bfloat16 4
in X bfloat16 [4] -0.175 0.453 0.175 -0.535
out Out bfloat16 [4] -0.175 0.453 0.175 -0.535

example float16 4
in X float16 [4] -0.175 0.453 0.175 -0.535
out Out float16 [4] -0.175 0.453 0.175 -0.535
)")

HEDDLE_EXAMPLES(share_data, R"(
example float32 5x2 rows
in X float32 [5, 2] rows [0, 1, 5, 4, 19] height 20 1 1.3 0.51 1.2 1 0.76 1.2 1 1.2 1.1
out Out float32 [5, 2] rows [0, 1, 5, 4, 19] height 20 1 1.3 0.51 1.2 1 0.76 1.2 1 1.2 1.1

example float32 2x3x4
in X float32 [2, 3, 4] 0.281 0.907 0.207 0.318 0.944 0.833 0.17 0.723 0.76 0.686 0.612 0.465 0.649
  0.244 0.502 0.539 0.428 0.391 0.575 0.87 0.133 0.097 0.354 0.797
out Out float32 [2, 3, 4] 0.281 0.907 0.207 0.318 0.944 0.833 0.17 0.723 0.76 0.686 0.612 0.465
  0.649 0.244 0.502 0.539 0.428 0.391 0.575 0.87 0.133 0.097 0.354 0.797
)")

HEDDLE_EXAMPLES(share_buffer, R"(
example two
attr share_dims_and_dtype BOOLEANS [1, 1]
in X float32 [3] 0.25 -0.5 1
in X float32 [2, 1] 7 8
out Out float32 [3] 0.25 -0.5 1
out Out float32 [2, 1] 7 8
# there for the order of operators alone: Paddle gives it nothing
out XOut ?
out XOut ?
)")

HEDDLE_EXAMPLES(memcpy, R"(
example float32
attr dst_place_type INT 0
in X float32 [2, 3] 0.71 -0.42 0.85 -0.45 0.92 -0
out Out float32 [2, 3] 0.71 -0.42 0.85 -0.45 0.92 -0

example int64
attr dst_place_type INT 0
in X int64 [3] 3 8 0
out Out int64 [3] 3 8 0

example bool
attr dst_place_type INT 0
in X bool [2] 1 0
out Out bool [2] 1 0
)")

HEDDLE_EXAMPLES(memcpy_h2d, R"(
example float32
attr dst_place_type INT 0
in X float32 [2, 3] -0.27 0.43 0.02 0.97 -0.63 0.58
out Out float32 [2, 3] -0.27 0.43 0.02 0.97 -0.63 0.58

example int64
attr dst_place_type INT 0
in X int64 [3] 6 3 2
out Out int64 [3] 6 3 2

example bool
attr dst_place_type INT 0
in X bool [2] 1 0
out Out bool [2] 1 0
)")

HEDDLE_EXAMPLES(memcpy_d2h, R"(
example float32
attr dst_place_type INT 0
in X float32 [2, 3] -0.62 -0.03 -0.31 -0.43 -0.78 -0.25
out Out float32 [2, 3] -0.62 -0.03 -0.31 -0.43 -0.78 -0.25

example int64
attr dst_place_type INT 0
in X int64 [3] 1 3 5
out Out int64 [3] 1 3 5

example bool
attr dst_place_type INT 0
in X bool [2] 1 0
out Out bool [2] 1 0
)")

HEDDLE_EXAMPLES(shadow_output, R"(
example float32
attr name STRING "y"
in x float32 [2, 3] 0.02 0.66 -0.25 0.49 -0.89 0.61
from assign X=x -> Out=out
out out float32 [2, 3] 0.02 0.66 -0.25 0.49 -0.89 0.61
)")
