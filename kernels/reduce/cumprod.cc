#include <complex>

#include "core/threads/look_meter.h"
#include "kernels/base/check.h"
#include "kernels/elementwise/arithmetic.h"
#include "kernels/reduce/along_line.h"

namespace heddle {
namespace {

template <typename T>
struct Cumprod {
  static Status Run(KernelContext& ctx) {
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines,
                            AxisLines::At(ctx.In("X").shape(), ctx.Int("dim")));
    const T* x = ctx.In("X").data<T>();
    T* out = ctx.Out("Out").template mutable_data<T>();
    lines.ForEach(ctx, 4, [&](int64_t line) {
      T total(1);
      AlongLine(lines, line,
                [&](int64_t, int64_t at) { out[at] = total = MulFn::Apply(total, x[at]); });
    });
    return Status::Ok();
  }
};

// dx[k] is the sum over i >= k of dout[i] times the product of x[0..i] without x[k]. Past the first
// 0 every such product is 0; at it, the products are those of the others.
template <typename T>
void LineGrad(const AxisLines& lines, int64_t begin, const T* x, const T* out, const T* dout,
              T* dx) {
  int64_t zero = 0;
  LookMeter meter;
  for (; zero < lines.n && x[begin + zero * lines.inner] != T(0); ++zero) meter.Did(1);
  T sum(0);
  for (int64_t k = zero - 1; k >= 0; --k) {
    meter.Did(2);
    const int64_t at = begin + k * lines.inner;
    sum += MulFn::Apply(dout[at], Conj(out[at]));
    dx[at] = sum / Conj(x[at]);
  }
  if (zero == lines.n) return;
  T product = zero == 0 ? T(1) : out[begin + (zero - 1) * lines.inner];
  const int64_t hole = begin + zero * lines.inner;
  T at_hole = MulFn::Apply(dout[hole], Conj(product));
  for (const int64_t i : Watched(zero + 1, lines.n)) {
    const int64_t at = begin + i * lines.inner;
    product = MulFn::Apply(product, x[at]);
    at_hole += MulFn::Apply(dout[at], Conj(product));
    dx[at] = T(0);
  }
  dx[hole] = at_hole;
}

template <typename T>
struct CumprodGrad {
  static Status Run(KernelContext& ctx) {
    const Tensor& x = ctx.In("X");
    const Tensor& out = ctx.In("Out");
    const Tensor& dout = ctx.In("Out@GRAD");
    HEDDLE_RETURN_IF_ERROR(CheckDType(kDTypeOf<T>, {&out, &dout}));
    if (out.numel() != x.numel() || dout.numel() != x.numel())
      return InvalidArgument("Out and Out@GRAD must have X's shape ", x.shape().ToString());
    HEDDLE_ASSIGN_OR_RETURN(const AxisLines lines, AxisLines::At(x.shape(), ctx.Int("dim")));
    T* dx = ctx.Out("X@GRAD").template mutable_data<T>();
    lines.ForEach(ctx, 8, [&](int64_t line) {
      LineGrad(lines, lines.Begin(line), x.data<T>(), out.data<T>(), dout.data<T>(), dx);
    });
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(cumprod) {
  op.Doc("running product along an axis").Input("X").Output("Out").Inplace("X", "Out");
  op.Attr("dim", -1).InferShape(&SameShape);
  op.Kernels<Cumprod, float, double, int32_t, int64_t, std::complex<float>, std::complex<double>>();
}

HEDDLE_OP(cumprod_grad) {
  op.Doc("gradient of cumprod").Input("X").Input("Out").Input("Out@GRAD").Output("X@GRAD");
  op.Attr("dim", -1).InferShape(&GradLikeInputs);
  op.Kernels<CumprodGrad, float, double, std::complex<float>, std::complex<double>>();
}

HEDDLE_EXAMPLES(cumprod, R"(
example float32 2x3x4x3, dim -3
attr dim INT -3
in X float32 [2, 3, 4, 3] 0.534 0.673 0.793 0.654 0.527 0.859 0.926 0.521 0.567 0.56 0.74 0.713 0.76
  0.733 0.853 0.547 0.766 0.727 0.634 0.607 0.939 0.687 0.966 0.813 0.959 0.953 0.62 0.886 0.919
  0.66 0.879 0.614 0.554 0.68 0.8 0.72 0.753 0.58 0.587 0.541 0.6 0.826 0.574 0.7 0.647 0.833 0.627
  0.594 0.979 0.693 0.866 0.873 0.667 0.899 0.707 0.84 0.64 0.972 0.78 0.893 0.786 0.82 0.946 0.906
  0.747 0.773 0.806 0.507 0.913 0.514 0.933 0.846
out Out float32 [2, 3, 4, 3] 0.534 0.673 0.793 0.654 0.527 0.859 0.926 0.521 0.567 0.56 0.74 0.713
  0.40583998 0.49330896 0.676429 0.357738 0.403682 0.624493 0.587084 0.31624702 0.532413 0.38472
  0.71484 0.579669 0.38920054 0.47012344 0.41938597 0.31695586 0.37098375 0.4121654 0.5160468
  0.19417568 0.2949568 0.2616096 0.571872 0.4173617 0.753 0.58 0.587 0.541 0.6 0.826 0.574 0.7 0.647
  0.833 0.627 0.594 0.737187 0.40194 0.508342 0.47229302 0.4002 0.742574 0.40581802 0.588 0.41408
  0.809676 0.48905995 0.530442 0.57942903 0.3295908 0.48089156 0.42789748 0.2989494 0.57400966
  0.3270893 0.29811603 0.37805504 0.41617346 0.45629296 0.44875395

example float64 2x3x4x3, dim -3
attr dim INT -3
in X float64 [2, 3, 4, 3] 0.534 0.673 0.793 0.654 0.527 0.859 0.926 0.521 0.567 0.56 0.74 0.713 0.76
  0.733 0.853 0.547 0.766 0.727 0.634 0.607 0.939 0.687 0.966 0.813 0.959 0.953 0.62 0.886 0.919
  0.66 0.879 0.614 0.554 0.68 0.8 0.72 0.753 0.58 0.587 0.541 0.6 0.826 0.574 0.7 0.647 0.833 0.627
  0.594 0.979 0.693 0.866 0.873 0.667 0.899 0.707 0.84 0.64 0.972 0.78 0.893 0.786 0.82 0.946 0.906
  0.747 0.773 0.806 0.507 0.913 0.514 0.933 0.846
out Out float64 [2, 3, 4, 3] 0.534 0.673 0.793 0.654 0.527 0.859 0.926 0.521 0.567 0.56 0.74 0.713
  0.40584000000000003 0.493309 0.6764290000000001 0.35773800000000006 0.40368200000000004 0.624493
  0.587084 0.316247 0.5324129999999999 0.38472000000000006 0.7148399999999999 0.5796689999999999
  0.38920056000000003 0.47012347699999996 0.41938598000000005 0.31695586800000003
  0.37098375800000005 0.41216537999999997 0.516046836 0.194175658 0.29495680199999996
  0.26160960000000005 0.5718719999999999 0.4173616799999999 0.753 0.58 0.587 0.541 0.6 0.826 0.574
  0.7 0.647 0.833 0.627 0.594 0.737187 0.40193999999999996 0.508342 0.472293 0.4002 0.742574
  0.40581799999999996 0.588 0.41408 0.809676 0.48906 0.530442 0.579428982 0.32959079999999996
  0.48089153199999995 0.427897458 0.2989494 0.574009702 0.32708930799999997 0.298116 0.37805504
  0.416173464 0.45629298 0.44875393199999997

example int32 2x3x4x3, dim -3
attr dim INT -3
in X int32 [2, 3, 4, 3] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4 1 1 0 1 0 1*5 0 1 1 0 0 1 0 0 1 0 1 0 0
  1 0 1*4 0*4 1 1 1 0 1 0 1 0 0 1 0 1 1 0 0 1 0 1 0
out Out int32 [2, 3, 4, 3] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0*7 1 0 1 0 1 0*9 1 0 0 1 0 1 0 0 1 0 1 1 1
  0*7 1 0 1 0 1 0*12

example int64 2x3x4x3, dim -3
attr dim INT -3
in X int64 [2, 3, 4, 3] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0 1 0*4 1 1 0 1 0 1*5 0 1 1 0 0 1 0 0 1 0 1 0 0
  1 0 1*4 0*4 1 1 1 0 1 0 1 0 0 1 0 1 1 0 0 1 0 1 0
out Out int64 [2, 3, 4, 3] 1 1 0 0 1 1 0 1 0 1 1 1 0 1 0*7 1 0 1 0 1 0*9 1 0 0 1 0 1 0 0 1 0 1 1 1
  0*7 1 0 1 0 1 0*12

example complex64 2x3x4x3, dim -3
attr dim INT -3
in X complex64 [2, 3, 4, 3] 0.534+0.8j 0.673+0.3j 0.793+0.5j 0.654-0.7j 0.527-0.8j 0.859+0.6j
  0.926-0.3j 0.521+0.1j 0.567-0.5j 0.56+0.1j 0.74-0.2j 0.713+0.4j 0.76+0.7j 0.733+0.2j 0.853-0.4j
  0.547-0.4j 0.766+0.4j 0.727-0.2j 0.634-0.9j 0.607+0.5j 0.939-0.1j 0.687-0.6j 0.966-0.9j 0.813-0.4j
  0.959-0.9j 0.953+0.5j 0.62-0.9j 0.886-0.1j 0.919-0.3j 0.66-0.7j 0.879+0.1j 0.614-0.1j 0.554-0.9j
  0.68+0.6j 0.8-0.5j 0.72-0.7j 0.753+0.3j 0.58-0.8j 0.587-0.3j 0.541-0.2j 0.6-0.1j 0.826+1j
  0.574+0.5j 0.7-0.4j 0.647+0.8j 0.833+0.6j 0.627-0.5j 0.594-0.4j 0.979-0.7j 0.693-0.2j 0.866+0.9j
  0.873-0.3j 0.667-0.1j 0.899+0.8j 0.707+0.9j 0.84-0.5j 0.64+0.4j 0.972-0.9j 0.78-0.7j 0.893+0j
  0.786+0.2j 0.82-0.3j 0.946-0.7j 0.906-0.5j 0.747+0.7j 0.773+0.4j 0.806+1j 0.507-0.4j 0.913-0.1j
  0.514+0.7j 0.933+0.3j 0.846-0.3j
out Out complex64 [2, 3, 4, 3] 0.534+0.8j 0.673+0.3j 0.793+0.5j 0.654-0.7j 0.527-0.8j 0.859+0.6j
  0.926-0.3j 0.521+0.1j 0.567-0.5j 0.56+0.1j 0.74-0.2j 0.713+0.4j -0.15416002+0.98179996j
  0.43330896+0.3545j 0.87642896+0.10929999j 0.07773799-0.6445j 0.72368205-0.402j 0.744493+0.2644j
  0.31708398-1.0236j 0.266247+0.3212j 0.482413-0.5262j 0.44472-0.2673j 0.53484-0.8592j
  0.739669+0.04000002j 0.7357805+1.0802902j 0.23569345+0.55449295j 0.64175594-0.72102004j
  0.0044258535-0.5788008j 0.5444638-0.58654267j 0.6764454-0.3466411j 0.38107684-0.868036j
  0.19559567+0.17059211j -0.20632318-0.7256865j 0.4627896+0.08506802j -0.0017279983-0.95478j
  0.5605617-0.4889683j 0.753+0.3j 0.58-0.8j 0.587-0.3j 0.541-0.2j 0.6-0.1j 0.826+1j 0.574+0.5j
  0.7-0.4j 0.647+0.8j 0.833+0.6j 0.627-0.5j 0.594-0.4j 0.94718707-0.23340002j 0.24193998-0.6704j
  0.778342+0.26849997j 0.41229302-0.3369j 0.39020002-0.12670001j -0.057426035+1.5597999j
  -0.044181973+0.8701j 0.388-0.686j 0.09407997+0.7708j 1.349676-0.16649997j 0.13905996-0.8289j
  0.530442-0.3572j 0.79116905+0.0059850067j -0.002729237-0.62231004j 0.92426145-0.29083842j
  0.20508748-0.51137793j 0.38016942+0.17849511j -0.6683103+1.1827549j -0.9057107+0.6571187j
  -0.077683985-0.50300205j 0.16297501+0.69433236j 0.8102834+0.8591922j 0.37841296-0.7316457j
  0.34159395-0.4613238j
)")

HEDDLE_EXAMPLES(cumprod_grad, R"(
example float64 5, dim -1
attr dim INT -1
in Out float64 [5] 0.922 0.7514299999999999 0.5312610099999999 0.60404376837 0.6215610376527299
in Out@GRAD float64 [5] -0.5 -0.9 0.2 -0.7 0.4
in X float64 [5] 0.922 0.815 0.707 1.137 1.029
out X@GRAD float64 [5] -1.3072028425139999 -0.9131791666232 -0.09611601244399987
  -0.15321567528399996 0.241617507348

example float32 5, dim -1
attr dim INT -1
in Out float32 [5] 0.922 0.75143 0.531261 0.6040438 0.62156105
in Out@GRAD float32 [5] -0.5 -0.9 0.2 -0.7 0.4
in X float32 [5] 0.922 0.815 0.707 1.137 1.029
out X@GRAD float32 [5] -1.3072028 -0.91317916 -0.09611598 -0.15321565 0.24161752
)")
