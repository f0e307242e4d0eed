// Normalisation over the last dimensions of each row, for layer_norm and rms_normalization.
#pragma once

#include <cmath>

#include "core/interrupts.h"
#include "kernels/operands/operands.h"

namespace heddle {

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

// The slots of an operator that normalises the last dimensions of its X, and its attribute that
// says where they begin. With `centered` rows have mean 0 and variance 1, else a mean square of 1.
struct RowNormSlots {
  Key axis, scale, bias, mean, factor;
  bool centered;
};

// Y as X; mean and factor, where they are asked for, with X's rank.
inline Status RowNormShape(ShapeContext& ctx, const RowNormSlots& s) {
  if (!AllStatic(ctx, {"X"})) return ctx.Defer();
  const Shape& x = ctx.InShape("X");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int(s.axis), x.rank()));
  ctx.SetOut("Y", x, ctx.InDType("X"));
  Shape rows = x;
  for (int i = axis; i < x.rank(); ++i) rows[i] = 1;
  if (!s.centered) return Status::Ok();
  for (const Key& key : {s.mean, s.factor})
    if (ctx.HasOut(key))
      ctx.SetOut(key, rows, ctx.InDType("X") == DType::kF64 ? DType::kF64 : DType::kF32);
  return Status::Ok();
}

// Sums are held in double. Scale and bias may broadcast against X; `factor` is the inverse of the
// deviation.
template <typename T>
Status RunRowNorm(KernelContext& ctx, const RowNormSlots& s) {
  const Tensor& x = ctx.In("X");
  HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int(s.axis), x.rank()));
  const int64_t rows = x.shape().Product(0, axis), width = x.shape().Product(axis, x.rank());
  PerElement<T> scale, bias;
  HEDDLE_RETURN_IF_ERROR(scale.Set(ctx, s.scale, x.shape(), axis));
  if (s.centered) HEDDLE_RETURN_IF_ERROR(bias.Set(ctx, s.bias, x.shape(), axis));
  const double epsilon = ctx.Float("epsilon");
  const T* from = x.data<T>();
  T* to = ctx.Out("Y").template mutable_data<T>();
  Tensor* mean_out = s.centered ? ctx.OutOpt(s.mean) : nullptr;
  Tensor* factor_out = s.centered ? ctx.OutOpt(s.factor) : nullptr;
  ctx.ParallelFor(rows, 1 + 32768 / (1 + width), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* in = from + r * width;
      double mean = 0, square = 0;
      if (s.centered) {
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
      const T *by = scale.Row(r, width), *b = bias.Row(r, width);
      const T m = static_cast<T>(mean), f = static_cast<T>(factor);
      for (const auto part : Stretches(width))
        for (int64_t i = part.begin; i < part.end; ++i) {
          const T v = (in[i] - m) * f * (by == nullptr ? T(1) : by[i]);
          to[r * width + i] = b == nullptr ? v : v + b[i];
        }
    }
  });
  return Status::Ok();
}

}  // namespace heddle
