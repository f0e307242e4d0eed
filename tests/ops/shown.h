// What the examples of an operator show of it, and what they leave out.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "core/op_def.h"
#include "tests/ops/example.h"

namespace heddle::testing {

// Something that no example of an operator shows.
struct Gap {
  std::string op;
  // "values": an operand with kDifferent different elements, rank 2 or more, negative and positive
  // ones: less does not show which element went where. Of integers whose negatives the operator
  // refuses none is asked (StartsAtZero), and booleans have both values. An operator whose
  // operands are numbers and lists has a result of that rank and size, of any values, or, where
  // its results are lists as well, one list of so many different elements. Nothing is asked where
  // all are single numbers, nor where all examples compare statistics.
  // "attr": the attribute `of` with a value other than its default, unless the operator knows no
  // other (HasOneValue).
  // "present", "absent": an example with, without the optional operand `of`; one that holds nothing
  // is absent. Of gradients, which are absent in a variant of each example (CheckAbsentGradients),
  // one with it shows both.
  // "dtype": a run of the kernel for the dtype `of`.
  std::string what;
  std::string of;  // an attribute or a slot; "" of "values"
};
inline bool operator<(const Gap& a, const Gap& b) {
  return std::tie(a.op, a.what, a.of) < std::tie(b.op, b.what, b.of);
}

constexpr size_t kDifferent = 8;

// All but those of dtypes, which runs show (CheckDTypes), whatever the operator refuses
// (tests/ops/refusals.h). `examples`: those that run the operator,
// alone or in a program.
std::vector<Gap> GapsOf(const OpDef& op, const std::vector<const Example*>& examples);

// Gaps that are left, each with its reason: lines "OPERATOR WHAT OF: REASON" of a file, OF left out
// where there is none; empty lines and those that begin with '#' say nothing. OPERATOR and OF may
// end with '*', for all that begin so. One thread.
class Exceptions {
 public:
  explicit Exceptions(const std::string& path);
  // Whether a line names the gap; it has then been of use.
  bool Allows(const Gap& gap);
  // "file:line: text" of those that no gap asked for, but for dtypes.
  std::vector<std::string> Unused() const;
  // "file:line: what is wrong" of lines of another form.
  const std::vector<std::string>& errors() const { return errors_; }
  size_t size() const { return lines_.size(); }

 private:
  struct Line {
    std::string op, what, of, text;
    bool used = false;
  };
  std::vector<Line> lines_;
  std::vector<std::string> errors_;
};

}  // namespace heddle::testing
