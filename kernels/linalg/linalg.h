// Batches of matrices: the last two axes of a tensor, as Eigen maps; their products and systems.
//
// Products and factorizations are functions here, compiled once: an expression of Eigen's (a * b,
// a.lu()) brings its whole blocked product into every file that writes it, for seconds each.
#pragma once

#include <Eigen/Core>
#include <complex>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/shapes.h"
#include "kernels/base/shape_checks.h"

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

// A factor of a product: a matrix as it lies in memory, or its transpose. Refers to the matrix.
template <typename T>
struct Factor {
  // Any Matrix, map of one or block of those.
  template <typename M>
  Factor(const M& m)  // NOLINT(google-explicit-constructor)
      : data(m.data()), rows(m.rows()), cols(m.cols()), stride(m.outerStride()) {
    static_assert(M::IsRowMajor && std::is_same_v<typename M::Scalar, T>);
  }
  const T* data;
  int64_t rows, cols;  // of the product's factor
  int64_t stride;      // from one row in memory to the next
  bool turned = false;
};
template <typename T>
Factor<T> Turned(Factor<T> f) {
  std::swap(f.rows, f.cols);
  f.turned = !f.turned;
  return f;
}

// to = alpha a b + beta to, on the calling thread; `to` overlaps neither factor and is only written
// where beta is 0. T: float, double, std::complex<double>.
template <typename T>
void Multiply(const Factor<T>& a, const Factor<T>& b, T alpha, T beta, T* to, int64_t stride);
template <>
void Multiply<std::complex<double>>(const Factor<std::complex<double>>& a,
                                    const Factor<std::complex<double>>& b,
                                    std::complex<double> alpha, std::complex<double> beta,
                                    std::complex<double>* to, int64_t stride);

template <typename T>
Matrix<T> Product(const Factor<T>& a, const Factor<T>& b) {
  Matrix<T> to(a.rows, b.cols);
  Multiply<T>(a, b, T(1), T(0), to.data(), to.cols());
  return to;
}
// `to`: a Matrix, a map of one or a block of those.
template <typename M, typename T = typename std::remove_reference_t<M>::Scalar>
void SetProduct(M&& to, const Factor<std::type_identity_t<T>>& a,
                const Factor<std::type_identity_t<T>>& b, std::type_identity_t<T> alpha = T(1)) {
  Multiply<T>(a, b, alpha, T(0), to.data(), to.outerStride());
}
template <typename M, typename T = typename std::remove_reference_t<M>::Scalar>
void AddProduct(M&& to, const Factor<std::type_identity_t<T>>& a,
                const Factor<std::type_identity_t<T>>& b, std::type_identity_t<T> alpha = T(1)) {
  Multiply<T>(a, b, alpha, T(1), to.data(), to.outerStride());
}

}  // namespace heddle
