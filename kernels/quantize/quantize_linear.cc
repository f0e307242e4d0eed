// quantize_linear and dequantize_linear, and other ways back from a few bits: values stay floats.
#include <cmath>
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/shape_checks.h"
#include "kernels/elementwise/convert.h"

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
  op.Input("X").Input("Scale").Input("ZeroPoint", kOptional);
  op.Input("InAccum", kOptional).Input("InState", kOptional).Output("Y");
  op.Output("OutState", kOptional).Output("OutAccum", kOptional).Output("OutScale", kOptional);
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
  op.Output("OutScale", kOptional).Output("OutScales", kOptional).Attr("window_size", 10000);
  op.Attr("bit_length", 8).Attr("round_type", 0).Attr("is_test", false);
  op.Kernels<QuantizeRange, float, double>();
}

HEDDLE_EXAMPLES(quantize_linear, R"(
example qmin and qmax, those of 4 bits
attr quant_axis INT -1
attr qmin INT -8
attr qmax INT 7
in Scale float32 [1] 2
in X float32 [2, 4] 0.3 -1.9 2 -2.4 1.04 -0.1 0.7 9
in ZeroPoint int32 [1] 0
from quantize_linear X=X Scale=Scale ZeroPoint=ZeroPoint -> Y=Y
attr quant_axis INT -1
attr bit_length INT 4
out Y float32 [2, 4] 1 -7 7 -8 4 -0 2 7

example float32 4x3x3x3, moving_rate 0.9, no is_test
attr moving_rate FLOAT 0.9
attr is_test BOOLEAN false
in Scale float32 [4] 4.064 4.124 4.003 3.943
in X float32 [4, 3, 3, 3] -1.24 3.97 0.89 -0.87 1.4 0.3 -2.12 0.45 1.84 -1.31 3.89 0.81 1.25 0.37
  -3.51 3.09 -0.94 -3.44 -0.21 -1.02 0.23 -0.5 3.31 2.21 0.16 1.99 -2.34 3.82 -3.07 -0.14 1.11 1.18
  2.35 1.55 -1.9 1.62 1.03 2.72 -1.16 2.13 -3.29 3.45 -2.78 -3.58 3.23 -3.14 -1.97 4.11 -2.85 2.87
  -1.6 -3.36 -2.48 -2.63 -2.04 -0.28 -1.75 -0.36 1.77 3.67 -2.41 3.38 2.06 -1.46 3.53 0.59 -0.58
  -2.56 -3.22 -1.82 -2.19 -0.06 1.69 -1.38 0.08 -2.92 1.33 3.6 -2.7 2.43 -3 2.5 2.28 1.91 2.57 -1.68
  4.04 -1.53 -2.26 -0.72 0.52 -0.65 0.67 -1.09 2.94 3.75 -0.8 -0.43 2.79 -3.73 0.74 -3.65 3.01 3.16
  0.96 1.47 2.65 0.01
in ZeroPoint int32 [4] 0*4
out OutScale float32 [4] 3.97 4.11 3.67 4.04
out Y float32 [4, 3, 3, 3] -40 127 28 -28 45 10 -68 14 59 -42 124 26 40 12 -112 99 -30 -110 -7 -33 7
  -16 106 71 5 64 -75 118 -95 -4 34 36 73 48 -59 50 32 84 -36 66 -102 107 -86 -111 100 -97 -61 127
  -88 89 -49 -104 -77 -81 -71 -10 -61 -12 61 127 -83 117 71 -51 122 20 -20 -89 -111 -63 -76 -2 58
  -48 3 -101 46 125 -93 84 -104 79 72 60 81 -53 127 -48 -71 -23 16 -20 21 -34 92 118 -25 -14 88 -117
  23 -115 95 99 30 46 83 0
)")

