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

HEDDLE_EXAMPLES(nextafter, R"(
example float32 3
in x float32 [3] 0 0 10
in y float32 [3] 6.4 9.6 6.8
out out float32 [3] 1e-45 1e-45 9.999999

example float64 2
in x float64 [2] 2 2
in y float64 [2] 1 2
out out float64 [2] 1.9999999999999998 2
)")
