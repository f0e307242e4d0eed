// Singular values by one-sided Jacobi rotations: accurate, and cheap to compile.
#pragma once

#include <Eigen/Core>

namespace heddle {

struct SvdResult {
  Eigen::MatrixXd u, v;  // columns; completed to square where asked for
  Eigen::VectorXd s;     // descending
};

SvdResult ComputeSvd(const Eigen::MatrixXd& a, bool full);

}  // namespace heddle
