// log, log2, log10 and log1p.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/elementwise/unary.h"
#include "kernels/simd/fast_math.h"

namespace heddle {
namespace {

constexpr double kLn2 = 0.69314718055994530942;
constexpr double kLn10 = 2.30258509299404568402;

struct Log : UnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return fast::Log(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy / fast::Conj(x);
  }
};

struct LogGradGrad : UnaryOp {
  static constexpr Key kIns[] = {"X", "grad_out", "grad_x@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD", "grad_out@GRAD"};
  template <typename T>
  std::array<T, 2> operator()(T x, T dy, T ddx) const {
    return {-dy * ddx / (x * x), ddx / x};
  }
};

struct Log2 : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    if constexpr (kIsComplex<T>)
      return std::log(x) / T(kLn2);
    else
      return std::log2(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy / fast::Conj(x * T(kLn2));
  }
};

struct Log10 : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    return std::log10(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy / fast::Conj(x * T(kLn10));
  }
};

struct Log1p : SlowUnaryOp {
  static constexpr GradReads kReads = kReadsX;
  template <typename T>
  T Forward(T x) const {
    if constexpr (kIsComplex<T>)
      return std::log(x + T(1));
    else
      return std::log1p(x);
  }
  template <typename T>
  T Grad(T x, T dy) const {
    return dy / fast::Conj(x + T(1));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(log) { DefineFloatUnary<Log, complex64, complex128>(op, "Natural logarithm."); }
HEDDLE_OP(log_grad) { DefineUnaryGrad<Log, complex64, complex128>(op); }
HEDDLE_OP(log_grad_grad) { DefineMap<LogGradGrad, complex64, complex128>(op); }
HEDDLE_OP(log2) { DefineFloatUnary<Log2, complex64, complex128>(op, "Logarithm to base 2."); }
HEDDLE_OP(log2_grad) { DefineUnaryGrad<Log2, complex64, complex128>(op); }
HEDDLE_OP(log10) { DefineFloatUnary<Log10, complex64, complex128>(op, "Logarithm to base 10."); }
HEDDLE_OP(log10_grad) { DefineUnaryGrad<Log10, complex64, complex128>(op); }
HEDDLE_OP(log1p) {
  DefineFloatUnary<Log1p, complex64, complex128>(op, "log(1 + x), exact near 0.");
}
HEDDLE_OP(log1p_grad) { DefineUnaryGrad<Log1p, complex64, complex128>(op); }

HEDDLE_TILE(log) { return UnaryTile<Log>(); }
HEDDLE_TILE(log_grad) { return UnaryGradTile<Log>(); }

HEDDLE_EXAMPLES(log, R"(
example float32 4x2
in X float32 [4, 2] 0.10400001 0.379 0.654 0.287 0.19500001 0.746 0.471 0.562
out Out float32 [4, 2] -2.2633643 -0.9702191 -0.42464796 -1.248273 -1.6347557 -0.2930297 -0.7528972
  -0.5762535

example float64 2x3
in X float64 [2, 3] 4 8 8 1 4 7
out Out float64 [2, 3] 1.3862943611198906 2.0794415416798357 2.0794415416798357 0 1.3862943611198906
  1.9459101490553132

example float32 6
in X float32 [6] 1.54 2.44 2.89 0.64 1.99 1.09
out Out float32 [6] 0.4317824 0.89199805 1.0612565 -0.44628713 0.6881347 0.08617773

example float64 4
in X float64 [4] 0.214 0.389 0.741 0.565
out Out float64 [4] -1.5417792639602856 -0.9441759353636907 -0.2997546536860502 -0.5709295478356962

example int32 4x2
in X int32 [4, 2] 1 1 0 0 1 1 0 1
out Out float32 [4, 2] 0 0 -inf -inf 0 0 -inf 0

example int64 4x2
in X int64 [4, 2] 1 1 0 0 1 1 0 1
out Out float32 [4, 2] 0 0 -inf -inf 0 0 -inf 0

example bfloat16 4x2
in X bfloat16 [4, 2] 0.104 0.379 0.652 0.287 0.195 0.746 0.47 0.562
out Out bfloat16 [4, 2] -2.25 -0.97 -0.426 -1.24 -1.63 -0.291 -0.75 -0.574

example float16 4x2
in X float16 [4, 2] 0.104 0.379 0.654 0.287 0.195 0.746 0.471 0.562
out Out float16 [4, 2] -2.262 -0.97 -0.4248 -1.247 -1.635 -0.2927 -0.753 -0.576
)")

HEDDLE_EXAMPLES(log_grad, R"(
example float64 6
in Out@GRAD float64 [6] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float64 [6] 1.09 2.44 1.54 2.89 0.64 1.99
out X@GRAD float64 [6] -0.5504587155963302 0.2459016393442623 0.45454545454545453
  -0.10380622837370242 -0.78125 0.3015075376884422

example float64 1x7
in Out@GRAD float64 [1, 7] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7
in X float64 [1, 7] 3 1.57 2.53 3.48 0.61 2.05 1.09
out X@GRAD float64 [1, 7] -0.13333333333333333 0.38216560509554137 -0.11857707509881424
  -0.17241379310344826 -1.3114754098360657 0.4390243902439025 0.6422018348623852

example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 0.683
out X@GRAD float64 [] -0.2928257686676427

example float32 6
in Out@GRAD float32 [6] -0.6 0.6 0.7 -0.3 -0.5 0.6
in X float32 [6] 1.09 2.44 1.54 2.89 0.64 1.99
out X@GRAD float32 [6] -0.5504587 0.24590164 0.45454544 -0.103806235 -0.78125 0.30150756

example float32, the gradient of a scalar as a tensor of one element
in X float32 [] 2
in Out@GRAD float32 [1] 0.3
out X@GRAD float32 [] 0.15

example float32, the same between others
in x float32 [] 0.4
in d float32 [1] 0.3
op exp X=x -> Out=e
op log_grad X=e Out@GRAD=d -> X@GRAD=g
op exp_grad Out=e Out@GRAD=g -> X@GRAD=f
op scale X=f -> Out=out
attr scale FLOAT 2.0
out out float32 [] 0.6
)")

HEDDLE_EXAMPLES(log_grad_grad, R"(
example float64 scalar
in X float64 [] 0.683
in grad_out float64 [] -0.381
in grad_x@GRAD float64 [] -0.6
out X@GRAD float64 [] -0.49004370949797305
out grad_out@GRAD float64 [] -0.8784773060029282

example float64 4x3
in X float64 [4, 3] 0.585 0.722 0.379 0.447 0.928 0.172 0.241 0.516 0.791 0.654 0.31 0.86
in grad_out float64 [4, 3] -0.7 -0.87 -1.05 -1.57 -1.22 -0.35 -0.18 -2.09 -1.4 -1.92 -0.53 -1.74
in grad_x@GRAD float64 [4, 3] 0.1 -0.5 0.2 -0.8 0.9 0 0.8 -0.8 -0.8 -1 0.6 -1
out X@GRAD float64 [4, 3] 0.20454379428738403 -0.8344779429255454 1.4619781260225146
  -6.286003132992008 1.2749888525564803 0 2.4792961553692257 -6.279670692867015 -1.7900495619972474
  -4.48895996408832 3.3090530697190426 -2.3526230394808008
out grad_out@GRAD float64 [4, 3] 0.17094017094017097 -0.6925207756232687 0.5277044854881267
  -1.789709172259508 0.9698275862068966 0 3.319502074688797 -1.550387596899225 -1.0113780025284451
  -1.529051987767584 1.9354838709677418 -1.1627906976744187

example float32 scalar
in X float32 [] 0.683
in grad_out float32 [] -0.381
in grad_x@GRAD float32 [] -0.6
out X@GRAD float32 [] -0.49004367
out grad_out@GRAD float32 [] -0.8784773
)")

HEDDLE_EXAMPLES(log2, R"(
example float32 7
in X float32 [7] 1.09 2.43 1.42 2.76 2.09 1.76 0.75
out Out float32 [7] 0.12432818 1.2809564 0.5058909 1.4646683 1.0635029 0.8155754 -0.4150375

example float64 4x3
in X float64 [4, 3] 0.309 0.722 0.447 0.378 0.584 0.515 0.172 0.653 0.79 0.859 0.928 0.241
out Out float64 [4, 3] -1.6943212567577124 -0.4699292577749161 -1.1616532634787693
  -1.4035418604410144 -0.77595972578207 -0.9573556625915063 -2.539519529959989 -0.6148451031156562
  -0.3400754415976217 -0.21926996352362352 -0.10780328953451485 -2.0528949484321255

example float32 4x3
in X float32 [4, 3] 2.06 0.69 1.61 0.23 2.52 2.52 2.07 1.15 1.14 0.68 1.6 0.23
out Out float32 [4, 3] 1.0426443 -0.5353317 0.6870607 -2.120294 1.3334237 1.3334237 1.0496308
  0.20163383 0.1890338 -0.5563933 0.6780719 -2.120294

example float32 scalar
in X float32 [] 2.04
out Out float32 [] 1.0285691

example int32 7
in X int32 [7] 2 2 1 1 2 2 1
out Out float32 [7] 1 1 0 0 1 1 0

example int64 7
in X int64 [7] 2 2 1 1 2 2 1
out Out float32 [7] 1 1 0 0 1 1 0

example bfloat16 7
in X bfloat16 [7] 1.09 2.44 1.42 2.77 2.1 1.76 0.75
out Out bfloat16 [7] 0.129 1.28 0.504 1.46 1.06 0.812 -0.414

example float16 7
in X float16 [7] 1.09 2.43 1.42 2.76 2.09 1.76 0.75
out Out float16 [7] 0.1241 1.28 0.5054 1.464 1.0625 0.815 -0.4148
)")

HEDDLE_EXAMPLES(log2_grad, R"(
example float64 7
in Out@GRAD float64 [7] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7
in X float64 [7] 2.09 2.43 0.75 1.76 1.09 2.76 1.42
out X@GRAD float64 [7] -0.27611388342372506 0.3562209977503613 -0.5770780163555854
  -0.49182785484851027 -1.0588587456065786 0.4704440350724881 0.7111876962128694

example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 3.61
out X@GRAD float64 [] -0.07992770309634148

example float64 4x3
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 0.446 0.169 0.377 0.86 0.307 0.238 0.722 0.791 0.584 0.929 0.653 0.515
out X@GRAD float64 [4, 3] -1.9408453464873947 -5.121994228008154 -2.6787441077513905
  0.8387761865633508 -2.3496661903729046 1.8185231607844077 0.39963851548170737 -0.3647775071779933
  1.729257754490196 -0 -1.1046669532074758 1.9609447157714064

example float32 7
in Out@GRAD float32 [7] -0.4 0.6 -0.3 -0.6 -0.8 0.9 0.7
in X float32 [7] 2.09 2.43 0.75 1.76 1.09 2.76 1.42
out X@GRAD float32 [7] -0.2761139 0.356221 -0.57707804 -0.4918279 -1.0588586 0.47044402 0.7111877
)")

HEDDLE_EXAMPLES(log10, R"(
example float32 4x3
in X float32 [4, 3] 1.71 0.66 1.45 3.29 1.19 0.92 2.76 3.03 2.24 3.55 2.5 1.98
out Out float32 [4, 3] 0.23299614 -0.18045604 0.16136801 0.5171959 0.07554699 -0.036212165 0.4409091
  0.48144263 0.350248 0.55022836 0.39794 0.2966652

example float32 2x1x1
in X float32 [2, 1, 1] 2.03 0.47
out Out float32 [2, 1, 1] 0.30749604 -0.32790214

example float64 scalar
in X float64 [] 0.358
out Out float64 [] -0.44611697335612566

example int32 4x3
in X int32 [4, 3] 1 1 2 1 1 2 2 1 1 3 1 3
out Out float32 [4, 3] 0 0 0.30103 0 0 0.30103 0.30103 0 0 0.47712123 0 0.47712123

example int64 4x3
in X int64 [4, 3] 1 1 2 1 1 2 2 1 1 3 1 3
out Out float32 [4, 3] 0 0 0.30103 0 0 0.30103 0.30103 0 0 0.47712123 0 0.47712123

example bfloat16 4x3
in X bfloat16 [4, 3] 1.71 0.66 1.45 3.3 1.19 0.92 2.77 3.03 2.23 3.55 2.5 1.98
out Out bfloat16 [4, 3] 0.232 -0.18 0.162 0.516 0.074 -0.0352 0.441 0.48 0.348 0.547 0.396 0.295

example float16 4x3
in X float16 [4, 3] 1.71 0.66 1.45 3.29 1.19 0.92 2.76 3.03 2.24 3.55 2.5 1.98
out Out float16 [4, 3] 0.2329 -0.1803 0.1614 0.5166 0.0757 -0.03622 0.4407 0.4812 0.35 0.5503 0.3977
  0.2966
)")

HEDDLE_EXAMPLES(log10_grad, R"(
example float64 4x3
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 2.24 2.76 1.45 1.71 3.55 0.66 0.92 1.98 3.03 2.5 1.19 3.29
out X@GRAD float64 [4, 3] -0.11632887908122815 -0.09441184389201127 -0.20965940505674222
  0.1269866906149859 -0.061168236887781946 0.19740658268329625 0.09441184389201127
  -0.043868129485176946 0.10033205852550371 -0 -0.1824766730685932 0.09240308125601102

example float64 4x3x3
in Out@GRAD float64 [4, 3, 3] 0.6 -0.1 0.3 0.8 0.3 0.8 0.4 0.3 -0.8 -0.9 -0.6 -0.5 -0.7 0.7 -0.4 0.6
  -0.5 -0.1 -0.7 0.8 0.7 0.7 0.4 -0.3 -0.6 -0.3 0.7 0 -0.7 -0.7 1 0.9 -0.9 -0.7 0.6 0.4
in X float64 [4, 3, 3] 0.74 0.85 0.95 2.7 1.88 0.33 3.43 0.43 3.01 3.53 1.36 2.6 2.91 2.19 2.29 1.67
  2.81 3.12 2.08 1.47 0.23 0.54 1.77 1.05 0.64 1.98 3.22 3.73 3.32 1.16 3.63 2.5 3.84 1.57 1.26 2.39
out X@GRAD float64 [4, 3, 3] 0.35213066100263657 -0.0510934684592061 0.13714562586418477
  0.1286798464898524 0.06930231094200827 1.0528351076442468 0.05064658681087485 0.3029961501650594
  -0.11542710482478453 -0.11072663844558829 -0.19160050672202283 -0.08351816959677918
  -0.1044694630007822 0.1388155878229572 -0.07585929814903962 0.15603394559398268
  -0.07727659820342558 -0.01391969493279653 -0.14615679679436358 0.2363507384507493
  1.3217658144881577 0.5629743283931041 0.09814564562785351 -0.12408413768664336
  -0.40715107678429857 -0.06580219422776541 0.09441184389201125 0 -0.09156811365430008
  -0.2620742563209278 0.11964035314139168 0.15634601348517063 -0.10178776919607464
  -0.193634482377246 0.2068068961444056 0.07268526893778272

example float32 4x3
in Out@GRAD float32 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float32 [4, 3] 2.24 2.76 1.45 1.71 3.55 0.66 0.92 1.98 3.03 2.5 1.19 3.29
out X@GRAD float32 [4, 3] -0.11632888 -0.09441184 -0.2096594 0.12698668 -0.061168235 0.19740658
  0.09441184 -0.04386813 0.10033206 -0 -0.18247665 0.092403084
)")

HEDDLE_EXAMPLES(log1p, R"(
example float64 5x1
in X float64 [5, 1] 3.31 1.3 2.81 1.81 2.31
out Out float64 [5, 1] 1.4609379041156565 0.832909122935104 1.3376291891386096 1.0331844833456545
  1.1969481893889715

example float64 scalar
in X float64 [] 0.683
out Out float64 [] 0.5205779152086689

example float32 scalar
in X float32 [] -0.3
out Out float32 [] -0.35667497

example float64 0
in X float64 [0]
out Out float64 [0]

example int32 5x1
in X int32 [5, 1] 3 3 2 2 3
out Out float32 [5, 1] 1.3862944 1.3862944 1.0986123 1.0986123 1.3862944

example int64 5x1
in X int64 [5, 1] 3 3 2 2 3
out Out float32 [5, 1] 1.3862944 1.3862944 1.0986123 1.0986123 1.3862944

example bfloat16 5x1
in X bfloat16 [5, 1] 3.31 1.3 2.81 1.81 2.31
out Out bfloat16 [5, 1] 1.46 0.83 1.336 1.03 1.195

example float16 5x1
in X float16 [5, 1] 3.31 1.3 2.81 1.81 2.31
out Out float16 [5, 1] 1.461 0.8325 1.337 1.032 1.196
)")

HEDDLE_EXAMPLES(log1p_grad, R"(
example float64 scalar
in Out@GRAD float64 [] -0.2
in X float64 [] 0.683
out X@GRAD float64 [] -0.11883541295306002

example float64 4x3
in Out@GRAD float64 [4, 3] -0.6 -0.6 -0.7 0.5 -0.5 0.3 0.2 -0.2 0.7 -0 -0.5 0.7
in X float64 [4, 3] 0.17 2.22 1.93 1.05 -0.12 0.76 1.34 2.81 -0.41 2.51 1.64 0.47
out X@GRAD float64 [4, 3] -0.5128205128205129 -0.18633540372670807 -0.23890784982935154
  0.24390243902439027 -0.5681818181818182 0.17045454545454547 0.08547008547008549
  -0.05249343832020997 1.1864406779661014 -0 -0.18939393939393942 0.47619047619047616

example float32 scalar
in Out@GRAD float32 [] -0.2
in X float32 [] 0.683
out X@GRAD float32 [] -0.118835405
)")
