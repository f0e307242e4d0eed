// rms_normalization: rows to a mean square of 1 (Zhang and Sennrich, 2019).
#include "kernels/norm/row_norm.h"

namespace heddle {
namespace {

constexpr RowNormSlots kRmsNorm{"axis", "Scale", "Scale", "Y", "Y", false};

template <typename T>
struct RmsNorm {
  static Status Run(KernelContext& ctx) { return RunRowNorm<T>(ctx, kRmsNorm); }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(rms_normalization) {
  op.Doc("the dimensions from axis on to a mean square of 1, scaled").Input("X").Input("Scale");
  op.Output("Y").Attr("axis", -1).Attr("epsilon", 1e-5);
  op.InferShape([](ShapeContext& ctx) { return RowNormShape(ctx, kRmsNorm); });
  op.Kernels<RmsNorm, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
