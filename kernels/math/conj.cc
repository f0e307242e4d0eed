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

HEDDLE_EXAMPLES(conj, R"(
example complex64 4x3
in X complex64 [4, 3] 0.6-0.4j -1.5-1.3j 1.8+1j -0.1-1.7j 1.5+1.5j -1.2+1.8j -1.8+1.7j -0.4-0.3j
  -1.1-1.9j 1.4+1.9j -1.2-0.6j 1+0.8j
out Out complex64 [4, 3] 0.6+0.4j -1.5+1.3j 1.8-1j -0.1+1.7j 1.5-1.5j -1.2-1.8j -1.8-1.7j -0.4+0.3j
  -1.1+1.9j 1.4-1.9j -1.2+0.6j 1-0.8j

example float64 4x4
in X float64 [4, 4] -0.7790566494008404 -0.2435067030660644 0.025455159135918778 -0.5771717746560353
  0.05887695639122448 0.8883450144238587 -0.017709877762192783 -0.45504175586865514
  0.4548821558512038 -0.3064780590079121 -0.6596810759528121 -0.513784294879324 0.42741837269659305
  -0.24003920566630949 0.750905635304965 -0.44253298328116775
out Out float64 [4, 4] -0.7790566494008404 -0.2435067030660644 0.025455159135918778
  -0.5771717746560353 0.05887695639122448 0.8883450144238587 -0.017709877762192783
  -0.45504175586865514 0.4548821558512038 -0.3064780590079121 -0.6596810759528121 -0.513784294879324
  0.42741837269659305 -0.24003920566630949 0.750905635304965 -0.44253298328116775

example float64 3x4x4
in X float64 [3, 4, 4] 0.7746545605349415 -0.03794561993331457 0.011704521041712535
  0.6311366301819893 -0.37335031723105405 0.3705173030465082 -0.6927554587346952 0.49337241832098355
  -0.2872956313970662 -0.9023439626196734 -0.11377969262605381 0.3004842339456547
  -0.42187803053258055 0.21691572371509507 0.7120442824195607 0.5176479846698149 0.8937653972691743
  -0.1437403546755543 -0.1416866367839136 -0.40055838780243286 -0.04146971557388046
  0.7754214096199327 0.3776397244866044 -0.5043710327555896 -0.2548132383357964 -0.6147706096624972
  0.522691759143169 -0.5328420366185889 -0.366788618830139 -0.010837224551705327 -0.7510702100139274
  -0.5488553573486646 0.5861607559520808 -0.42194861271751394 0.4395978558712074 -0.5339744015595574
  -0.647189518189015 -0.5694010741969986 -0.2313849607100913 -0.45098685591352283
  0.27992225804487203 0.39771278388033393 -0.6711321701997358 -0.5595084280975648 -0.399004793428621
  0.5827231988407744 0.55026932968649 -0.4454576446309342
out Out float64 [3, 4, 4] 0.7746545605349415 -0.03794561993331457 0.011704521041712535
  0.6311366301819893 -0.37335031723105405 0.3705173030465082 -0.6927554587346952 0.49337241832098355
  -0.2872956313970662 -0.9023439626196734 -0.11377969262605381 0.3004842339456547
  -0.42187803053258055 0.21691572371509507 0.7120442824195607 0.5176479846698149 0.8937653972691743
  -0.1437403546755543 -0.1416866367839136 -0.40055838780243286 -0.04146971557388046
  0.7754214096199327 0.3776397244866044 -0.5043710327555896 -0.2548132383357964 -0.6147706096624972
  0.522691759143169 -0.5328420366185889 -0.366788618830139 -0.010837224551705327 -0.7510702100139274
  -0.5488553573486646 0.5861607559520808 -0.42194861271751394 0.4395978558712074 -0.5339744015595574
  -0.647189518189015 -0.5694010741969986 -0.2313849607100913 -0.45098685591352283
  0.27992225804487203 0.39771278388033393 -0.6711321701997358 -0.5595084280975648 -0.399004793428621
  0.5827231988407744 0.55026932968649 -0.4454576446309342
)")

HEDDLE_EXAMPLES(real, R"(
example complex128 3x4
in X complex128 [3, 4] 0.6-0.4j -1.5-1.3j 1.8+1j -0.1-1.7j 1.5+1.5j -1.2+1.8j -1.8+1.7j -0.4-0.3j
  -1.1-1.9j 1.4+1.9j -1.2-0.6j 1+0.8j
out Out float64 [3, 4] 0.6 -1.5 1.8 -0.1 1.5 -1.2 -1.8 -0.4 -1.1 1.4 -1.2 1
)")

HEDDLE_EXAMPLES(real_grad, R"(
example float32
in Out@GRAD float32 [2, 3] 0.44 0.91 0.22 0.59 -0.21 0.5
out X@GRAD complex64 [2, 3] 0.44+0j 0.91+0j 0.22+0j 0.59+0j -0.21+0j 0.5+0j

example float64
in Out@GRAD float64 [3] -0.77 -0.75 -0.95
out X@GRAD complex128 [3] -0.77+0j -0.75+0j -0.95+0j
)")

HEDDLE_EXAMPLES(imag, R"(
example complex128 3x4
in X complex128 [3, 4] 0.6-0.4j -1.5-1.3j 1.8+1j -0.1-1.7j 1.5+1.5j -1.2+1.8j -1.8+1.7j -0.4-0.3j
  -1.1-1.9j 1.4+1.9j -1.2-0.6j 1+0.8j
out Out float64 [3, 4] -0.4 -1.3 1 -1.7 1.5 1.8 1.7 -0.3 -1.9 1.9 -0.6 0.8
)")

HEDDLE_EXAMPLES(imag_grad, R"(
example float64 3x4
in Out@GRAD float64 [3, 4] -0.8 0.2 -0.7 -0.5 -0.3 0.7 0.3 0.1 -0.9 0.5 -0.2 0.6
out X@GRAD complex128 [3, 4] 0-0.8j 0+0.2j 0-0.7j 0-0.5j 0-0.3j 0+0.7j 0+0.3j 0+0.1j 0-0.9j 0+0.5j
  0-0.2j 0+0.6j

example float32 3x4
in Out@GRAD float32 [3, 4] -0.8 0.2 -0.7 -0.5 -0.3 0.7 0.3 0.1 -0.9 0.5 -0.2 0.6
out X@GRAD complex64 [3, 4] 0-0.8j 0+0.2j 0-0.7j 0-0.5j 0-0.3j 0+0.7j 0+0.3j 0+0.1j 0-0.9j 0+0.5j
  0-0.2j 0+0.6j
)")
