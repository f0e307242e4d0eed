// A program, and the ONNX model that is written of it, read by heddle's own reader: both as they
// are, with the same numbers.
#pragma once

#include <string>
#include <vector>

#include "heddle/heddle.h"

namespace heddle::testing {

struct RoundTrip {
  bool ran = false;             // heddle computes the program
  std::string refused;          // why no model was written; empty: one was
  std::string wrong;            // what is wrong with it; empty: nothing
  std::string model;            // that was written
  std::vector<Tensor> outputs;  // of the program, where a model was written
};

// The feeds of `program` are declared as they are to be fed, or with open dimensions. Results may
// differ by `rtol` and `atol`, those of float64 by a thousandth of that.
RoundTrip TryRoundTrip(Executor& executor, const Program& program,
                       const std::shared_ptr<Scope>& scope, const std::vector<Feed>& feeds,
                       double rtol = 3e-5, double atol = 3e-5);

// A copy of the program whose feeds are declared with open dimensions, of odd or of all positions.
Program Opened(const Program& program, bool all);

}  // namespace heddle::testing
