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
