// quantize_linear and dequantize_linear, and other ways back from a few bits: values stay floats.
#include <cmath>
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/kept.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/convert.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

double Range(int64_t bits) { return std::ldexp(1.0, static_cast<int>(bits) - 1) - 1; }

Status CheckBits(int64_t bits) {
  if (bits >= 1 && bits <= 16) return Status::Ok();
  return InvalidArgument("a bit length must be 1 to 16, not ", bits);
}

// The integers that stand for values. Paddle 3 gives them; before, they followed from bit_length.
struct Steps {
  double low, high;
};
Result<Steps> StepsOf(const KernelContext& ctx) {
  const int64_t low = ctx.Int("qmin"), high = ctx.Int("qmax");
  if (low == 0 && high == 0) {
    HEDDLE_RETURN_IF_ERROR(CheckBits(ctx.Int("bit_length")));
    const double range = Range(ctx.Int("bit_length"));
    return Steps{-range - 1, range};
  }
  if (low > 0 || high < 1)
    return InvalidArgument("qmin ", low, " and qmax ", high, " must lie on both sides of 0");
  return Steps{static_cast<double>(low), static_cast<double>(high)};
}

// One scale for all (axis < 0), or one for each index of an axis.
Result<AxisSplit> Channels(const Tensor& x, int64_t axis) {
  if (axis < 0) return AxisSplit{1, 1, x.numel()};
  if (axis >= x.rank()) return InvalidArgument("quant_axis ", axis, " is not in X's shape");
  return SplitAt(x.shape(), static_cast<int>(axis));
}

template <typename T>
T Rounded(T x, T scale, const Steps& steps, bool to_even) {
  const T low = static_cast<T>(steps.low), high = static_cast<T>(steps.high);
  const T inverse = scale <= T(1e-30) ? T(1) / (scale + T(1e-6)) : T(1) / scale;
  if (!to_even) return std::round(high * inverse * std::max(std::min(x, scale), -scale));
  return std::max(std::min(std::nearbyint(high * inverse * x), high), low);
}

// fn(element, channel) for all elements.
template <typename Fn>
void ForEachElement(const AxisSplit& s, Fn fn) {
  for (int64_t o = 0, i = 0; o < s.outer; ++o)
    for (const int64_t c : Watched(s.n))
      for (const auto part : Stretches(s.inner))
        for (int64_t k = part.begin; k < part.end; ++k) fn(i++, c);
}

template <typename T>
struct QuantizeLinear {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Steps steps, StepsOf(ctx));
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const AxisSplit split, Channels(x, ctx.Int("quant_axis")));
    CallHeap heap(ctx);
    std::pmr::vector<T> scales(static_cast<size_t>(split.n), &heap);
    if (ctx.Bool("is_test")) {
      const Tensor& given = ctx.In("Scale");
      if (given.numel() < split.n || given.dtype() != x.dtype())
        return InvalidArgument("Scale ", given.shape().ToString(), " does not fit X");
      WatchedCopy(given.data<T>(), split.n, scales.begin());
    } else {
      ForEachElement(split, [&](int64_t i, int64_t c) {
        T& top = scales[static_cast<size_t>(c)];
        top = std::max(top, std::abs(x.data<T>()[i]));
      });
      HEDDLE_RETURN_IF_ERROR(Observe(ctx, &scales));
    }
    Tensor& y = ctx.Alloc("Y", x.dtype(), x.shape());
    if (x.has_lod()) y.set_lod(x.lod());
    const bool through = ctx.Bool("only_observer"), to_even = ctx.Int("round_type") == 0;
    T* to = y.mutable_data<T>();
    ForEachElement(split, [&](int64_t i, int64_t c) {
      const T v = x.data<T>()[i];
      to[i] = through ? v : Rounded(v, scales[static_cast<size_t>(c)], steps, to_even);
    });
    return Status::Ok();
  }

  // In training a scale for everything is a moving average.
  static Status Observe(KernelContext& ctx, std::pmr::vector<T>* scales) {
    if (ctx.Int("quant_axis") < 0) {
      const Tensor *accum = ctx.InOpt("InAccum"), *state = ctx.InOpt("InState");
      if (accum == nullptr || state == nullptr || accum->numel() != 1 || state->numel() != 1)
        return InvalidArgument("InAccum and InState are needed in training");
      const T rate = static_cast<T>(ctx.Float("moving_rate"));
      const T new_state = rate * state->data<T>()[0] + T(1);
      const T new_accum = rate * accum->data<T>()[0] + (*scales)[0];
      (*scales)[0] = new_accum / new_state;
      if (ctx.HasOut("OutState"))
        *ctx.Alloc("OutState", kDTypeOf<T>, Shape{1}).template mutable_data<T>() = new_state;
      if (ctx.HasOut("OutAccum"))
        *ctx.Alloc("OutAccum", kDTypeOf<T>, Shape{1}).template mutable_data<T>() = new_accum;
    }
    if (ctx.HasOut("OutScale"))
      std::copy(scales->begin(), scales->end(),
                ctx.Alloc("OutScale", kDTypeOf<T>, Shape{std::ssize(*scales)})
                    .template mutable_data<T>());
    return Status::Ok();
  }
};

