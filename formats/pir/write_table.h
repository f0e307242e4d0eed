// Phrases, which express heddle's operators in PIR: a generated table (scripts/pir_table.py
// --write).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace heddle::pir {

// One way to express an operator of heddle by one of PIR.
struct Phrase {
  struct Operand {
    std::string_view name;
    // The slot that the operand comes from; empty: the operand is absent.
    std::string_view slot;
    // The attribute whose value becomes the operand, unless a variable in one of `slots` has the
    // value. `several`: the operand holds a list of numbers.
    std::string_view attribute;
    std::vector<std::string_view> slots;
    bool several = false;
    bool optional = false, list = false, computed = false;
  };
  struct Attribute {
    std::string_view name, from, kind;
    std::string_view otherwise;  // value if heddle's operator lacks the attribute
  };
  struct Fixed {
    std::string_view attribute;  // heddle's attribute, which must have this value
    bool value;
  };
  struct Result {
    std::string_view name, slot;
    int operand = -1;  // the operand that it overwrites
    bool optional = false, list = false;
    bool computed = false;  // a gradient reads it, so it is always made
  };

  std::string_view pir;
  std::vector<Operand> operands;
  std::vector<Attribute> attributes;
  std::vector<Fixed> fixed;
  std::vector<Result> results;
};

// The phrases of an operator, the best first; none if Paddle 3 has no counterpart.
std::vector<Phrase> PhrasesFor(std::string_view op);

}  // namespace heddle::pir
