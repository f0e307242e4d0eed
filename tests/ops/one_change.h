// Examples with one thing changed: a slot declared as a variable of another kind or dtype, an
// operand in another dtype or shape, left out, or with other elements, another attribute, an output
// given that the example does without. Most such programs are wrong; each is to be refused by one
// error, or to give one result, however it is run.
#pragma once

#include <string>
#include <vector>

#include "tests/ops/lab.h"

namespace heddle::testing {

struct Change {
  enum Sort {
    kKind,  // a slot declared as a variable of another kind
    kSaid,  // a dtype declared that is not that of the tensor
    kAttribute,
    kElements,  // an element of an operand
    kLess,      // an operand or an output is left out
    kOther
  };
  std::string what;
  Example example;
  Sort sort = kOther;
};

// All changes of the example, in one order.
std::vector<Change> ChangesOf(const Example& example);

// Runs it one instruction after another, in lanes and from the queue, with memory that holds NaN,
// with memory that does not, and with memory that is guarded (tests/ops/memory/guarded_memory.h),
// as it is and at both levels of optimisation. What is wrong; empty when nothing is.
std::string AgreesEverywhere(Lab& lab, const Change& change);

}  // namespace heddle::testing
