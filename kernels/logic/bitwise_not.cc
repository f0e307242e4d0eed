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
