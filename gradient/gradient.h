// The gradient pass: adds to a program the operators that compute the gradients of a loss.
//
// The gradient is that of the sum of all elements of all losses. The result is a program as any
// other: the operators of the given one, then those of the gradients. Applied to its own result the
// pass gives the next order.
//
// Ownership: the results share nothing with the request. Threads: any. Errors: kNotFound: there is
// no such variable; kInvalidArgument: no loss depends on a wanted variable; kUnimplemented:
// operators without a gradient are in the way, all of which are named with their place and the path
// from the loss.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "heddle/program.h"
#include "heddle/status.h"

namespace heddle::gradient {

struct GradientRequest {
  std::vector<std::string> losses;
  // The variables whose gradients are wanted, even where the file marks them as not trained. None:
  // all trainable parameters that a loss depends on.
  std::optional<std::vector<std::string>> wrt;
  std::vector<std::string> no_grad;  // nothing flows through these
  // Of the parameters that are wanted if `wrt` is not given, those that are not; null: none.
  std::function<bool(const std::string&)> frozen = nullptr;
  bool dense = false;  // no gradient is sparse (selected rows)
  // Those of `wrt` on which no loss depends are left out; without this they are an error.
  bool skip_independent = false;
};

struct GradientName {
  std::string variable, gradient;
};

struct Gradients {
  Program program;
  std::vector<GradientName> gradients;  // in the order of `wrt`, or by name
};

// The gradient of N is the variable N@GRAD or, if the program has one of that name, N@GRAD@2, then
// @3. It has the shape and dtype of N.
Result<Gradients> AppendBackward(const Program& program, const GradientRequest& request);

// How the gradient of an operator comes about, as one line: "derived: OP reads …; gives …" where
// the names of slots say it, "named: OP reads …", "composition: …", or "none: REASON". Empty:
// heddle has no such operator, or does not know its gradient.
std::string GradientRuleText(const std::string& op);

}  // namespace heddle::gradient
