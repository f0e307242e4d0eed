#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

template <typename T>
Status DivInts(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(ctx.In("Y")));
  return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<DivFn, T, T>::kLoops);
}

template <typename FX, typename FY, typename T>
Status DivIntsGrad(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(ctx.In("Y")));
  return RunGradOp(ctx, LoopsOf<FX, T>(), LoopsOf<FY, T>(), true);
}

struct DivGradX {
  static constexpr unsigned kUses = kUsesY;
  template <typename T>
  static T Apply(T, T y, T, T dout, double) {
    return DivFn::Apply(dout, Conj(y));
  }
};

struct DivGradY {  // -dout * out / y
  static constexpr unsigned kUses = kUsesY | kUsesOut;
  template <typename T>
  static T Apply(T, T y, T out, T dout, double) {
    if constexpr (std::is_integral_v<T>) {  // multiplied first: a division cuts
      using W = std::conditional_t<sizeof(T) < sizeof(int), int, T>;
      const W negative = SubFn::Apply(W(0), static_cast<W>(dout));
      return static_cast<T>(
          DivFn::Apply(MulFn::Apply(negative, static_cast<W>(out)), static_cast<W>(y)));
    } else {
      return MulFn::Apply(SubFn::Apply(T(0), dout), Conj(DivFn::Apply(out, y)));
    }
  }
};

template <typename... Ts>
void AddIntegerGrads(OpDef& op) {
  (op.Kernel(kDTypeOf<Ts>, &DivIntsGrad<DivGradX, DivGradY, Ts>), ...);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_div) {
  DefineElementwise<DivFn, float, double, float16, bfloat16, std::complex<float>,
                    std::complex<double>>(op, "x / y; integers are cut towards zero");
  op.Kernel(DType::kI32, &DivInts<int32_t>).Kernel(DType::kI64, &DivInts<int64_t>);
  op.Kernel(DType::kI16, &DivInts<int16_t>).Kernel(DType::kI8, &DivInts<int8_t>);
  op.Kernel(DType::kU8, &DivInts<uint8_t>).Kernel(DType::kBool, &DivInts<bool>);
}

HEDDLE_OP(elementwise_div_grad) {
  op.Doc("gradient of x / y");
  DefineElementwiseGrad<DivGradX, DivGradY, float, double, float16, bfloat16, std::complex<float>,
                        std::complex<double>>(op, kUsesY | kUsesOut);
  AddIntegerGrads<bool, uint8_t, int8_t, int16_t, int32_t, int64_t>(op);
}

HEDDLE_TILE(elementwise_div) { return BinaryTile<DivFn>(); }

HEDDLE_EXAMPLES(elementwise_div, R"(
example float64 4x3
in X float64 [4, 3] 0.925 0.172 0.583 0.857 0.788 0.309 0.446 0.514 0.72 0.377 0.24 0.651
in Y float64 [] 0.352
out Out float64 [4, 3] 2.627840909090909 0.48863636363636365 1.65625 2.434659090909091
  2.2386363636363638 0.8778409090909092 1.2670454545454546 1.460227272727273 2.0454545454545454
  1.0710227272727273 0.6818181818181819 1.8494318181818183

example float64 4x3, no. 2
in X float64 [] 0.313
in Y float64 [4, 3] 0.514 0.857 0.309 0.72 0.24 0.788 0.583 0.651 0.925 0.446 0.377 0.172
out Out float64 [4, 3] 0.6089494163424124 0.3652275379229872 1.0129449838187703 0.43472222222222223
  1.3041666666666667 0.39720812182741116 0.5368782161234992 0.4807987711213518 0.33837837837837836
  0.7017937219730942 0.830238726790451 1.8197674418604652

example float32 4x3
in X float32 [4, 3] 0.446 0.169 0.377 0.861 0.308 0.238 0.722 0.792 0.584 0.93 0.653 0.515
in Y float32 [4, 3] 0.652 0.79 0.239 0.583 0.446 0.515 0.308 0.927 0.859 0.171 0.377 0.721
out Out float32 [4, 3] 0.68404907 0.21392405 1.5774059 1.476844 0.69058293 0.46213594 2.3441558
  0.8543689 0.6798603 5.4385962 1.7320955 0.7142857

example float64 2x3x4
in X float64 [2, 3, 4] 0.712 0.64 0.855 0.748 0.208 0.604 0.46 0.28 0.676 0.927 0.496 0.532 0.316
  0.136 0.963 0.819 0.568 0.388 0.424 0.352 0.783 0.244 0.172 0.891
in Y float64 [1, 1, 4] 0.463 0.29 0.81 0.637
out Out float64 [2, 3, 4] 1.5377969762419006 2.2068965517241383 1.0555555555555554
  1.1742543171114599 0.44924406047516197 2.0827586206896553 0.5679012345679012 0.4395604395604396
  1.4600431965442764 3.1965517241379313 0.6123456790123456 0.8351648351648352 0.6825053995680346
  0.46896551724137936 1.1888888888888887 1.2857142857142856 1.2267818574514038 1.3379310344827589
  0.5234567901234567 0.5525902668759811 1.6911447084233262 0.8413793103448276 0.21234567901234566
  1.3987441130298273

example int32 4x3
in X int32 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1
in Y int32 [] 1
out Out int32 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1

example int64 4x3
in X int64 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1
in Y int64 [] 1
out Out int64 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1

example complex64 4x3
in X complex64 [4, 3] 0.925+0.8j 0.172+0.3j 0.583+0.5j 0.857-0.7j 0.788-0.8j 0.309+0.6j 0.446-0.3j
  0.514+0.1j 0.72-0.5j 0.377+0.1j 0.24-0.2j 0.651+0.4j
in Y complex64 [] 0.352+0.7j
out Out complex64 [4, 3] 1.4425708-0.5960215j 0.44069436-0.024108j 0.904402-0.37807217j
  -0.3067841-1.3785543j -0.46037167-1.3572154j 0.8613203-0.008307435j -0.086345755-0.68056244j
  0.4087414-0.52874714j -0.15728839-1.1076651j 0.33018845-0.37253383j -0.0904376-0.38833433j
  0.82936746-0.51294667j

example bool 4x3
in X bool [4, 3] 1*12
in Y bool [] 1
out Out bool [4, 3] 1*12
)")

