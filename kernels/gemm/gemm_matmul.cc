#include "kernels/gemm/gemm_matmul.h"

#include <algorithm>

#include "core/shapes.h"

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
    if (epilogue_.residual && residual != c) std::copy_n(residual, rows * width, c);
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

std::unique_ptr<GemmRunner> MakeGemm(const PrepareContext& ctx, const BatchedGemm& g, float alpha,
                                     const Tensor* constant_b, const Epilogue& epilogue,
                                     int64_t piece) {
  if (epilogue.int8)
    if (auto runner = MakeInt8Gemm(ctx, g, alpha, constant_b, epilogue)) return runner;
  constexpr int64_t kFewBlocks = 4, kNearFloats = 1 << 15, kFew = 1 << 19;
  const int64_t m = g.one.m, k = g.one.k, most = MostPanelRows();
  // Where all rows fit a block of registers, the loops read the packed matrix once, at the speed of
  // memory; the library takes up to twice as long. With a few blocks, of a matrix that stays near,
  // the loops ask for what they read next while they multiply. Of few multiplications, too: one of
  // the library's calls takes half a microsecond before it multiplies anything.
  bool panels = m <= most || (m <= kFewBlocks * most && m * k <= kNearFloats) || g.work() < kFew;
  // Of some more rows, which are short and need no copy, both are about as fast; but the library
  // makes code first, and is slower in what follows.
  constexpr int64_t kSomeRows = 256, kShort = 600, kCopied = 512;
  panels = panels || (m <= kSomeRows && k <= kShort && k % kCopied != 0);
  // Pieces need not be put together first. Each one is near while a block of B passes, and all of
  // them from one panel to the next.
  constexpr int64_t kPiecesFloats = 1 << 18;
  panels = panels || (piece > 0 && m <= kFewBlocks * most && m * piece <= kNearFloats &&
                      m * k <= kPiecesFloats);
  if (constant_b != nullptr && !epilogue.bf16 && panels)
    if (auto runner = MakePanelGemm(ctx, g, alpha, constant_b, epilogue)) return runner;
  if (auto runner = MakeLibraryGemm(ctx, g, alpha, constant_b, epilogue)) return runner;
  return std::make_unique<PlainGemmRunner>(g, alpha, epilogue);
}

}  // namespace heddle
