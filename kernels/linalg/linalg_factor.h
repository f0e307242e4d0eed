// Factorizations of real matrices and the systems they solve: triangular, LU, Cholesky, QR.
//
// Blocked over Gemm, on the calling thread. T: float, double.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/linalg/linalg.h"

namespace heddle {

// Replaces Z [n, k] by A^-1 Z. Of A [n, n] only the triangle is read, and not its diagonal where
// that counts as ones. Strides are from one row to the next.
template <typename T>
void SolveTriangle(const T* a, int64_t a_stride, int64_t n, bool upper, bool unit, T* z,
                   int64_t z_stride, int64_t k);
template <typename T>
void SolveTriangle(const Matrix<T>& a, bool upper, bool unit, Matrix<T>& z) {
  SolveTriangle<T>(a.data(), a.cols(), a.rows(), upper, unit, z.data(), z.cols(), z.cols());
}

// A [rows, cols] = P L U in place, by partial pivoting, L with ones on its diagonal. Step i
// exchanged rows i and pivots[i] - 1 (min(rows, cols) of them). The result is 0, or 1 + the first
// column without a pivot.
template <typename T>
int32_t FactorLu(T* a, int64_t rows, int64_t cols, int32_t* pivots);

// The LU factors of a square matrix.
template <typename T>
class LuFactors {
 public:
  explicit LuFactors(Matrix<T> a);
  Matrix<T> Solve(Matrix<T> b) const;  // A^-1 b; not finite where A is singular
  Matrix<T> Inverse() const;
  T Determinant() const;
  T sign() const;  // of the permutation: 1 or -1
  const Matrix<T>& packed() const { return lu_; }

 private:
  Matrix<T> lu_;
  std::vector<int32_t> pivots_;
};

// The lower triangle of A = L L^T becomes L, the rest zeros; only that triangle is read. False
// where A is not positive definite.
template <typename T>
bool FactorCholesky(Matrix<T>& a);

// A = Q R by Householder reflections with R's diagonal signed as LAPACK does. `a` becomes R
// [rows, cols] with zeros below the diagonal; the result is the first `q_cols` columns of Q (none
// for 0).
template <typename T>
Matrix<T> FactorQr(Matrix<T>& a, int64_t q_cols);

}  // namespace heddle
