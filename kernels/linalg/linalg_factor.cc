#include "kernels/linalg/linalg_factor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/interrupts.h"
#include "core/memory/watched_bytes.h"
#include "kernels/gemm/gemm.h"

namespace heddle {
namespace {

constexpr int64_t kBlock = 32;  // columns that are factored, or rows solved, without Gemm

// to -= a b
template <typename T>
void Subtract(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
              T* to, int64_t ldc, bool trans_b = false) {
  if (m > 0 && n > 0 && k > 0)
    Gemm<T>({m, n, k, false, trans_b, lda, ldb, ldc}, T(-1), a, b, T(1), to);
}

template <typename T>
inline void AddScaled(T factor, const T* from, int64_t n, T* to) {
  for (int64_t i = 0; i < n; ++i) to[i] += factor * from[i];
}

// One right side, next to each other.
template <typename T>
void SolveVector(const T* a, int64_t stride, int64_t n, bool upper, bool unit, T* z) {
  using Row = Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, 1>>;
  for (const int64_t i : Watched(n)) {
    const int64_t r = upper ? n - 1 - i : i, from = upper ? r + 1 : 0;
    if (i > 0) z[r] -= Row(a + r * stride + from, i).dot(Row(z + from, i));
    if (!unit) z[r] /= a[r * stride + r];
  }
}

}  // namespace

template <typename T>
void SolveTriangle(const T* a, int64_t a_stride, int64_t n, bool upper, bool unit, T* z,
                   int64_t z_stride, int64_t k) {
  if (k == 1 && z_stride == 1) return SolveVector(a, a_stride, n, upper, unit, z);
  for (int64_t done = 0; done < n; done += kBlock) {
    const int64_t size = std::min(kBlock, n - done);
    const int64_t first = upper ? n - done - size : done, known = upper ? first + size : 0;
    Subtract(size, k, done, a + first * a_stride + known, a_stride, z + known * z_stride, z_stride,
             z + first * z_stride, z_stride);
    for (const int64_t i : Watched(size)) {
      const int64_t r = upper ? first + size - 1 - i : first + i;
      const int64_t begin = upper ? r + 1 : first, end = upper ? first + size : r;
      const T* row = a + r * a_stride;
      T* to = z + r * z_stride;
      for (const auto part : Stretches(k)) {
        T* const some = to + part.begin;
        const int64_t count = part.end - part.begin;
        for (int64_t c = begin; c < end; ++c)
          AddScaled(-row[c], z + c * z_stride + part.begin, count, some);
        if (!unit)
          for (int64_t c = 0; c < count; ++c) some[c] /= row[r];
      }
    }
  }
}

namespace {

// Columns [first, end) of A, all of whose rows are exchanged whole.
template <typename T>
int32_t FactorPanel(T* a, int64_t rows, int64_t cols, int64_t first, int64_t end, int32_t* pivots) {
  int32_t info = 0;
  for (const int64_t i : Watched(first, end)) {
    int64_t best = i;
    T largest = std::abs(a[i * cols + i]);
    for (int64_t r = i + 1; r < rows; ++r)
      if (const T size = std::abs(a[r * cols + i]); size > largest) largest = size, best = r;
    pivots[i] = static_cast<int32_t>(best + 1);
    const T pivot = a[best * cols + i];
    if (pivot == T(0)) {
      if (info == 0) info = static_cast<int32_t>(i + 1);
      continue;
    }
    if (best != i) std::swap_ranges(a + i * cols, a + (i + 1) * cols, a + best * cols);
    for (int64_t r = i + 1; r < rows; ++r) {
      T* row = a + r * cols;
      row[i] /= pivot;
      AddScaled(-row[i], a + i * cols + i + 1, end - i - 1, row + i + 1);
    }
  }
  return info;
}

}  // namespace

template <typename T>
int32_t FactorLu(T* a, int64_t rows, int64_t cols, int32_t* pivots) {
  int32_t info = 0;
  const int64_t steps = std::min(rows, cols);
  for (int64_t first = 0; first < steps; first += kBlock) {
    const int64_t end = std::min(first + kBlock, steps), rest = cols - end;
    const int32_t found = FactorPanel(a, rows, cols, first, end, pivots);
    if (info == 0) info = found;
    if (rest == 0) continue;
    T* right = a + first * cols + end;
    SolveTriangle<T>(a + first * cols + first, cols, end - first, false, true, right, cols, rest);
    Subtract(rows - end, rest, end - first, a + end * cols + first, cols, right, cols,
             a + end * cols + end, cols);
  }
  return info;
}

template <typename T>
LuFactors<T>::LuFactors(Matrix<T> a) : lu_(std::move(a)), pivots_(static_cast<size_t>(lu_.rows())) {
  FactorLu<T>(lu_.data(), lu_.rows(), lu_.cols(), pivots_.data());
}

template <typename T>
Matrix<T> LuFactors<T>::Solve(Matrix<T> b) const {
  for (size_t i = 0; i < pivots_.size(); ++i) {
    const int64_t row = static_cast<int64_t>(i), other = pivots_[i] - 1;
    if (other != row)
      std::swap_ranges(b.data() + row * b.cols(), b.data() + (row + 1) * b.cols(),
                       b.data() + other * b.cols());
  }
  SolveTriangle<T>(lu_, false, true, b);
  SolveTriangle<T>(lu_, true, false, b);
  return b;
}

template <typename T>
Matrix<T> LuFactors<T>::Inverse() const {
  return Solve(Matrix<T>::Identity(lu_.rows(), lu_.cols()));
}

template <typename T>
T LuFactors<T>::sign() const {
  T sign = 1;
  for (size_t i = 0; i < pivots_.size(); ++i)
    if (pivots_[i] - 1 != static_cast<int32_t>(i)) sign = -sign;
  return sign;
}

template <typename T>
T LuFactors<T>::Determinant() const {
  T product = sign();
  for (Eigen::Index i = 0; i < lu_.rows(); ++i) product *= lu_(i, i);
  return product;
}

template <typename T>
bool FactorCholesky(Matrix<T>& a) {
  const int64_t n = a.rows();
  T* const at = a.data();
  T column[kBlock];
  for (int64_t first = 0; first < n; first += kBlock) {
    const int64_t end = std::min(first + kBlock, n);
    Subtract(n - first, end - first, first, at + first * n, n, at + first * n, n,
             at + first * n + first, n, true);
    for (const int64_t j : Watched(first, end)) {
      const T square = at[j * n + j];
      if (square <= T(0)) return false;
      const T root = at[j * n + j] = std::sqrt(square);
      for (int64_t r = j + 1; r < n; ++r) {
        T* row = at + r * n;
        row[j] /= root;
        if (r < end) column[r - j - 1] = row[j];
        AddScaled(-row[j], column, std::min(r + 1, end) - j - 1, row + j + 1);
      }
    }
  }
  KeepTriangle(a, false, false);
  return true;
}

namespace {

// Some reflections in a row: I - V T V^T, V [rows, size] beginning at row `first`.
template <typename T>
struct Reflector {
  int64_t first;
  Matrix<T> v, t;

