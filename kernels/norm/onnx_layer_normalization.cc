// Normalisation over the last dimensions of each row: to mean 0 and variance 1, or to a mean square
// of 1.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status OnnxRowNormShape(ShapeContext& ctx) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  const Shape& x = ctx.InShape("X");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  ctx.SetOut("Y", x, ctx.InDType("X"));
  Shape rows = x;
  for (int i = axis; i < x.rank(); ++i) rows[i] = 1;
  for (const Key& key : {Key("Mean"), Key("InvStdDev")})
    if (ctx.def().FindOutput(key.name) >= 0 && ctx.HasOut(key))
      ctx.SetOut(key, rows, ctx.InDType("X") == DType::kF64 ? DType::kF64 : DType::kF32);
  return Status::Ok();
}

// A scale or bias with one element for each of a row, or one that broadcasts to rows.
template <typename T>
class PerElement {
 public:
  Status Set(const KernelContext& ctx, Key key, const Shape& x, int axis) {
    const Tensor* t = ctx.InOpt(key);
    if (t == nullptr) return Status::Ok();
    if (t->dtype() != kDTypeOf<T>)
      return InvalidArgument(key.name, " is ", Name(t->dtype()), ", X ", Name(kDTypeOf<T>));
    Shape row;
    for (int i = axis; i < x.rank(); ++i) row.push_back(x[i]);
    const Shape& s = t->shape();
    bool fits = s.rank() <= x.rank();
    for (int i = 1; fits && i <= s.rank(); ++i) fits = s.dim(-i) == 1 || s.dim(-i) == x.dim(-i);
    if (!fits)
      return InvalidArgument(key.name, " has shape ", s.ToString(), ", which does not fit X ",
                             x.ToString());
    data_ = t->data<T>();
    whole_ = s == row;
    if (!whole_) {
      full_ = ctx.Scratch(kDTypeOf<T>, x);
      if (x.numel() > 0) ExpandTo(ctx, *t, x, full_.mutable_raw());
      data_ = static_cast<const T*>(full_.raw());
    }
    return Status::Ok();
  }
  // The elements that go with a row; nullptr: there are none.
  const T* Row(int64_t row, int64_t width) const {
    return data_ == nullptr || whole_ ? data_ : data_ + row * width;
  }

 private:
  const T* data_ = nullptr;
  bool whole_ = true;
  Tensor full_;
};

template <typename T, bool kCentered>
Status RunOnnxRowNorm(KernelContext& ctx, Key scale_key, Key bias_key) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
  const int64_t rows = x.shape().Product(0, axis), width = x.shape().Product(axis, x.rank());
  PerElement<T> scale, bias;
  HEDDLE_RETURN_IF_ERROR(scale.Set(ctx, scale_key, x.shape(), axis));
  if (kCentered) HEDDLE_RETURN_IF_ERROR(bias.Set(ctx, bias_key, x.shape(), axis));
  const double epsilon = ctx.Float("epsilon");
  const T* from = x.data<T>();
  T* to = ctx.Out("Y").template mutable_data<T>();
  Tensor* mean_out = kCentered ? ctx.OutOpt("Mean") : nullptr;
  Tensor* factor_out = kCentered ? ctx.OutOpt("InvStdDev") : nullptr;
  ctx.ParallelFor(rows, 1 + 32768 / (1 + width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* in = from + r * width;
      double mean = 0, square = 0;
      if (kCentered) {
        for (const auto part : Stretches(width))
          for (int64_t i = part.begin; i < part.end; ++i) mean += static_cast<double>(in[i]);
        mean /= static_cast<double>(width);
      }
      for (const auto part : Stretches(width))
        for (int64_t i = part.begin; i < part.end; ++i) {
          const double d = static_cast<double>(in[i]) - mean;
          square += d * d;
        }
      const double factor = 1 / std::sqrt(square / static_cast<double>(width) + epsilon);
      if (mean_out != nullptr) mean_out->mutable_data<T>()[r] = static_cast<T>(mean);
      if (factor_out != nullptr) factor_out->mutable_data<T>()[r] = static_cast<T>(factor);
      const T *s = scale.Row(r, width), *b = bias.Row(r, width);
      const T m = static_cast<T>(mean), f = static_cast<T>(factor);
      for (const auto part : Stretches(width))
        for (int64_t i = part.begin; i < part.end; ++i) {
          const T v = (in[i] - m) * f * (s == nullptr ? T(1) : s[i]);
          to[r * width + i] = b == nullptr ? v : v + b[i];
        }
    }
  });
  return Status::Ok();
}

template <typename T>
struct OnnxLayerNorm {
  static Status Run(KernelContext& ctx) { return RunOnnxRowNorm<T, true>(ctx, "Scale", "B"); }
};
template <typename T>
struct OnnxRmsNorm {
  static Status Run(KernelContext& ctx) { return RunOnnxRowNorm<T, false>(ctx, "scale", "scale"); }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_layer_normalization) {
  op.Doc(
      "rows to mean 0 and variance 1, scaled and shifted; Mean and InvStdDev are float32, or "
      "float64");
  op.Input("X").Input("Scale").Input("B", kOptional);
  op.Output("Y").Output("Mean", kOptional).Output("InvStdDev", kOptional);
  op.Attr("axis", -1).Attr("epsilon", 1e-5).Attr("stash_type", 1);
  op.InferShape(OnnxRowNormShape).Kernels<OnnxLayerNorm, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_rms_normalization) {
  op.Doc("rows to a mean square of 1, scaled").Input("X").Input("scale").Output("Y");
  op.Attr("axis", -1).Attr("epsilon", 1e-5).Attr("stash_type", 1);
  op.InferShape(OnnxRowNormShape).Kernels<OnnxRmsNorm, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
