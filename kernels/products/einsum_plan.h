// Sums of products over labelled axes: parsing an equation, and the contraction itself as packing
// into [batch, m, k] x [batch, k, n] and one matrix product per batch entry.
#pragma once

#include <array>
#include <bitset>
#include <complex>
#include <span>
#include <string_view>

#include "core/kernel_context.h"
#include "core/shapes.h"

namespace heddle {

// At most two operands, as in Paddle.
inline constexpr int kEinsumOperands = 2;
inline constexpr size_t kEinsumLabels = size_t{kEinsumOperands} * Shape::kMaxRank;

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

// The plan whose operands are (dOut, the other operand) and whose output is operand `which`'s
// gradient.
EinsumPlan GradientPlan(const EinsumPlan& plan, size_t which);

// Only elements that the output view reaches are written. Operands and `out` in the order of their
// shapes' memory.
template <typename T>
void Contract(const KernelContext& ctx, const EinsumPlan& plan, std::span<const T* const> operands,
              T* out);

extern template void Contract<float>(const KernelContext&, const EinsumPlan&,
                                     std::span<const float* const>, float*);
extern template void Contract<double>(const KernelContext&, const EinsumPlan&,
                                      std::span<const double* const>, double*);
extern template void Contract<std::complex<float>>(const KernelContext&, const EinsumPlan&,
                                                   std::span<const std::complex<float>* const>,
                                                   std::complex<float>*);
extern template void Contract<std::complex<double>>(const KernelContext&, const EinsumPlan&,
                                                    std::span<const std::complex<double>* const>,
                                                    std::complex<double>*);

}  // namespace heddle
