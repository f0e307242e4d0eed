// Fourier transforms, matrix decompositions and linear systems; resized images, fake quantisation.
#include "core/op_registry.h"
#include "core/shapes.h"
#include "formats/tensorflow/direct/ops_direct.h"

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
  const int fitted = n.Make("fit_lengths", {{"x", {n.In(0)}}, {"lengths", {n.In(1)}}}, {}, "y");
  Attrs attrs = TransformAttrs(n.op(), true);
  attrs.emplace_back("onesided", true);
  n.Result(0, n.Unary("fft_r2c", fitted, std::move(attrs)));
  return true;
}

bool LowerRealInverse(NodeLowering& n) {
  if (Dimensions(n.op()) == 1 && !n.ConstantInts(n.In(1))) {
    // The length is only known at run time: transforms the whole spectrum and takes the real part.
    const int whole = n.Make("mirror_spectrum", {{"x", {n.In(0)}}, {"length", {n.In(1)}}}, {}, "y");
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
      n.Make("fit_lengths", {{"x", {n.In(0)}}, {"lengths", {n.IntsConstant(lengths)}}}, {}, "y");
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
    const int batch = n.Make("range", {{"Start", {n.IntConstant(0)}},
                                       {"End", {n.Reshape(from_end(2), {})}},
                                       {"Step", {n.IntConstant(1)}}});
    const int order =
        n.Make("concat", {{"X", {batch, from_end(1), from_end(2)}}}, {{"axis", int64_t{0}}});
    return n.Make("transpose2", {{"X", {x}}, {"Perm", {order}}});
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

// The range is a pair of attributes, of operands, or of operands with a number for each channel.
bool LowerFakeQuant(NodeLowering& n) {
  const bool given = n.op() == "FakeQuantWithMinMaxArgs";
  const double low = n.Float("min", -6), high = n.Float("max", 6);
  if (given && !(low < high))
    n.Problem("has min ", low, " and max ", high, ", expected min below max");
  const int least = given ? n.FloatConstant(low, DType::kF32) : n.In(1);
  const int most = given ? n.FloatConstant(high, DType::kF32) : n.In(2);
  n.Result(
      0,
      n.Make("fake_quant_with_min_max", {{"inputs", {n.In(0)}}, {"min", {least}}, {"max", {most}}},
             {{"num_bits", n.Int("num_bits", 8)}, {"narrow_range", n.Bool("narrow_range", false)}},
             "outputs"));
  return true;
}

bool LowerResizeImages(NodeLowering& n) {
  const std::string_view op = n.op();
  const bool nearest = op.find("Nearest") != op.npos, grad = op.ends_with("Grad");
  const std::string method = nearest                         ? "nearest"
                             : op.find("Bicubic") != op.npos ? "bicubic"
                             : op.find("Area") != op.npos    ? "area"
                                                             : "bilinear";
  Attrs attrs{{"align_corners", n.Bool("align_corners", false)},
              {"half_pixel_centers", n.Bool("half_pixel_centers", false)}};
  const int x = n.In(0), second = n.In(1);
  if (grad && nearest) {
    ResultLike(n, 0,
               n.Make("resize_nearest_images_grad", {{"grads", {x}}, {"size", {second}}},
                      std::move(attrs), "output"),
               x);
    return true;
  }
  attrs.emplace_back("method", method);
  if (grad)
    n.Result(0, n.Make("resize_images_grad", {{"grads", {x}}, {"original_image", {second}}},
                       std::move(attrs), "output"));
  else
    ResultLike(n, 0,
               n.Make("resize_images", {{"images", {x}}, {"size", {second}}}, std::move(attrs),
                      "resized_images"),
               x);
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
    {"FakeQuantWithMinMaxArgs", &LowerFakeQuant},
    {"FakeQuantWithMinMaxVars", &LowerFakeQuant},
    {"FakeQuantWithMinMaxVarsPerChannel", &LowerFakeQuant},
    {"MatrixDeterminant", &LowerDeterminant},
    {"MatrixInverse", &LowerInverse},
    {"MatrixSolve", &LowerSolve},
    {"MatrixTriangularSolve", &LowerTriangularSolve},
    {"RFFT", &LowerRealTransform},
    {"RFFT2D", &LowerRealTransform},
    {"RFFT3D", &LowerRealTransform},
    {"ResizeArea", &LowerResizeImages},
    {"ResizeBicubic", &LowerResizeImages},
    {"ResizeBicubicGrad", &LowerResizeImages},
    {"ResizeBilinear", &LowerResizeImages},
    {"ResizeBilinearGrad", &LowerResizeImages},
    {"ResizeNearestNeighbor", &LowerResizeImages},
    {"ResizeNearestNeighborGrad", &LowerResizeImages},
};

}  // namespace

std::span<const HandlerEntry> SignalHandlers() { return kSignalEntries; }

}  // namespace heddle::tensorflow
