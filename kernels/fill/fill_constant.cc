// fill_constant and fill_constant_batch_size_like.
#include <cmath>
#include <cstdlib>

#include "core/dtype_of.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_arg.h"

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
  if (ctx.Int("dtype") != -1 || !ctx.HasIn("ValueTensor")) return ShapeArgShape(ctx);
  HEDDLE_ASSIGN_OR_RETURN(const Shape shape, ReadShapeArg(ctx));
  ctx.SetOut("Out", shape, ctx.InDType("ValueTensor"));
  return Status::Ok();
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
  op.Doc("A tensor of equal elements; a dtype of -1 is that of ValueTensor.");
  op.Input("ValueTensor", kOptional).Output("Out");
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
