// Padding of up to three dimensions in the four modes, and its gradient; constant padding of any
// number of dimensions.
#pragma once

#include "kernels/strided/strided_copy.h"

namespace heddle {

enum class PadMode : uint8_t { kConstant, kReflect, kReplicate, kCircular };
// "constant", "reflect", "replicate" (also "edge"), "circular".
Result<PadMode> PadModeOf(const std::string& name);

// Elements before and after each dimension; negative ones cut.
struct Padding {
  int rank = 0;
  std::array<int64_t, Shape::kMaxRank> before{}, after{};
};

// The padded shape (unknown dimensions stay unknown); an error where a mode cannot pad that far.
Result<Shape> PaddedShape(const Shape& x, const Padding& pad, PadMode mode);

// out = x padded. Dimensions of zero padding may be any number; with a mode other than constant at
// most three dimensions are padded.
Status RunPad(const KernelContext& ctx, const Tensor& x, const Padding& pad, PadMode mode,
              double value, Tensor& out);
// x_grad[i] = the sum of `grad` over the padded elements that are copies of x[i].
Status RunPadGrad(const KernelContext& ctx, const Tensor& grad, const Padding& pad, PadMode mode,
                  Tensor& x_grad);

// Every element of `out` = value.
Status FillElements(const KernelContext& ctx, double value, Tensor& out);

}  // namespace heddle
