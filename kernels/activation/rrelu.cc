#include <random>

#include "core/interrupts.h"
#include "core/shapes.h"
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

// Negative elements are multiplied by a random slope, kept in Noise; all others by 1.
template <typename T>
struct Rrelu {
  static Status Run(KernelContext& ctx) {
    using C = ComputeType<T>;
    const Tensor& x = ctx.In("X");
    T* y = ctx.Out("Out").mutable_data<T>();
    Tensor* noise = ctx.OutOpt("Noise");
    const C low = static_cast<C>(ctx.Float("lower")), high = static_cast<C>(ctx.Float("upper"));
    // Paddle takes the mean of the two in single precision.
    const float mean = (static_cast<float>(low) + static_cast<float>(high)) / 2.0f;
    const bool is_test = ctx.Bool("is_test");
    std::uniform_real_distribution<C> even(low, high);
    for (const int64_t i : Watched(x.numel())) {
      const C v = static_cast<C>(x.data<T>()[i]);
      const C drawn = is_test ? static_cast<C>(mean) : even(ctx.random());
      const C slope = v < C(0) ? drawn : C(1);
      y[i] = static_cast<T>(v * slope);
      if (noise != nullptr) noise->mutable_data<T>()[i] = static_cast<T>(slope);
    }
    return Status::Ok();
  }
};

struct RreluGrad : UnaryOp {
  static constexpr Key kIns[] = {"Noise", "Out@GRAD"};
  static constexpr Key kOuts[] = {"X@GRAD"};
  template <typename T>
  T operator()(T noise, T dy) const {
    return noise * dy;
  }
};

