// bincount: counts, or sums of weights, per integer.
#include <algorithm>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/visit_one_of.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

constexpr int64_t kMaxCounts = int64_t{1} << 40;

// Counts of the numbers below `size` in each of `rows` rows; numbers from `size` on are left out.
struct Bins {
  int64_t rows = 1, size = 0;
  bool binary = false;  // 1 where a number occurs
};

template <typename T, typename Count>
void AddUp(const Tensor& x, const Tensor* weights, const Bins& bins, Tensor& out) {
  Count* count = out.mutable_data<Count>();
  WatchedFill(count, out.numel(), Count(0));
  const int64_t row = std::max<int64_t>(x.numel() / std::max<int64_t>(bins.rows, 1), 1);
  const auto add = [&](auto weight) {
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        const int64_t v = x.data<T>()[i];
        if (v >= bins.size) continue;
        Count& bin = count[(bins.rows == 1 ? 0 : i / row * bins.size) + v];
        bin = bins.binary ? Count(1) : AddFn::Apply(bin, static_cast<Count>(weight(i)));
      }
  };
  if (weights == nullptr || bins.binary) {
    add([](int64_t) { return 1; });
    return;
  }
  VisitOneOf<float, double, int32_t, int64_t>("Weights", weights->dtype(), [&](auto tag) {
    const auto* w = weights->data<typename decltype(tag)::type>();
    add([=](int64_t i) { return w[i]; });
  });
}

// Counts are int64, sums float where the weights are, else double; or of the weights' dtype.
DType CountType(const OpContext& ctx, const Tensor* weights) {
  if (weights == nullptr) return DType::kI64;
  if (ctx.Bool("like_weights") || weights->dtype() == DType::kF32) return weights->dtype();
  return DType::kF64;
}

template <typename T>
struct Bincount {
  static Status Run(KernelContext& ctx) {
    const Tensor x = ctx.In("X");
    const Tensor* weights = ctx.InOpt("Weights");
    const DType dtype = CountType(ctx, weights);
    if (weights != nullptr && weights->numel() == 0 && ctx.Bool("like_weights")) weights = nullptr;
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
    HEDDLE_ASSIGN_OR_RETURN(size, IntIn(ctx, "Size", size));
    if (size < 0 || size > kMaxCounts)
      return InvalidArgument("counts ", size, " numbers, expected 0 to ", kMaxCounts);
    if (ctx.Bool("rows") && x.rank() > 2)
      return InvalidArgument("X has shape ", x.shape().ToString(), ", expected rows or a vector");
    const bool rows = ctx.Bool("rows") && x.rank() == 2;
    const Bins bins{rows ? x.dim(0) : 1, size, ctx.Bool("binary")};
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape,
                            MakeShape(rows ? Ints{x.dim(0), size} : Ints{size}, "Out"));
    Tensor& out = ctx.Alloc("Out", dtype, shape);
    VisitOneOf<float, double, int32_t, int64_t>("Weights", dtype, [&](auto tag) {
      AddUp<T, typename decltype(tag)::type>(x, weights, bins, out);
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(bincount) {
  op.Doc("how often each number from 0 on, or below Size, occurs; or the sum of weights there");
  op.Input("X").Input("Weights", kOptional).Input("Size", kOptional).Output("Out");
  op.Attr("minlength", 0).Attr("binary", false).Attr("rows", false).Attr("like_weights", false);
  op.KernelKey("X").Kernels<Bincount, int32_t, int64_t>();
}