HEDDLE_EXAMPLES(elementwise_div_grad, R"(
example float64 4
in Out float64 [4] 1.1793478260869565 1.0652173913043477 0.9565217391304347 1.2880434782608696
in Out@GRAD float64 [4] 0.9 -0.8 0.4 0.4
in X float64 [4] 2.17 1.96 1.76 2.37
in Y float64 [1] 1.84
out X@GRAD float64 [4] 0.4891304347826087 -0.43478260869565216 0.21739130434782608
  0.21739130434782608
out Y@GRAD float64 [1] -0.6016658790170133

example float64 scalar
in Out float64 [] 2.03072625698324
in Out@GRAD float64 [] 0.7
in X float64 [] 0.727
in Y float64 [] 0.358
out X@GRAD float64 [] 1.9553072625698324

example float64 4x3
in Out float64 [4, 3] 0.8676767676767677 0.797979797979798 0.38181818181818183 0.31212121212121213
  0.4505050505050505 0.9373737373737374 0.5202020202020202 0.6595959595959596 0.7282828282828283
  0.24242424242424243 0.17272727272727273 0.5898989898989899
in Out@GRAD float64 [4, 3] 0.9 -0.3 -0.2 -0.8 -0.5 0.2 0.8 0.9 0.4 -0.6 0.1 -0.6
in X float64 [4, 3] 0.859 0.79 0.378 0.309 0.446 0.928 0.515 0.653 0.721 0.24 0.171 0.584
in Y float64 [] 0.99
out X@GRAD float64 [4, 3] 0.9090909090909092 -0.30303030303030304 -0.20202020202020204
  -0.8080808080808082 -0.5050505050505051 0.20202020202020204 0.8080808080808082 0.9090909090909092
  0.4040404040404041 -0.6060606060606061 0.10101010101010102 -0.6060606060606061

example float32 4
in Out float32 [4] 1.1793479 1.0652174 0.95652175 1.2880435
in Out@GRAD float32 [4] 0.9 -0.8 0.4 0.4
in X float32 [4] 2.17 1.96 1.76 2.37
in Y float32 [1] 1.84
out X@GRAD float32 [4] 0.4891304 -0.4347826 0.2173913 0.2173913
out Y@GRAD float32 [1] -0.60166585

example bool 4
in Out bool [4] 1*4
in Out@GRAD bool [4] 1*4
in X bool [4] 1*4
in Y bool [1] 1
out X@GRAD bool [4] 1*4
out Y@GRAD bool [1] 1

example int32 4
in Out int32 [4] 8 7 6 9
in Out@GRAD int32 [4] 6 -5 2 2
in X int32 [4] 15 13 12 16
in Y int32 [1] 12
out X@GRAD int32 [4] 0*4
out Y@GRAD int32 [1] -4

example uint8 4
dtypes none: negative sums wrap
in Out uint8 [4] 8 7 6 9
in Out@GRAD uint8 [4] 6 5 2 2
in X uint8 [4] 15 13 12 16
in Y uint8 [1] 12
out X@GRAD uint8 [4] 0*4
out Y@GRAD uint8 [1] 248
)")
