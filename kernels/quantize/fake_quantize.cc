// fake_quantize_* and their relatives: values rounded to a few bits, still stored as floats.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

// Rounds values of one range.
template <typename T>
struct Rounder {
  T bins;
  bool to_even, back;  // back: return to the original range afterwards

  T operator()(T x, T scale) const {
    const T inverse = scale <= T(1e-30) ? T(1) / (scale + T(1e-6)) : T(1) / scale;
    T q;
    if (to_even) {
      q = std::nearbyint(bins * inverse * x);
      q = std::max(std::min(q, bins), -bins - T(1));
    } else {
      q = std::round(bins * inverse * std::max(std::min(x, scale), -scale));
    }
    return back ? q * scale / bins : q;
  }
};

template <typename T>
Rounder<T> RounderOf(const OpContext& ctx, bool back) {
  return {static_cast<T>((int64_t{1} << (ctx.Int("bit_length") - 1)) - 1),
          ctx.Int("round_type") == 0, back};
}

Status CheckBitLength(const OpContext& ctx) {
  const int64_t bits = ctx.Int("bit_length");
  if (bits < 1 || bits > 16) return InvalidArgument("bit_length must be 1 to 16, not ", bits);
  return Status::Ok();
}

template <typename T>
T AbsMax(const T* x, int64_t n) {
  T top = 0;
  for (const auto part : Stretches(n))
    for (int64_t i = part.begin; i < part.end; ++i) top = std::max(top, std::abs(x[i]));
  return top;
}

