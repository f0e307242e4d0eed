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
