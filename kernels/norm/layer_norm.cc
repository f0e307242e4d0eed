#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/addend.h"
#include "core/shapes.h"
#include "kernels/base/check.h"
#include "kernels/base/convert.h"
#include "kernels/norm/row_norm.h"

namespace heddle {
namespace {

template <typename T>
using Row = Eigen::Map<Eigen::Array<T, Eigen::Dynamic, 1>>;
template <typename T>
using ConstRow = Eigen::Map<const Eigen::Array<T, Eigen::Dynamic, 1>>;

constexpr int64_t kLongRow = 1 << 18;  // has looks for interrupts between its passes

constexpr RowNormSlots kInverse{"begin_norm_axis", "Scale", "Bias", "Mean", "Variance", true};

struct Rows {
  int64_t rows = 1, width = 1;
};

Result<Rows> RowsOf(const OpContext& ctx, const Shape& x) {
  const int64_t begin = ctx.Int("begin_norm_axis");
  if (begin < 1 || begin > x.rank())
    return InvalidArgument("begin_norm_axis is ", begin, ", expected 1 to the rank of X ",
                           x.ToString());
  const int at = static_cast<int>(begin);
  return Rows{x.Product(0, at), x.Product(at, x.rank())};
}

// The operand, where it is there and known, has `count` elements.
Status CheckCount(const ShapeContext& ctx, Key key, int64_t count) {
  if (!ctx.HasIn(key)) return Status::Ok();
  const Shape& s = ctx.InShape(key);
  if (!s.is_static() || s.numel() == count) return Status::Ok();
  return InvalidArgument(key.name, " has shape ", s.ToString(), ", expected ", count, " elements");
}

Status LayerNormShape(ShapeContext& ctx) {
  if (ctx.Bool("inverse_deviation")) return RowNormShape(ctx, kInverse);
  const Shape& x = ctx.InShape("X");
  if (!x.known_rank()) return ctx.Defer();
  HEDDLE_RETURN_IF_ERROR(RowsOf(ctx, x).status());
  const DType dtype = ctx.InDType("X");
  if (x.is_static()) {
    HEDDLE_ASSIGN_OR_RETURN(const Rows r, RowsOf(ctx, x));
    HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Scale", r.width));
    HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Bias", r.width));
  }
  ctx.SetOut("Y", x, dtype);
  ctx.ShareLoD("X", "Y");
  const Shape rows(x.dims().first(static_cast<size_t>(ctx.Int("begin_norm_axis"))));
  // As in Paddle: statistics of 16-bit floats are float32.
  const bool half = dtype == DType::kF16 || dtype == DType::kBF16;
  const DType statistics = half ? DType::kF32 : dtype;
  if (ctx.HasOut("Mean")) ctx.SetOut("Mean", rows, statistics);
  if (ctx.HasOut("Variance")) ctx.SetOut("Variance", rows, statistics);
  return Status::Ok();
}

template <typename T>
const T* DataOr(const Tensor* t) {
  return t ? t->data<T>() : nullptr;
}

template <typename T>
struct LayerNorm {
  static Status Run(KernelContext& ctx) {
    if (ctx.Bool("inverse_deviation")) return RunRowNorm<T>(ctx, kInverse);
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Rows r, RowsOf(ctx, x.shape()));
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {ctx.InOpt("Scale"), ctx.InOpt("Bias")}));
    const T epsilon = static_cast<T>(ctx.Float("epsilon"));
    const T* scale = DataOr<T>(ctx.InOpt("Scale"));
    const T* bias = DataOr<T>(ctx.InOpt("Bias"));
    const T* from = x.data<T>();
    T* to = ctx.Out("Y").mutable_data<T>();
    Tensor* mean_out = ctx.OutOpt("Mean");
    Tensor* variance_out = ctx.OutOpt("Variance");
    T* means = mean_out ? mean_out->mutable_data<T>() : nullptr;
    T* variances = variance_out ? variance_out->mutable_data<T>() : nullptr;
    if (r.width == 0) {  // the mean of nothing
      if (means) WatchedFill(means, r.rows, std::numeric_limits<T>::quiet_NaN());
      if (variances) WatchedFill(variances, r.rows, std::numeric_limits<T>::quiet_NaN());
      return Status::Ok();
    }
    ctx.ParallelFor(r.rows, 1 + 65536 / r.width, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const ConstRow<T> in(from + i * r.width, r.width);
        const T mean = in.sum() / static_cast<T>(r.width);
        if (r.width > kLongRow) LookForInterrupt();
        const T variance = (in - mean).square().sum() / static_cast<T>(r.width);
        if (r.width > kLongRow) LookForInterrupt();
        if (means) means[i] = mean;
        if (variances) variances[i] = variance;
        Write(in, mean, T(1) / std::sqrt(variance + epsilon), scale, bias, to + i * r.width);
      }
    });
    return Status::Ok();
  }

  static void Write(const ConstRow<T>& in, T mean, T factor, const T* scale, const T* bias, T* to) {
    const int64_t n = in.size();
    Row<T> out(to, n);
    if (scale && bias)
      out = (in - mean) * factor * ConstRow<T>(scale, n) + ConstRow<T>(bias, n);
    else if (scale)
      out = (in - mean) * factor * ConstRow<T>(scale, n);
    else if (bias)
      out = (in - mean) * factor + ConstRow<T>(bias, n);
    else
      out = (in - mean) * factor;
  }
};

