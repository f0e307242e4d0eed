#include "kernels/linalg/linalg.h"

#include "core/interrupts.h"
#include "kernels/gemm/gemm.h"

namespace heddle {

Status CheckMatrix(const ShapeContext& ctx, Key key, bool square) {
  const Shape& s = ctx.InShape(key);
  if (!s.known_rank()) return Status::Ok();
  if (s.rank() < 2)
    return InvalidArgument(key.name, " must have at least two axes, not ", s.ToString());
  if (square && s.dim(-1) >= 0 && s.dim(-2) >= 0 && s.dim(-1) != s.dim(-2))
    return InvalidArgument(key.name, " must hold square matrices, not ", s.ToString());
  return Status::Ok();
}

Shape LeadingAxes(const Shape& s, int trailing) {
  const int keep = std::max(0, s.rank() - trailing);
  return Shape(s.dims().first(static_cast<size_t>(keep)));
}

namespace {
// Matrix number in a batch of shape `own` for matrix `at` of the broadcast batch.
int64_t Locate(const Shape& batch, const Shape& own, int64_t at) {
  int64_t index = 0, stride = 1;
  for (int i = batch.rank() - 1, k = own.rank() - 1; i >= 0; --i, --k) {
    const int64_t pos = at % batch[i];
    at /= batch[i];
    if (k < 0) continue;
    index += own[k] == 1 ? 0 : pos * stride;
    stride *= own[k];
  }
  return index;
}
}  // namespace

Result<BatchPairs> PairBatches(const Shape& a, const Shape& b) {
  HEDDLE_ASSIGN_OR_RETURN(const Shape batch, BroadcastShape(a, b, -1));
  BatchPairs pairs;
  pairs.batch = batch;
  const int64_t count = batch.numel();
  pairs.a.resize(static_cast<size_t>(count));
  pairs.b.resize(static_cast<size_t>(count));
  for (const int64_t i : Watched(count)) {
    pairs.a[static_cast<size_t>(i)] = Locate(batch, a, i);
    pairs.b[static_cast<size_t>(i)] = Locate(batch, b, i);
  }
  return pairs;
}

template <typename T>
void Multiply(const Factor<T>& a, const Factor<T>& b, T alpha, T beta, T* to, int64_t stride) {
  const GemmDims d{a.rows, b.cols, a.cols, a.turned, b.turned, a.stride, b.stride, stride};
  Gemm<T>(d, alpha, a.data, b.data, beta, to);
}

namespace {
// Real and imaginary parts, apart.
struct Parts {
  explicit Parts(const Factor<std::complex<double>>& f)
      : re(f.turned ? f.cols : f.rows, f.turned ? f.rows : f.cols), im(re.rows(), re.cols()) {
    for (Eigen::Index r = 0; r < re.rows(); ++r)
      for (Eigen::Index c = 0; c < re.cols(); ++c) {
        re(r, c) = f.data[r * f.stride + c].real();
        im(r, c) = f.data[r * f.stride + c].imag();
      }
  }
  Matrix<double> re, im;
};
}  // namespace

// Four real products: as many operations, and no kernel of their own.
template <>
void Multiply<std::complex<double>>(const Factor<std::complex<double>>& a,
                                    const Factor<std::complex<double>>& b,
                                    std::complex<double> alpha, std::complex<double> beta,
                                    std::complex<double>* to, int64_t stride) {
  const Parts pa(a), pb(b);
  const auto side = [](const Matrix<double>& m, bool turned) {
    return turned ? Turned<double>(m) : Factor<double>(m);
  };
  const Factor<double> ar = side(pa.re, a.turned), ai = side(pa.im, a.turned),
                       br = side(pb.re, b.turned), bi = side(pb.im, b.turned);
  Matrix<double> re = Product<double>(ar, br), im = Product<double>(ar, bi);
  AddProduct(re, ai, bi, -1.0);
  AddProduct(im, ai, br);
  for (const int64_t r : Watched(a.rows))
    for (int64_t c = 0; c < b.cols; ++c) {
      std::complex<double>& at = to[r * stride + c];
      const std::complex<double> value = alpha * std::complex<double>(re(r, c), im(r, c));
      at = beta == 0.0 ? value : value + beta * at;
    }
}

template void Multiply<float>(const Factor<float>&, const Factor<float>&, float, float, float*,
                              int64_t);
template void Multiply<double>(const Factor<double>&, const Factor<double>&, double, double,
                               double*, int64_t);

}  // namespace heddle
