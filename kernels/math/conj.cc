// conj, and the parts of complex numbers: real, imag.
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct ConjMap : UnaryOp {
  static constexpr Key kIns[] = {"X"};
  static constexpr Key kOuts[] = {"Out"};
  template <typename T>
  T operator()(T x) const {
    return fast::Conj(x);
  }
};

// kPart 0: real, 1: imaginary; a complex number is stored as these two.
template <int kPart>
struct Part {
  template <typename T>
  struct Take {
    static Status Run(KernelContext& ctx) {
      using R = typename T::value_type;
      const Tensor& x = ctx.In("X");
      const R* a = reinterpret_cast<const R*>(x.data<T>()) + kPart;
      R* y = ctx.Out("Out").mutable_data<R>();
      ctx.ParallelFor(x.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = a[2 * i];
      });
      return Status::Ok();
    }
  };
  template <typename R>
  struct Give {
    static Status Run(KernelContext& ctx) {
      const Tensor& dy = ctx.In("Out@GRAD");
      const R* d = dy.data<R>();
      R* dx = reinterpret_cast<R*>(ctx.Out("X@GRAD").mutable_data<std::complex<R>>());
      ctx.ParallelFor(dy.numel(), 1 << 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          dx[2 * i + kPart] = d[i];
          dx[2 * i + 1 - kPart] = R(0);
        }
      });
      return Status::Ok();
    }
  };
};

Status PartShape(ShapeContext& ctx) {
  const DType in = ctx.InDType("X");
  if (in != DType::kUnknown && !IsComplex(in))
    return InvalidArgument("input X must be complex, but is ", Name(in));
  ctx.SetOut("Out", ctx.InShape("X"), in == DType::kC64 ? DType::kF32 : DType::kF64);
  ctx.ShareLoD("X", "Out");
  return Status::Ok();
}

Status PartGradShape(ShapeContext& ctx) {
  ctx.SetOut("X@GRAD", ctx.InShape("Out@GRAD"),
             ctx.InDType("Out@GRAD") == DType::kF32 ? DType::kC64 : DType::kC128);
  ctx.ShareLoD("Out@GRAD", "X@GRAD");
  return Status::Ok();
}

template <typename P>
void DefinePart(OpDef& op, const char* doc) {
  op.Doc(doc).Input("X").Output("Out").InferShape(PartShape);
  op.Kernels<P::template Take, complex64, complex128>();
}
template <typename P>
void DefinePartGrad(OpDef& op) {
  op.Input("Out@GRAD").Output("X@GRAD").InferShape(PartGradShape);
  op.Kernels<P::template Give, float, double>();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(conj) {
  op.Doc("Complex conjugate.").Input("X").Output("Out").Inplace("X", "Out").InferShape(SameShape);
  AddMapKernels<ConjMap, float, double, int32_t, int64_t, float16, bfloat16, complex64, complex128>(
      op);
}
HEDDLE_OP(real) { DefinePart<Part<0>>(op, "Real parts."); }
HEDDLE_OP(real_grad) { DefinePartGrad<Part<0>>(op); }
HEDDLE_OP(imag) { DefinePart<Part<1>>(op, "Imaginary parts."); }
HEDDLE_OP(imag_grad) { DefinePartGrad<Part<1>>(op); }
