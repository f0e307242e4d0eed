// arg_max and arg_min: the position of the first or last extreme element along an axis.
#include <limits>

#include "core/error.h"
#include "core/kernel_context.h"
#include "core/threads/look_meter.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/index_args.h"

namespace heddle {
namespace {

Status InferArg(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const DType dtype = DTypeFromProto(ctx.Int("dtype"));
  const bool keep = ctx.Bool("keepdims");
  if (dtype != DType::kI64 && dtype != DType::kI32 && dtype != DType::kI16 && ctx.Int("dtype") >= 0)
    return InvalidArgument("attribute dtype is ", ctx.Int("dtype"),
                           ", expected 1 (int16), 2 (int32) or 3 (int64)");
  const std::string& nan = ctx.Str("nan");
  if (nan != "loses" && nan != "wins" && nan != "skipped")
    return InvalidArgument("attribute nan is '", nan, "', expected 'loses', 'wins' or 'skipped'");
  if (nan == "skipped" && ctx.Bool("last"))
    return InvalidArgument("attribute last goes with no nan 'skipped'");
  Shape out;
  if (!x.known_rank()) {
    out = Shape::Unknown();
  } else if (ctx.Bool("flatten")) {
    if (keep)
      for (int i = 0; i < x.rank(); ++i) out.push_back(1);
  } else {
    IntArg axis;
    HEDDLE_RETURN_IF_ERROR(ReadAxis(ctx, "AxisTensor", "axis", x.rank(), &axis));
    for (int i = 0; i < x.rank(); ++i) {
      if (!axis.known && (keep || i > 0))
        out.push_back(-1);
      else if (axis.known && i != axis.value)
        out.push_back(x[i]);
      else if (axis.known && keep)
        out.push_back(1);
    }
    if (x.rank() == 0 && keep) out.push_back(1);  // as in Paddle, whose scalar has an axis 0
  }
  ctx.SetOut("Out", out, dtype == DType::kUnknown ? DType::kI64 : dtype);
  return Status::Ok();
}

// Whether a comes before b, the best one so far. A NaN is never the extreme one, or with kNanWins
// always; of equal ones the first counts, or with kLast the last.
template <bool kMax, bool kNanWins, bool kLast>
struct Extreme {
  template <typename T>
  static T Begin(T first) {
    return first;
  }
  template <typename T>
  static bool Better(T a, T b) {
    const bool better = kMax ? kLast ? a >= b : a > b : kLast ? a <= b : a < b;
    if constexpr (kNanWins)
      return better | (IsNan(a) & (kLast | !IsNan(b)));
    else
      return better | (IsNan(b) & (kLast | !IsNan(a)));
  }
};

// Only elements beyond the least (or greatest) finite number are found: where there are none, as in
// a line of NaN, the first place is.
template <bool kMax>
struct ExtremeOfNumbers {
  template <typename T>
  static T Begin(T first) {
    const T bound = Bound<T>();
    return Better(first, bound) ? first : bound;
  }
  template <typename T>
  static bool Better(T a, T b) {
    return kMax ? a > b : a < b;
  }
  template <typename T>
  static T Bound() {
    using C = ComputeType<T>;
    constexpr double kMost = std::is_same_v<T, float16> ? 65504 : 0x1.FEp127;
    if constexpr (!std::is_same_v<C, T>)
      return T(static_cast<C>(kMax ? -kMost : kMost));
    else
      return kMax ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
};

// A neighbouring line's best element is kept beside the others, so that memory is read in order.
constexpr int64_t kTogether = 64;

// Positions in Out's dtype, from its element `first` on.
template <typename At>
void Store(const At* at, int64_t n, Tensor& out, int64_t first) {
  const auto store = [&]<typename Out>(Out* to) {
    for (int64_t k = 0; k < n; ++k) to[first + k] = static_cast<Out>(at[k]);
  };
  if (out.dtype() == DType::kI32)
    store(out.mutable_data<int32_t>());
  else if (out.dtype() == DType::kI16)
    store(out.mutable_data<int16_t>());
  else
    store(out.mutable_data<int64_t>());
}

template <typename Cmp, typename T>
void Search(const KernelContext& ctx, const AxisLines& lines, const T* x, Tensor& out) {
  const int64_t blocks = (lines.inner + kTogether - 1) / kTogether;
  const int64_t grain = std::max<int64_t>(
      1, (1 << 15) / std::max<int64_t>(1, lines.n * std::min(lines.inner, kTogether)));
  ctx.ParallelFor(lines.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t k0 = u % blocks * kTogether, width = std::min(kTogether, lines.inner - k0);
      const T* p = x + u / blocks * lines.n * lines.inner + k0;
      // Positions as wide as the values, for loops of both at a time.
      using At = std::conditional_t<sizeof(T) == sizeof(int32_t), int32_t, int64_t>;
      T best[kTogether];
      At at[kTogether];
      for (int64_t k = 0; k < width; ++k) best[k] = Cmp::Begin(p[k]), at[k] = 0;
      LookMeter meter;
      for (int64_t i = 1; i < lines.n; ++i) {
        meter.Did(width);
        p += lines.inner;
        for (int64_t k = 0; k < width; ++k) {
          const bool better = Cmp::Better(p[k], best[k]);
          best[k] = better ? p[k] : best[k];
          at[k] = better ? static_cast<At>(i) : at[k];
        }
      }
      Store(at, width, out, u / blocks * lines.inner + k0);
    }
  });
}

template <bool kMax>
struct Arg {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& x = ctx.In("X");
      Tensor& out = ctx.Out("Out");
      AxisLines lines{1, x.numel(), 1};
      if (!ctx.Bool("flatten")) {
        IntArg axis;
        HEDDLE_RETURN_IF_ERROR(ReadInt(ctx, "AxisTensor", "axis", &axis));
        HEDDLE_ASSIGN_OR_RETURN(lines, AxisLines::At(x.shape(), axis.value));
      }
      if (out.numel() == 0) return Status::Ok();
      if (lines.n == 0) return InvalidArgument("the axis of X ", x.shape().ToString(), " is empty");
      const std::string& nan = ctx.Str("nan");
      const bool last = ctx.Bool("last");
      auto search =
          last ? &Search<Extreme<kMax, false, true>, T> : &Search<Extreme<kMax, false, false>, T>;
      if (nan == "wins")
        search =
            last ? &Search<Extreme<kMax, true, true>, T> : &Search<Extreme<kMax, true, false>, T>;
      if (nan == "skipped") search = &Search<ExtremeOfNumbers<kMax>, T>;
      search(ctx, lines, x.data<T>(), out);
      return Status::Ok();
    }
  };
};

template <bool kMax>
void DefineArg(OpDef& op, const char* doc) {
  op.Doc(doc).Input("X").Input("AxisTensor", kOptional | kShapeValue).Output("Out");
  op.Attr("axis", -1).Attr("keepdims", false).Attr("flatten", false).Attr("dtype", 3);
  op.Attr("nan", "loses").Attr("last", false);
  op.InferShape(&InferArg).KernelKey("X");
  op.Kernels<Arg<kMax>::template Kernel, float, double, int32_t, int64_t, int16_t, int8_t, uint8_t,
             bool, float16, bfloat16>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(arg_max) { DefineArg<true>(op, "position of the greatest element along an axis"); }
HEDDLE_OP(arg_min) { DefineArg<false>(op, "position of the smallest element along an axis"); }
