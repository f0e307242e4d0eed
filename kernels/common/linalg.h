// Batches of matrices: the last two axes of a tensor, as Eigen maps.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "core/shapes.h"
#include "kernels/common/loss.h"

namespace heddle {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using MatrixMap = Eigen::Map<Matrix<T>>;
template <typename T>
using ConstMatrixMap = Eigen::Map<const Matrix<T>>;

struct MatrixDims {
  int64_t batch, rows, cols;
};
// Precondition: rank >= 2 (CheckMatrix).
inline MatrixDims DimsOf(const Shape& s) {
  return {s.Product(0, s.rank() - 2), s.dim(-2), s.dim(-1)};
}

// At least two axes; square if asked for. Unknown shapes pass.
Status CheckMatrix(const ShapeContext& ctx, Key key, bool square);

template <typename T>
ConstMatrixMap<T> MatrixAt(const Tensor& t, int64_t i) {
  const int64_t rows = t.dim(-2), cols = t.dim(-1);
  return ConstMatrixMap<T>(t.data<T>() + i * rows * cols, rows, cols);
}
template <typename T>
MatrixMap<T> MutableMatrixAt(Tensor& t, int64_t i) {
  const int64_t rows = t.dim(-2), cols = t.dim(-1);
  return MatrixMap<T>(t.mutable_data<T>() + i * rows * cols, rows, cols);
}

// Which matrices of two batches meet when their leading axes are broadcast.
struct BatchPairs {
  Shape batch;
  std::vector<int64_t> a, b;  // per result matrix
  int64_t count() const { return static_cast<int64_t>(a.size()); }
};
// `a` and `b` are the leading axes alone.
Result<BatchPairs> PairBatches(const Shape& a, const Shape& b);
Shape LeadingAxes(const Shape& s, int trailing);

// The shape function of "Out = f(X)" over square matrices with Out like the first input.
Status SquareToSame(ShapeContext& ctx);

// Upper or lower triangle of a matrix; `strict` leaves out the diagonal.
template <typename M>
void KeepTriangle(M& m, bool upper, bool strict) {
  for (Eigen::Index r = 0; r < m.rows(); ++r)
    for (Eigen::Index c = 0; c < m.cols(); ++c)
      if (upper ? c < r : c > r)
        m(r, c) = 0;
      else if (strict && c == r)
        m(r, c) = 0;
}

}  // namespace heddle
