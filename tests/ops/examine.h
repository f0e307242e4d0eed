// What an example shows of its operator. Each function runs variants of one example and returns
// what is wrong with them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/op_def.h"
#include "tests/ops/lab.h"

namespace heddle::testing {

struct Problem {
  std::string variant;  // "float64", "8 threads"
  std::string what;
};
using Problems = std::vector<Problem>;

// The expected outputs, from the program as it is and from the optimised one.
Problems CheckAnswers(Lab& lab, const Example& example);

// Every way to run it gives the same bits: in place, again, on the emulated device. With more
// threads, and with the CUDA kernels, the expected values.
Problems CheckWays(Lab& lab, const Example& example);

// In each other dtype that the operator has a kernel for. A cast that changes the inputs' values
// compares with a run in the example's own dtype on the changed values. Adds to *ran the dtypes
// whose kernel has given a result, the example's own among them.
Problems CheckDTypes(Lab& lab, const Example& example, const OpDef& def, std::set<DType>* ran);

// With a dimension of the operands set to 0, and with operands of one element: a result that does
// not depend on how it is run, or one Status that says why not.
Problems CheckSmallShapes(Lab& lab, const Example& example, const OpDef& def);

// Whether the operand is a gradient that may be absent, by its name.
bool IsOptionalGradient(const SlotDef& slot);
// Without each of those the results are as with zeros in its place.
Problems CheckAbsentGradients(Lab& lab, const Example& example, const OpDef& def);

// The first elements of `t` in another shape, zeros behind them, sequence offsets cut to fit.
Tensor Resized(const Tensor& t, const Shape& shape);

}  // namespace heddle::testing
