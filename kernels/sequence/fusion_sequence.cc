// Fused sequence operators of Paddle's passes: pooling and concatenation; convolution with bias and
// relu.
#include <algorithm>
#include <cmath>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
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
  if (ctx.Int("axis") != 1) return InvalidArgument("axis must be 1, not ", ctx.Int("axis"));
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
    if (!ctx.Bool("use_cvm")) return Unimplemented("use_cvm = false");
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
  if (ctx.Int("contextStride") != 1)
    return InvalidArgument("contextStride must be 1, not ", ctx.Int("contextStride"));
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

HEDDLE_EXAMPLES(fusion_seqpool_concat, R"(
example SUM
attr pooltype STRING "SUM"
attr axis INT 1
in X float32 [3, 2] lod [[0, 1, 3]] 0.83 0.39 -0.07 -0.56 0.34 0.57
in X float32 [4, 2] lod [[0, 2, 4]] 0.6 0.3 0.85 -0.76 0.61 0.67 -0.46 -0.43
out Out float32 [2, 4] 0.83 0.39 1.45 -0.45999998 0.27 0.00999999 0.15 0.24000001

example AVERAGE
attr pooltype STRING "AVERAGE"
attr axis INT 1
in X float32 [3, 2] lod [[0, 1, 3]] 0.69 -0.68 0.55 -0.12 0.76 -0.46
in X float32 [4, 2] lod [[0, 2, 4]] 0.63 0.45 0.02 0.03 -0.91 0.08 -0.02 0.22
out Out float32 [2, 4] 0.69 -0.68 0.325 0.24 0.655 -0.29 -0.465 0.15

example SQRT
attr pooltype STRING "SQRT"
attr axis INT 1
in X float32 [3, 2] lod [[0, 1, 3]] 0.22 -0.95 -0.34 0.48 -0.08 -0.56
in X float32 [4, 2] lod [[0, 2, 4]] 0.66 0.71 -0.6 0.28 -0.39 0.45 -0.1 -0.21
out Out float32 [2, 4] 0.22 -0.95 0.042426407 0.7000357 -0.29698485 -0.05656855
  -0.3464823 0.16970561
)")

HEDDLE_EXAMPLES(fusion_seqpool_cvm_concat, R"(
example SUM
attr pooltype STRING "SUM"
attr use_cvm BOOLEAN true
attr axis INT 1
in X float32 [3, 3] lod [[0, 1, 3]] 1 1.34 1.29 0.61 1.04 1.93 0.94 0.3 0.63
in X float32 [4, 3] lod [[0, 2, 4]] 0.68 0.29 0.14 1.67 1.95 1.57 0.34 0.68 0.96 0.88 0.66 1.97
in CVM float32 [2, 2] -0.27 0.25 -0.04 -0.46
out Out float32 [2, 6] 0.6931472 0.15700382 1.29 1.2089603 -0.033386946 1.71
  0.93609333 -0.08594245 2.56 0.7975072 0.052643776 2.93

example AVERAGE
attr pooltype STRING "AVERAGE"
attr use_cvm BOOLEAN true
attr axis INT 1
in X float32 [3, 3] lod [[0, 1, 3]] 0.74 0.65 0.84 1.17 1.82 0.32 0.6 1.57 0.67
in X float32 [4, 3] lod [[0, 2, 4]] 1.83 0.14 0.13 1.8 1.79 1.17 0.17 1.08 1.38 0.45 0.75 0.71
in CVM float32 [2, 2] 0.59 -0.2 0.62 0.85
out Out float32 [2, 6] 0.5538851 -0.053109825 0.84 1.0349623 -0.35947007 0.65
  0.6339278 0.35747045 0.495 0.2700271 0.37969053 1.045

example SQRT
attr pooltype STRING "SQRT"
attr use_cvm BOOLEAN true
attr axis INT 1
in X float32 [3, 3] lod [[0, 1, 3]] 0.69 0.26 0.78 1.98 1.1 0.13 1.5 1.95 1.58
in X float32 [4, 3] lod [[0, 2, 4]] 0.26 0.11 1.12 0.6 0.86 0.11 1.72 0.26 0.32 1.96 1.32 1.96
in CVM float32 [2, 2] -0.13 -0.8 0.88 -0.28
out Out float32 [2, 6] 0.52472854 -0.29361683 0.78 0.47506073 0.047234982 0.8697413
  1.24148 -0.09196043 1.2091526 1.2815317 -0.5314236 1.6122034
)")

HEDDLE_EXAMPLES(fusion_seqconv_eltadd_relu, R"(
example three rows of context
attr contextLength INT 3
attr contextStart INT -1
attr contextStride INT 1
in X float32 [5, 2] lod [[0, 2, 5]] 0.74 -0.5 0.4 -0.04 -0.41 -0.16 -0.97 -0.62 0.55 -0.87
in Filter float32 [6, 2] 0.11 0.52 -0.08 0.75 0.67 -0.68 -0.96 -0.64 0.01 0.71 0.11 0.66
in Bias float32 [1, 2] 0.89 -0.02
out Out float32 [5, 2] lod [[0, 2, 5]] 1.8654001 0.05440001 1.3178 0 0.691 0 0.71279997 0.5195
  2.0366 0
out ColMat ?
)")