// Out = X * scale / range, per channel.
template <typename From, typename T>
void Scaled(const Tensor& x, const AxisSplit& split, const T* scales, T range, Tensor& out) {
  using C = ComputeType<T>;
  T* to = out.mutable_data<T>();
  ForEachElement(split, [&](int64_t i, int64_t c) {
    const C value = static_cast<C>(x.data<From>()[i]) * static_cast<C>(scales[c]);
    to[i] = static_cast<T>(value / static_cast<C>(range));
  });
  if (x.has_lod()) out.set_lod(x.lod());
}

// The result has the scale's type, whatever X has.
template <typename T>
Status DequantizeTo(KernelContext& ctx, const AxisSplit& split, double high) {
  const Tensor &x = ctx.In("X"), &scale = ctx.In("Scale");
  Tensor& y = ctx.Alloc("Y", kDTypeOf<T>, x.shape());
  if (x.dtype() == DType::kI8) {
    Scaled<int8_t, T>(x, split, scale.data<T>(), static_cast<T>(high), y);
    return Status::Ok();
  }
  Tensor converted = x;
  if (x.dtype() != kDTypeOf<T>) {
    converted = ctx.Scratch(kDTypeOf<T>, x.shape());
    converted.set_lod(x.lod());
    ConvertElements(ctx, x.raw(), x.dtype(), converted.mutable_raw(), kDTypeOf<T>, x.numel());
  }
  Scaled<T, T>(converted, split, scale.data<T>(), static_cast<T>(high), y);
  return Status::Ok();
}

Status DequantizeLinear(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Steps steps, StepsOf(ctx));
  const Tensor &x = ctx.In("X"), &scale = ctx.In("Scale");
  HEDDLE_ASSIGN_OR_RETURN(const AxisSplit split, Channels(x, ctx.Int("quant_axis")));
  if (scale.numel() < split.n)
    return InvalidArgument("Scale ", scale.shape().ToString(), " does not fit X");
  if (ctx.Bool("only_observer")) {
    Tensor& y = ctx.Alloc("Y", x.dtype(), x.shape());
    if (x.has_lod()) y.set_lod(x.lod());
    WatchedMemcpy(y.mutable_raw(), x.raw(), x.bytes());
    return Status::Ok();
  }
  Status status;
  const bool known = VisitDType<float, double, float16>(scale.dtype(), [&](auto tag) {
    status = DequantizeTo<typename decltype(tag)::type>(ctx, split, steps.high);
  });
  if (known) return status;
  return InvalidArgument("Scale is ", Name(scale.dtype()), ", expected a float");
}

// With two scales, the first is per channel behind x_num_col_dims, the second for all.
template <typename T>
struct ChannelWiseDequantize {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const int count = ctx.InCount("Scales");
    const Ints& bits = ctx.IntList("quant_bits");
    if (count < 1 || count > 2 || std::ssize(bits) < count)
      return InvalidArgument("there are ", count, " Scales and ", bits.size(), " quant_bits");
    const int64_t axis = ctx.Int(count == 1 ? Key("quant_axis") : Key("x_num_col_dims"));
    HEDDLE_ASSIGN_OR_RETURN(const AxisSplit split, Channels(x, axis));
    T range = 1;
    for (int i = 0; i < count; ++i) range *= static_cast<T>(Range(bits[static_cast<size_t>(i)]));
    CallHeap heap(ctx);
    std::pmr::vector<T> scales(static_cast<size_t>(split.n), &heap);
    for (int i = 0; i < count; ++i) {
      const Tensor& s = ctx.In("Scales", i);
      if (s.dtype() != x.dtype() || s.numel() < (i == 0 ? split.n : 1))
        return InvalidArgument("Scales [", i, "] ", s.shape().ToString(), " does not fit X");
      for (int64_t c = 0; c < split.n; ++c) {
        T& scale = scales[static_cast<size_t>(c)];
        scale = i == 0 ? s.data<T>()[c] : scale * s.data<T>()[0];
      }
    }
    Scaled<T, T>(x, split, scales.data(), range, ctx.Alloc("Out", x.dtype(), x.shape()));
    return Status::Ok();
  }
};

