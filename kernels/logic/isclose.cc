// isclose and allclose: comparison with a tolerance, per element and of whole tensors.
#include <cmath>
#include <complex>
#include <cstdlib>

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/elementwise/binary_op.h"

namespace heddle {
namespace {

struct Tolerance {
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
};

double ReadNumber(const Tensor* tensor, const std::string& text) {
  if (tensor == nullptr || tensor->numel() == 0) return std::strtod(text.c_str(), nullptr);
  return tensor->dtype() == DType::kF32 ? tensor->data<float>()[0] : tensor->data<double>()[0];
}

Result<Tolerance> ReadTolerance(const KernelContext& ctx) {
  for (const Tensor* t : {ctx.InOpt("Rtol"), ctx.InOpt("Atol")})
    if (t != nullptr && t->dtype() != DType::kF32 && t->dtype() != DType::kF64)
      return InvalidArgument("Rtol and Atol must be float32 or float64, got ", Name(t->dtype()));
  return Tolerance{ReadNumber(ctx.InOpt("Rtol"), ctx.Str("rtol")),
                   ReadNumber(ctx.InOpt("Atol"), ctx.Str("atol")), ctx.Bool("equal_nan")};
}

bool HasNan(double a) { return std::isnan(a); }

bool HasNan(std::complex<double> a) { return std::isnan(a.real()) || std::isnan(a.imag()); }

template <typename T>
bool Close(T a, T b, const Tolerance& tol) {
  using Wide = std::conditional_t<IsComplex(kDTypeOf<T>), std::complex<double>, double>;
  const Wide x = static_cast<Wide>(a), y = static_cast<Wide>(b);
  if (HasNan(x) || HasNan(y)) return tol.equal_nan && HasNan(x) == HasNan(y);
  return x == y || std::abs(x - y) <= tol.atol + tol.rtol * std::abs(y);
}

struct Slots {
  static constexpr Key x() { return "Input"; }
  static constexpr Key y() { return "Other"; }
  static constexpr Key out() { return "Out"; }
};

template <typename T>
struct CloseLoop {
  template <int kX, int kY>
  static void Run(const void* xv, const void* yv, void* ov, int64_t n, const void* arg) {
    const T* x = static_cast<const T*>(xv);
    const T* y = static_cast<const T*>(yv);
    bool* o = static_cast<bool*>(ov);
    const Tolerance& tol = *static_cast<const Tolerance*>(arg);
    for (const auto part : Stretches(n))
      for (int64_t i = part.begin; i < part.end; ++i) o[i] = Close(x[i * kX], y[i * kY], tol);
  }
  static constexpr BinaryLoops kLoops = {
      {&Run<1, 1>, &Run<1, 0>, &Run<0, 1>}, sizeof(T), sizeof(bool), kHeavyGrain};
};

template <typename T>
struct Isclose {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Tolerance tol, ReadTolerance(ctx));
    return RunBinaryOp<Slots>(ctx, CloseLoop<T>::kLoops, &tol);
  }
};

template <typename T>
struct Allclose {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const Tolerance tol, ReadTolerance(ctx));
    const Tensor& a = ctx.In("Input");
    const Tensor& b = ctx.In("Other");
    HEDDLE_RETURN_IF_ERROR(CheckSameDType(ctx, a, b));
    if (a.numel() != b.numel())
      return InvalidArgument("Input has shape ", a.shape().ToString(), ", Other has ",
                             b.shape().ToString());
    bool all = true;
    for (int64_t i = 0; i < a.numel() && all; ++i) all = Close(a.data<T>()[i], b.data<T>()[i], tol);
    *ctx.Out("Out").template mutable_data<bool>() = all;
    return Status::Ok();
  }
};

Status InferAllclose(ShapeContext& ctx) {
  ctx.SetOut("Out", Shape(), DType::kBool);
  return Status::Ok();
}

void DefineCloseSlots(OpDef& op) {
  op.Input("Input").Input("Other").Input("Rtol", kOptional).Input("Atol", kOptional).Output("Out");
  op.Attr("rtol", "1e-5").Attr("atol", "1e-8").Attr("equal_nan", false);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(isclose) {
  op.Doc("element by element: |input - other| <= atol + rtol * |other|");
  DefineCloseSlots(op);
  op.InferShape(&InferPredicate<Slots>).Prepare(&PrepareBroadcast<Slots>);
  op.Kernels<Isclose, float, double, int32_t, int64_t, bool, std::complex<float>,
             std::complex<double>>();
}

HEDDLE_OP(allclose) {
  op.Doc("whether all elements are close to each other, as isclose has it");
  DefineCloseSlots(op);
  op.InferShape(&InferAllclose).Kernels<Allclose, float, double, int32_t, int64_t, bool>();
}
