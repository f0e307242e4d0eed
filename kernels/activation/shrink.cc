// Activations that cut off small values: softshrink, hard_shrink, tanh_shrink, thresholded_relu.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Softshrink : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit Softshrink(const KernelContext& ctx) : lambda(ctx.Float("lambda")) {}
  static void Declare(OpDef& op) { op.Attr("lambda", 0.5); }
  template <typename T>
  T Forward(T x) const {
    return x - fast::Clamp(x, T(-lambda), T(lambda));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return fast::Select((x > T(lambda)) | (x < -T(lambda)), dy, T(0));
  }
  double lambda;
};

// Version 0 counted values on both sides of a negative threshold twice.
struct HardShrink : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit HardShrink(const KernelContext& ctx)
      : threshold(ctx.Float("threshold")), both(ctx.Int("op_version") == 0 ? 2 : 1) {}
  static void Declare(OpDef& op) { op.Attr("threshold", 0.5).Attr("op_version", 1); }
  template <typename T>
  T Forward(T x) const {
    const T kept = fast::Select((x <= T(threshold)) & (x >= -T(threshold)), T(0), x);
    return kept * Times(x);  // NaN stays NaN
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return fast::Select((x > T(threshold)) | (x < -T(threshold)), dy * Times(x), T(0));
  }
  template <typename T>
  T Times(T x) const {
    return fast::Select((x > T(threshold)) & (x < -T(threshold)), T(both), T(1));
  }
  double threshold, both;
};

struct TanhShrink : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return x - fast::Tanh(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T t = fast::Tanh(x);
    return dy * t * t;
  }
};

struct ThresholdedRelu : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit ThresholdedRelu(const KernelContext& ctx) : threshold(ctx.Float("threshold")) {}
  static void Declare(OpDef& op) { op.Attr("threshold", 1.0); }
  template <typename T>
  T Forward(T x) const {
    return fast::Select(x <= T(threshold), T(0), x);  // NaN stays NaN
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return fast::Select(x > T(threshold), dy, T(0));
  }
  double threshold;
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(softshrink) {
  DefineUnary<Softshrink>(op, "x moved towards 0 by lambda, but not past it.");
}
HEDDLE_OP(softshrink_grad) { DefineUnaryGrad<Softshrink>(op); }
HEDDLE_OP(hard_shrink) { DefineUnary<HardShrink>(op, "x, but 0 within the threshold."); }
HEDDLE_OP(hard_shrink_grad) { DefineUnaryGrad<HardShrink>(op); }
HEDDLE_OP(tanh_shrink) { DefineUnary<TanhShrink>(op, "x - tanh(x)"); }
HEDDLE_OP(tanh_shrink_grad) { DefineUnaryGrad<TanhShrink>(op); }
HEDDLE_OP(thresholded_relu) { DefineUnary<ThresholdedRelu>(op, "x, but 0 up to the threshold."); }
HEDDLE_OP(thresholded_relu_grad) { DefineUnaryGrad<ThresholdedRelu>(op); }

HEDDLE_TILE(softshrink) { return UnaryTile<Softshrink>(); }
HEDDLE_TILE(hard_shrink) { return UnaryTile<HardShrink>(); }
HEDDLE_TILE(tanh_shrink) { return UnaryTile<TanhShrink>(); }
HEDDLE_TILE(thresholded_relu) { return UnaryTile<ThresholdedRelu>(); }
