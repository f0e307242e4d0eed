// matmul and its kin: shapes of a product of two tensors, the products of its gradients, and the
// prepared product of floats.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_epilogue.h"

namespace heddle {

// Out = op(X) op(Y) over broadcast batches. Shapes are the matrix views: at least rank 2.
struct MatmulShapes {
  Shape x, y, out;  // as matrices; out keeps the 1s of vector operands
  Shape result;     // out as the operator gives it
  bool trans_x = false, trans_y = false;
  int64_t m = 0, n = 0, k = 0;
};

// NumPy's rules: a 1-D X is a row, a 1-D Y a column, neither is transposed. Dimensions may be -1.
Result<MatmulShapes> MatmulShapesOf(const Shape& x, const Shape& y, bool trans_x, bool trans_y);

// Out from X and Y; the gradient of X from Out's and Y; the gradient of Y from X and Out's.
BatchedGemm PlanOut(const MatmulShapes& s);
BatchedGemm PlanXGrad(const MatmulShapes& s);
BatchedGemm PlanYGrad(const MatmulShapes& s);

// The three products with the operands in the order the plain product wants them.
struct MatmulPlans {
  explicit MatmulPlans(const MatmulShapes& s)
      : trans_x(s.trans_x),
        trans_y(s.trans_y),
        out(PlanOut(s)),
        x_grad(PlanXGrad(s)),
        y_grad(PlanYGrad(s)) {}

  bool trans_x, trans_y;
  BatchedGemm out, x_grad, y_grad;

  template <typename T>
  void Out(const KernelContext& ctx, T alpha, const T* x, const T* y, T* to,
           bool accumulate = false) const {
    out.Run(ctx, alpha, x, y, to, accumulate);
  }
  template <typename T>
  void XGrad(const KernelContext& ctx, T alpha, const T* out_grad, const T* y, T* to,
             bool accumulate = false) const {
    x_grad.Run(ctx, alpha, trans_x ? y : out_grad, trans_x ? out_grad : y, to, accumulate);
  }
  template <typename T>
  void YGrad(const KernelContext& ctx, T alpha, const T* x, const T* out_grad, T* to,
             bool accumulate = false) const {
    y_grad.Run(ctx, alpha, trans_y ? out_grad : x, trans_y ? x : out_grad, to, accumulate);
  }
};

// A block of columns of A, held by a tensor of its own: [m, columns], rows `lda` floats apart.
struct GemmPiece {
  const float* data;
  int64_t lda, columns;
};

// A prepared product with an epilogue. Immutable; Run is re-entrant.
class GemmRunner {
 public:
  virtual ~GemmRunner() = default;
  virtual void Run(const KernelContext& ctx, const float* a, const float* b, const float* bias,
                   const float* residual, float* c) const = 0;
  // The same for an A that consists of column blocks in separate tensors; B is packed. False:
  // nothing was computed; join the blocks and call Run.
  virtual bool RunPieces(const KernelContext&, std::span<const GemmPiece> /*a*/,
                         const float* /*bias*/, const float* /*residual*/, float* /*c*/) const {
    return false;
  }
  // Name of the implementation, as in "panels, avx2": KernelState::Facts::implementation.
  virtual std::string name() const = 0;
  // False: the constant B was packed, and `b` is not read.
  virtual bool reads_b() const { return true; }
  // See KernelState::Facts::prefetch.
  virtual std::span<const std::byte> ReadsFirst() const { return {}; }
  // RunTogether takes it.
  virtual bool joins_others() const { return false; }
};

// The other operands and the output of one of several products of the same A.
struct GemmPart {
  const float* bias;
  float* c;
};
// Products of one A in one parallel loop: A stays in the cache, and threads meet once.
// Precondition: all of them join others.
void RunTogether(const KernelContext& ctx, std::span<const std::unique_ptr<GemmRunner>> products,
                 const float* a, std::span<const GemmPart> parts);

// Whether panels (gemm_panels.cc) are faster on an A in pieces of these widths than joining the
// pieces first.
bool PiecesPay(const GemmDims& d, std::span<const int64_t> widths, const Machine& m);
// Facts about the use of a product that its choice of implementation depends on.
struct GemmUse {
  int64_t piece = 0;     // columns of the widest piece of A; 0: A is one tensor
  bool unfused = false;  // an operator that no pass has touched
};

// The best runner for a product of floats, or the one that the caller insists on (select.h).
// `constant_b` is B's tensor when it is a constant, else nullptr; its contents need not be in
// memory (PrepareContext::MarkPacked).
Result<std::unique_ptr<GemmRunner>> MakeGemm(const PrepareContext& ctx, const BatchedGemm& g,
                                             float alpha, const Tensor* constant_b,
                                             const Epilogue& epilogue, GemmUse use = {});

}  // namespace heddle
