#include "kernels/linalg/linalg_svd.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"

namespace heddle {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Turns columns p and q of `w` orthogonal, and `v` with them; false when they were.
bool Rotate(MatrixXd& w, MatrixXd& v, Index p, Index q) {
  constexpr double kTolerance = 1e-15;
  const double alpha = w.col(p).squaredNorm(), beta = w.col(q).squaredNorm();
  const double gamma = w.col(p).dot(w.col(q));
  if (std::abs(gamma) <= kTolerance * std::sqrt(alpha * beta) || gamma == 0) return false;
  const double zeta = (beta - alpha) / (2 * gamma);
  const double t = (zeta >= 0 ? 1.0 : -1.0) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
  const double c = 1 / std::sqrt(1 + t * t), s = c * t;
  for (MatrixXd* m : {&w, &v}) {
    double *a = m->col(p).data(), *b = m->col(q).data();
    for (Index i = 0; i < m->rows(); ++i) {
      const double x = a[i], y = b[i];
      a[i] = c * x - s * y;
      b[i] = s * x + c * y;
    }
  }
  return true;
}

// Makes columns [from, end) of `u` orthonormal to those before: each starts as the axis that the
// earlier columns reach least.
void CompleteBasis(MatrixXd& u, Index from) {
  for (const Index j : Watched(from, u.cols())) {
    Index axis = 0;
    u.leftCols(j).rowwise().squaredNorm().minCoeff(&axis);
    VectorXd x = VectorXd::Unit(u.rows(), j == 0 ? 0 : axis);
    for (int pass = 0; pass < 2; ++pass)
      for (const Index k : Watched(j)) x -= u.col(k) * u.col(k).dot(x);
    u.col(j) = x / x.norm();
  }
}

}  // namespace

SvdResult ComputeSvd(const MatrixXd& a, bool full) {
  if (a.rows() < a.cols()) {
    SvdResult turned = ComputeSvd(a.transpose(), full);
    std::swap(turned.u, turned.v);
    return turned;
  }
  constexpr int kMaxSweeps = 60;
  const Index m = a.rows(), n = a.cols();
  MatrixXd w = a, v = MatrixXd::Identity(n, n);
  bool rotated = true;
  for (int sweep = 0; sweep < kMaxSweeps && rotated; ++sweep) {
    rotated = false;
    for (Index p = 0; p < n; ++p)
      for (const Index q : Watched(p + 1, n)) rotated |= Rotate(w, v, p, q);
  }
  const VectorXd norms = w.colwise().norm();
  std::vector<Index> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index x, Index y) { return Greater(norms(x), norms(y)); });
  SvdResult r{MatrixXd(m, full ? m : n), MatrixXd(n, n), VectorXd(n)};
  Index rank = 0;
  for (Index j = 0; j < n; ++j) {
    const Index from = order[static_cast<size_t>(j)];
    r.s(j) = norms(from);
    r.v.col(j) = v.col(from);
    if (norms(from) > 0 && rank == j) {
      r.u.col(j) = w.col(from) / norms(from);
      ++rank;
    }
  }
  CompleteBasis(r.u, rank);
  return r;
}

}  // namespace heddle
