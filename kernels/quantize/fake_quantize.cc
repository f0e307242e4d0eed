// fake_quantize_* and their relatives: values rounded to a few bits, still stored as floats.
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/kept.h"
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
      .Output("OutScale", kKeptInInference)
      .Output("OutState", kOptional | kKeptInInference)
      .Output("OutAccum", kOptional | kKeptInInference)
      .Inplace("InScale", "OutScale")
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
  op.Output("Out", kOptional).Output("OutScale", kKeptInInference);
  op.Output("OutState", kOptional | kKeptInInference);
  op.Output("OutAccum", kOptional | kKeptInInference)
      .Attr("moving_rate", 0.9f)
      .Attr("is_test", false);
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
