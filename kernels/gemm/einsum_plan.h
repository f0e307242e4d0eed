// Sums of products over labelled axes: parsing an equation, and the contraction itself as packing
// into [batch, m, k] x [batch, k, n] and one matrix product per batch entry.
#pragma once

#include <string>
#include <vector>

#include "core/shapes.h"

namespace heddle {

// One tensor as strides over the labels of a plan; 0 where it lacks the label or is broadcast along
// it, the sum of several strides where a label repeats (a diagonal).
struct LabelledView {
  std::vector<int64_t> strides;
  std::vector<bool> has;  // takes part in the label with its full size
};

struct EinsumPlan {
  std::vector<int64_t> sizes;  // per label
  std::vector<LabelledView> operands;
  LabelledView out;
  Shape out_shape;
};

// At most two operands, as in Paddle. Every operand's shape must be known.
Result<EinsumPlan> PlanEinsum(const std::string& equation, const std::vector<Shape>& shapes);

// The plan whose operands are (dOut, the other operand) and whose output is operand `which`'s
// gradient.
EinsumPlan GradientPlan(const EinsumPlan& plan, int which);

// Only elements that the output view reaches are written.
template <typename T>
void Contract(const EinsumPlan& plan, const std::vector<const T*>& operands, T* out);

extern template void Contract<float>(const EinsumPlan&, const std::vector<const float*>&, float*);
extern template void Contract<double>(const EinsumPlan&, const std::vector<const double*>&,
                                      double*);
extern template void Contract<std::complex<float>>(const EinsumPlan&,
                                                   const std::vector<const std::complex<float>*>&,
                                                   std::complex<float>*);
extern template void Contract<std::complex<double>>(const EinsumPlan&,
                                                    const std::vector<const std::complex<double>*>&,
                                                    std::complex<double>*);

}  // namespace heddle
