// bincount: counts, or sums of weights, per integer.
#include <algorithm>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/visit_one_of.h"

namespace heddle {
namespace {

constexpr int64_t kMaxCounts = int64_t{1} << 40;

template <typename T, typename Count>
void AddUp(const Tensor& x, const Tensor* weights, Tensor& out) {
  Count* count = out.mutable_data<Count>();
  WatchedFill(count, out.numel(), Count(0));
  const auto add = [&](auto weight) {
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        count[x.data<T>()[i]] += static_cast<Count>(weight(i));
  };
  if (weights == nullptr) {
    add([](int64_t) { return 1; });
    return;
  }
  VisitOneOf<float, double, int32_t, int64_t>("Weights", weights->dtype(), [&](auto tag) {
    const auto* w = weights->data<typename decltype(tag)::type>();
    add([=](int64_t i) { return w[i]; });
  });
}

template <typename T>
struct Bincount {
  static Status Run(KernelContext& ctx) {
    const Tensor x = ctx.In("X");
    const Tensor* weights = ctx.InOpt("Weights");
    if (weights != nullptr && weights->numel() != x.numel())
      return InvalidArgument("Weights has shape ", weights->shape().ToString(), ", X has ",
                             x.shape().ToString());
    int64_t size = 0;
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t v = x.data<T>()[i];
        if (v < 0 || v >= kMaxCounts)
          return OutOfRange("X holds ", v, ", expected 0 to ", kMaxCounts - 1);
        size = std::max(size, v);
      }
    size = std::max(x.numel() > 0 ? size + 1 : 0, ctx.Int("minlength"));
    if (size > kMaxCounts)
      return InvalidArgument("attribute minlength is ", size, ", expected at most ", kMaxCounts);
    if (weights == nullptr)
      AddUp<T, int64_t>(x, nullptr, ctx.Alloc("Out", DType::kI64, Shape{size}));
    else if (weights->dtype() == DType::kF32)
      AddUp<T, float>(x, weights, ctx.Alloc("Out", DType::kF32, Shape{size}));
    else
      AddUp<T, double>(x, weights, ctx.Alloc("Out", DType::kF64, Shape{size}));
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(bincount) {
  op.Doc("how often each number from 0 on occurs").Input("X").Input("Weights", kOptional);
  op.Output("Out").Attr("minlength", 0).KernelKey("X").Kernels<Bincount, int32_t, int64_t>();
}