// The scale is the largest magnitude of the last `window_size` batches.
template <typename T>
struct QuantizeRange {
  static Status Run(KernelContext& ctx) {
    HEDDLE_RETURN_IF_ERROR(CheckBits(ctx.Int("bit_length")));
    const Tensor &x = ctx.In("X"), &before = ctx.In("InScale");
    if (before.numel() != 1 || before.dtype() != x.dtype())
      return InvalidArgument("InScale must be one number of X's dtype");
    T scale = before.data<T>()[0];
    if (!ctx.Bool("is_test")) {
      HEDDLE_RETURN_IF_ERROR(NextScale(ctx, x, &scale));
      *ctx.Alloc("OutScale", x.dtype(), Shape{1}).template mutable_data<T>() = scale;
    }
    T* to = ctx.Alloc("Out", x.dtype(), x.shape()).template mutable_data<T>();
    const bool to_even = ctx.Int("round_type") == 0;
    const double range = Range(ctx.Int("bit_length"));
    const Steps steps{-range - 1, range};
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i)
        to[i] = Rounded(x.data<T>()[i], scale, steps, to_even);
    if (x.has_lod()) ctx.Out("Out").set_lod(x.lod());
    return Status::Ok();
  }

  static Status NextScale(KernelContext& ctx, const Tensor& x, T* scale) {
    const int64_t window = ctx.Int("window_size");
    const Tensor* iteration = ctx.InOpt("Iter");
    if (window < 1) return InvalidArgument("window_size must be positive");
    if (iteration != nullptr && iteration->numel() < 1)
      return InvalidArgument("Iter must hold a number, it is empty");
    const int64_t at = iteration != nullptr ? ToInts(*iteration)[0] : 0;
    if (at < 0) return OutOfRange("Iter holds ", at, ", steps count from 0");
    T now = 0;
    for (const auto part : Stretches(x.numel()))
      for (int64_t i = part.begin; i < part.end; ++i) now = std::max(now, std::abs(x.data<T>()[i]));
    Tensor history;
    if (Value* kept = ctx.OutVar("OutScales"); kept != nullptr) {
      const Tensor& t = kept->tensor();
      if (!t.initialized() || t.numel() != window || t.dtype() != x.dtype())
        WatchedFill(ctx.Alloc("OutScales", x.dtype(), Shape{window}).template mutable_data<T>(),
                    window, T(0));
      history = ctx.Out("OutScales");
    } else {
      history = Tensor::Zeros(x.dtype(), Shape{window});
    }
    T* scales = history.mutable_data<T>();
    const T removed = std::exchange(scales[at % window], now);
    if (*scale < now) {
      *scale = now;
    } else if (std::abs(removed - *scale) < T(1e-6)) {
      *scale = 0;
      for (int64_t i = 0; i < std::min(std::max<int64_t>(at, 0), window); ++i)
        *scale = std::max(*scale, std::abs(scales[i]));
    }
    return Status::Ok();
  }
};

void DefineLinear(OpDef& op) {
  op.Input("X").Input("Scale").Input("ZeroPoint");
  op.Input("InAccum", kOptional).Input("InState", kOptional).Output("Y");
  for (const char* slot : {"OutState", "OutAccum", "OutScale"})
    op.Output(slot, kOptional | kKeptInInference);
  op.Attr("quant_axis", 0).Attr("bit_length", 8).Attr("round_type", 0).Attr("is_test", true);
  op.Attr("only_observer", false).Attr("moving_rate", 0.9).Attr("qmin", 0).Attr("qmax", 0);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(quantize_linear) {
  op.Doc("X in units of Scale / range, rounded");
  DefineLinear(op);
  op.Kernels<QuantizeLinear, float, double>();
}

HEDDLE_OP(dequantize_linear) {
  op.Doc("X * Scale / range");
  DefineLinear(op);
  op.Kernel({DType::kF32, DType::kF64, DType::kI8}, DequantizeLinear);
}

HEDDLE_OP(fake_channel_wise_dequantize_max_abs) {
  op.Doc("X * Scales / range, per channel").Input("X").Input("Scales", kList).Output("Out");
  op.Attr("quant_bits", Ints{8}).Attr("quant_axis", 0).Attr("x_num_col_dims", 1);
  op.Kernels<ChannelWiseDequantize, float, double>();
}

HEDDLE_OP(fake_quantize_range_abs_max) {
  op.Doc("X in units of the largest magnitude of the last batches, rounded");
  op.Input("X").Input("InScale").Input("Iter", kOptional).Output("Out");
  op.Output("OutScale", kOptional | kKeptInInference);
  op.Output("OutScales", kOptional | kKeptInInference).Attr("window_size", 10000);
  op.Attr("bit_length", 8).Attr("round_type", 0).Attr("is_test", false);
  op.Kernels<QuantizeRange, float, double>();
}
