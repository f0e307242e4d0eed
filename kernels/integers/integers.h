// Products and convolutions of 8-bit integers with exact sums in 32 bits.
//
// A case says what is multiplied; a runner, made once for it, computes it any number of times.
// Ownership: runners copy constant operands. Threads: runners are immutable, Run is re-entrant.
// Errors: unknown element types are refused when a runner is made.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/conv/conv.h"
#include "kernels/gemm/gemm.h"
#include "kernels/integers/integer_result.h"

namespace heddle {

// Operands of one run. Zero points are subtracted before products; padding contributes nothing.
struct IntegerOperands {
  const void* x = nullptr;
  int32_t x_zero = 0;                                // must be 0 unless the case says x_shifted
  const void* y = nullptr;                           // read unless it is a constant of the case
  const float *factor = nullptr, *offset = nullptr;  // of a scaled result, per column or channel
  void* out = nullptr;
};

class IntegerRunner {
 public:
  virtual ~IntegerRunner() = default;
  virtual void Run(const KernelContext& ctx, const IntegerOperands& o) const = 0;
  // Name of the implementation: KernelState::Facts::implementation.
  virtual std::string name() const = 0;
};

struct IntegerConvCase {
  const ConvGeometry& g;
  DType x;                          // kU8 or kI8
  bool x_shifted;                   // x has a zero point other than 0
  const Tensor& w;                  // [out, in / groups, kernel…], kU8 or kI8
  std::span<const int32_t> w_zero;  // one, or one per channel of the result
  const IntegerResult& result;
};

struct IntegerGemmCase {
  const BatchedGemm& g;
  DType x, y;  // kU8 or kI8
  bool x_shifted;
  const Tensor* constant_y;         // null: y varies
  std::span<const int32_t> y_zero;  // one, or one per column
  const IntegerResult& result;
};

// The best runner, or the one that the caller insists on. Without a context: one that is made in
// little time, for an operand that is no constant and a single run.
Result<std::unique_ptr<IntegerRunner>> MakeIntegerConv(const PrepareContext* ctx,
                                                       const IntegerConvCase& c);
Result<std::unique_ptr<IntegerRunner>> MakeIntegerGemm(const PrepareContext* ctx,
                                                       const IntegerGemmCase& c);

// sums[o] = the sum of w - its zero point over everything but dimension `axis` of w.
std::vector<int64_t> CenteredSums(const Tensor& w, std::span<const int32_t> zero, int axis);

}  // namespace heddle
