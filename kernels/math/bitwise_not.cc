// bitwise_not: the complement of each bit.
#include "kernels/elementwise/unary.h"

namespace heddle {
namespace {

struct BitwiseNotMap : UnaryOp {
  static constexpr Key kIns[] = {"X"};
  static constexpr Key kOuts[] = {"Out"};
  template <typename T>
  T operator()(T x) const {
    if constexpr (std::is_same_v<T, bool>)
      return !x;
    else
      return static_cast<T>(~x);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(bitwise_not) {
  op.Doc("Every bit turned over.").Input("X").Output("Out").Inplace("X", "Out");
  op.InferShape(SameShape);
  AddMapKernels<BitwiseNotMap, bool, uint8_t, int8_t, int16_t, int32_t, int64_t>(op);
}

HEDDLE_EXAMPLES(bitwise_not, R"(
example int32 scalar
in X int32 [] 26
out Out int32 [] -27

example int64 3x4x2
in X int64 [3, 4, 2] -38 -54 -22 -22 -48 -31 -50 -2 -42 -50 -10 -47 -48 -35 -36 -21 -16 -3 -36 -51
  -49 -7 -34 -51
out Out int64 [3, 4, 2] 37 53 21 21 47 30 49 1 41 49 9 46 47 34 35 20 15 2 35 50 48 6 33 50

example int64 4x1x3x2
in X int64 [4, 1, 3, 2] -27 -8 -55 -59 -44 -29 -39 -42 -39 -25 -3 -52 -24 -12 -56 -33 -19 -28 -39
  -39 -55 -55 -20 -32
out Out int64 [4, 1, 3, 2] 26 7 54 58 43 28 38 41 38 24 2 51 23 11 55 32 18 27 38 38 54 54 19 31
)")
