#include "core/error.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// The first elements of a tensor, for the message.
std::string Summary(const Tensor& t, int64_t limit) {
  std::string text = StrCat(Name(t.dtype()), " ", t.shape().ToString(), " [");
  const int64_t n = limit < 0 ? t.numel() : std::min(limit, t.numel());
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float, double>(
      t.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (int64_t i = 0; i < n; ++i)
          text += StrCat(i > 0 ? " " : "", static_cast<double>(t.data<T>()[i]));
      });
  return text + (n < t.numel() ? " ...]" : "]");
}

Status Assert(KernelContext& ctx) {
  const Tensor& condition = ctx.In("Cond");
  if (!condition.initialized() || condition.dtype() != DType::kBool || condition.numel() != 1)
    return InvalidArgument("'Cond' must be one bool; it is ", Name(condition.dtype()), " ",
                           condition.shape().ToString());
  if (*condition.data<bool>()) return Status::Ok();
  std::string text = "the program's assertion does not hold";
  for (int i = 0; i < ctx.InCount("Data"); ++i)
    if (const Tensor* t = ctx.InOpt("Data", i))
      text += StrCat(i == 0 ? ": " : ", ", Summary(*t, ctx.Int("summarize")));
  return InvalidArgument(text);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(assert) {
  op.Doc("fails when Cond is false, with the first elements of Data in the message");
  op.Input("Cond").Input("Data", kList | kOptional).Attr("summarize", -1);
  op.Traits(kSideEffect).AnyKernel(Assert);
}