HEDDLE_EXAMPLES(dequantize_linear, R"(
example qmin and qmax, those of 4 bits
attr quant_axis INT -1
attr qmin INT -8
attr qmax INT 7
in Scale float32 [1] 2
in X float32 [2, 4] 7 -8 3 0 -1 5 -6 2
in ZeroPoint int32 [1] 0
from dequantize_linear X=X Scale=Scale ZeroPoint=ZeroPoint -> Y=Y
attr quant_axis INT -1
attr bit_length INT 4
out Y float32 [2, 4] 2 -2.2857144 0.85714287 0 -0.2857143 1.4285715 -1.7142857 0.5714286

example float32 4x3, moving_rate 0.9, quant_axis -1
attr moving_rate FLOAT 0.9
attr quant_axis INT -1
in Scale float32 [] 3.8
in X float32 [4, 3] 52 -40 -56 65 -33 -35 -126 62 1 -38 -82 -87
in ZeroPoint int32 [] 0
out Y float32 [4, 3] 1.5559055 -1.1968504 -1.6755906 1.9448819 -0.9874016 -1.0472441 -3.7700787
  1.855118 0.02992126 -1.1370078 -2.4535434 -2.6031497

example float64 4x3, moving_rate 0.9, quant_axis -1
attr moving_rate FLOAT 0.9
attr quant_axis INT -1
in Scale float64 [] 3.8
in X float64 [4, 3] -109 8 -74 -40 -102 -56 -71 -5 -113 -81 -125 -13
in ZeroPoint int32 [] 0
out Y float64 [4, 3] -3.2614173228346455 0.23937007874015748 -2.2141732283464566 -1.1968503937007875
  -3.0519685039370077 -1.6755905511811022 -2.1244094488188976 -0.14960629921259844
  -3.3811023622047243 -2.4236220472440944 -3.7401574803149606 -0.3889763779527559

example int8, a scale for each column, float64
attr quant_axis INT 1
in Scale float64 [3] 2 3.3 4
in X int8 [2, 3] 3 4 5 100 -128 2
in ZeroPoint float32 [3] 0 0 0
out Y float64 [2, 3] 0.047244094488188976 0.10393700787401575 0.15748031496062992 1.5748031496062993
  -3.325984251968504 0.06299212598425197

example float64, the scale is float32
attr quant_axis INT -1
in Scale float32 [1] 2.3
in X float64 [2, 3] 3 4 5 100 -127 2
in ZeroPoint float32 [1] 0
out Y float32 [2, 3] 0.054330707 0.072440945 0.09055118 1.8110236 -2.3 0.036220472

example float32, the scale is float16
attr quant_axis INT 0
in Scale float16 [2] 2.3 1.5
in X float32 [2, 3] 3 4 5 100 -127 2
in ZeroPoint float32 [2] 0 0
out Y float16 [2, 3] 0.05432 0.07245 0.0905 1.181 -1.5 0.02362

example int8, only observed
attr quant_axis INT -1
attr only_observer BOOLEAN true
in Scale float32 [1] 2.3
in X int8 [2, 3] 3 4 5 100 -127 2
in ZeroPoint float32 [1] 0
out Y int8 [2, 3] 3 4 5 100 -127 2
)")

HEDDLE_EXAMPLES(fake_channel_wise_dequantize_max_abs, R"(
example float32 4x3x3x3, quant_axis 1
attr quant_axis INT 1
in Scales float32 [3] 3.971 4.001 4.019
in X float32 [4, 3, 3, 3] 52 -40 -56 65 124 -33 -35 -126 62 1 -38 -82 -87 -22 -35 92 -91 61 110 112
  -85 -69 42 101 21 115 -97 106 -39 -13 31 29 31 117 78 83 29 86 94 11 31 -113 -66 -58 77 -116 53
  -52 33 53 -77 -106 -101 -27 -120 17 117 -40 -35 44 -14 -4 60 -127 -96 31 -18 19 -126 -116 47 28
  -80 88 -48 18 70 55 -98 -116 -115 -122 -4 56 -39 73 19 -125 -50 60 -86 7 11 107 36 -76 119 54 -80
  -71 -107 66 97 26 82 -23 73 49
out Out float32 [4, 3, 3, 3] 1.6259212 -1.2507086 -1.7509921 2.0324016 3.8771968 -1.0318346
  -1.0943701 -3.9397323 1.9385984 0.03150394 -1.1971495 -2.5833228 -2.7408426 -0.69308656 -1.1026378
  2.8983622 -2.8668582 1.92174 3.4810236 3.5443149 -2.6898818 -2.1835513 1.3291181 3.1962125
  0.66455907 3.639252 -3.0696301 3.314378 -1.2194409 -0.4064803 0.9692992 0.90676373 0.9692992
  3.6583228 2.4388819 2.5952203 0.91361415 2.7093387 2.96137 0.34654328 0.97662205 -3.5599449
  -2.0792599 -1.8272283 2.4258032 -3.6708977 1.6772205 -1.6455748 1.0443071 1.6772205 -2.4367166
  -3.354441 -3.1962125 -0.85443306 -3.752126 0.5315511 3.6583228 -1.2507086 -1.0943701 1.3757795
  -0.43774801 -0.12507087 1.876063 -4.001 -3.024378 0.97662205 -0.56707084 0.59857476 -3.9694958
  -3.6544566 1.480685 0.88211024 -2.5316536 2.784819 -1.5189922 0.5696221 2.215197 1.7405118
  -3.1012757 -3.6708977 -3.639252 -3.8146615 -0.12507087 1.7509921 -1.2194409 2.2825432 0.5940866
  -3.9084647 -1.5633858 1.876063 -2.7093387 0.22052756 0.34654328 3.3709211 1.1341417 -2.394299
  3.7489684 1.7012126 -2.520315 -2.2468426 -3.3860867 2.0886142 3.0696301 0.8227874 2.594945
  -0.72785044 2.3101337 1.5506378

example float64 4x3x3x3, quant_axis 1
attr quant_axis INT 1
in Scales float64 [3] 3.971 4.001 4.019
in X float64 [4, 3, 3, 3] 52 -40 -56 65 124 -33 -35 -126 62 1 -38 -82 -87 -22 -35 92 -91 61 110 112
  -85 -69 42 101 21 115 -97 106 -39 -13 31 29 31 117 78 83 29 86 94 11 31 -113 -66 -58 77 -116 53
  -52 33 53 -77 -106 -101 -27 -120 17 117 -40 -35 44 -14 -4 60 -127 -96 31 -18 19 -126 -116 47 28
  -80 88 -48 18 70 55 -98 -116 -115 -122 -4 56 -39 73 19 -125 -50 60 -86 7 11 107 36 -76 119 54 -80
  -71 -107 66 97 26 82 -23 73 49
out Out float64 [4, 3, 3, 3] 1.62592125984252 -1.2507086614173228 -1.750992125984252
  2.0324015748031496 3.877196850393701 -1.0318346456692913 -1.0943700787401576 -3.939732283464567
  1.9385984251968504 0.03150393700787402 -1.1971496062992126 -2.58332283464567 -2.7408425196850397
  -0.6930866141732284 -1.1026377952755908 2.89836220472441 -2.8668582677165353 1.921740157480315
  3.4810236220472444 3.544314960629922 -2.6898818897637797 -2.1835511811023625 1.3291181102362204
  3.196212598425197 0.6645590551181102 3.639251968503937 -3.0696299212598426 3.3143779527559056
  -1.2194409448818897 -0.40648031496063 0.9692992125984252 0.9067637795275592 0.9692992125984252
  3.6583228346456695 2.4388818897637794 2.595220472440945 0.9136141732283466 2.7093385826771654
  2.961370078740158 0.3465433070866142 0.9766220472440945 -3.559944881889764 -2.079259842519685
  -1.8272283464566932 2.425803149606299 -3.670897637795276 1.677220472440945 -1.6455748031496062
  1.0443070866141733 1.677220472440945 -2.436716535433071 -3.35444094488189 -3.196212598425197
  -0.8544330708661417 -3.7521259842519683 0.5315511811023622 3.6583228346456695 -1.2507086614173228
  -1.0943700787401576 1.375779527559055 -0.437748031496063 -0.1250708661417323 1.8760629921259842
  -4.001 -3.0243779527559056 0.9766220472440945 -0.5670708661417323 0.5985748031496063
  -3.969496062992126 -3.6544566929133864 1.480685039370079 0.8821102362204725 -2.5316535433070864
  2.7848188976377957 -1.518992125984252 0.5696220472440945 2.2151968503937005 1.7405118110236222
  -3.101275590551181 -3.670897637795276 -3.639251968503937 -3.8146614173228346 -0.1250708661417323
  1.750992125984252 -1.2194409448818897 2.282543307086614 0.5940866141732283 -3.908464566929134
  -1.5633858267716536 1.8760629921259842 -2.7093385826771654 0.22052755905511812 0.3465433070866142
  3.37092125984252 1.1341417322834646 -2.3942992125984253 3.748968503937008 1.7012125984251971
  -2.5203149606299218 -2.2468425196850395 -3.3860866141732284 2.0886141732283465 3.0696299212598426
  0.8227874015748031 2.594944881889764 -0.7278503937007874 2.3101338582677164 1.5506377952755905
)")

