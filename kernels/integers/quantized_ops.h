// What quantized_conv2d and quantized_matmul share: factors, offsets and zero points per column,
// and how sums become results.
#pragma once

#include <memory>
#include <vector>

#include "core/kernel_context.h"
#include "core/shape_context.h"
#include "kernels/integers/integers.h"

namespace heddle {

// Attributes out_dtype, least and most.
void DefineQuantizedResult(OpDef& op);
Result<DType> ResultTypeOf(const OpContext& ctx);
Status CheckBytesIn(const ShapeContext& ctx, Key key);
// The operand is absent or of one element, or has one per column.
Status CheckPerColumn(const ShapeContext& ctx, Key key, int64_t columns);

// Everything but the integers that are multiplied.
struct QuantizedUse {
  IntegerResult result;
  int32_t x_zero = 0;
  std::vector<int32_t> y_zero;  // none, one, or one per column
  // One per column; there may be no offset. Empty: they vary from run to run (ScalesOfRun).
  std::vector<float> factor, offset;

  // x_zero becomes 0: what it takes from the sums is taken from the offset. `axis` of y is that of
  // the columns.
  void MoveZeroIntoOffset(const Tensor& y, int axis);
  void Fill(IntegerOperands* o) const;
};
// From the attributes and these operands, which may be absent.
Result<QuantizedUse> UseOf(const OpContext& ctx, const Tensor* factor, const Tensor* offset,
                           const Tensor* y_zero, Key x_zero, int64_t columns);

struct QuantizedState final : KernelState {
  QuantizedUse use;
  std::unique_ptr<IntegerRunner> runner;  // null: made in each run
  int64_t columns = 0;
};

// Factors, an offset and a zero point that are operands of a run. Takes no memory of the heap.
class ScalesOfRun {
 public:
  // Writes them to `o`; `zero`, optional, is the zero point of the operand x.
  Status Read(const KernelContext& ctx, const QuantizedUse& use, int64_t columns, Key zero, DType x,
              IntegerOperands* o);
  // Whether results between bounds may be NaN, which not every runner keeps.
  bool may_give_nan() const { return may_give_nan_; }

 private:
  Tensor hold_;
  bool may_give_nan_ = false;
};

// The operands that a runner is made for.
struct ConstantOperands {
  const Tensor *factor, *offset, *y_zero;
  bool complete;  // all that are present are constants
  bool unscaled;  // all but the factor and the offset are
  ConstantOperands(const PrepareContext& ctx, Key zero);
};

}  // namespace heddle