Status InferTensorWide(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckBitLength(ctx));
  ctx.SetOut("Out", ctx.InShape("X"), ctx.InDType("X"));
  ctx.SetOut("OutScale", Shape{1}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <typename T>
Status RunTensorWide(KernelContext& ctx, bool back) {
  const Tensor& in = ctx.In("X");
  const T* x = in.data<T>();
  const T scale = AbsMax(x, in.numel());
  *ctx.Out("OutScale").template mutable_data<T>() = scale;
  const Rounder<T> round = RounderOf<T>(ctx, back);
  T* out = ctx.Out("Out").template mutable_data<T>();
  ForEachIndex(ctx, in.numel(), [=](int64_t i) { out[i] = round(x[i], scale); });
  return Status::Ok();
}

template <typename T>
struct FakeQuantize {
  static Status Run(KernelContext& ctx) { return RunTensorWide<T>(ctx, false); }
};

template <typename T>
struct QuantizeBack {
  static Status Run(KernelContext& ctx) { return RunTensorWide<T>(ctx, true); }
};

Status InferChannels(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckBitLength(ctx));
  const Shape& x = ctx.InShape("X");
  const int64_t axis = ctx.Int("quant_axis");
  if (axis != 0 && axis != 1) return InvalidArgument("quant_axis must be 0 or 1, not ", axis);
  if (!x.known_rank()) return ctx.Defer();
  if (x.rank() <= axis) return InvalidArgument("X ", x.ToString(), " has no axis ", axis);
  ctx.SetOut("Out", x, ctx.InDType("X"));
  ctx.SetOut("OutScale", Shape{x[static_cast<int>(axis)]}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <typename T>
Status RunChannels(KernelContext& ctx, bool back) {
  const Tensor& in = ctx.In("X");
  const auto [outer, n, inner] = SplitAt(in.shape(), static_cast<int>(ctx.Int("quant_axis")));
  const T* x = in.data<T>();
  T* scales = ctx.Out("OutScale").template mutable_data<T>();
  T* out = ctx.Out("Out").template mutable_data<T>();
  WatchedFill(scales, n, T(0));
  for (int64_t i = 0; i < outer * n; ++i)
    scales[i % n] = std::max(scales[i % n], AbsMax(x + i * inner, inner));
  const Rounder<T> round = RounderOf<T>(ctx, back);
  for (const int64_t i : Watched(outer * n))
    for (int64_t k = i * inner; k < (i + 1) * inner; ++k) out[k] = round(x[k], scales[i % n]);
  return Status::Ok();
}

template <typename T>
struct QuantizeChannels {
  static Status Run(KernelContext& ctx) { return RunChannels<T>(ctx, false); }
};

template <typename T>
struct QuantizeChannelsBack {
  static Status Run(KernelContext& ctx) { return RunChannels<T>(ctx, true); }
};

Status InferMoving(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckBitLength(ctx));
  const DType dtype = ctx.InDType("X");
  for (Key key : {Key("InScale"), Key("InAccum"), Key("InState")}) {
    if (!ctx.HasIn(key)) continue;
    const Shape& s = ctx.InShape(key);
    if ((s.is_static() && s.numel() != 1) || ctx.InDType(key) != dtype)
      return InvalidArgument(key.name, " must hold one value of X's dtype");
  }
  ctx.SetOut("Out", ctx.InShape("X"), dtype);
  ctx.SetOut("OutScale", Shape{1}, dtype);
  for (Key key : {Key("OutState"), Key("OutAccum")})  // not written in a test
    if (!ctx.Bool("is_test") && ctx.HasOut(key)) ctx.SetOut(key, Shape{1}, dtype);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <typename T>
Status RunMoving(KernelContext& ctx, bool back) {
  const Tensor& in = ctx.In("X");
  const T* x = in.data<T>();
  T scale = *ctx.In("InScale").template data<T>();
  if (!ctx.Bool("is_test")) {
    const T rate = static_cast<T>(ctx.Float("moving_rate"));
    const Tensor *accum_in = ctx.InOpt("InAccum"), *state_in = ctx.InOpt("InState");
    const T state = rate * (state_in ? *state_in->data<T>() : T(1)) + T(1);
    const T accum = rate * (accum_in ? *accum_in->data<T>() : T(1)) + AbsMax(x, in.numel());
    scale = accum / state;
    if (Tensor* t = ctx.OutOpt("OutState")) *t->template mutable_data<T>() = state;
    if (Tensor* t = ctx.OutOpt("OutAccum")) *t->template mutable_data<T>() = accum;
  }
  *ctx.Out("OutScale").template mutable_data<T>() = scale;
  const Rounder<T> round = RounderOf<T>(ctx, back);
  T* out = ctx.Out("Out").template mutable_data<T>();
  ForEachIndex(ctx, in.numel(), [=](int64_t i) { out[i] = round(x[i], scale); });
  return Status::Ok();
}

template <typename T>
struct QuantizeMoving {
  static Status Run(KernelContext& ctx) { return RunMoving<T>(ctx, false); }
};

template <typename T>
struct QuantizeMovingBack {
  static Status Run(KernelContext& ctx) { return RunMoving<T>(ctx, true); }
};

// Only watches: Out is X. In a test the scale stays as it is.
Status InferScale(ShapeContext& ctx) {
  const DType dtype = ctx.InDType("X");
  const bool updates = !ctx.Bool("is_test");
  if (ctx.HasOut("Out")) {
    ctx.SetOut("Out", ctx.InShape("X"), dtype);
    ctx.ShareLoD("X", "Out");
  }
  for (Key key : {Key("OutScale"), Key("OutState"), Key("OutAccum")})
    if (updates && ctx.HasOut(key)) ctx.SetOut(key, Shape{1}, dtype);
  for (Key key : {Key("InAccum"), Key("InState")})
    if (updates && ctx.HasIn(key) &&
        ((ctx.InShape(key).is_static() && ctx.InShape(key).numel() != 1) ||
         ctx.InDType(key) != dtype))
      return InvalidArgument(key.name, " must hold one value of X's dtype");
  return Status::Ok();
}

template <typename T>
struct AverageScale {
  static Status Run(KernelContext& ctx) {
    const Tensor& in = ctx.In("X");
    Tensor* out = ctx.OutOpt("Out");
    if (!ctx.Bool("is_test")) {
      const T rate = static_cast<T>(ctx.Float("moving_rate"));
      const Tensor *accum_in = ctx.InOpt("InAccum"), *state_in = ctx.InOpt("InState");
      const T state = rate * (state_in ? *state_in->data<T>() : T(1)) + T(1);
      const T accum =
          rate * (accum_in ? *accum_in->data<T>() : T(1)) + AbsMax(in.data<T>(), in.numel());
      *ctx.Out("OutScale").template mutable_data<T>() = accum / state;
      if (Tensor* t = ctx.OutOpt("OutState")) *t->template mutable_data<T>() = state;
      if (Tensor* t = ctx.OutOpt("OutAccum")) *t->template mutable_data<T>() = accum;
    }
    if (out != nullptr && out->raw() != in.raw() && in.bytes() > 0)
      WatchedMemcpy(out->mutable_raw(), in.raw(), in.bytes());
    return Status::Ok();
  }
};

// The gradient of rounding is taken to be 1.
template <typename T>
struct StraightThrough {
  static Status Run(KernelContext& ctx) {
    const Tensor& d = ctx.In("Out@GRAD");
    Tensor& dx = ctx.Out("X@GRAD");
    if (dx.raw() != d.raw() && d.bytes() > 0) WatchedMemcpy(dx.mutable_raw(), d.raw(), d.bytes());
    return Status::Ok();
  }
};

void DeclareSimple(OpDef& op, bool channels) {
  op.Input("X").Output("Out").Output("OutScale").Attr("bit_length", 8).Attr("round_type", 1);
  if (channels) op.Attr("quant_axis", 0).Attr("is_test", false);
  op.InferShape(channels ? InferChannels : InferTensorWide);
}

void DeclareMoving(OpDef& op) {
  op.Input("X")
      .Input("InScale")
      .Input("InAccum", kOptional)
      .Input("InState", kOptional)
      .Output("Out")
      .Output("OutScale")
      .Output("OutState", kOptional)
      .Output("OutAccum", kOptional)
      .Attr("moving_rate", 0.9f)
      .Attr("bit_length", 8)
      .Attr("round_type", 1)
      .Attr("is_test", false)
      .InferShape(InferMoving);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(fake_quantize_abs_max) {
  DeclareSimple(op, false);
  op.Doc("rounds to bit_length bits over the range of X").Kernels<FakeQuantize, float, double>();
}

HEDDLE_OP(fake_quantize_dequantize_abs_max) {
  DeclareSimple(op, false);
  op.Doc("rounds to bit_length bits and scales back").Kernels<QuantizeBack, float, double>();
}

HEDDLE_OP(fake_channel_wise_quantize_abs_max) {
  DeclareSimple(op, true);
  op.Doc("fake_quantize_abs_max for each channel").Kernels<QuantizeChannels, float, double>();
}

HEDDLE_OP(fake_channel_wise_quantize_dequantize_abs_max) {
  DeclareSimple(op, true);
  op.Doc("fake_quantize_dequantize_abs_max for each channel")
      .Kernels<QuantizeChannelsBack, float, double>();
}

HEDDLE_OP(fake_quantize_moving_average_abs_max) {
  DeclareMoving(op);
  op.Doc("rounds over a moving average of X's range").Kernels<QuantizeMoving, float, double>();
}

HEDDLE_OP(fake_quantize_dequantize_moving_average_abs_max) {
  DeclareMoving(op);
  op.Doc("rounds over a moving average of X's range and scales back")
      .Kernels<QuantizeMovingBack, float, double>();
}

HEDDLE_OP(moving_average_abs_max_scale) {
  op.Doc("hands X on and keeps a moving average of its range");
  op.Input("X").Input("InAccum", kOptional).Input("InState", kOptional);
  op.Output("Out", kOptional).Output("OutScale").Output("OutState", kOptional);
  op.Output("OutAccum", kOptional).Attr("moving_rate", 0.9f).Attr("is_test", false);
  op.Inplace("X", "Out").InferShape(InferScale).Kernels<AverageScale, float, double>();
}

HEDDLE_OP(stright_throuth_estimator_grad) {
  op.Doc("hands the gradient of a rounding on (Paddle's spelling)")
      .Input("Out@GRAD")
      .Output("X@GRAD")
      .Attr("bit_length", 8)
      .Attr("round_type", 1)
      .Inplace("Out@GRAD", "X@GRAD")
      .InferShape(SameShape)
      .Kernels<StraightThrough, float, double>();
}

HEDDLE_EXAMPLES(fake_quantize_abs_max, R"(
example float32 4x3, round_type 1
attr round_type INT 1
in X float32 [4, 3] 0.538 0.692 0.308 0.385 0.923 0.077 0.154 0.462 0.769 0.615 0.231 0.846
out Out float32 [4, 3] 74 95 42 53 127 11 21 64 106 85 32 116
out OutScale float32 [1] 0.923
)")

HEDDLE_EXAMPLES(fake_quantize_dequantize_abs_max, R"(
example float32 4x3, round_type 0
attr round_type INT 0
in X float32 [4, 3] 0.231 0.769 0.692 0.462 0.154 0.385 0.538 0.923 0.077 0.846 0.615 0.308
out Out float32 [4, 3] 0.23256692 0.77037793 0.690433 0.46513385 0.15262204 0.38518897 0.53781104
  0.923 0.07994488 0.8430551 0.61775595 0.3052441
out OutScale float32 [1] 0.923
)")

HEDDLE_EXAMPLES(fake_channel_wise_quantize_abs_max, R"(
example float32 4x4, round_type 0, quant_axis 1
attr round_type INT 0
attr quant_axis INT 1
in X float32 [4, 4] 0.529 0.294 0.235 0.118 0.705 0.411 0.881 0.059 0.94 0.587 0.763 0.353 0.822
  0.47 0.176 0.646
out Out float32 [4, 4] 71 64 34 23 95 89 127 12 127 127 110 69 111 102 25 127
out OutScale float32 [4] 0.94 0.587 0.881 0.646

example float32 4x4, round_type 1, quant_axis 1
attr round_type INT 1
attr quant_axis INT 1
in X float32 [4, 4] 0.765 0.178 0.53 0.882 0.706 0.237 0.061 0.295 0.119 0.823 0.589 0.413 0.94
  0.647 0.471 0.354
out Out float32 [4, 4] 103 27 114 127 95 37 13 42 16 127 127 59 127 100 102 51
out OutScale float32 [4] 0.94 0.823 0.589 0.882
)")

HEDDLE_EXAMPLES(fake_channel_wise_quantize_dequantize_abs_max, R"(
example float32 3x4, round_type 1
attr round_type INT 1
in X float32 [3, 4] 0.232 0.769 0.692 0.462 0.155 0.385 0.539 0.922 0.078 0.845 0.615 0.308
out Out float32 [3, 4] 0.23009449 0.769 0.6902835 0.46018898 0.15245669 0.38477167 0.53722835 0.922
  0.07984252 0.845 0.61212605 0.30606303
out OutScale float32 [3] 0.769 0.922 0.845
)")

HEDDLE_EXAMPLES(fake_quantize_moving_average_abs_max, R"(
example float32 3x2x4x4, round_type 1, bit_length 5
attr round_type INT 1
attr bit_length INT 5
in InAccum float32 [1] 1
in InScale float32 [1] 0.001
in InState float32 [1] 1
in X float32 [3, 2, 4, 4] 0.979 0.052 0.649 0.659 0.505 0.876 0.762 0.865 0.412 0.495 0.35 0.958
  0.567 0.556 0.361 0.103 0.855 0.371 0.752 0.268 0.392 0.464 0.577 0.69 0.845 0.402 0.886 0.68
  0.237 0.206 0.041 0.711 0.783 0.072 0.144 0.031 0.989 0.093 0.258 0.598 0.134 0.587 0.309 0.062
  0.186 0.165 0.618 0.289 0.484 0.732 0.948 0.196 0.917 0.773 0.33 0.927 0.515 0.453 0.793 0.247
  0.701 0.175 0.083 0.896 0.278 0.227 0.526 0.968 0.34 0.546 0.124 0.721 0.938 0.155 0.804 0.114
  0.814 0.824 0.299 0.835 0.32 0.217 0.433 0.608 0.443 0.629 0.381 0.423 0.474 0.011 0.639 0.021
  0.67 0.742 0.907 0.536
out Out float32 [3, 2, 4, 4] 15 1 10 10 8 13 11 13 6 7 5 14 9 8 5 2 13 6 11 4 6 7 9 10 13 6 13 10 4
  3 1 11 12 1 2 0 15 1 4 9 2 9 5 1 3 2 9 4 7 11 14 3 14 12 5 14 8 7 12 4 11 3 1 14 4 3 8 15 5 8 2 11
  14 2 12 2 12 12 5 13 5 3 7 9 7 9 6 6 7 0 10 0 10 11 14 8
out OutAccum float32 [1] 1.8889999
out OutScale float32 [1] 0.9942105
out OutState float32 [1] 1.9
)")

HEDDLE_EXAMPLES(fake_quantize_dequantize_moving_average_abs_max, R"(
example training
attr moving_rate FLOAT 0.8
attr bit_length INT 8
attr round_type INT 1
attr is_test BOOLEAN false
in X float32 [2, 3] 0.81 0.69 -0.91 -0.67 0.82 -0.13
in InScale float32 [1] 0.7
in InAccum float32 [1] 0.5
in InState float32 [1] 1.5
out Out float32 [2, 3] 0.5954546 0.5954546 -0.5954546 -0.5954546 0.5954546 -0.13128132
out OutScale float32 [1] 0.5954546
out OutState float32 [1] 2.2
out OutAccum float32 [1] 1.3100001

example ties to even
attr bit_length INT 4
attr round_type INT 0
attr is_test BOOLEAN false
in X float32 [2, 3] -0.1 0.75 0.41 -0.94 -0.71 0.43
in InScale float32 [1] 0.7
in InAccum float32 [1] 0.5
in InState float32 [1] 1.5
out Out float32 [2, 3] -0.08449848 0.5914894 0.4224924 -0.67598784 -0.67598784 0.4224924
out OutScale float32 [1] 0.5914894
out OutState float32 [1] 2.35
out OutAccum float32 [1] 1.39

example testing
attr is_test BOOLEAN true
attr bit_length INT 8
in X float32 [2, 3] 0.19 0.77 -0.59 0.94 0.47 0.91
in InScale float32 [1] 0.7
out Out float32 [2, 3] 0.18740156 0.7 -0.5897638 0.7 0.46850392 0.7
out OutScale ?
)")

HEDDLE_EXAMPLES(moving_average_abs_max_scale, R"(
example testing
attr is_test BOOLEAN true
in X float32 [2, 3] -0.92 -0.29 -0.07 0.72 0.67 -0.75
out Out float32 [2, 3] -0.92 -0.29 -0.07 0.72 0.67 -0.75
out OutScale ?

example training
attr moving_rate FLOAT 0.8
attr is_test BOOLEAN false
in X float32 [2, 3] -0.18 0.3 -0.11 0.75 -0.19 0.78
in InAccum float32 [1] 0.5
in InState float32 [1] 1.5
out Out float32 [2, 3] -0.18 0.3 -0.11 0.75 -0.19 0.78
out OutScale float32 [1] 0.5363636
out OutState float32 [1] 2.2
out OutAccum float32 [1] 1.18
)")

HEDDLE_EXAMPLES(stright_throuth_estimator_grad, R"(
example float32 4x3, round_type 0, bit_length 8
attr round_type INT 0
attr bit_length INT 8
in Out@GRAD float32 [4, 3] -0.8 0.2 -0.7 -0.5 -0.3 0.7 0.3 0.1 -0.9 0.5 -0.2 0.6
out X@GRAD float32 [4, 3] -0.8 0.2 -0.7 -0.5 -0.3 0.7 0.3 0.1 -0.9 0.5 -0.2 0.6
)")
