// Fused sequence operators of Paddle's passes: pooling and concatenation; convolution with bias and
// relu.
#include <algorithm>
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/only_value.h"
#include "kernels/linalg/linalg.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// --- fusion_seqpool_concat, fusion_seqpool_cvm_concat ---

template <typename T>
Result<T> ShareOf(const std::string& pooling, int64_t length) {
  if (pooling == "SUM" || length == 0) return T(1);
  if (pooling == "AVERAGE") return T(1) / static_cast<T>(length);
  if (pooling == "SQRT") return T(1) / std::sqrt(static_cast<T>(length));
  return InvalidArgument("pooltype must be SUM, AVERAGE or SQRT, not '", pooling, "'");
}

// The first two columns are shows and clicks: logarithms of their counts, the second of the rate.
template <typename T>
void ToRates(T* row) {
  row[0] = std::log(row[0] + T(1));
  row[1] = std::log(row[1] + T(1)) - row[0];
}

// Each X's sequences, pooled to a row each, side by side.
template <typename T>
Status PoolConcat(KernelContext& ctx, bool rates) {
  const int n = ctx.InCount("X");
  HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "axis"));
  std::vector<const Offsets*> offsets;
  int64_t width = 0;
  for (int i = 0; i < n; ++i) {
    const Tensor& x = ctx.In("X", i);
    HEDDLE_ASSIGN_OR_RETURN(offsets.emplace_back(), OffsetsOf(x, "X"));
    if (x.dtype() != kDTypeOf<T> || x.rank() != 2 || (rates && x.dim(1) < 2) ||
        SequenceCount(*offsets.back()) != SequenceCount(*offsets[0]))
      return InvalidArgument("X[", i, "] of shape ", x.shape().ToString(), " with ",
                             SequenceCount(*offsets.back()), " sequences does not suit the others");
    width += x.dim(1);
  }
  const int64_t rows = SequenceCount(*offsets[0]);
  T* out = ctx.Alloc("Out", kDTypeOf<T>, {rows, width}).template mutable_data<T>();
  WatchedFill(out, rows * width, T(0));
  int64_t at = 0;
  for (int i = 0; i < n; ++i) {
    const Tensor& x = ctx.In("X", i);
    const int64_t d = x.dim(1);
    for (const int64_t s : Watched(rows)) {
      const Offsets& o = *offsets[static_cast<size_t>(i)];
      HEDDLE_ASSIGN_OR_RETURN(const T share, ShareOf<T>(ctx.Str("pooltype"), Length(o, s)));
      T* to = out + s * width + at;
      for (int64_t r = Begin(o, s); r < Begin(o, s + 1); ++r)
        for (int64_t k = 0; k < d; ++k) to[k] += x.data<T>()[r * d + k];
      for (int64_t k = 0; k < d; ++k) to[k] *= share;
      if (rates) ToRates(to);
    }
    at += d;
  }
  return Status::Ok();
}

template <typename T>
struct SeqpoolConcat {
  static Status Run(KernelContext& ctx) { return PoolConcat<T>(ctx, false); }
};
template <typename T>
struct SeqpoolCvmConcat {
  static Status Run(KernelContext& ctx) {
    HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "use_cvm"));
    return PoolConcat<T>(ctx, true);
  }
};

// --- fusion_seqconv_eltadd_relu ---

Status SeqconvShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &w = ctx.InShape("Filter"), &bias = ctx.InShape("Bias");
  if (!x.is_static() || !w.is_static() || !bias.is_static()) return ctx.Defer();
  const int64_t length = ctx.Int("contextLength");
  if (x.rank() != 2 || w.rank() != 2 || length < 1 || w[0] != length * x[1] || bias.numel() != w[1])
    return InvalidArgument("X ", x.ToString(), ", Filter ", w.ToString(), " and Bias ",
                           bias.ToString(), " do not fit each other");
  HEDDLE_RETURN_IF_ERROR(CheckOnlyValue(ctx, "contextStride"));
  ctx.SetOut("Out", {x[0], w[1]}, ctx.InDType("X"));
  if (ctx.HasOut("ColMat")) ctx.SetOut("ColMat", {x[0], w[0]}, ctx.InDType("X"));
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

template <typename T>
struct SeqconvRelu {
  static Status Run(KernelContext& ctx) {
    const Tensor &x = ctx.In("X"), &w = ctx.In("Filter");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* offsets, OffsetsOf(x, "X"));
    const int64_t d = x.dim(1), length = ctx.Int("contextLength"), start = ctx.Int("contextStart");
    Matrix<T> windows = Matrix<T>::Zero(x.dim(0), length * d);  // zeros beyond a sequence's ends
    for (const int64_t s : Watched(SequenceCount(*offsets)))
      for (int64_t r = Begin(*offsets, s); r < Begin(*offsets, s + 1); ++r)
        for (int64_t k = 0; k < length; ++k)
          if (const int64_t from = r + start + k;
              from >= Begin(*offsets, s) && from < Begin(*offsets, s + 1))
            WatchedCopy(x.data<T>() + from * d, d, &windows(r, k * d));
    auto out = MutableMatrixAt<T>(ctx.Out("Out"), 0);
    SetProduct(out, windows, MatrixAt<T>(w, 0));
    out.rowwise() += ConstMatrixMap<T>(ctx.In("Bias").template data<T>(), 1, w.dim(1)).row(0);
    out = out.cwiseMax(T(0));
    if (Tensor* kept = ctx.OutOpt("ColMat")) MutableMatrixAt<T>(*kept, 0) = windows;
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(fusion_seqpool_concat) {
  op.Doc("sequence_pool of every X, side by side").Input("X", kList).Output("Out");
  op.Attr("pooltype", "SUM").Attr("axis", 1).Kernels<SeqpoolConcat, float, double>();
}
HEDDLE_OP(fusion_seqpool_cvm_concat) {
  op.Doc("sequence_pool and cvm of every X, side by side").Input("X", kList);
  op.Input("CVM", kNoBuffer).Output("Out").Attr("use_cvm", true);
  op.Attr("pooltype", "SUM").Attr("axis", 1).Kernels<SeqpoolCvmConcat, float, double>();
}
HEDDLE_OP(fusion_seqconv_eltadd_relu) {
  op.Doc("relu(sequence_conv(X) + Bias)").Input("X").Input("Filter").Input("Bias");
  op.Output("Out").Output("ColMat", kOptional);
  op.Attr("contextLength", 1).Attr("contextStart", 0).Attr("contextStride", 1);
  op.InferShape(SeqconvShape).Kernels<SeqconvRelu, float, double>();
}
