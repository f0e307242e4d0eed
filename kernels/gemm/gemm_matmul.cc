#include "kernels/gemm/gemm_matmul.h"

#include <algorithm>

#include "core/memory/watched_bytes.h"
#include "core/shapes.h"
#include "kernels/gemm/gemm_implementations.h"

namespace heddle {
namespace {

Shape BatchOf(const Shape& s) {
  return Shape(std::span(s.begin(), static_cast<size_t>(s.rank() - 2)));
}

class PlainGemmRunner final : public GemmRunner {
 public:
  PlainGemmRunner(const BatchedGemm& g, float alpha, const Epilogue& epilogue)
      : g_(g), alpha_(alpha), epilogue_(epilogue) {}
  std::string name() const override { return "plain"; }
  void Run(const KernelContext& ctx, const float* a, const float* b, const float* bias,
           const float* residual, float* c) const override {
    const int64_t width = g_.one.n, rows = g_.batch * g_.one.m;
    // A residual is what the products are added to.
    if (epilogue_.residual && residual != c) WatchedCopy(residual, rows * width, c);
    g_.Run(ctx, alpha_, a, b, c, epilogue_.residual);
    if (!epilogue_.bias && epilogue_.activation == Activation::kNone && !epilogue_.linear()) return;
    const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, width));
    ctx.ParallelFor(rows, grain, [&](int64_t begin, int64_t end) {
      ApplyEpilogue(epilogue_, end - begin, width, width, bias, false, c + begin * width);
    });
  }

 private:
  BatchedGemm g_;
  float alpha_;
  Epilogue epilogue_;
};

}  // namespace

Result<MatmulShapes> MatmulShapesOf(const Shape& x, const Shape& y, bool trans_x, bool trans_y) {
  if (x.rank() == 0 || y.rank() == 0)
    return InvalidArgument("X and Y need at least one dimension, but X is ", x.ToString(),
                           " and Y is ", y.ToString());
  MatmulShapes s;
  s.x = x;
  s.y = y;
  if (x.rank() == 1)
    s.x.insert(0, 1);
  else
    s.trans_x = trans_x;
  if (y.rank() == 1)
    s.y.push_back(1);
  else
    s.trans_y = trans_y;
  s.m = s.x.dim(s.trans_x ? -1 : -2);
  s.n = s.y.dim(s.trans_y ? -2 : -1);
  const int64_t kx = s.x.dim(s.trans_x ? -2 : -1), ky = s.y.dim(s.trans_y ? -1 : -2);
  if (kx >= 0 && ky >= 0 && kx != ky)
    return InvalidArgument("inner dimensions differ: X ", x.ToString(),
                           trans_x ? " (transposed)" : "", " has ", kx, ", Y ", y.ToString(),
                           trans_y ? " (transposed)" : "", " has ", ky);
  s.k = kx >= 0 ? kx : ky;
  HEDDLE_ASSIGN_OR_RETURN(s.out, BroadcastShape(BatchOf(s.x), BatchOf(s.y), -1));
  s.result = s.out;
  s.out.push_back(s.m);
  s.out.push_back(s.n);
  if (x.rank() > 1) s.result.push_back(s.m);
  if (y.rank() > 1) s.result.push_back(s.n);
  return s;
}

BatchedGemm PlanOut(const MatmulShapes& s) {
  return PlanBatchedGemm(BatchOf(s.x), BatchOf(s.y), BatchOf(s.out),
                         GemmDims::Dense(s.m, s.n, s.k, s.trans_x, s.trans_y));
}

BatchedGemm PlanXGrad(const MatmulShapes& s) {
  if (s.trans_x)
    return PlanBatchedGemm(BatchOf(s.y), BatchOf(s.out), BatchOf(s.x),
                           GemmDims::Dense(s.k, s.m, s.n, s.trans_y, true));
  return PlanBatchedGemm(BatchOf(s.out), BatchOf(s.y), BatchOf(s.x),
                         GemmDims::Dense(s.m, s.k, s.n, false, !s.trans_y));
}

BatchedGemm PlanYGrad(const MatmulShapes& s) {
  if (s.trans_y)
    return PlanBatchedGemm(BatchOf(s.out), BatchOf(s.x), BatchOf(s.y),
                           GemmDims::Dense(s.n, s.k, s.m, true, s.trans_x));
  return PlanBatchedGemm(BatchOf(s.x), BatchOf(s.out), BatchOf(s.y),
                         GemmDims::Dense(s.k, s.n, s.m, !s.trans_x, false));
}

std::unique_ptr<GemmRunner> MakePlainGemm(const PrepareContext&, const GemmCase& c) {
  return std::make_unique<PlainGemmRunner>(c.g, c.alpha, c.epilogue);
}

}  // namespace heddle
