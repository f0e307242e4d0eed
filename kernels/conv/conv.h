// Convolution: geometry, shapes, and execution in three directions. Transposed convolutions and all
// gradients are these directions with the operands renamed.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "kernels/gemm/gemm_epilogue.h"

namespace heddle {

// Always three spatial dimensions; a 2-D convolution has depth 1. "in" is the side that the filter
// slides over. The filter is [out_c, in_c / groups, kernel...].
struct ConvGeometry {
  bool channels_last = false;
  int spatial = 2;  // of the operator: 2 or 3
  int64_t batch = 0, groups = 1, in_c = 0, out_c = 0;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1};
  std::array<int64_t, 3> stride{1, 1, 1}, dilation{1, 1, 1}, pad_lo{}, pad_hi{};

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  bool depthwise() const { return groups == in_c && groups > 1; }
  double work() const {  // multiplications
    return static_cast<double>(batch) * out_c * out_size() * kernel_size() * (in_c / groups);
  }
};

// Geometry of conv2d / conv3d from attributes and shapes, checked; dimensions may be -1.
Result<ConvGeometry> ConvGeometryOf(const OpContext& ctx, const Shape& input, const Shape& filter);
// The same for transposed convolutions: the geometry of the convolution whose gradient they are, so
// `input` is its output side.
Result<ConvGeometry> ConvTransposeGeometryOf(const OpContext& ctx, const Shape& input,
                                             const Shape& filter);
// The same convolution with dimensions of one element (in both sides and in the kernel, without
// padding) moved before the others. Operands are unchanged in memory; for a column [N, C, H, 1] the
// loops over the width then have more than one iteration.
ConvGeometry AlongWidth(const ConvGeometry& g);
// The shapes of a geometry's two sides.
Shape ConvInShape(const ConvGeometry& g);
Shape ConvOutShape(const ConvGeometry& g);

enum class ConvDirection { kForward, kBackwardData, kBackwardFilter };

// Operands of a direction. kForward: src = in, filter -> dst = out. kBackwardData:
// src = gradient of out, filter -> dst = gradient of in. kBackwardFilter: src = in, filter =
// gradient of out -> dst = gradient of the filter.
struct ConvOperands {
  const void* src = nullptr;
  const void* filter = nullptr;
  const void* bias = nullptr;
  const void* residual = nullptr;
  void* dst = nullptr;
};

// A prepared convolution. Immutable; Run is re-entrant.
class ConvRunner {
 public:
  virtual ~ConvRunner() = default;
  virtual void Run(const KernelContext& ctx, const ConvOperands& operands) const = 0;
  // Name of the implementation, as in "winograd 4x4, avx2": KernelState::Facts::implementation.
  virtual std::string name() const = 0;
  // False: the constant filter was packed, and the operand is not read.
  virtual bool reads_filter() const { return true; }
};

// The best runner for float or double, or the one that the caller insists on (select.h). `filter`
// is the filter operand when it is a constant, else nullptr; its contents need not be in memory
// (PrepareContext::MarkPacked). Epilogues are for float only, except a residual alone, which is the
// only epilogue of kBackwardFilter.
Result<std::unique_ptr<ConvRunner>> MakeConv(const PrepareContext& ctx, const ConvGeometry& g,
                                             DType dtype, ConvDirection direction,
                                             const Tensor* filter, const Epilogue& epilogue = {});

// Estimated nanoseconds from the shapes of Input and Filter; 0 while they are not known.
double ConvCost(const ShapeContext& ctx, bool transposed);

// The attributes of the convolution operators.
void ConvAttrs(OpDef& op, int spatial, bool transposed);

}  // namespace heddle
