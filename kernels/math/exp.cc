// exp and expm1.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Exp : UnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    return fast::Exp(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return dy * fast::Conj(y);
  }
};

struct Expm1 : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsOut;
  template <typename T>
  T Forward(T x) const {
    if constexpr (kIsComplex<T>)
      return std::exp(x) - T(1);
    else
      return std::expm1(x);
  }
  template <typename T>
  T Grad(T y, T dy) const {
    return dy * fast::Conj(y + T(1));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(exp) { DefineFloatUnary<Exp, complex64, complex128>(op, "e to the power x."); }
HEDDLE_OP(exp_grad) { DefineUnaryGrad<Exp, int32_t, int64_t, complex64, complex128>(op); }
HEDDLE_OP(expm1) {
  DefineFloatUnary<Expm1, complex64, complex128>(op, "exp(x) - 1, exact near 0.");
}
HEDDLE_OP(expm1_grad) { DefineUnaryGrad<Expm1, complex64, complex128>(op); }

HEDDLE_TILE(exp) { return UnaryTile<Exp>(); }
HEDDLE_TILE(exp_grad) { return UnaryGradTile<Exp>(); }

HEDDLE_EXAMPLES(exp, R"(
example float64 2x4
in X float64 [2, 4] 4 7 2 6 6 -1 5 -4
out Out float64 [2, 4] 54.598150033144236 1096.6331584284585 7.38905609893065 403.4287934927351
  403.4287934927351 0.3678794411714423 148.4131591025766 0.018315638888734182

example float32 4x3
in X float32 [4, 3] 0.932 0.191 0.595 0.865 0.797 0.326 0.461 0.528 0.73 0.393 0.259 0.663
out Out float32 [4, 3] 2.5395832 1.2104595 1.813031 2.3750062 2.2188742 1.3854153 1.5856588
  1.6955378 2.0750806 1.4814184 1.2956338 1.9406054

example complex64 4x3
in X complex64 [4, 3] -1.9+0j 1+1.8j 0-0.7j -0.1-1.1j -1.8-1.1j 0.2-1.1j 1.3+0.3j -1.9-1.4j
  -1.5-1.8j 0.3+1.6j -1.1-0.8j 1.3-0.8j
out Out complex64 [4, 3] 0.14956862+0j -0.6175992+2.6471922j 0.7648422-0.64421767j
  0.41043073-0.8063978j 0.07497893-0.14731559j 0.5540235-1.0885231j 3.5054128+1.0843513j
  0.025421754-0.14739235j -0.050695628-0.21729478j -0.039415266+1.3492833j 0.23191352-0.2387871j
  2.5564234-2.6321921j

example float32 2
in X float32 [2] -0.846 -0.767
out Out float32 [2] 0.42912802 0.4644042

example int32 2x4
in X int32 [2, 4] 3 0 0 7 1 4 -4 5
out Out float32 [2, 4] 20.085537 1 1 1096.6332 2.7182817 54.59815 0.01831564 148.41316

example int64 2x4
in X int64 [2, 4] 3 0 0 7 1 4 -4 5
out Out float32 [2, 4] 20.085537 1 1 1096.6332 2.7182817 54.59815 0.01831564 148.41316

example float16 2x4
in X float16 [2, 4] 4 7 2 6 6 -1 5 -4
out Out float16 [2, 4] 54.6 1096 7.387 403.2 403.2 0.3677 148.4 0.01831
)")

HEDDLE_EXAMPLES(exp_grad, R"(
example float64 2
in Out float64 [2] 0.418951549247639 0.2538529796043867
in Out@GRAD float64 [2] -0.7 -0.7
out X@GRAD float64 [2] -0.2932660844733473 -0.17769708572307066

example float64 scalar
in Out float64 [] 1.22
in Out@GRAD float64 [] -0.2
out X@GRAD float64 [] -0.244

example float64 4x3
in Out float64 [4, 3] 1.74 1.25 1.62 2.47 1.5 1.38 2.23 2.35 1.98 2.59 2.11 1.86
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
out X@GRAD float64 [4, 3] -1.044 -0.75 -1.134 1.235 -0.75 0.414 0.446 -0.47000000000000003 1.386 -0
  -1.055 1.302

example float32 2
in Out float32 [2] 0.41895154 0.253853
in Out@GRAD float32 [2] -0.7 -0.7
out X@GRAD float32 [2] -0.2932661 -0.17769709

example int32 2
in Out int32 [2] 2 1
in Out@GRAD int32 [2] -4 -4
out X@GRAD int32 [2] -8 -4
)")

HEDDLE_EXAMPLES(expm1, R"(
example float64 3x3
in X float64 [3, 3] 14.3641 32.9476 40.8321 19.713600000000003 69.5556 59.136100000000006 49.5616
  25.908099999999997 9.8596
out Out float64 [3, 3] 1730808.8875125172 203685855733929.44 5.409482429733052e+17 364340707.4354248
  1.6129216279043767e+30 4.813732039941316e+25 3.34448609208859e+21 178543838168.62018
  19140.23141137807

example float32 1x6
in X float32 [1, 6] 0.65 -0.78 0.29 -0.42 -0.07 1
out Out float32 [1, 6] 0.9155408 -0.54159397 0.33642748 -0.34295318 -0.06760618 1.7182817

example complex64 4x3
in X complex64 [4, 3] -1.9+0j 1+1.8j 0-0.7j -0.1-1.1j -1.8-1.1j 0.2-1.1j 1.3+0.3j -1.9-1.4j
  -1.5-1.8j 0.3+1.6j -1.1-0.8j 1.3-0.8j
out Out complex64 [4, 3] -0.8504314+0j -1.6175992+2.6471922j -0.23515779-0.64421767j
  -0.5895693-0.8063978j -0.92502105-0.14731559j -0.4459765-1.0885231j 2.5054128+1.0843513j
  -0.97457826-0.14739235j -1.0506957-0.21729478j -1.0394152+1.3492833j -0.7680865-0.2387871j
  1.5564234-2.6321921j

example complex128 4x3
in X complex128 [4, 3] 1-1.7j 1.4+0.2j -0.4-0.7j -0.6+0.8j 0.6+0.1j -1.3+1.1j -0.2+1.4j -1.5+0.1j
  -0.5-0.1j 0.2+1.6j -0.3-1.7j -1.7-1.1j
out Out complex128 [4, 3] -1.3502356475405197-2.6956244341752287j
  2.974365953967377+0.805643863653186j -0.48731094980946255-0.43183202976614216j
  -0.6176392509654969+0.3936933699085822j 0.813015796019956+0.18190834537940437j
  -0.8763806357146138+0.24288233980265186j -0.8608426730947727+0.8068179995539458j
  -0.7779845612531594+0.022275846244571684j -0.39649946721710083-0.06055202806016688j
  -1.0356643770757537+1.2208819557389932j -1.0954503490086462-0.7346433603920708j
  -0.9171354620413233-0.1628089011977574j

example int32 3x3
in X int32 [3, 3] 33 41 30 30 53 47 34 41 42
out Out float32 [3, 3] 214643590000000 6.398435e+17 10686475000000 10686475000000 1.0413759e+23
  2.5813127e+20 583461800000000 6.398435e+17 1.739275e+18

example int64 3x3
in X int64 [3, 3] 33 41 30 30 53 47 34 41 42
out Out float32 [3, 3] 214643590000000 6.398435e+17 10686475000000 10686475000000 1.0413759e+23
  2.5813127e+20 583461800000000 6.398435e+17 1.739275e+18

example float16 3x3
in X float16 [3, 3] 14.37 32.94 40.84 19.72 69.56 59.12 49.56 25.9 9.86
out Out float16 [3, 3] inf*8 19120
)")

HEDDLE_EXAMPLES(expm1_grad, R"(
example float64 1x6
in Out float64 [1, 6] -0.5415939886947765 0.9155408290138961 -0.3429531801849432 0.33642748802547207
  1.718281828459045 -0.06760618009405178
in Out@GRAD float64 [1, 6] -0.6 0.6 0.7 -0.3 -0.5 0.6
out X@GRAD float64 [1, 6] -0.2750436067831341 1.1493244974083376 0.45993277387053977
  -0.4009282464076416 -1.3591409142295225 0.5594362919435689

example float64 2
in Out float64 [2] 0.6989323086185507 -0.676966743577747
in Out@GRAD float64 [2] -0.7 -0.7
out X@GRAD float64 [2] -1.1892526160329855 -0.2261232794955771

example float64 scalar
in Out float64 [] 0.21652690533431623
in Out@GRAD float64 [] -0.2
out X@GRAD float64 [] -0.24330538106686325

example float32 1x6
in Out float32 [1, 6] -0.54159397 0.9155408 -0.34295318 0.33642748 1.7182819 -0.06760618
in Out@GRAD float32 [1, 6] -0.6 0.6 0.7 -0.3 -0.5 0.6
out X@GRAD float32 [1, 6] -0.27504364 1.1493245 0.45993277 -0.40092826 -1.3591409 0.5594363
)")