Status LayerNormGradShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("X");
  if (ctx.HasOut("X@GRAD")) ctx.SetOut("X@GRAD", x, ctx.InDType("X"));
  if (ctx.HasOut("Scale@GRAD"))
    ctx.SetOut("Scale@GRAD", ctx.InShape("Scale"), ctx.InDType("Scale"));
  if (ctx.HasOut("Bias@GRAD")) ctx.SetOut("Bias@GRAD", ctx.InShape("Bias"), ctx.InDType("Bias"));
  if (!x.is_static()) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(const Rows r, RowsOf(ctx, x));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Mean", r.rows));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Variance", r.rows));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Scale", r.width));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "Bias", r.width));
  HEDDLE_RETURN_IF_ERROR(CheckCount(ctx, "AddendOfX", r.rows * r.width));
  return CheckCount(ctx, "Y@GRAD", r.rows * r.width);
}

template <typename T>
struct LayerNormGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    HEDDLE_ASSIGN_OR_RETURN(const Rows r, RowsOf(ctx, x.shape()));
    const T epsilon = static_cast<T>(ctx.Float("epsilon"));
    const Tensor *scale = ctx.InOpt("Scale"), *bias = ctx.InOpt("Bias");
    const Tensor* const addend = ctx.InOpt("AddendOfX");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {scale, bias, addend, &ctx.In("Mean"),
                                                    &ctx.In("Variance"), &ctx.In("Y@GRAD")}));
    Parameters(ctx, x, r, epsilon);
    Tensor* out = ctx.OutOpt("X@GRAD");
    if (!out || r.width == 0) return Status::Ok();
    const T* means = ctx.In("Mean").data<T>();
    const T* variances = ctx.In("Variance").data<T>();
    const T* grad = ctx.In("Y@GRAD").data<T>();
    const T* from = x.data<T>();
    T* to = out->mutable_data<T>();
    const T* add = DataOr<T>(addend);  // may be `to`
    ctx.ParallelFor(r.rows, 1 + 32768 / r.width, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i * r.width;
        One(from + at, grad + at, DataOr<T>(scale), r.width, means[i],
            T(1) / std::sqrt(variances[i] + epsilon), add ? add + at : nullptr, to + at);
      }
    });
    return Status::Ok();
  }

  // dx = factor * (g - mean(g) - xhat * mean(g * xhat)), with g = dy * scale.
  // Added to what `add` has there.
  static void One(const T* x, const T* dy, const T* scale, int64_t n, T mean, T factor,
                  const T* add, T* dx) {
    const ConstRow<T> in(x, n), grad(dy, n);
    Row<T> out(dx, n);
    const T size = static_cast<T>(n);
    if (scale) {
      const ConstRow<T> s(scale, n);
      const T a = (grad * s).sum() / size;
      if (n > kLongRow) LookForInterrupt();
      const T b = (grad * s * (in - mean)).sum() * factor * factor / size;
      if (n > kLongRow) LookForInterrupt();
      Put(out, add, factor * (grad * s - a - (in - mean) * b));
    } else {
      const T a = grad.sum() / size;
      if (n > kLongRow) LookForInterrupt();
      const T b = (grad * (in - mean)).sum() * factor * factor / size;
      if (n > kLongRow) LookForInterrupt();
      Put(out, add, factor * (grad - a - (in - mean) * b));
    }
  }
  template <typename Expression>
  static void Put(Row<T>& to, const T* add, const Expression& value) {
    if (add)
      to = ConstRow<T>(add, to.size()) + value;
    else
      to = value;
  }

  // Sums over rows, split by columns so that the order of a sum does not depend on the threads.
  static void Parameters(const KernelContext& ctx, const Tensor& x, const Rows& r, T epsilon) {
    Tensor* scale_grad = ctx.OutOpt("Scale@GRAD");
    Tensor* bias_grad = ctx.OutOpt("Bias@GRAD");
    if (!scale_grad && !bias_grad) return;
    const T* means = ctx.In("Mean").data<T>();
    const T* variances = ctx.In("Variance").data<T>();
    const T* dy = ctx.In("Y@GRAD").data<T>();
    const T* from = x.data<T>();
    ctx.ParallelFor(r.width, 16 + 32768 / (1 + r.rows), [&](int64_t begin, int64_t end) {
      const int64_t n = end - begin;
      if (bias_grad) {
        Row<T> sum(bias_grad->mutable_data<T>() + begin, n);
        sum.setZero();
        for (const int64_t i : Watched(r.rows)) sum += ConstRow<T>(dy + i * r.width + begin, n);
      }
      if (scale_grad) {
        Row<T> sum(scale_grad->mutable_data<T>() + begin, n);
        sum.setZero();
        for (const int64_t i : Watched(r.rows)) {
          const int64_t at = i * r.width + begin;
          sum += ConstRow<T>(dy + at, n) * (ConstRow<T>(from + at, n) - means[i]) *
                 (T(1) / std::sqrt(variances[i] + epsilon));
        }
      }
    });
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(layer_norm) {
  op.Doc(
      "normalises the trailing dimensions from begin_norm_axis on to mean 0 and variance 1; with "
      "inverse_deviation Mean and Variance have X's rank, and Variance holds the inverse of the "
      "deviation");
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional);
  op.Output("Y").Output("Mean", kOptional).Output("Variance", kOptional);
  op.Attr("epsilon", 1e-5).Attr("begin_norm_axis", 1).Attr("inverse_deviation", false);
  op.Inplace("X", "Y");
  op.InferShape(LayerNormShape).Kernels<LayerNorm, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
HEDDLE_OP(layer_norm_grad) {
  op.Input("X").Input("Scale", kOptional).Input("Bias", kOptional);
  op.Input("Mean").Input("Variance").Input("Y@GRAD").Input("AddendOfX", kOptional | kAddend);
  op.Output("X@GRAD", kOptional).Output("Scale@GRAD", kOptional).Output("Bias@GRAD", kOptional);
  op.Attr("epsilon", 1e-5).Attr("begin_norm_axis", 1).Inplace("AddendOfX", "X@GRAD");
  op.InferShape(LayerNormGradShape).Kernels<LayerNormGrad, float, double>();
  op.Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}
