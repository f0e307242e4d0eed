// Sums of products over labelled axes: parsing an equation, and the contraction itself, two
// operands at a time: packing into [batch, m, k] x [batch, k, n] and one matrix product per batch
// entry.
#pragma once

#include <array>
#include <bitset>
#include <complex>
#include <span>
#include <string_view>

#include "core/kernel_context.h"
#include "core/shapes.h"

namespace heddle {

inline constexpr int kEinsumOperands = 16;  // at most
inline constexpr size_t kEinsumLabels = size_t{2} * Shape::kMaxRank;

// One tensor as strides over the labels of a plan; 0 where it lacks the label or is broadcast along
// it, the sum of several strides where a label repeats (a diagonal).
struct LabelledView {
  std::array<int64_t, kEinsumLabels> strides{};
  std::bitset<kEinsumLabels> has;  // takes part in the label with its full size
};

struct EinsumPlan {
  size_t labels = 0;
  std::array<int64_t, kEinsumLabels> sizes{};  // per label
  size_t operand_count = 0;
  std::array<LabelledView, kEinsumOperands> operands;
  LabelledView out;
  Shape out_shape;
};

// Every operand's shape must be known.
Result<EinsumPlan> PlanEinsum(std::string_view equation, std::span<const Shape> shapes);

// The plan whose operands are dOut and all operands but `which`, and whose output is the gradient
// of that one.
EinsumPlan GradientPlan(const EinsumPlan& plan, size_t which);

// Only elements that the output view reaches are written. Operands and `out` in the order of their
// shapes' memory. Of more than two operands those with the least work are multiplied first.
template <typename T>
void Contract(const KernelContext& ctx, const EinsumPlan& plan, std::span<const T* const> operands,
              T* out);

extern template void Contract<float>(const KernelContext&, const EinsumPlan&,
                                     std::span<const float* const>, float*);
extern template void Contract<double>(const KernelContext&, const EinsumPlan&,
                                      std::span<const double* const>, double*);
extern template void Contract<int32_t>(const KernelContext&, const EinsumPlan&,
                                       std::span<const int32_t* const>, int32_t*);
extern template void Contract<int64_t>(const KernelContext&, const EinsumPlan&,
                                       std::span<const int64_t* const>, int64_t*);
extern template void Contract<std::complex<float>>(const KernelContext&, const EinsumPlan&,
                                                   std::span<const std::complex<float>* const>,
                                                   std::complex<float>*);
extern template void Contract<std::complex<double>>(const KernelContext&, const EinsumPlan&,
                                                    std::span<const std::complex<double>* const>,
                                                    std::complex<double>*);

}  // namespace heddle
