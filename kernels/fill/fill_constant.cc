// fill_constant and fill_constant_batch_size_like.
#include <cmath>
#include <cstdlib>

#include "core/dtype_of.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_arg.h"
#include "kernels/elementwise/convert.h"

namespace heddle {
namespace {

// The text of attribute str_value when it is not empty, else attribute value.
Result<double> AttrValueOf(const OpContext& ctx) {
  const std::string& text = ctx.Str("str_value");
  if (text.empty()) return ctx.Float("value");
  char* end = nullptr;
  const double v = std::strtod(text.c_str(), &end);  // also inf, -inf and nan
  if (end == text.c_str())
    return InvalidArgument("attribute str_value '", text, "' is not a number");
  return v;
}

Status FillConstantShape(ShapeContext& ctx) {
  if (ctx.HasIn("ValueTensor")) {
    const Shape& v = ctx.InShape("ValueTensor");
    if (v.is_static() && v.numel() != 1)
      return InvalidArgument("ValueTensor must hold one element, but has shape ", v.ToString());
  } else {
    HEDDLE_RETURN_IF_ERROR(AttrValueOf(ctx).status());
  }
  return ShapeArgShape(ctx);
}

Status RunFillConstant(KernelContext& ctx) {
  Tensor& out = ctx.Out("Out");
  if (const Tensor* v = ctx.InOpt("ValueTensor")) {
    const bool exact = VisitDType<int64_t, std::complex<float>, std::complex<double>>(
        out.dtype(), [&](auto tag) {  // what a double does not hold
          typename decltype(tag)::type value;
          ConvertElements(ctx, v->raw(), v->dtype(), &value, out.dtype(), 1);
          WatchedFill(out.mutable_data<typename decltype(tag)::type>(), out.numel(), value);
        });
    if (!exact) FillElements(ctx, out, ScalarOf(*v));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const double value, AttrValueOf(ctx));
  FillElements(ctx, out, value);
  return Status::Ok();
}

Status RunBatchSizeLike(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const double value, AttrValueOf(ctx));
  FillElements(ctx, ctx.Out("Out"), value);
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fill_constant) {
  op.Doc("A tensor of equal elements.").Input("ValueTensor", kOptional).Output("Out");
  DeclareShapeArg(op);
  op.Attr("dtype", 5).Attr("value", 0.0).Attr("str_value", "");
  op.InferShape(FillConstantShape).AnyKernel(RunFillConstant);
}
HEDDLE_OP(fill_constant_batch_size_like) {
  op.Doc("A tensor of equal elements, one dimension of which is one of Input's.");
  op.Input("Input", kNoBuffer).Output("Out").Attr("shape", Ints{}).Attr("dtype", 5);
  op.Attr("input_dim_idx", 0).Attr("output_dim_idx", 0).Attr("value", 0.0).Attr("str_value", "");
  op.InferShape(BatchSizeLikeShape).AnyKernel(RunBatchSizeLike);
}

HEDDLE_EXAMPLES(fill_constant, R"(
example text of integers that a double does not hold
dtypes none: what fits depends on the dtype
attr dtype INT 3
attr shape LONGS [2]
attr str_value STRING "9007199254740993"
attr value FLOAT 9007199254740992.0
out Out int64 [2] 9007199254740992 9007199254740992

example text of the greatest integer
dtypes none: what fits depends on the dtype
attr dtype INT 3
attr shape LONGS [2]
attr str_value STRING "9223372036854775807"
attr value FLOAT 9.2233720368547758e18
out Out int64 [2] -9223372036854775808 -9223372036854775808

example shape 10, str_value 1.0, value 1
attr shape LONGS [10]
attr str_value STRING "1.0"
attr value FLOAT 1.0
out Out float32 [10] 1*10

example dtype 2, str_value 2, value 2
attr dtype INT 2
attr str_value STRING "2"
attr value FLOAT 2.0
out Out int32 [] 2

example dtype 0, shape 0 3, value 1
attr dtype INT 0
attr shape LONGS [0, 3]
attr value FLOAT 1.0
out Out bool [0, 3]

example shape 1, str_value 3.0, value 3
attr shape LONGS [1]
attr str_value STRING "3.0"
attr value FLOAT 3.0
out Out float32 [1] 3

example complex128 from a tensor
attr dtype INT 24
attr shape LONGS [2]
in ValueTensor complex128 [1] 1.5+2.5j
out Out complex128 [2] 1.5+2.5j 1.5+2.5j
)")

HEDDLE_EXAMPLES(fill_constant_batch_size_like, R"(
example float32 10x1, dtype 5, input_dim_idx 0, output_dim_idx 0, shape -1 1
attr dtype INT 5
attr input_dim_idx INT 0
attr output_dim_idx INT 0
attr shape INTS [-1, 1]
attr str_value STRING ""
attr value FLOAT 10.0
in Input float32 [10, 1] 0.104 0.375 0.826 0.465 0.195 0.646 0.917 0.285 0.736 0.556
out Out float32 [10, 1] 10*10

example float32 3x2x4, dtype 5, input_dim_idx 0, output_dim_idx 0, shape -1 3
attr dtype INT 5
attr input_dim_idx INT 0
attr output_dim_idx INT 0
attr shape INTS [-1, 3]
attr str_value STRING "1.5"
attr value FLOAT 1.5
in Input float32 [3, 2, 4] -0.52 0.78 -0.67 -0.44 0.85 0.63 -0.74 0.4 0.47 0.32 0.17 -0.13 0.25
  -0.59 -0.06 0.02 -0.21 -0.29 0.09 0.7 -0.82 -0.9 -0.36 0.55
out Out float32 [3, 3] 1.5*9
)")
