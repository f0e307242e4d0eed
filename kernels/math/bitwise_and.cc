// bitwise_and, bitwise_or and bitwise_xor.
#include "kernels/elementwise/binary_op.h"

namespace heddle {
namespace {

struct AndFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct OrFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct XorFn {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};

template <typename F>
void DefineBitwise(OpDef& op, const char* doc) {
  DefineElementwise<F, bool, uint8_t, int8_t, int16_t, int32_t, int64_t>(op, doc);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(bitwise_and) { DefineBitwise<AndFn>(op, "bits set in x and y"); }
HEDDLE_OP(bitwise_or) { DefineBitwise<OrFn>(op, "bits set in x or y"); }
HEDDLE_OP(bitwise_xor) { DefineBitwise<XorFn>(op, "bits set in exactly one of x and y"); }

HEDDLE_EXAMPLES(bitwise_and, R"(
example bool 3
in X bool [3] 0 0 0
in Y bool [3] 0 0 0
out Out bool [3] 0 0 0

example int64 3
in X int64 [3] 30 52 22
in Y int64 [] 6
out Out int64 [3] 6 4 6

example int32 scalar
in X int32 [] -34
in Y int32 [] -2
out Out int32 [] -34

example int32 2x3x4
in X int32 [2, 3, 4] -74 -26 -58 -58 -84 -67 -86 -78 -22 -19 -20 -7 -72 -57 -8 -23 -85 -6 -28 -87
  -62 -80 -67 -86
in Y int32 [2, 3, 4] -54 -13 -73 -59 -63 -84 -93 -77 -56 -59 -54 -18 -64 -59 -58 -79 -44 -76 -77 -24
  -50 -50 -35 -87
out Out int32 [2, 3, 4] -126 -30 -122 -60 -128 -84 -94 -78 -56 -59 -56 -24 -128 -59 -64 -95 -128 -80
  -96 -88 -62 -128 -99 -88
)")

HEDDLE_EXAMPLES(bitwise_or, R"(
example int32 1x5
in X int32 [1, 5] 22 43 47 37 23
in Y int32 [1, 5] 55 29 34 47 26
out Out int32 [1, 5] 55 63 47 47 31

example bool 1x4x4x1
in X bool [1, 4, 4, 1] 0 1 0 1 0 1*4 0 1 0 1 1 0 1
in Y bool [1] 0
out Out bool [1, 4, 4, 1] 0 1 0 1 0 1*4 0 1 0 1 1 0 1

example int32 2x3x4
in X int32 [2, 3, 4] -74 -26 -58 -58 -84 -67 -86 -78 -22 -19 -20 -7 -72 -57 -8 -23 -85 -6 -28 -87
  -62 -80 -67 -86
in Y int32 [2, 3, 4] -54 -13 -73 -59 -63 -84 -93 -77 -56 -59 -54 -18 -64 -59 -58 -79 -44 -76 -77 -24
  -50 -50 -35 -87
out Out int32 [2, 3, 4] -2 -9 -9 -57 -19 -67 -85 -77 -22 -19 -18 -1 -8 -57 -2 -7 -1 -2 -9 -23 -50 -2
  -3 -85
)")

HEDDLE_EXAMPLES(bitwise_xor, R"(
example int64 2x6x1
in X int64 [2, 6, 1] 25 14 30 32 14 21 53 9 32 54 27 47
in Y int64 [1, 6, 1] 57 37 50 13 22 15
out Out int64 [2, 6, 1] 32 43 44 45 24 26 12 44 18 59 13 32
)")
