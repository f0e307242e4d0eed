// arg_max and arg_min: the position of the first extreme element along an axis.
#include "core/error.h"
#include "core/threads/look_meter.h"
#include "kernels/base/axis_lines.h"

namespace heddle {
namespace {

Status InferArg(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const DType dtype = DTypeFromProto(ctx.Int("dtype"));
  const bool keep = ctx.Bool("keepdims");
  if (dtype != DType::kI64 && dtype != DType::kI32 && ctx.Int("dtype") >= 0)
    return InvalidArgument("attribute dtype is ", ctx.Int("dtype"),
                           ", expected 2 (int32) or 3 (int64)");
  Shape out;
  if (!x.known_rank()) {
    out = Shape::Unknown();
  } else if (ctx.Bool("flatten")) {
    if (keep)
      for (int i = 0; i < x.rank(); ++i) out.push_back(1);
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const int axis, NormalAxis(ctx.Int("axis"), x.rank()));
    for (int i = 0; i < x.rank(); ++i) {
      if (i != axis)
        out.push_back(x[i]);
      else if (keep)
        out.push_back(1);
    }
    if (x.rank() == 0 && keep) out.push_back(1);  // as in Paddle, whose scalar has an axis 0
  }
  ctx.SetOut("Out", out, dtype == DType::kUnknown ? DType::kI64 : dtype);
  return Status::Ok();
}

// A NaN is never the extreme one.
struct Max {
  template <typename T>
  static bool Better(T a, T b) {
    return (a > b) | (IsNan(b) & !IsNan(a));
  }
};
struct Min {
  template <typename T>
  static bool Better(T a, T b) {
    return (a < b) | (IsNan(b) & !IsNan(a));
  }
};

// A neighbouring line's best element is kept beside the others, so that memory is read in order.
constexpr int64_t kTogether = 64;

template <typename Cmp, typename T, typename Out>
void Search(const KernelContext& ctx, const AxisLines& lines, const T* x, Out* out) {
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
      for (int64_t k = 0; k < width; ++k) best[k] = p[k], at[k] = 0;
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
      Out* best_at = out + u / blocks * lines.inner + k0;
      for (int64_t k = 0; k < width; ++k) best_at[k] = static_cast<Out>(at[k]);
    }
  });
}

template <typename Cmp>
struct Arg {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      const Tensor& x = ctx.In("X");
      Tensor& out = ctx.Out("Out");
      AxisLines lines{1, x.numel(), 1};
      if (!ctx.Bool("flatten")) {
        HEDDLE_ASSIGN_OR_RETURN(lines, AxisLines::At(x.shape(), ctx.Int("axis")));
      }
      if (out.numel() == 0) return Status::Ok();
      if (lines.n == 0) return InvalidArgument("the axis of X ", x.shape().ToString(), " is empty");
      if (out.dtype() == DType::kI32)
        Search<Cmp>(ctx, lines, x.data<T>(), out.mutable_data<int32_t>());
      else
        Search<Cmp>(ctx, lines, x.data<T>(), out.mutable_data<int64_t>());
      return Status::Ok();
    }
  };
};

template <typename Cmp>
void DefineArg(OpDef& op, const char* doc) {
  op.Doc(doc).Input("X").Output("Out");
  op.Attr("axis", -1).Attr("keepdims", false).Attr("flatten", false).Attr("dtype", 3);
  op.InferShape(&InferArg);
  op.Kernels<Arg<Cmp>::template Kernel, float, double, int32_t, int64_t, int16_t, uint8_t, float16,
             bfloat16>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(arg_max) { DefineArg<Max>(op, "position of the greatest element along an axis"); }
HEDDLE_OP(arg_min) { DefineArg<Min>(op, "position of the smallest element along an axis"); }
