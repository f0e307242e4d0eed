// Fourier transforms, matrix decompositions and linear systems.
#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/ops_direct.h"

namespace heddle::tensorflow {
namespace {

// The number of last dimensions that FFT, FFT2D and FFT3D transform.
int64_t Dimensions(std::string_view op) {
  return op.ends_with("3D") ? 3 : op.ends_with("2D") ? 2 : 1;
}

Attrs TransformAttrs(std::string_view op, bool forward) {
  Ints axes;
  for (int64_t i = Dimensions(op); i > 0; --i) axes.push_back(-i);
  return {{"axes", axes}, {"normalization", std::string("backward")}, {"forward", forward}};
}

bool LowerComplexTransform(NodeLowering& n) {
  n.Result(0, n.Unary("fft_c2c", n.In(0), TransformAttrs(n.op(), !n.op().starts_with("I"))));
  return true;
}

bool LowerRealTransform(NodeLowering& n) {
  const int fitted = n.Make("tf_fit_lengths", {{"x", {n.In(0)}}, {"lengths", {n.In(1)}}}, {}, "y");
  Attrs attrs = TransformAttrs(n.op(), true);
  attrs.emplace_back("onesided", true);
  n.Result(0, n.Unary("fft_r2c", fitted, std::move(attrs)));
  return true;
}

bool LowerRealInverse(NodeLowering& n) {
  if (Dimensions(n.op()) == 1 && !n.ConstantInts(n.In(1))) {
    // The length is only known at run time: transforms the whole spectrum and takes the real part.
    const int whole =
        n.Make("tf_mirror_spectrum", {{"x", {n.In(0)}}, {"length", {n.In(1)}}}, {}, "y");
    n.Result(0, n.Unary("real", n.Unary("fft_c2c", whole, TransformAttrs(n.op(), false))));
    return true;
  }
  Ints lengths = n.RequiredInts(1, "fft_length");
  if (static_cast<int64_t>(lengths.size()) != Dimensions(n.op()) || lengths.empty() ||
      lengths.back() < 1) {
    n.Problem("has an fft_length of ", lengths.size(), " elements, expected ", Dimensions(n.op()),
              " above 0");
    n.Result(0, n.In(0));
    return true;
  }
  const int64_t last = lengths.back();
  lengths.back() = last / 2 + 1;
  const int fitted =
      n.Make("tf_fit_lengths", {{"x", {n.In(0)}}, {"lengths", {n.IntsConstant(lengths)}}}, {}, "y");
  Attrs attrs = TransformAttrs(n.op(), false);
  attrs.emplace_back("last_dim_size", last);
  n.Result(0, n.Unary("fft_c2r", fitted, std::move(attrs)));
  return true;
}

// The conjugate transpose of the last two dimensions.
int Adjoint(NodeLowering& n, int x) {
  const int rank = n.rank(x);
  if (rank == 0 || rank == 1) {
    n.Problem("has matrices of shape ", n.shape(x).ToString(), ", expected a rank above 1");
    return x;
  }
  if (IsComplex(n.dtype(x))) x = n.Unary("conj", x);
  if (rank < 0) {  // the permutation depends on the rank, which is computed at run time
    const int axes = n.Cast(n.Make("size", {{"Input", {n.ShapeOf(x)}}}), DType::kI64);
    const auto from_end = [&](int64_t back) {
      return n.Reshape(n.Binary("elementwise_add", axes, n.IntConstant(-back)), {1});
    };
    const int batch = n.Make("tf_range",
                             {{"start", {n.IntConstant(0)}},
                              {"limit", {n.Reshape(from_end(2), {})}},
                              {"delta", {n.IntConstant(1)}}},
                             {}, "output");
    const int order =
        n.Make("concat", {{"X", {batch, from_end(1), from_end(2)}}}, {{"axis", int64_t{0}}});
    return n.Make("tf_transpose", {{"x", {x}}, {"perm", {order}}}, {}, "y");
  }
  Ints perm;
  for (int i = 0; i < rank; ++i) perm.push_back(i < rank - 2 ? i : 2 * rank - 3 - i);
  return n.Make("transpose2", {{"X", {x}}}, {{"axis", perm}});
}

bool LowerInverse(NodeLowering& n) {
  int x = n.In(0);
  if (n.Bool("adjoint", false)) x = Adjoint(n, x);
  n.Result(0, n.Make("inverse", {{"Input", {x}}}, {}, "Output"));
  return true;
}

bool LowerDeterminant(NodeLowering& n) {
  n.Result(0, n.Make("determinant", {{"Input", {n.In(0)}}}));
  return true;
}

bool LowerCholesky(NodeLowering& n) {
  n.Result(0, n.Unary("cholesky", n.In(0), {{"upper", false}}));
  return true;
}

bool LowerSolve(NodeLowering& n) {
  int a = n.In(0);
  if (n.Bool("adjoint", false)) a = Adjoint(n, a);
  n.Result(0, n.Binary("solve", a, n.In(1)));
  return true;
}

bool LowerTriangularSolve(NodeLowering& n) {
  int a = n.In(0);
  const bool adjoint = n.Bool("adjoint", false);
  if (adjoint && IsComplex(n.dtype(a))) a = n.Unary("conj", a);
  n.Result(0, n.Make("triangular_solve", {{"X", {a}}, {"Y", {n.In(1)}}},
                     {{"upper", !n.Bool("lower", true)},
                      {"transpose", adjoint},
                      {"unitriangular", false}}));
  return true;
}

bool LowerCross(NodeLowering& n) {
  n.Result(0, n.Make("cross", {{"X", {n.In(0)}}, {"Y", {n.In(1)}}}, {{"dim", int64_t{-1}}}));
  return true;
}

constexpr HandlerEntry kSignalEntries[] = {
    {"Cholesky", &LowerCholesky},
    {"Cross", &LowerCross},
    {"FFT", &LowerComplexTransform},
    {"FFT2D", &LowerComplexTransform},
    {"FFT3D", &LowerComplexTransform},
    {"IFFT", &LowerComplexTransform},
    {"IFFT2D", &LowerComplexTransform},
    {"IFFT3D", &LowerComplexTransform},
    {"IRFFT", &LowerRealInverse},
    {"IRFFT2D", &LowerRealInverse},
    {"IRFFT3D", &LowerRealInverse},
    {"MatrixDeterminant", &LowerDeterminant},
    {"MatrixInverse", &LowerInverse},
    {"MatrixSolve", &LowerSolve},
    {"MatrixTriangularSolve", &LowerTriangularSolve},
    {"RFFT", &LowerRealTransform},
    {"RFFT2D", &LowerRealTransform},
    {"RFFT3D", &LowerRealTransform},
};

}  // namespace

std::span<const HandlerEntry> SignalHandlers() { return kSignalEntries; }

}  // namespace heddle::tensorflow