Status RreluShape(ShapeContext& ctx) {
  const double low = ctx.Float("lower"), high = ctx.Float("upper");
  if (!(low >= 0 && low <= high && high <= 1))
    return InvalidArgument("lower ", low, " and upper ", high, " must be ordered within [0, 1]");
  HEDDLE_RETURN_IF_ERROR(SameShape(ctx));
  if (ctx.HasOut("Noise")) ctx.SetOut("Noise", ctx.InShape("X"), ctx.InDType("X"));
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(rrelu) {
  op.Doc("x, times a random slope where negative.").Input("X").Output("Out");
  op.Output("Noise", kOptional).Traits(kRandom).Attr("is_test", false);
  op.Attr("lower", 0.125).Attr("upper", double{1.0f / 3.0f}).InferShape(RreluShape);
  op.Kernels<Rrelu, float, double, float16, bfloat16>();
}
HEDDLE_OP(rrelu_grad) {
  DefineMap<RreluGrad>(op).Input("X", kOptional | kNoBuffer).Inplace("Out@GRAD", "X@GRAD");
  op.Attr("is_test", false).Attr("lower", 0.125).Attr("upper", double{1.0f / 3.0f});
}

HEDDLE_EXAMPLES(rrelu, R"(
example test, float32
attr is_test BOOLEAN true
attr lower FLOAT 0.1
attr upper FLOAT 0.3
in X float32 [2, 3] 0 -0.29 -0.71 0.53 0.73 -0.07
out Out float32 [2, 3] 0 -0.058 -0.142 0.53 0.73 -0.014
out Noise float32 [2, 3] 1 0.2 0.2 1 1 0.2

example test, float64
attr is_test BOOLEAN true
attr lower FLOAT 0.1
attr upper FLOAT 0.3
in X float64 [2, 3] 0.88 0.39 0.44 0.21 0.75 0.76
out Out float64 [2, 3] 0.88 0.39 0.44 0.21 0.75 0.76
out Noise float64 [2, 3] 1*6

example training
random
attr lower FLOAT 0.1
attr upper FLOAT 0.3
in X float32 [40, 50] -1*2000
out Out float32 [40, 50] mean -0.2 0.02 var 0.003333 0.0005 range -0.3 -0.1
out Noise float32 [40, 50] mean 0.2 0.02 range 0.1 0.3

example float32 2x3x4x3, is_test, lower 0.1, upper 0.33
attr is_test BOOLEAN true
attr lower FLOAT 0.1
attr upper FLOAT 0.33
in X float32 [2, 3, 4, 3] -0.86 -0.28 0.2 -0.37 -0.88 0.48 0.75 -0.91 -0.72 -0.75 -0.01 -0.12 0.07
  -0.04 0.45 -0.8 0.1 -0.07 -0.45 -0.56 0.8 -0.23 0.91 0.29 0.88 0.86 -0.5 0.59 0.72 -0.34 0.56
  -0.53 -0.77 -0.26 0.23 -0.09 0.04 -0.67 -0.64 -0.83 -0.58 0.34 -0.69 -0.18 -0.39 0.37 -0.48 -0.61
  0.97 -0.2 0.5 0.53 -0.31 0.64 -0.15 0.39 -0.42 0.94 0.15 0.61 0.18 0.31 0.83 0.67 0.01 0.12 0.26
  -0.96 0.69 -0.94 0.78 0.42
out Noise float32 [2, 3, 4, 3] 0.215 0.215 1 0.215 0.215 1 1 0.215*5 1 0.215 1 0.215 1 0.215 0.215
  0.215 1 0.215 1*4 0.215 1 1 0.215 1 0.215 0.215 0.215 1 0.215 1 0.215*4 1 0.215 0.215 0.215 1
  0.215 0.215 1 0.215 1 1 0.215 1 0.215 1 0.215 1*10 0.215 1 0.215 1 1
out Out float32 [2, 3, 4, 3] -0.1849 -0.060200002 0.2 -0.079550005 -0.1892 0.48 0.75 -0.19565001
  -0.15480001 -0.16125 -0.00215 -0.025799999 0.07 -0.0086 0.45 -0.172 0.1 -0.0150500005 -0.09675
  -0.120400004 0.8 -0.049450003 0.91 0.29 0.88 0.86 -0.1075 0.59 0.72 -0.0731 0.56 -0.11395 -0.16555
  -0.0559 0.23 -0.019350002 0.04 -0.14405 -0.1376 -0.17845 -0.124699995 0.34 -0.14835 -0.038700003
  -0.08385 0.37 -0.103199996 -0.13115 0.97 -0.043 0.5 0.53 -0.06665 0.64 -0.032250002 0.39 -0.0903
  0.94 0.15 0.61 0.18 0.31 0.83 0.67 0.01 0.12 0.26 -0.20639999 0.69 -0.20210001 0.78 0.42

example float64 2x3x4x3, is_test, lower 0.1, upper 0.33
attr is_test BOOLEAN true
attr lower FLOAT 0.1
attr upper FLOAT 0.33
in X float64 [2, 3, 4, 3] -0.86 -0.28 0.2 -0.37 -0.88 0.48 0.75 -0.91 -0.72 -0.75 -0.01 -0.12 0.07
  -0.04 0.45 -0.8 0.1 -0.07 -0.45 -0.56 0.8 -0.23 0.91 0.29 0.88 0.86 -0.5 0.59 0.72 -0.34 0.56
  -0.53 -0.77 -0.26 0.23 -0.09 0.04 -0.67 -0.64 -0.83 -0.58 0.34 -0.69 -0.18 -0.39 0.37 -0.48 -0.61
  0.97 -0.2 0.5 0.53 -0.31 0.64 -0.15 0.39 -0.42 0.94 0.15 0.61 0.18 0.31 0.83 0.67 0.01 0.12 0.26
  -0.96 0.69 -0.94 0.78 0.42
out Noise float64 [2, 3, 4, 3] 0.2150000035762787 0.2150000035762787 1 0.2150000035762787
  0.2150000035762787 1 1 0.2150000035762787*5 1 0.2150000035762787 1 0.2150000035762787 1
  0.2150000035762787 0.2150000035762787 0.2150000035762787 1 0.2150000035762787 1*4
  0.2150000035762787 1 1 0.2150000035762787 1 0.2150000035762787 0.2150000035762787
  0.2150000035762787 1 0.2150000035762787 1 0.2150000035762787*4 1 0.2150000035762787
  0.2150000035762787 0.2150000035762787 1 0.2150000035762787 0.2150000035762787 1 0.2150000035762787
  1 1 0.2150000035762787 1 0.2150000035762787 1 0.2150000035762787 1*10 0.2150000035762787 1
  0.2150000035762787 1 1
out Out float64 [2, 3, 4, 3] -0.18490000307559967 -0.060200001001358035 0.2 -0.07955000132322311
  -0.18920000314712523 0.48 0.75 -0.19565000325441362 -0.15480000257492066 -0.16125000268220901
  -0.002150000035762787 -0.025800000429153442 0.07 -0.008600000143051147 0.45 -0.17200000286102296
  0.1 -0.015050000250339509 -0.09675000160932541 -0.12040000200271607 0.8 -0.0494500008225441 0.91
  0.29 0.88 0.86 -0.10750000178813934 0.59 0.72 -0.07310000121593475 0.56 -0.11395000189542771
  -0.1655500027537346 -0.05590000092983246 0.23 -0.019350000321865082 0.04 -0.14405000239610674
  -0.13760000228881836 -0.1784500029683113 -0.12470000207424163 0.34 -0.14835000246763227
  -0.038700000643730165 -0.08385000139474869 0.37 -0.10320000171661377 -0.13115000218153 0.97
  -0.04300000071525574 0.5 0.53 -0.0666500011086464 0.64 -0.0322500005364418 0.39
  -0.09030000150203704 0.94 0.15 0.61 0.18 0.31 0.83 0.67 0.01 0.12 0.26 -0.20640000343322754 0.69
  -0.20210000336170195 0.78 0.42

example float16 2x3x4x3, is_test, lower 0.1, upper 0.33
attr is_test BOOLEAN true
attr lower FLOAT 0.1
attr upper FLOAT 0.33
in X float16 [2, 3, 4, 3] -0.86 -0.28 0.2 -0.37 -0.88 0.48 0.75 -0.91 -0.72 -0.75 -0.01 -0.12 0.07
  -0.04 0.45 -0.8 0.1 -0.07 -0.45 -0.56 0.8 -0.23 0.91 0.29 0.88 0.86 -0.5 0.59 0.72 -0.34 0.56
  -0.53 -0.77 -0.26 0.23 -0.09 0.04 -0.67 -0.64 -0.83 -0.58 0.34 -0.69 -0.18 -0.39 0.37 -0.48 -0.61
  0.97 -0.2 0.5 0.53 -0.31 0.64 -0.15 0.39 -0.42 0.94 0.15 0.61 0.18 0.31 0.83 0.67 0.01 0.12 0.26
  -0.96 0.69 -0.94 0.78 0.42
out Noise float16 [2, 3, 4, 3] 0.215 0.215 1 0.215 0.215 1 1 0.215*5 1 0.215 1 0.215 1 0.215 0.215
  0.215 1 0.215 1*4 0.215 1 1 0.215 1 0.215 0.215 0.215 1 0.215 1 0.215*4 1 0.215 0.215 0.215 1
  0.215 0.215 1 0.215 1 1 0.215 1 0.215 1 0.215 1*10 0.215 1 0.215 1 1
out Out float16 [2, 3, 4, 3] -0.1848 -0.06018 0.2 -0.0795 -0.1891 0.48 0.75 -0.1956 -0.1548 -0.1611
  -0.00215 -0.02579 0.07 -0.0086 0.45 -0.1719 0.1 -0.015045 -0.0967 -0.12036 0.8 -0.0494 0.91 0.29
  0.88 0.86 -0.1075 0.59 0.72 -0.07306 0.56 -0.11383 -0.1655 -0.05588 0.23 -0.01935 0.04 -0.1439
  -0.1376 -0.1783 -0.1247 0.34 -0.1482 -0.0387 -0.0838 0.37 -0.10315 -0.131 0.97 -0.04297 0.5 0.53
  -0.06665 0.64 -0.03223 0.39 -0.0902 0.94 0.15 0.61 0.18 0.31 0.83 0.67 0.01 0.12 0.26 -0.2063 0.69
  -0.202 0.78 0.42
)")

HEDDLE_EXAMPLES(rrelu_grad, R"(
example noise
in Noise float32 [2, 2] 1 0.2 0.3 1
in Out@GRAD float32 [2, 2] 0.52 -0.96 0.23 0.3
in X float32 [2, 2] 1 -2 -3 4
out X@GRAD float32 [2, 2] 0.52 -0.192 0.069000006 0.3

example float64
in Noise float64 [2, 2] 1 0.2 0.3 1
in Out@GRAD float64 [2, 2] 0.44 0.15 0.99 0.22
in X float64 [2, 2] 1 -2 -3 4
out X@GRAD float64 [2, 2] 0.44 0.03 0.297 0.22
)")
