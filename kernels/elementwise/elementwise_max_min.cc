// The greater and the smaller of two operands, in two forms that the attribute keep_nan chooses
// between: F is a comparison, which may drop a NaN; Keep passes NaN of either operand on.
#include "kernels/elementwise/binary_grad.h"
#include "kernels/elementwise/tile_loop.h"

namespace heddle {
namespace {

template <typename F, typename Keep>
struct Extreme {
  template <typename T>
  struct Kernel {
    static Status Run(KernelContext& ctx) {
      return RunBinaryOp<SlotsXY>(
          ctx, ctx.Bool("keep_nan") ? BinaryLoop<Keep, T, T>::kLoops : BinaryLoop<F, T, T>::kLoops);
    }
  };
  // Integers have no NaN.
  template <typename T>
  struct IntegerKernel {
    static Status Run(KernelContext& ctx) {
      return RunBinaryOp<SlotsXY>(ctx, BinaryLoop<F, T, T>::kLoops);
    }
  };

  // As steps of fused loops. The steps' arguments say which form is meant.
  template <typename Form, bool kKeeps>
  struct Step {
    bool keeps = kKeeps;
    template <typename T>
    T operator()(T x, T y) const {
      return Form::Apply(x, y);
    }
  };
  template <typename T>
  static Status MakeTile(const KernelContext& attrs, TileStep* step) {
    return attrs.Bool("keep_nan") ? SetTile<T, 2>(Step<Keep, true>(), Keep::kGrain, step)
                                  : SetTile<T, 2>(Step<F, false>(), F::kGrain, step);
  }
  template <typename T, int kOne>
  static void Repeat(const TileStep& step, std::byte* const* at, int64_t n) {
    return step.args[0] != std::byte{0} ? BinaryStep<Keep>::template Repeat<T, kOne>(step, at, n)
                                        : BinaryStep<F>::template Repeat<T, kOne>(step, at, n);
  }
};

template <typename F, typename Keep>
void DefineExtreme(OpDef& op, const char* doc) {
  using E = Extreme<F, Keep>;
  op.Doc(doc).Input("X").Input("Y").Output("Out").Attr("axis", -1).Attr("keep_nan", false);
  op.Inplace("X", "Out").Inplace("Y", "Out").Traits(kBroadcasts);
  op.InferShape(&InferBinary<SlotsXY>).Prepare(&PrepareBroadcast<SlotsXY>);
  op.Kernels<E::template Kernel, float, double, float16, bfloat16>();
  op.Kernels<E::template IntegerKernel, uint8_t, int8_t, int16_t, int32_t, int64_t>();
}

template <typename F, typename Keep>
TileOp ExtremeTile() {
  using E = Extreme<F, Keep>;
  return {2,
          &E::template MakeTile<float>,
          &E::template MakeTile<double>,
          {&E::template Repeat<float, 0>, &E::template Repeat<float, 1>},
          {&E::template Repeat<double, 0>, &E::template Repeat<double, 1>}};
}

struct MaxFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return a > b ? a : b;
  }
};

// NaN of either operand wins.
struct MaxFnKeepingNan {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};

struct MaxGradX {
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return x > y ? dout : T(0);
  }
};

struct MaxGradY {  // a tie is Y's
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return x <= y ? dout : T(0);
  }
};

struct MinFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return a < b ? a : b;
  }
};

// NaN of either operand wins.
struct MinFnKeepingNan {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return (a < b) | (a != a) ? a : b;
  }
};

struct MinGradX {
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return x < y ? dout : T(0);
  }
};

