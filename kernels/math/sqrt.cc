// sqrt and rsqrt.
#include <cmath>

#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

struct Sqrt : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    return std::sqrt(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return T(0.5) * dy / y;
  }
};

struct SqrtGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "grad_x", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T y, T dx, T ddx) const {
    return {-dx * ddx / y, T(0.5) * ddx / y};
  }
};

struct Rsqrt : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    return T(1) / std::sqrt(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return T(-0.5) * dy * y * y * y;
  }
};

struct RsqrtGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"Out", "grad_x", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"Out@GRAD", "grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T y, T dx, T ddx) const {
    return {T(3) / y * dx * ddx, T(-0.5) * y * y * y * ddx};
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(sqrt) { DefineUnary<Sqrt>(op, "Square root."); }
HEDDLE_OP(sqrt_grad) { DefineUnaryGrad<Sqrt>(op); }
HEDDLE_OP(sqrt_grad_grad) { DefineMap<SqrtGradGrad>(op); }
HEDDLE_OP(rsqrt) { DefineUnary<Rsqrt>(op, "1 / sqrt(x)"); }
HEDDLE_OP(rsqrt_grad) { DefineUnaryGrad<Rsqrt>(op); }
HEDDLE_OP(rsqrt_grad_grad) { DefineMap<RsqrtGradGrad>(op); }

HEDDLE_TILE(sqrt) { return UnaryTile<Sqrt>(); }
HEDDLE_TILE(sqrt_grad) { return UnaryGradTile<Sqrt>(); }
HEDDLE_TILE(rsqrt) { return UnaryTile<Rsqrt>(); }
HEDDLE_TILE(rsqrt_grad) { return UnaryGradTile<Rsqrt>(); }

HEDDLE_EXAMPLES(sqrt, R"(
example float32 6
in X float32 [6] 400 400 401 409 409 425
out Out float32 [6] 20 20 20.024984 20.22375 20.22375 20.615528

example float32 2x5x1
in X float32 [2, 5, 1] 0.56 1.48 3.03 1.79 0.87 2.41 3.34 1.18 2.72 2.1
out Out float32 [2, 5, 1] 0.7483315 1.2165526 1.7406895 1.3379087 0.9327378 1.5524175 1.8275666
  1.086278 1.6492423 1.4491377

example float32 4x3
in X float32 [4, 3] 0.314 0.723 0.45 0.382 0.587 0.518 0.178 0.655 0.791 0.859 0.927 0.246
out Out float32 [4, 3] 0.56035703 0.8502941 0.6708204 0.6180615 0.76615924 0.71972215 0.42190042
  0.8093206 0.8893818 0.92682254 0.9628084 0.49598387

example float64 scalar
in X float64 [] 0.923
out Out float64 [] 0.960728889958036
)")

HEDDLE_EXAMPLES(sqrt_grad, R"(
example float64 4x3
in Out float64 [4, 3] 0.69 0.793 0.536 0.587 0.946 0.382 0.434 0.639 0.844 0.741 0.485 0.895
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float64 [4, 3] -0.4347826086956522 -0.3783102143757881 -0.6529850746268656
  0.42589437819420783 -0.2642706131078224 0.3926701570680628 0.2304147465437788 -0.1564945226917058
  0.4146919431279621 -0 -0.5154639175257733 0.39106145251396646

example float64 scalar
in Out float64 [] 0.961
in Out@GRAD float64 [] -0.2
out X@GRAD float64 [] -0.10405827263267431

example float32 4x3
in Out float32 [4, 3] 0.69 0.793 0.536 0.587 0.946 0.382 0.434 0.639 0.844 0.741 0.485 0.895
in Out@GRAD float32 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float32 [4, 3] -0.43478262 -0.37831023 -0.65298504 0.42589438 -0.26427063 0.39267018
  0.23041476 -0.15649453 0.41469195 -0 -0.5154639 0.39106146
)")

HEDDLE_EXAMPLES(sqrt_grad_grad, R"(
example float64 4x3
in Out float64 [4, 3] 0.485 0.844 0.793 0.639 0.434 0.587 0.69 0.946 0.382 0.895 0.741 0.536
in grad_x float64 [4, 3] 0.26 0.42 0.34 0.68 0.54 0.64 0.7 0.28 0.26 0.7 0.66 0.29
in grad_x@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out Out@GRAD float64 [4, 3] -0.053608247422680416 0.24881516587677724 -0.08575031525851198
  0.8513302034428796 -1.1198156682027651 -0 -0.8115942028985507 0.23678646934460892
  0.5445026178010471 0.7821229050279329 -0.5344129554655871 0.5410447761194029
out grad_out@GRAD float64 [4, 3] 0.10309278350515465 -0.2962085308056872 0.12610340479192939
  -0.6259780907668232 1.0368663594470047 0 0.5797101449275364 -0.4228329809725159
  -1.0471204188481675 -0.5586592178770949 0.4048582995951417 -0.9328358208955223

example float32 4x3
in Out float32 [4, 3] 0.485 0.844 0.793 0.639 0.434 0.587 0.69 0.946 0.382 0.895 0.741 0.536
in grad_x float32 [4, 3] 0.26 0.42 0.34 0.68 0.54 0.64 0.7 0.28 0.26 0.7 0.66 0.29
in grad_x@GRAD float32 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out Out@GRAD float32 [4, 3] -0.053608242 0.24881516 -0.08575032 0.8513303 -1.1198157 -0 -0.8115942
  0.23678648 0.5445026 0.7821229 -0.534413 0.5410448
out grad_out@GRAD float32 [4, 3] 0.10309278 -0.29620853 0.12610342 -0.6259781 1.0368663 0 0.5797101
  -0.422833 -1.0471205 -0.55865926 0.40485832 -0.9328358
)")

