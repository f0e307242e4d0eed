// A counter with a limit.
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

// The number itself, which then is one higher.
template <typename T>
struct CountUpTo {
  static Status Run(KernelContext& ctx) {
    const Tensor& ref = ctx.In("ref");
    if (ref.numel() != 1)
      return InvalidArgument("ref has shape ", ref.shape().ToString(), ", expected a scalar");
    const T v = *ref.data<T>();
    if (int64_t{v} >= ctx.Int("limit"))
      return OutOfRange("ref reached the limit of ", ctx.Int("limit"));
    *ctx.Out("output").template mutable_data<T>() = v;
    *ctx.Out("ref_out").template mutable_data<T>() = static_cast<T>(v + 1);
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(count_up_to) {
  op.Doc("ref, which becomes one more; an error at the limit").Input("ref").Output("output");
  op.Output("ref_out").Inplace("ref", "ref_out").Attr("limit", 1);
  op.InferShape([](ShapeContext& ctx) {
    ctx.SetOut("output", ctx.InShape("ref"), ctx.InDType("ref"));
    ctx.SetOut("ref_out", ctx.InShape("ref"), ctx.InDType("ref"));
    return Status::Ok();
  });
  op.Kernels<CountUpTo, int32_t, int64_t>();
}
