#include "kernels/linalg/linalg.h"

namespace heddle {
namespace {

// The operands as matrices: a leading vector is a row, a trailing one a column.
struct Chain {
  std::vector<int64_t> sizes;  // operand i is sizes[i] x sizes[i + 1]
  bool first_vector, last_vector;
};

Result<Chain> MakeChain(const std::vector<Shape>& shapes) {
  const size_t count = shapes.size();
  if (count < 2) return InvalidArgument("X must be at least two matrices");
  Chain chain;
  chain.first_vector = shapes.front().rank() == 1;
  chain.last_vector = shapes.back().rank() == 1;
  for (size_t i = 0; i < count; ++i) {
    const Shape& s = shapes[i];
    const bool may_be_vector = i == 0 || i + 1 == count;
    if (s.rank() != 2 && !(s.rank() == 1 && may_be_vector))
      return InvalidArgument("X[", i, "] must be a matrix, not ", s.ToString());
    const int64_t rows = s.rank() == 2 ? s[0] : i == 0 ? 1 : s[0];
    const int64_t cols = s.rank() == 2 ? s[1] : i == 0 ? s[0] : 1;
    if (i == 0) chain.sizes.push_back(rows);
    if (chain.sizes.back() != rows)
      return InvalidArgument("X[", i, "] ", s.ToString(), " must have ", chain.sizes.back(),
                             " rows to follow X[", i - 1, "]");
    chain.sizes.push_back(cols);
  }
  return chain;
}

std::vector<Shape> Shapes(const ShapeContext& ctx) {
  std::vector<Shape> shapes;
  for (int i = 0; i < ctx.InCount("X"); ++i) shapes.push_back(ctx.InShape("X", i));
  return shapes;
}
std::vector<Shape> Shapes(const KernelContext& ctx) {
  std::vector<Shape> shapes;
  for (int i = 0; i < ctx.InCount("X"); ++i) shapes.push_back(ctx.In("X", i).shape());
  return shapes;
}

Shape OutShape(const Chain& c) {
  Shape out;
  if (!c.first_vector) out.push_back(c.sizes.front());
  if (!c.last_vector) out.push_back(c.sizes.back());
  return out;
}

Status Infer(ShapeContext& ctx) {
  const std::vector<Shape> shapes = Shapes(ctx);
  for (const Shape& s : shapes)
    if (!s.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Chain chain, MakeChain(shapes));
  for (int i = 1; i < ctx.InCount("X"); ++i)
    if (ctx.InDType("X", i) != ctx.InDType("X"))
      return InvalidArgument("all X must have the same dtype");
  ctx.SetOut("Out", OutShape(chain), ctx.InDType("X"));
  return Status::Ok();
}

// The cheapest order of multiplication, by the classic dynamic program.
class Order {
 public:
  explicit Order(const std::vector<int64_t>& sizes)
      : n_(sizes.size() - 1), split_(n_ * n_, 0), cost_(n_ * n_, 0) {
    for (size_t length = 1; length < n_; ++length)
      for (size_t i = 0; i + length < n_; ++i) {
        const size_t j = i + length;
        double best = -1;
        for (size_t k = i; k < j; ++k) {
          const double cost = cost_[i * n_ + k] + cost_[(k + 1) * n_ + j] +
                              static_cast<double>(sizes[i]) * static_cast<double>(sizes[k + 1]) *
                                  static_cast<double>(sizes[j + 1]);
          if (best < 0 || cost < best) {
            best = cost;
            split_[i * n_ + j] = k;
          }
        }
        cost_[i * n_ + j] = best;
      }
  }
  size_t Split(size_t i, size_t j) const { return split_[i * n_ + j]; }

 private:
  size_t n_;
  std::vector<size_t> split_;
  std::vector<double> cost_;
};

template <typename T>
Matrix<T> Operand(const KernelContext& ctx, const Chain& c, size_t i) {
  return ConstMatrixMap<T>(ctx.In("X", static_cast<int>(i)).template data<T>(), c.sizes[i],
                           c.sizes[i + 1]);
}

template <typename T>
Matrix<T> Chained(const KernelContext& ctx, const Chain& c, const Order& order, size_t i,
                  size_t j) {
  if (i == j) return Operand<T>(ctx, c, i);
  const size_t k = order.Split(i, j);
  return Product<T>(Chained<T>(ctx, c, order, i, k), Chained<T>(ctx, c, order, k + 1, j));
}

template <typename T>
struct MultiDot {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Chain c, MakeChain(Shapes(ctx)));
    const size_t n = c.sizes.size() - 1;
    MatrixMap<T>(ctx.Out("Out").template mutable_data<T>(), c.sizes.front(), c.sizes.back()) =
        Chained<T>(ctx, c, Order(c.sizes), 0, n - 1);
    return Status::Ok();
  }
};

Status InferGrad(ShapeContext& ctx) {
  const std::vector<Shape> shapes = Shapes(ctx);
  for (const Shape& s : shapes)
    if (!s.is_static()) return GradLikeInputs(ctx);
  HEDDLE_ASSIGN_OR_RETURN(const Chain chain, MakeChain(shapes));
  const Shape& dout = ctx.InShape("Out@GRAD");
  if (dout.is_static() && dout.numel() != OutShape(chain).numel())
    return InvalidArgument("Out@GRAD ", dout.ToString(), " should have shape ",
                           OutShape(chain).ToString());
  return GradLikeInputs(ctx);
}

// dX[i] = (X[0] .. X[i-1])^T dOut (X[i+1] .. X[n-1])^T
template <typename T>
struct MultiDotGrad {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Chain c, MakeChain(Shapes(ctx)));
    const size_t n = c.sizes.size() - 1;
    const Tensor& dout = ctx.In("Out@GRAD");
    std::vector<Matrix<T>> after(n);  // after[i] = X[i+1] .. X[n-1]
    for (size_t i = n - 1; i-- > 0;)
      after[i] = i + 2 == n ? Operand<T>(ctx, c, i + 1)
                            : Product<T>(Operand<T>(ctx, c, i + 1), after[i + 1]);
    Matrix<T> left = ConstMatrixMap<T>(dout.data<T>(), c.sizes.front(), c.sizes.back());
    for (size_t i = 0; i < n; ++i) {
      if (Tensor* dx = ctx.OutOpt("X@GRAD", static_cast<int>(i))) {
        MatrixMap<T> to(dx->template mutable_data<T>(), c.sizes[i], c.sizes[i + 1]);
        if (i + 1 < n)
          SetProduct(to, left, Turned<T>(after[i]));
        else
          to = left;
      }
      if (i + 1 < n) left = Product<T>(Turned<T>(Operand<T>(ctx, c, i)), left);
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(multi_dot) {
  op.Doc("product of a chain of matrices in the cheapest order")
      .Input("X", kList)
      .Output("Out")
      .InferShape(Infer)
      .Kernels<MultiDot, float, double>();
}

HEDDLE_OP(multi_dot_grad) {
  op.Input("X", kList)
      .Input("Out@GRAD")
      .Output("X@GRAD", kList)
      .InferShape(InferGrad)
      .Kernels<MultiDotGrad, float, double>();
}