HEDDLE_EXAMPLES(rsqrt, R"(
example float32 5
in X float32 [5] 2.72 0.61 2.19 1.14 1.66
out Out float32 [5] 0.60633904 1.2803688 0.6757374 0.93658584 0.7761505

example float32 4x3
in X float32 [4, 3] 2.7 3.46 1.55 1.93 4.6 0.41 0.79 2.32 3.84 3.08 1.17 4.22
out Out float32 [4, 3] 0.6085806 0.5376033 0.8032193 0.7198158 0.4662524 1.5617377 1.1250879
  0.65653217 0.51031035 0.5698029 0.9245003 0.4867924

example float64 4x3
in X float64 [4, 3] 0.241 0.654 0.791 0.516 0.172 0.928 0.86 0.722 0.379 0.447 0.31 0.585
out Out float64 [4, 3] 2.0370021093167763 1.2365484170737449 1.1243764952899702 1.3921151159742613
  2.4112141108520606 1.0380684981717496 1.0783277320343843 1.1768778828946262 1.62435292576479
  1.495706008988526 1.796053020267749 1.307440900921227

example float64 scalar
in X float64 [] 0.683
out Out float64 [] 1.2100119186760987
)")

HEDDLE_EXAMPLES(rsqrt_grad, R"(
example float64 5
in Out float64 [5] 1.2803687993289599 0.675737378399486 0.936585811581694 0.6063390625908324
  0.7761505257063328
in Out@GRAD float64 [5] -0.8 0.4 0.1 -0.3 -0.2
out X@GRAD float64 [5] 0.8395860979206297 -0.06171117610954212 -0.04107832506937254
  0.033437815951700305 0.04675605576544173

example float64 4x3
in Out float64 [4, 3] 1.796053020267749 1.62435292576479 1.1768778828946262 1.1243764952899702
  1.0380684981717496 1.307440900921227 1.3921151159742613 2.4112141108520606 2.0370021093167763
  1.495706008988526 1.2365484170737449 1.0783277320343843
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float64 [4, 3] 1.7381158260655634 1.2857674874127625 0.5705086689932399
  -0.3553655168425949 0.27965207386092394 -0.3352412566464684 -0.26978975115780257
  1.4018686691000353 -2.9583018185098404 0 0.4726867037743673 -0.4388543095488774

example float64 scalar
in Out float64 [] 1.21
in Out@GRAD float64 [] -0.2
out X@GRAD float64 [] 0.17715609999999998

example float32 5
in Out float32 [5] 1.2803688 0.6757374 0.9365858 0.60633904 0.7761505
in Out@GRAD float32 [5] -0.8 0.4 0.1 -0.3 -0.2
out X@GRAD float32 [5] 0.8395862 -0.061711177 -0.041078325 0.033437815 0.046756055
)")

HEDDLE_EXAMPLES(rsqrt_grad_grad, R"(
example float64 scalar
in Out float64 [] 1.21
in grad_x float64 [] -1.07
in grad_x@GRAD float64 [] -0.6
out Out@GRAD float64 [] 1.5917355371900828
out grad_out@GRAD float64 [] 0.5314682999999999

example float64 4x3
in Out float64 [4, 3] 2.13 2.46 1.65 1.81 2.94 1.16 1.33 1.97 2.62 2.3 1.49 2.78
in grad_x float64 [4, 3] -14.7 -18.2 -21.7 -32.3 -25.3 -7.6 -4 -43 -28.8 -39.4 -11.1 -35.9
in grad_x@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out Out@GRAD float64 [4, 3] -2.0704225352112675 11.097560975609756 -7.890909090909091
  42.828729281767956 -23.234693877551024 -0 -7.218045112781955 52.385786802030466 26.38167938931298
  51.391304347826086 -13.409395973154362 38.74100719424461
out grad_out@GRAD float64 [4, 3] -0.48317984999999997 3.7217339999999997 -0.44921249999999996
  2.3718964000000007 -11.435482799999999 -0 -0.9410548000000002 3.0581492 7.1938912
  6.083499999999998 -0.9923847 10.742475999999998

example float32 4x3
in Out float32 [4, 3] 2.13 2.46 1.65 1.81 2.94 1.16 1.33 1.97 2.62 2.3 1.49 2.78
in grad_x float32 [4, 3] -14.7 -18.2 -21.7 -32.3 -25.3 -7.6 -4 -43 -28.8 -39.4 -11.1 -35.9
in grad_x@GRAD float32 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out Out@GRAD float32 [4, 3] -2.0704224 11.097562 -7.8909097 42.82873 -23.234694 -0 -7.218045
  52.385784 26.381681 51.391308 -13.409396 38.74101
out grad_out@GRAD float32 [4, 3] -0.48317993 3.721734 -0.4492125 2.3718963 -11.435483 -0 -0.9410548
  3.0581493 7.19389 6.0835 -0.9923848 10.7424755
)")