struct MinGradY {  // a tie is Y's
  static constexpr unsigned kUses = kUsesX | kUsesY;
  template <typename T>
  static T Apply(T x, T y, T, T dout, double) {
    return x >= y ? dout : T(0);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(elementwise_max) {
  DefineExtreme<MaxFn, MaxFnKeepingNan>(
      op, "the greater of x and y; of NaN in Y NaN, of NaN in X what Y is, or with keep_nan NaN");
}

HEDDLE_OP(elementwise_max_grad) {
  op.Doc("gradient of elementwise_max: all of it goes to the operand that was taken");
  DefineElementwiseGrad<MaxGradX, MaxGradY, float, double, int32_t, int64_t, float16, bfloat16>(
      op, kUsesX | kUsesY);
}

HEDDLE_TILE(elementwise_max) { return ExtremeTile<MaxFn, MaxFnKeepingNan>(); }

HEDDLE_EXAMPLES(elementwise_max, R"(
example NaN of either operand stays
# node Max X Y -> Out
attr keep_nan BOOLEAN true
in X float32 [2, 4] nan 1 nan 2 -1 inf -inf nan
in Y float32 [2, 4] 0 nan nan 1 3 nan 0 -inf
out Out float32 [2, 4] nan nan nan 2 3 nan 0 nan

example float32 2x1x4, axis 1
attr axis INT 1
in X float32 [2, 1, 4] 0.19 0.94 -1.32 -0.19 -0.94 0.56 1.32 -0.56
in Y float32 [1, 4] 0.46 0.15 1.08 0.77
out Out float32 [2, 1, 4] 0.46 0.94 1.08 0.77 0.46 0.56 1.32 0.77

example float64 4
in X float64 [4] 0.405 0.209 0.795 0.6
in Y float64 [4] 0.33 -0.2 0.86 1.39
out Out float64 [4] 0.405 0.209 0.86 1.39

example float32 3x2x2
in X float32 [3, 2, 2] 1.45 -1.45 0.13 1.19 0.92 -0.92 -0.4 -0.13 0.66 -0.66 -1.19 0.4
in Y float32 [1] 0
out Out float32 [3, 2, 2] 1.45 0 0.13 1.19 0.92 0 0 0 0.66 0 0 0.4

example int64 3
in X int64 [3] 0 -9223372036854775808 -9223372036854775808
in Y int64 [3] 4 1 3
out Out int64 [3] 4 1 3

example int32 4
in X int32 [4] 1 1 0 0
in Y int32 [4] 1 1 0 1
out Out int32 [4] 1 1 0 1

example bfloat16 4
in X bfloat16 [4] 0.404 0.209 0.797 0.6
in Y bfloat16 [4] 0.33 -0.2 0.86 1.39
out Out bfloat16 [4] 0.404 0.209 0.86 1.39
)")

HEDDLE_EXAMPLES(elementwise_max_grad, R"(
example float64 4
in Out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in X float64 [4] 0.201 0.597 0.399 0.795
in Y float64 [4] 0.65 1.18 0.11 -0.42
out X@GRAD float64 [4] -0 -0 0.7 -0.8

example float64 4x3
in Out@GRAD float64 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
in X float64 [] 0.313
in Y float64 [4, 3] 0.583 0.446 0.514 0.309 0.788 0.857 0.24 0.925 0.72 0.377 0.172 0.651
out X@GRAD float64 [] 0.10000000000000009

example float64 2
in Out@GRAD float64 [2] 0.5 0.1
in X float64 [2] 0 0
in Y float64 [] 1
out X@GRAD float64 [2] 0 0
out Y@GRAD float64 [] 0.6

example float32 4
in Out@GRAD float32 [4] -0.8 -0.3 0.7 -0.8
in X float32 [4] 0.201 0.597 0.399 0.795
in Y float32 [4] 0.65 1.18 0.11 -0.42
out X@GRAD float32 [4] -0 -0 0.7 -0.8
)")

HEDDLE_OP(elementwise_min) {
  DefineExtreme<MinFn, MinFnKeepingNan>(
      op, "the smaller of x and y; of NaN in Y NaN, of NaN in X what Y is, or with keep_nan NaN");
}

HEDDLE_OP(elementwise_min_grad) {
  op.Doc("gradient of elementwise_min: all of it goes to the operand that was taken");
  DefineElementwiseGrad<MinGradX, MinGradY, float, double, int32_t, int64_t, float16, bfloat16>(
      op, kUsesX | kUsesY);
}

HEDDLE_TILE(elementwise_min) { return ExtremeTile<MinFn, MinFnKeepingNan>(); }

HEDDLE_EXAMPLES(elementwise_min, R"(
example NaN of either operand stays
# node Min X Y -> Out
attr keep_nan BOOLEAN true
in X float32 [2, 4] nan 1 nan 2 -1 inf -inf nan
in Y float32 [2, 4] 0 nan nan 1 3 nan 0 -inf
out Out float32 [2, 4] nan nan nan 1 -1 nan -inf nan

example bfloat16 4
in X bfloat16 [4] 0.7 0.9 0.7 0.2
in Y bfloat16 [4] 1.6 -0.2 1.2 0.4
out Out bfloat16 [4] 0.7 -0.2 0.7 0.2

example float64 4x3
in X float64 [4, 3] 0.79 0.927 0.171 0.446 0.583 0.652 0.377 0.859 0.239 0.308 0.721 0.515
in Y float64 [] 0.432
out Out float64 [4, 3] 0.432 0.432 0.171 0.432 0.432 0.432 0.377 0.432 0.239 0.308 0.432 0.432

example float32 4x3
in X float32 [4, 3] 0.903 0.077 0.527 0.828 0.753 0.227 0.377 0.452 0.678 0.302 0.152 0.602
in Y float32 [3] 0.355 0.234 0.447
out Out float32 [4, 3] 0.355 0.077 0.447 0.355 0.234 0.227 0.355 0.234 0.447 0.302 0.152 0.447

example float64 4
in X float64 [4] 0.6 0.405 0.209 0.795
in Y float64 [4] -0.2 1.39 0.33 0.86
out Out float64 [4] -0.2 0.405 0.209 0.795
)")

HEDDLE_EXAMPLES(elementwise_min_grad, R"(
example float64 4
in Out@GRAD float64 [4] -0.8 -0.3 0.7 -0.8
in X float64 [4] 0.22 0.606 0.799 0.413
in Y float64 [4] 0.81 1.38 -0.33 0.24
out X@GRAD float64 [4] -0.8 -0.3 0 -0
out Y@GRAD float64 [4] -0 -0 0.7 -0.8

example bfloat16 4
in Out@GRAD bfloat16 [4] 0.25*4
in X bfloat16 [4] 0.3 0.5 0.1 0.1
in Y bfloat16 [4] -0.4 0.8 0.4 -0.9
out Y@GRAD bfloat16 [4] 0.25 0 0 0.25

example float64 4x3
in Out@GRAD float64 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
in X float64 [4, 3] 0.792 0.93 0.169 0.446 0.584 0.653 0.377 0.861 0.238 0.308 0.722 0.515
in Y float64 [] 0.971
out X@GRAD float64 [4, 3] 0.9 0.2 -0.9 0.8 0.3 0.9 -0.7 0.1 0.8 1 0 0.3
out Y@GRAD float64 [] 0
)")