HEDDLE_EXAMPLES(fake_quantize_range_abs_max, R"(
example float32 3x2x4x4, round_type 1, bit_length 5, window_size 1
dtypes none: a value half-way between two steps goes to either, as the precision decides
attr round_type INT 1
attr bit_length INT 5
attr window_size INT 1
in InScale float32 [1] 0
in Iter int64 [1] 0
in X float32 [3, 2, 4, 4] 5.79 -3.48 2.5 2.6 1.05 4.76 3.63 4.66 0.13 0.95 -0.49 5.59 1.67 1.57
  -0.39 -2.96 4.56 -0.29 3.53 -1.32 -0.08 0.64 1.77 2.91 4.45 0.02 4.87 2.8 -1.63 -1.93 -3.58 3.11
  3.83 -3.27 -2.55 -3.69 5.9 -3.07 -1.42 1.98 -2.66 1.88 -0.9 -3.38 -2.14 -2.35 2.19 -1.11 0.85 3.32
  5.48 -2.04 5.17 3.73 -0.7 5.28 1.16 0.54 3.94 -1.52 3.01 -2.24 -3.17 4.97 -1.21 -1.73 1.26 5.69
  -0.6 1.47 -2.76 3.22 5.38 -2.45 4.04 -2.86 4.14 4.25 -1.01 4.35 -0.8 -1.83 0.33 2.08 0.44 2.29
  -0.18 0.23 0.74 -3.89 2.39 -3.79 2.7 3.42 5.07 1.36
out Out float32 [3, 2, 4, 4] 15 -9 6 7 3 12 9 12 0 2 -1 14 4 4 -1 -8 12 -1 9 -3 -0 2 5 7 11 0 12 7
  -4 -5 -9 8 10 -8 -6 -9 15 -8 -4 5 -7 5 -2 -9 -5 -6 6 -3 2 8 14 -5 13 9 -2 13 3 1 10 -4 8 -6 -8 13
  -3 -4 3 14 -2 4 -7 8 14 -6 10 -7 11 11 -3 11 -2 -5 1 5 1 6 -0 1 2 -10 6 -10 7 9 13 3
out OutScale float32 [1] 5.9
out OutScales float32 [1] 5.9
)")
