// Definitions of TensorFlow's element-wise operators: slots x, y -> z, no alignment attribute.
#pragma once

#include "kernels/elementwise/arithmetic.h"
#include "kernels/elementwise/binary_op.h"
#include "kernels/elementwise/unary.h"

namespace heddle {

struct SlotsTf {
  static constexpr Key x() { return "x"; }
  static constexpr Key y() { return "y"; }
  static constexpr Key out() { return "z"; }
};

inline OpDef& DeclareTfBinary(OpDef& op, const char* doc) {
  return op.Doc(doc).Input("x").Input("y").Output("z").Inplace("x", "z").Inplace("y", "z");
}

template <typename F, typename... Ts>
OpDef& DefineTfBinary(OpDef& op, const char* doc) {
  DeclareTfBinary(op, doc);
  BinaryKernels<F, SlotsTf, Ts...>(op);
  return op;
}

// Integer kernels of a quotient: a zero among the divisors is an error.
template <typename F, typename... Ts>
OpDef& AddTfQuotients(OpDef& op) {
  (op.Kernel(kDTypeOf<Ts>,
             [](KernelContext& ctx) {
               HEDDLE_RETURN_IF_ERROR(NoZeroDivisor(ctx.In("y")));
               return RunBinaryOp<SlotsTf>(ctx, BinaryLoop<F, Ts, Ts>::kLoops);
             }),
   ...);
  return op;
}

}  // namespace heddle
