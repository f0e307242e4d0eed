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