  // From V and the factors of the single reflections.
  void Close(const std::vector<T>& tau) {
    const int64_t size = v.cols();
    const Matrix<T> overlap = Product<T>(Turned<T>(v), v);
    t = Matrix<T>::Zero(size, size);
    for (const int64_t i : Watched(size)) {
      t(i, i) = tau[static_cast<size_t>(i)];
      for (int64_t r = 0; r < i; ++r) {
        T sum = 0;
        for (int64_t c = r; c < i; ++c) sum += t(r, c) * overlap(c, i);
        t(r, i) = -t(i, i) * sum;
      }
    }
  }
  // On columns [from, cols) of `m`.
  void Apply(Matrix<T>& m, int64_t from, bool transposed) const {
    const int64_t rest = m.cols() - from;
    if (rest <= 0) return;
    auto part = m.block(first, from, v.rows(), rest);
    const Matrix<T> reach = Product<T>(Turned<T>(v), part);
    AddProduct(part, v, Product<T>(transposed ? Turned<T>(t) : Factor<T>(t), reach), T(-1));
  }
};

// Columns [first, end) of `a`, reflections of them alone.
template <typename T>
Reflector<T> ReflectPanel(Matrix<T>& a, int64_t first, int64_t end) {
  const int64_t rows = a.rows(), cols = a.cols(), size = end - first;
  Reflector<T> block{first, Matrix<T>::Zero(rows - first, size), {}};
  std::vector<T> tau(static_cast<size_t>(size)), reach(static_cast<size_t>(size));
  for (const int64_t j : Watched(first, end)) {
    T tail = 0;
    for (int64_t r = j + 1; r < rows; ++r) tail += a(r, j) * a(r, j);
    block.v(j - first, j - first) = T(1);
    if (tail <= std::numeric_limits<T>::min()) {
      for (int64_t r = j + 1; r < rows; ++r) a(r, j) = T(0);
      continue;
    }
    const T head = a(j, j), norm = std::sqrt(head * head + tail), beta = head >= 0 ? -norm : norm;
    const T factor = tau[static_cast<size_t>(j - first)] = (beta - head) / beta;
    const int64_t rest = end - j - 1;
    T* const row_j = a.data() + j * cols + j + 1;
    WatchedCopy(row_j, rest, reach.data());
    for (int64_t r = j + 1; r < rows; ++r) {
      const T v = block.v(r - first, j - first) = a(r, j) / (head - beta);
      AddScaled(v, a.data() + r * cols + j + 1, rest, reach.data());
    }
    AddScaled(-factor, reach.data(), rest, row_j);
    for (int64_t r = j + 1; r < rows; ++r) {
      AddScaled(-factor * block.v(r - first, j - first), reach.data(), rest,
                a.data() + r * cols + j + 1);
      a(r, j) = T(0);
    }
    a(j, j) = beta;
  }
  block.Close(tau);
  return block;
}

}  // namespace

template <typename T>
Matrix<T> FactorQr(Matrix<T>& a, int64_t q_cols) {
  std::vector<Reflector<T>> blocks;
  const int64_t steps = std::min(a.rows(), a.cols());
  for (int64_t first = 0; first < steps; first += kBlock) {
    const int64_t end = std::min(first + kBlock, steps);
    Reflector<T> block = ReflectPanel(a, first, end);
    block.Apply(a, end, true);
    if (q_cols > 0) blocks.push_back(std::move(block));
  }
  if (q_cols == 0) return {};
  Matrix<T> q(a.rows(), q_cols);
  for (const int64_t row : Watched(a.rows())) {
    q.row(row).setZero();
    if (row < q_cols) q(row, row) = T(1);
  }
  // Columns before a block's first row are still those of the identity.
  for (size_t i = blocks.size(); i-- > 0;)
    blocks[i].Apply(q, std::min(blocks[i].first, q_cols), false);
  return q;
}

#define HEDDLE_FACTOR(T)                                                                        \
  template void SolveTriangle<T>(const T*, int64_t, int64_t, bool, bool, T*, int64_t, int64_t); \
  template int32_t FactorLu<T>(T*, int64_t, int64_t, int32_t*);                                 \
  template class LuFactors<T>;                                                                  \
  template bool FactorCholesky<T>(Matrix<T>&);                                                  \
  template Matrix<T> FactorQr<T>(Matrix<T>&, int64_t);
HEDDLE_FACTOR(float)
HEDDLE_FACTOR(double)
#undef HEDDLE_FACTOR

}  // namespace heddle
