// nextafter: the next representable number in a direction.
#include <cmath>

#include "kernels/elementwise/binary_op.h"

namespace heddle {
namespace {

struct NextafterSlots {
  static constexpr Key x() { return "x"; }
  static constexpr Key y() { return "y"; }
  static constexpr Key out() { return "out"; }
};

struct NextafterFn {
  static constexpr int64_t kGrain = kHeavyGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return std::nextafter(a, b);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(nextafter) {
  op.Doc("the number next to x in the direction of y").Input("x").Input("y").Output("out");
  BinaryKernels<NextafterFn, NextafterSlots, float, double>(op);
}
