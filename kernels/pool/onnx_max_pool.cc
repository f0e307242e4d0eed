// Pooling over any number of dimensions: maxima, means and p-norms of windows.
#include <cmath>
#include <limits>

#include "core/interrupts.h"
#include "core/threads/look_meter.h"
#include "kernels/pool/windows.h"

namespace heddle {
namespace {

template <typename Context>
Result<Windows> PoolWindowsOf(const Context& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape in, SpatialOf(ShapeIn(ctx, "X"), "X"));
  HEDDLE_ASSIGN_OR_RETURN(const Shape kernel, KernelOf(ctx, nullptr, in.rank()));
  return WindowsOf(ctx, in, kernel, ctx.Int("ceil_mode") != 0);
}

Status OnnxPoolShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  const bool indices = ctx.def().FindOutput("Indices") >= 0 && ctx.HasOut("Indices");
  if (!x.is_static()) return indices ? ctx.Defer() : SameRank(ctx, "X", "Y", 2);
  HEDDLE_ASSIGN_OR_RETURN(const Windows w, PoolWindowsOf(ctx));
  Shape out{x[0], x[1]};
  for (const int64_t d : w.out) out.push_back(d);
  ctx.SetOut("Y", out, ctx.InDType("X"));
  if (indices) ctx.SetOut("Indices", out, DType::kI64);
  return Status::Ok();
}

constexpr int64_t kWindowWork = 32, kTapWork = 8;  // in the units of LookMeter

// fn(plane of X, position, window, where in Y) for all windows.
template <typename Fn>
void ForEachPlaneWindow(const KernelContext& ctx, const Windows& w, int64_t planes, const Fn& fn) {
  const int64_t places = w.out.numel();
  const int64_t work = std::min<int64_t>(places, 4096) * std::min<int64_t>(w.kernel.numel(), 4096);
  const int64_t taps = w.kernel.numel();
  ctx.ParallelFor(planes, 1 + 4096 / (1 + work), [&](int64_t begin, int64_t end) {
    LookMeter meter;
    for (int64_t plane = begin; plane < end; ++plane) {
      Walk<1> position(w.out, {Walk<1>::Strides{}});
      for (int64_t p = 0; p < places; ++p, position.Next()) {
        meter.Did(kWindowWork + kTapWork * taps);
        fn(plane, position, WindowOf(w, position), plane * places + p);
      }
    }
  });
}

// The number of a pixel when the first spatial dimension runs fastest.
int64_t ColumnMajor(const Shape& in, int64_t pixel) {
  int64_t at = 0;
  Shape index = in;
  for (int i = in.rank() - 1; i >= 0; --i) {
    index[i] = pixel % in[i];
    pixel /= in[i];
  }
  for (int i = in.rank() - 1; i >= 0; --i) at = at * in[i] + index[i];
  return at;
}

template <typename T>
struct OnnxMaxPool {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Windows w, PoolWindowsOf(ctx));
    const bool column_major = ctx.Int("storage_order") != 0;
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    Tensor* indices = ctx.OutOpt("Indices");
    int64_t* at = indices == nullptr ? nullptr : indices->mutable_data<int64_t>();
    const int64_t size = w.in.numel();
    constexpr T kLeast = std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                                              : std::numeric_limits<T>::lowest();
    ForEachPlaneWindow(
        ctx, w, x.dim(0) * x.dim(1),
        [&](int64_t plane, const Walk<1>&, const WindowAt& window, int64_t out) {
          T best = kLeast;
          int64_t where = -1;
          ForEachTap(w, window, [&](int64_t pixel, int64_t) {
            const T v = from[plane * size + pixel];
            if (where < 0 || v > best || (v != v && best == best)) {
              best = v;
              where = pixel;
            }
          });
          to[out] = best;
          if (at != nullptr)
            at[out] =
                where < 0 ? -1 : plane * size + (column_major ? ColumnMajor(w.in, where) : where);
        });
    return Status::Ok();
  }
};

// The number of taps that lie in the input or its padding, for averages that count the padding.
int64_t PaddedTaps(const Windows& w, const WindowAt& window) {
  int64_t count = 1;
  for (int i = 0; i < w.rank; ++i) {
    const int64_t end = w.in[i] + w.pad_hi[i];
    count *= std::clamp<int64_t>((end - 1 - window.begin[i]) / w.dilation[i] + 1, 0, w.kernel[i]);
  }
  return count;
}

template <typename T>
struct OnnxAveragePool {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Windows w, PoolWindowsOf(ctx));
    const bool padding = ctx.Int("count_include_pad") != 0;
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    const int64_t size = w.in.numel();
    ForEachPlaneWindow(
        ctx, w, x.dim(0) * x.dim(1),
        [&](int64_t plane, const Walk<1>&, const WindowAt& window, int64_t out) {
          T sum = 0;
          ForEachTap(w, window, [&](int64_t pixel, int64_t) { sum += from[plane * size + pixel]; });
          to[out] = sum / static_cast<T>(padding ? PaddedTaps(w, window) : window.inside);
        });
    return Status::Ok();
  }
};

// The p-norm; for p = 1 and p = 2 without powers.
template <typename T>
class Norm {
 public:
  explicit Norm(int64_t p) : p_(p) {}
  void Add(T v) {
    sum_ += p_ == 1 ? std::fabs(v) : p_ == 2 ? v * v : std::pow(std::fabs(v), static_cast<T>(p_));
  }
  T Get() const {
    return p_ == 1 ? sum_ : p_ == 2 ? std::sqrt(sum_) : std::pow(sum_, T(1) / static_cast<T>(p_));
  }

 private:
  int64_t p_;
  T sum_ = 0;
};

template <typename T>
struct OnnxLpPool {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Windows w, PoolWindowsOf(ctx));
    const int64_t p = ctx.Int("p"), size = w.in.numel();
    if (p < 1) return InvalidArgument("p is ", p, ", expected at least 1");
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").template mutable_data<T>();
    ForEachPlaneWindow(ctx, w, x.dim(0) * x.dim(1),
                       [&](int64_t plane, const Walk<1>&, const WindowAt& window, int64_t out) {
                         Norm<T> norm(p);
                         ForEachTap(w, window, [&](int64_t pixel, int64_t) {
                           norm.Add(from[plane * size + pixel]);
                         });
                         to[out] = norm.Get();
                       });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_max_pool) {
  op.Doc("greatest elements of windows and their positions in X; padding never wins");
  op.Input("X").Output("Y").Output("Indices", kOptional);
  DeclareWindows(op, true);
  op.Attr("ceil_mode", 0).Attr("storage_order", 0).InferShape(OnnxPoolShape);
  op.Kernels<OnnxMaxPool, float, double, int8_t, uint8_t>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_average_pool) {
  op.Doc("means of windows, with or without their padding").Input("X").Output("Y");
  DeclareWindows(op, true);
  op.Attr("ceil_mode", 0).Attr("count_include_pad", 0).InferShape(OnnxPoolShape);
  op.Kernels<OnnxAveragePool, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(onnx_lp_pool) {
  op.Doc("p-norms of windows").Input("X").Output("Y");
  DeclareWindows(op, true);
  op.Attr("ceil_mode", 0).Attr("p", 2).InferShape(OnnxPoolShape);
  op.Kernels<OnnxLpPool, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
