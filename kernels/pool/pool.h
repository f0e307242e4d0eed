// Pooling windows: shapes, and the input range behind each output position.
#pragma once

#include <array>
#include <vector>

#include "core/kernel_context.h"

namespace heddle {

// The input positions [begin, end) of one output position along one dimension. `span` is what an
// average that counts padding divides by.
struct PoolWindow {
  int64_t begin, end, span;
};

// Always three spatial dimensions; 2-D pooling has depth 1.
struct PoolGeometry {
  bool channels_last = false, max = true, exclusive = true;
  // Of maxima: NaN is passed over, or wins (else it stays where it is a window's last element, or
  // all of it); -infinity alone is the maximum, not the least finite number.
  bool skip_nan = false, keep_nan = false, from_infinity = false;
  int spatial = 2;
  int64_t batch = 0, channels = 0;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1};
  std::array<std::vector<PoolWindow>, 3> windows;
  // The windows are blocks of two rows and two columns side by side; their loops become vectors.
  bool halved = false;
  // Of an average's gradient: shares are quotients, not products with a reciprocal in float.
  bool divides = false;

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  // Elements from one input position, and from one channel, to the next.
  int64_t pixel_step() const { return channels_last ? channels : 1; }
  int64_t in_channel_step() const { return channels_last ? 1 : in_size(); }
  int64_t out_channel_step() const { return channels_last ? 1 : out_size(); }
  // Divisor of the average over a window.
  int64_t Divisor(const PoolWindow& d, const PoolWindow& h, const PoolWindow& w) const {
    if (exclusive) return (d.end - d.begin) * (h.end - h.begin) * (w.end - w.begin);
    return d.span * h.span * w.span;
  }
};

// From the attributes of the pooling operators and the shape of the input (dimensions may be -1,
// then there are no windows). Operators that lack an attribute have its plain value.
struct PoolAttrs {
  Ints ksize, strides, paddings;
  bool global = false, adaptive = false, ceil = false, exclusive = true, max = true;
  bool channels_last = false, skip_nan = false, keep_nan = false, from_infinity = false;
  // Adaptive pooling has the output size of ksize, yet windows of ksize elements, strides apart:
  // what Paddle's pool2d and pool3d make of adaptive max pooling on a CPU.
  bool fixed_windows = false;
  std::string padding_algorithm = "EXPLICIT";
};
PoolAttrs PoolAttrsOf(const OpContext& ctx);           // pool2d, pool3d
PoolAttrs PoolWithIndexAttrsOf(const OpContext& ctx);  // max_pool*_with_index
Result<PoolGeometry> PoolGeometryOf(const PoolAttrs& attrs, const Shape& input);
Shape PoolOutShape(const PoolGeometry& g);

// out from x.
template <typename T>
void PoolForward(const KernelContext& ctx, const PoolGeometry& g, const T* x, T* out);
// The gradient of x, which is overwritten. x and out are read for max pooling only.
template <typename T>
void PoolBackward(const KernelContext& ctx, const PoolGeometry& g, const T* x, const T* out,
                  const T* out_grad, T* x_grad);

// Definitions of the operators.
void DefinePool(OpDef& op, int spatial);
void DefinePoolGrad(OpDef& op, int spatial);
void DefinePoolDoubleGrad(OpDef& op, int spatial);
void DefineMaxPoolWithIndex(OpDef& op, int spatial);
void DefineMaxPoolWithIndexGrad(OpDef& op, int spatial);
void DefineUnpool(OpDef& op, int spatial);
void DefineUnpoolGrad(OpDef& op, int spatial);

}  // namespace heddle
