// The gradient of a function that a model's file defines: what TensorFlow's SymbolicGradient and
// ONNX's Gradient compute of a subgraph.
//
// Ownership: the result shares nothing with the library. Threads: one at a time per library.
// Errors: as FunctionLibrary::Instantiate and AppendBackward; kUnimplemented: functions of another
// format than TensorFlow's.
#pragma once

#include <string>
#include <vector>

#include "gradient/gradient.h"
#include "heddle/functions.h"

namespace heddle::gradient {

struct FunctionGradient {
  Model model;                         // takes the arguments and the gradients of the results
  std::vector<std::string> arguments;  // inputs, in the order of the signature
  std::vector<std::string> results;    // fetchable: what the function itself gives
  std::vector<std::string> result_gradients;  // an input for each result; empty: it is no float
  std::vector<std::string> gradients;  // fetchable, for each argument; empty: no result depends on
                                       // it, so that its gradient is zero
};

// The gradients of the arguments for given gradients of the results: the sum over results of the
// transposed derivative times the result's gradient. `attributes`: of the call.
Result<FunctionGradient> GradientOf(FunctionLibrary& library, const std::string& function,
                                    const std::vector<NamedFunctionValue>& attributes = {});

}  // namespace heddle::gradient
