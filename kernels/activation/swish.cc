#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/gemm/gemm_epilogue.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

struct Swish : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  explicit Swish(const KernelContext& ctx) : beta(ctx.Float("beta")) {}
  static void Declare(OpDef& op) { op.Attr("beta", 1.0); }
  bool Many(const float* x, int64_t n, float* y) const {
    ActivateMany(Activation::kSwish, static_cast<float>(beta), x, n, y);
    return true;
  }
  template <typename T>
  T Forward(T x) const {
    return x / (T(1) + fast::Exp(T(-beta) * x));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T s = fast::Sigmoid(T(beta) * x);
    return dy * s * (T(1) + T(beta) * x * (T(1) - s));
  }
  double beta;
};

struct Silu : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  bool Many(const float* x, int64_t n, float* y) const {
    ActivateMany(Activation::kSwish, 1, x, n, y);
    return true;
  }
  template <typename T>
  T Forward(T x) const {
    return x / (T(1) + fast::Exp(-x));
  }
  template <typename T>
  T Grad(T x, T dy) const {
    const T s = fast::Sigmoid(x);
    return dy * fast::Conj(s * (T(1) + x * (T(1) - s)));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(swish) { DefineUnary<Swish>(op, "x * sigmoid(beta * x)"); }
HEDDLE_OP(swish_grad) { DefineUnaryGrad<Swish>(op); }
HEDDLE_OP(silu) { DefineUnary<Silu, complex64, complex128>(op, "x * sigmoid(x)"); }
HEDDLE_OP(silu_grad) {
  DefineUnaryGrad<Silu, complex64, complex128>(op).Input(
      "Out", kOptional | kNoBuffer);  // named by programs, not needed
}

HEDDLE_TILE(swish) { return UnaryTile<Swish>(); }
HEDDLE_TILE(swish_grad) { return UnaryGradTile<Swish>(); }
HEDDLE_TILE(silu) { return UnaryTile<Silu>(); }
HEDDLE_TILE(silu_grad) { return UnaryGradTile<Silu>(); }

HEDDLE_EXAMPLES(swish, R"(
example float64 4x3, beta 1
attr beta FLOAT 1.0
in X float64 [4, 3] -0.23 -0.84 -0.38 0.69 -0.53 -0.69 0.38 0.54 0.08 0.84 0.23 -0.08
out Out float64 [4, 3] -0.10183299344233221 -0.2532892185578674 -0.1543282208850258
  0.4595171794587559 -0.19637395065728072 -0.230482820541244 0.22567177911497424 0.3411787055774949
  0.04159914721244655 0.5867107814421325 0.1281670065576678 -0.03840085278755346

example float32 2x2x3, beta 1
attr beta FLOAT 1.0
in X float32 [2, 2, 3] -2.17 1.44 -0.96 -1.57 0.24 -0.36 -3.37 0.84 2.05 2.65 3.25 -2.77
out Out float32 [2, 2, 3] -0.22237515 1.1641748 -0.26580307 -0.27037975 0.13433129 -0.14794543
  -0.11204007 0.58671075 1.8161925 2.4751294 3.1286874 -0.16333863

example float64 scalar, beta 1
attr beta FLOAT 1.0
in X float64 [] 0.295
out Out float64 [] 0.16909983294055125

example float32 scalar, beta 1
attr beta FLOAT 1.0
in X float32 [] 1.03
out Out float32 [] 0.7590233
)")

HEDDLE_EXAMPLES(swish_grad, R"(
example float64 2x2x3, beta 1
attr beta FLOAT 1.0
in Out@GRAD float64 [2, 2, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [2, 2, 3] -0.96 -3.37 -1.57 2.65 -2.17 -2.77 1.44 2.05 0.24 3.25 0.84 -0.36
out X@GRAD float64 [2, 2, 3] -0.050802120720418606 0.0450413000917009 0.03611966464737899
  0.5486711549101929 0.04855489107869658 -0.028422006839253215 0.20628937995341534
  -0.21861774234176387 0.4332005135423557 -0 -0.4376894623768369 0.22666960228106794

example float64 4x3, beta 1
attr beta FLOAT 1.0
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 0.38 0.23 0.08 -0.38 -0.08 0.69 0.84 -0.84 -0.23 -0.69 0.54 -0.53
out X@GRAD float64 [4, 3] -0.4113146894048632 -0.36839644303298646 -0.37797016198059535
  0.15723775882928065 -0.23002131287100336 0.24583825872502915 0.17507578495073478
  -0.02492421504926522 0.2702041497948492 -0 -0.378715090231303 0.1728319617244699

example float64 scalar, beta 1
attr beta FLOAT 1.0
in Out@GRAD float64 [] -0.2
in X float64 [] 0.295
out X@GRAD float64 [] -0.12907764756440107

example float32 2x2x3, beta 1
attr beta FLOAT 1.0
in Out@GRAD float32 [2, 2, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float32 [2, 2, 3] -0.96 -3.37 -1.57 2.65 -2.17 -2.77 1.44 2.05 0.24 3.25 0.84 -0.36
out X@GRAD float32 [2, 2, 3] -0.05080213 0.0450413 0.03611965 0.5486711 0.04855489 -0.028422007
  0.2062894 -0.21861775 0.4332005 -0 -0.43768945 0.22666956
)")

HEDDLE_EXAMPLES(silu, R"(
example float32 6
in X float32 [6] -0.87 -0.19 1.18 2.54 0.49 1.86
out Out float32 [6] -0.25687122 -0.08600206 0.9026383 2.354323 0.30385217 1.6094522

example float32 4x3
in X float32 [4, 3] -0.53 0.54 0.39 -0.07 -0.69 -0.23 0.08 0.85 -0.84 0.69 0.23 -0.38
out Out float32 [4, 3] -0.19637394 0.34117872 0.23255023 -0.033775497 -0.23048282 -0.10183299
  0.041599143 0.5954821 -0.25328922 0.45951718 0.12816702 -0.15432821

example complex64 4x3
in X complex64 [4, 3] 0.9-0.2j -1.5-1j -0.5+1.3j 0.4-0.3j -2-1.4j -0.3-0.9j -0.6+1.7j -1.1+1.9j
  -0.2-0.5j 1+1.3j 1.9-0.8j -1.1-0.3j
out Out complex64 [4, 3] 0.63319-0.17958586j -0.3433836+0.08621219j -0.60555166+0.23455222j
  0.21857311-0.20927931j -0.2530712+0.19626296j -0.33406028-0.29730588j -0.91698486+0.05628562j
  -0.67219406-0.38013053j -0.1525507-0.19821142j 0.47861892+1.3379896j 1.6348593-0.88335955j
  -0.2869222-0.011698447j

example complex128 4x3
in X complex128 [4, 3] -1.9+0j 1+1.8j 0-0.7j -0.1-1.1j -1.8-1.1j 0.2-1.1j 1.3+0.3j -1.9-1.4j
  -1.5-1.8j 0.3+1.6j -1.1-0.8j 1.3-0.8j
# Paddle computes with constants of single precision.
close 1e-06 1e-07
out Out complex128 [4, 3] -0.24720609977771488+0j 0.28047952607181525+2.073820220785601j
  -0.12775996738729-0.34999999842764784j -0.3826173289567188-0.48167962627092636j
  -0.29406042413411315+0.12965050139684597j -0.2189538718213685-0.6856182121401032j
  1.012108583193448+0.3027023969361522j -0.27688328158905245+0.1985958832364575j
  -0.41097585643345774+0.34540176644846915j -0.5920056185305758+1.18730165396077j
  -0.36073105317765686-0.007308084611529125j 0.9562676923649696-0.8294592270023408j

example float64 6
in X float64 [6] -0.87 -0.19 1.18 2.54 0.49 1.86
out Out float64 [6] -0.25687124274166084 -0.08600205255281304 0.9026384084412423 2.3543230195071594
  0.30385215184811415 1.6094523233692277
)")

HEDDLE_EXAMPLES(silu_grad, R"(
example float64 6
in Out float64 [6] -0.25687124274166084 -0.08600205255281304 0.9026384084412423 2.3543230195071594
  0.30385215184811415 1.6094523233692277
in Out@GRAD float64 [6] 0.2 -0.7 -0.1 0.5 -0.4 -0.7
in X float64 [6] -0.87 -0.19 1.18 2.54 0.49 1.86
out X@GRAD float64 [6] 0.022845079748060035 -0.2838979522513303 -0.09771149440750587
  0.5495013009594559 -0.2942151641395598 -0.7574665615839625

example float64 4x3
in Out float64 [4, 3] -0.039 0.496 0.42 0.19 -0.115 0.114 0.267 0.649 -0.192 0.572 0.343 0.037
in Out@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
in X float64 [4, 3] -0.69 0.69 0.38 -0.84 0.08 0.23 -0.38 0.84 0.54 -0.08 -0.53 -0.23
out X@GRAD float64 [4, 3] 0.018053913758323614 -0.4097304312083819 0.13710489646828777
  -0.0996968601970609 0.48596163683219407 0 0.251580414126849 -0.7003031398029391
  -0.6059441443700848 -0.4600426257420067 0.14814168147811702 -0.38600592827835595

example complex64 4x3
in Out complex64 [4, 3] 0.2-0.8j 1.2+0.1j -2+0j 0.9+1.8j 0.1+1.1j -0.9-2j 0.8-0.7j 0.1-0.6j 1+1.3j
  0.3+0.8j 1.1+1.2j -1.3-1.7j
in Out@GRAD complex64 [4, 3] 1.9+1j 1.9-1.6j 0.9+0.1j -1.3-1.6j -0.2+1.4j -0.5+1.9j 1.9-0.2j -1.3-1j
  1.2-1.1j 0+1.4j -1.3+0.9j -0.7+1.4j
in X complex64 [4, 3] 0.1+0.8j -1.8+1.4j -1.3+0.4j -1.1+0.3j -0.3-0.4j 1.3-1.4j 0.9+0.4j -1-1.4j
  -1.1-0.2j 0.2+1.2j 1.3+0.9j -0.1+0.1j
out X@GRAD complex64 [4, 3] 1.5249357-0.2756136j -0.51628315+0.41204092j -0.01710563-0.077750586j
  -0.16862302+0.058247868j -0.34237665+0.43722147j -1.0444944+2.450683j 1.7227731-0.43871418j
  0.82604945-0.17449212j 0.104645595+0.023913044j 1.0602015+0.9847625j -1.3171105+1.2414459j
  -0.24511771+0.6646503j

example float32 6
in Out float32 [6] -0.25687125 -0.08600205 0.90263844 2.354323 0.30385214 1.6094524
in Out@GRAD float32 [6] 0.2 -0.7 -0.1 0.5 -0.4 -0.7
in X float32 [6] -0.87 -0.19 1.18 2.54 0.49 1.86
out X@GRAD float32 [6] 0.022845078 -0.28389797 -0.097711496 0.5495013 -0.29421517 -0.7574665
)")
