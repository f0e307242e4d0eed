// Gradient operators against differences of their forward operators, in float64.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/ops/examine.h"

namespace heddle::testing {

using ExamplesByOp = std::map<std::string, std::vector<const Example*>>;

// The forward operator of `x_grad`; nullptr where there is none, it draws random numbers, runs
// blocks or is a gradient itself, or the gradient's outputs are not called after its inputs.
const OpDef* ForwardOf(const OpDef& gradient);

struct GradientCheck {
  int compared = 0;     // gradients of operands
  std::string why_not;  // the check was not made
  Problems problems;
};

// Whether `x_grad` can be compared: both operators compute in double precision.
bool BothInDouble(const OpDef& gradient, const OpDef& forward);

// The examples of its forward operator by which a gradient is compared besides its own: those with
// an operand to differentiate by and all that the operator needs. None where an example says that
// differences mean nothing, of the gradient or of the forward operator.
std::vector<const Example*> Differentiated(const OpDef& gradient, const ExamplesByOp& examples);

// One of those, with what the gradient's examples say of differences in general.
Example ForGradient(const Example& forward_example,
                    const std::vector<const Example*>& gradient_examples);

// Takes the forward operands from the gradient's example; where that has not all of them (the
// gradient of tanh reads the output alone) from the forward operator's first that has. Outputs are
// computed, and their gradients drawn where the example gives none.
//
// `example` may be one of the forward operator itself, whose operands and attributes are then those
// of the gradient, too.
//
// Source: central differences along one direction per operand, then element by element where that
// does not agree. Where the one-sided slopes differ (a kink), any value between them is right.
GradientCheck CheckGradient(Lab& lab, const Example& example, const OpDef& gradient,
                            const OpDef& forward, const ExamplesByOp& examples);

}  // namespace heddle::testing
