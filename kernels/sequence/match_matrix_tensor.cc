// match_matrix_tensor: X W Y' of pairs of sequences, packed into one column.
#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/packed_pairs.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// --- match_matrix_tensor ---

struct Pairs {
  const Offsets *left, *right;
  int64_t planes, width;
  Offsets out{0};
};

Result<Pairs> PairsOf(const KernelContext& ctx) {
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y"), &w = ctx.In("W");
  Pairs p{nullptr, nullptr, ctx.Int("dim_t"), x.rank() == 2 ? x.dim(1) : -1, {0}};
  if (x.rank() != 2 || y.rank() != 2 || w.rank() != 3 || w.dim(0) != x.dim(1) ||
      w.dim(1) != p.planes || w.dim(2) != y.dim(1) || y.dim(1) != x.dim(1) || p.planes < 1)
    return InvalidArgument("X ", x.shape().ToString(), ", W ", w.shape().ToString(), " and Y ",
                           y.shape().ToString(), " do not fit each other");
  HEDDLE_ASSIGN_OR_RETURN(p.left, OffsetsOf(x, "X", 0));
  HEDDLE_ASSIGN_OR_RETURN(p.right, OffsetsOf(y, "Y", 0));
  if (p.left->size() != p.right->size())
    return InvalidArgument("X and Y have different numbers of sequences");
  for (int64_t i = 0; i < SequenceCount(*p.left); ++i)
    p.out.push_back(p.out.back() +
                    static_cast<size_t>(p.planes * Length(*p.left, i) * Length(*p.right, i)));
  return p;
}

Status Match(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Pairs p, PairsOf(ctx));
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y");
  const int64_t d = p.width, wide = p.planes * d;
  Tensor& tmp = ctx.Alloc("Tmp", DType::kF32, Shape{x.dim(0) * wide, 1});
  Tensor& out = ctx.Alloc("Out", DType::kF32, Shape{static_cast<int64_t>(p.out.back()), 1});
  ZeroAll(tmp);
  ZeroAll(out);
  AddProduct(x.dim(0), wide, d, x.data<float>(), {d, 1}, ctx.In("W").data<float>(), {wide, 1},
             tmp.mutable_data<float>());
  for (const int64_t i : Watched(SequenceCount(*p.left))) {
    const int64_t m = Length(*p.left, i), n = Length(*p.right, i);
    for (int64_t t = 0; t < p.planes; ++t)
      AddProduct(m, n, d, tmp.data<float>() + Begin(*p.left, i) * wide + t * d, {wide, 1},
                 y.data<float>() + Begin(*p.right, i) * d, {1, d},
                 out.mutable_data<float>() + Begin(p.out, i) + t * m * n);
  }
  out.set_lod({p.out});
  return Status::Ok();
}

Status MatchGrad(KernelContext& ctx) {
  HEDDLE_ASSIGN_OR_RETURN(const Pairs p, PairsOf(ctx));
  const Tensor &x = ctx.In("X"), &y = ctx.In("Y"), &w = ctx.In("W"), &tmp = ctx.In("Tmp");
  const Tensor& d_out = ctx.In("Out@GRAD");
  const int64_t d = p.width, wide = p.planes * d;
  if (tmp.numel() != x.dim(0) * wide || d_out.numel() != static_cast<int64_t>(p.out.back()))
    return InvalidArgument("Tmp or Out@GRAD does not fit X and Y");
  Tensor dx = ZeroedLike(ctx, "X@GRAD", x), dy = ZeroedLike(ctx, "Y@GRAD", y),
         dw = ZeroedLike(ctx, "W@GRAD", w);
  Tensor d_tmp = ctx.Scratch(DType::kF32, tmp.shape());
  ZeroAll(d_tmp);
  std::vector<float> part;
  for (const int64_t i : Watched(SequenceCount(*p.left))) {
    const int64_t m = Length(*p.left, i), n = Length(*p.right, i);
    for (int64_t t = 0; t < p.planes; ++t) {
      const float* from = d_out.data<float>() + Begin(p.out, i) + t * m * n;
      const int64_t at = Begin(*p.left, i) * wide + t * d;
      part.assign(static_cast<size_t>(m * d), 0.f);
      AddProduct(m, d, n, from, {n, 1}, y.data<float>() + Begin(*p.right, i) * d, {d, 1},
                 part.data());
      for (int64_t r = 0; r < m; ++r)
        WatchedCopy(part.data() + r * d, d, d_tmp.mutable_data<float>() + at + r * wide);
      AddProduct(n, d, m, from, {1, n}, tmp.data<float>() + at, {wide, 1},
                 dy.mutable_data<float>() + Begin(*p.right, i) * d);
    }
  }
  AddProduct(x.dim(0), d, wide, d_tmp.data<float>(), {wide, 1}, w.data<float>(), {1, wide},
             dx.mutable_data<float>());
  AddProduct(d, wide, x.dim(0), x.data<float>(), {1, d}, d_tmp.data<float>(), {wide, 1},
             dw.mutable_data<float>());
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(match_matrix_tensor) {
  op.Doc("X W Y' of each pair of sequences, for each plane of W").Input("X").Input("Y").Input("W");
  op.Output("Out").Output("Tmp").Attr("dim_t", 1).Kernel(DType::kF32, Match);
}

HEDDLE_OP(match_matrix_tensor_grad) {
  op.Input("X").Input("Y").Input("W").Input("Tmp").Input("Out@GRAD").Output("X@GRAD", kOptional);
  op.Output("Y@GRAD", kOptional).Output("W@GRAD", kOptional).Attr("dim_t", 1);
  op.Kernel(DType::kF32, MatchGrad);
}
