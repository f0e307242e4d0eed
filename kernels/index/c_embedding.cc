// c_embedding: one process's share of an embedding table; what other processes hold reads as zeros.
#include <algorithm>
#include <cstring>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "core/operands/any_address.h"
#include "kernels/base/shape_checks.h"

namespace heddle {
namespace {

Status CheckOperands(const ShapeContext& ctx) {
  const Shape& w = ctx.InShape("W");
  if (w.known_rank() && w.rank() != 2)
    return InvalidArgument("W has shape ", w.ToString(), ", expected a matrix");
  return Status::Ok();
}

Status EmbeddingShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
  Shape out = ctx.InShape("Ids");
  if (!out.known_rank() || !ctx.InShape("W").known_rank()) return ctx.Defer();
  out.push_back(ctx.InShape("W")[1]);
  ctx.SetOut("Out", out, ctx.InDType("W"));
  ctx.ShareLoD("Ids", "Out");
  return Status::Ok();
}

template <typename T>
struct Embedding {
  static Status Run(KernelContext& ctx) {
    const Tensor& w = ctx.In("W");
    const Labels ids(ctx, ctx.In("Ids"));
    const int64_t start = ctx.Int("start_index"), height = w.dim(0), width = w.dim(1);
    T* out = ctx.Out("Out").template mutable_data<T>();
    ForEachIndex(
        ctx, ctx.In("Ids").numel(),
        [&, table = static_cast<const std::byte*>(w.raw())](int64_t i) {
          const int64_t row = ids[i] - start;
          if (row < 0 || row >= height)
            WatchedFill(out + i * width, width, T(0));
          else
            WatchedMemcpy(out + i * width, table + row * width * static_cast<int64_t>(sizeof(T)),
                          static_cast<size_t>(width) * sizeof(T));
        },
        256);
    return Status::Ok();
  }
};

Status EmbeddingGradShape(ShapeContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckOperands(ctx));
  const Shape &ids = ctx.InShape("Ids"), &w = ctx.InShape("W"), &d = ctx.InShape("Out@GRAD");
  if (ids.is_static() && w.is_static() && d.is_static() && d.numel() != ids.numel() * w[1])
    return InvalidArgument("Out@GRAD has shape ", d.ToString(), ", Ids ", ids.ToString());
  ctx.SetOut("W@GRAD", w, ctx.InDType("Out@GRAD"));
  return Status::Ok();
}

template <typename T>
struct EmbeddingGrad {
  using C = ComputeType<T>;

  static Status Run(KernelContext& ctx) {
    const Labels ids(ctx, ctx.In("Ids"));
    Tensor& out = ctx.Out("W@GRAD");
    const int64_t start = ctx.Int("start_index"), height = out.dim(0), width = out.dim(1);
    T* to = out.mutable_data<T>();
    WatchedFill(to, out.numel(), T(0));
    const T* d = ctx.In("Out@GRAD").template data<T>();
    for (const int64_t i : Watched(ctx.In("Ids").numel())) {
      const int64_t row = ids[i] - start;
      if (row < 0 || row >= height) continue;
      for (int64_t k = 0; k < width; ++k) {
        const C sum = static_cast<C>(to[row * width + k]) + static_cast<C>(d[i * width + k]);
        to[row * width + k] = static_cast<T>(sum);
      }
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(c_embedding) {
  op.Doc("rows of W for ids that start at start_index; zeros for the others");
  op.Input("W", kAnyAddress)
      .Input("Ids")
      .Output("Out")
      .Attr("start_index", 0)
      .Attr("vocab_size", -1);
  op.InferShape(EmbeddingShape).Kernels<Embedding, float, double, float16>();
}
HEDDLE_OP(c_embedding_grad) {
  op.Input("W", kNoBuffer).Input("Ids").Input("Out@GRAD").Output("W@GRAD");
  op.Attr("start_index", 0).Attr("vocab_size", -1).KernelKey("Out@GRAD");
  op.InferShape(EmbeddingGradShape).Kernels<EmbeddingGrad, float, double, float16>();
}

HEDDLE_EXAMPLES(c_embedding, R"(
example ids from 2
attr start_index LONG 2
attr vocab_size LONG 8
in W float32 [3, 2] -0.23 -0.61 0.57 0.89 0.83 -0.89
in Ids int64 [2, 2] 2 4 0 3
out Out float32 [2, 2, 2] -0.23 -0.61 0.83 -0.89 0 0 0.57 0.89

example int32, float64
attr start_index LONG 0
in W float64 [3, 2] 0.71 0.18 -0.74 0.99 0.12 0.64
in Ids int32 [3] 0 2 2
out Out float64 [3, 2] 0.71 0.18 0.12 0.64 0.12 0.64

example ids from 2, float16
attr start_index LONG 2
attr vocab_size LONG 8
in W float16 [3, 2] -0.23 -0.61 0.57 0.89 0.83 -0.89
in Ids int64 [2, 2] 2 4 0 3
out Out float16 [2, 2, 2] -0.23 -0.61 0.83 -0.89 0 0 0.57 0.89
)")

HEDDLE_EXAMPLES(c_embedding_grad, R"(
example ids from 2
attr start_index LONG 2
in W float32 [3, 2] 0.01 0 0.61 -0.73 -1 -0.24
in Ids int64 [2, 2] 2 4 0 4
in Out@GRAD float32 [2, 2, 2] -0.45 -0.88 -0.05 -0.45 -0.23 -0.03 -0.19 -0.4
out W@GRAD float32 [3, 2] -0.45 -0.88 0 0 -0.24 -0.85

example float64
attr start_index LONG 0
in W float64 [3, 2] 0.16 -0.95 0.48 -0.96 -0.81 0.13
in Ids int32 [3] 0 2 2
in Out@GRAD float64 [3, 2] 0.79 0.97 0.98 0.31 0.67 0.76
out W@GRAD float64 [3, 2] 0.79 0.97 0 0 1.65 1.07

example ids from 2, float16
attr start_index LONG 2
in W float16 [3, 2] 0.01 0 0.61 -0.73 -1 -0.24
in Ids int64 [2, 2] 2 4 0 4
in Out@GRAD float16 [2, 2, 2] -0.45 -0.88 -0.05 -0.45 -0.23 -0.03 -0.19 -0.4
out W@GRAD float16 [3, 2] -0.45 -0.88 0 0 -0.2399 -0.8496
)")
