// The broadcast engine: two operands are collapsed once to as few dimensions as possible, then rows
// are handed to plain inner loops.
#pragma once

#include <array>
#include <cstdint>

#include "core/function_ref.h"
#include "core/kernel_context.h"

namespace heddle {

// The form of a broadcast's innermost dimension.
enum class InnerKind : uint8_t {
  kVectorVector,  // both operands advance
  kVectorScalar,  // y is one value along it
  kScalarVector,  // x is one value along it
};

// Two shapes broadcast against each other, adjacent dimensions of the same kind merged and those of
// extent 1 dropped. `dims` are the result's; a stride of 0 says that the operand is repeated.
struct BroadcastPlan {
  int rank = 1;
  InnerKind inner = InnerKind::kVectorVector;
  int64_t numel = 0;
  int64_t rows = 0;  // product of all dimensions but the last
  int64_t cols = 0;  // the last one
  std::array<int64_t, Shape::kMaxRank> dims{}, x_strides{}, y_strides{};

  bool x_is_full() const { return IsFull(x_strides); }
  bool y_is_full() const { return IsFull(y_strides); }

 private:
  bool IsFull(const std::array<int64_t, Shape::kMaxRank>& strides) const {
    for (int i = 0; i < rank; ++i)
      if (strides[i] == 0 && dims[i] != 1) return false;
    return true;
  }
};

// Paddle's alignment: axis -1 aligns the ends; axis k puts the smaller operand's first dimension at
// k of the larger one. Works without allocating, so a kernel may also call it on every run.
Result<BroadcastPlan> MakeBroadcastPlan(const Shape& x, const Shape& y, int64_t axis);

struct BroadcastState : KernelState {
  BroadcastPlan plan;
  bool leading = false;  // the operands are the operator's first two, the result its first output
};

// The shapes of both operands padded with ones to one rank. False when they cannot be aligned.
bool AlignShapes(const Shape& x, const Shape& y, int64_t axis, Shape* x_out, Shape* y_out);

// Inner loops of a binary operator, indexed by InnerKind. `arg` is the operator's own. With `wide`
// set, operands of the 16-bit type `stored` are converted for those loops and there are no others.
// Without it the first one is there; where another is missing, the repeated operand is written out
// for it.
struct BinaryLoops {
  using Fn = void (*)(const void* x, const void* y, void* out, int64_t n, const void* arg);
  Fn fn[3];
  uint32_t in_size;   // bytes of an element of x and of y
  uint32_t out_size;  // bytes of an element of out
  int64_t grain;      // elements worth a thread of their own
  const BinaryLoops* wide = nullptr;
  DType stored = DType::kUnknown;

  // n elements of one row.
  void Run(InnerKind kind, const void* x, const void* y, void* out, int64_t n,
           const void* arg) const {
    if (const Fn f = fn[static_cast<int>(kind)]; f != nullptr) [[likely]]
      f(x, y, out, n, arg);
    else
      RunIndirect(kind, x, y, out, n, arg);
  }

 private:
  void RunIndirect(InnerKind kind, const void* x, const void* y, void* out, int64_t n,
                   const void* arg) const;
};

// out = f(x, y). `out` may be x or y itself where that operand is not repeated.
void RunBinary(const KernelContext& ctx, const BroadcastPlan& plan, const BinaryLoops& loops,
               const void* x, const void* y, void* out, const void* arg = nullptr);

// Calls fn(x_offset, y_offset, out_offset) for rows [begin, end), offsets in elements.
void ForEachRow(const BroadcastPlan& plan, int64_t begin, int64_t end,
                FunctionRef<void(int64_t, int64_t, int64_t)> fn);

// Calls fn(x_offset, y_offset, out_offset, n) for pieces of rows, over the run's threads.
void ParallelRows(const KernelContext& ctx, const BroadcastPlan& plan, int64_t grain,
                  FunctionRef<void(int64_t, int64_t, int64_t, int64_t)> fn);

}  // namespace heddle
