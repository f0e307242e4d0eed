// average_accumulates: sums of a parameter's values over a window of steps, for averaging it later.
#include <algorithm>

#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/base/to_place.h"

namespace heddle {
namespace {

constexpr int64_t kMostInOneSum = 16384;  // then the first sum moves to the second

constexpr KeyPair kSums[] = {
    {"in_sum_1", "out_sum_1"}, {"in_sum_2", "out_sum_2"}, {"in_sum_3", "out_sum_3"}};
constexpr KeyPair kCounts[] = {{"in_num_accumulates", "out_num_accumulates"},
                               {"in_old_num_accumulates", "out_old_num_accumulates"},
                               {"in_num_updates", "out_num_updates"}};

Status AverageShape(ShapeContext& ctx) {
  for (const KeyPair& p : kSums) {
    HEDDLE_RETURN_IF_ERROR(CheckSameCount(ctx, "param", p.in));
    if (ctx.InDType(p.in) != ctx.InDType("param"))
      return InvalidArgument(p.in.name, " must have the dtype of param");
    ctx.SetOut(p.out, ctx.InShape(p.in), ctx.InDType(p.in));
  }
  for (const KeyPair& p : kCounts) {
    const Shape& s = ctx.InShape(p.in);
    if ((s.is_static() && s.numel() != 1) || ctx.InDType(p.in) != DType::kI64)
      return InvalidArgument(p.in.name, " must hold one int64");
    ctx.SetOut(p.out, s, DType::kI64);
  }
  return Status::Ok();
}

template <typename T>
struct AverageAccumulates {
  static Status Run(KernelContext& ctx) {
    const Tensor& param = ctx.In("param");
    int64_t count[3];
    for (int i = 0; i < 3; ++i) count[i] = *ctx.In(kCounts[i].in).template data<int64_t>();
    const int64_t accumulated = ++count[0], updates = ++count[2];
    const int64_t window =
        std::min(ctx.Int("max_average_window"),
                 ToPlace(static_cast<double>(updates) * ctx.Float("average_window")));
    const bool full = updates % kMostInOneSum == 0;
    const bool restart = accumulated >= ctx.Int("min_average_window") && accumulated >= window;
    const T* in[3];
    T* out[3];
    for (int i = 0; i < 3; ++i) {
      in[i] = ctx.In(kSums[i].in).template data<T>();
      out[i] = ctx.Out(kSums[i].out).template mutable_data<T>();
    }
    const T* p = param.data<T>();
    for (const auto part : Stretches(param.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) {
        T one = in[0][i] + p[i], two = in[1][i], three = in[2][i];
        if (full) two += one, one = 0;
        if (restart) three = one + two, one = 0, two = 0;
        out[0][i] = one;
        out[1][i] = two;
        out[2][i] = three;
      }
    if (restart) count[1] = accumulated, count[0] = 0;
    for (int i = 0; i < 3; ++i)
      *ctx.Out(kCounts[i].out).template mutable_data<int64_t>() = count[i];
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(average_accumulates) {
  op.Doc("sums of a parameter over a window of steps").Input("param");
  for (const auto& p : heddle::kSums)
    op.Input(p.in.name).Output(p.out.name).Inplace(p.in.name, p.out.name);
  for (const auto& p : heddle::kCounts)
    op.Input(p.in.name).Output(p.out.name).Inplace(p.in.name, p.out.name);
  op.Attr("average_window", 0.0).Attr("max_average_window", 0).Attr("min_average_window", 10000);
  op.InferShape(AverageShape).Kernels<AverageAccumulates, float, double>();
}
