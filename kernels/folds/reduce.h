// The reduction engine: any set of axes, collapsed to outer dimensions around one contiguous row.
//
// The order of summation follows from the shape alone, never from the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/kernel_context.h"
#include "kernels/base/broadcast.h"

namespace heddle {

// Dimensions of the input outside the innermost one, kept and reduced apart, strides in elements.
struct ReducePlan {
  using Dims = std::array<int64_t, Shape::kMaxRank>;
  bool inner_reduced = true;
  int64_t inner = 1;  // extent of the innermost (contiguous) dimension
  int kept_rank = 0, reduced_rank = 0;
  Dims kept_dims{}, kept_strides{}, reduced_dims{}, reduced_strides{};
  int64_t kept_count = 1, reduced_count = 1;  // products of the above

  int64_t outputs() const { return inner_reduced ? kept_count : kept_count * inner; }
  // Elements that go into one output.
  int64_t count() const { return inner_reduced ? reduced_count * inner : reduced_count; }
};

// Bit i of `reduced` says that dims[i] is reduced.
ReducePlan MakeReducePlan(std::span<const int64_t> dims, uint32_t reduced);
// Sums a broadcast result back to the shape of its operand x (or y).
ReducePlan MakeReducePlan(const BroadcastPlan& plan, bool of_x);

// Loops of one reduction. `acc` are accumulators of a type of the reduction's own.
struct ReduceLoops {
  void (*init)(void* acc, int64_t n);
  void (*row)(const void* x, int64_t n, void* acc);     // acc[0] takes in x[0..n)
  void (*column)(const void* x, int64_t n, void* acc);  // acc[i] takes in x[i]
  void (*merge)(const void* other, int64_t n, void* acc);
  void (*finish)(const void* acc, int64_t n, int64_t count, void* out);
  uint32_t in_size, acc_size, out_size;
};

void RunReduce(const KernelContext& ctx, const ReducePlan& plan, const ReduceLoops& loops,
               const void* x, void* out);

// The loops that add up elements of one dtype; nullptr where there are none.
const ReduceLoops* SumLoops(DType dtype);

}  // namespace heddle
