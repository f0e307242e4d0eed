// Phrases, which express heddle's operators in PIR: a generated table (scripts/pir_table.py
// --write).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace heddle::pir {

// One way to express an operator as one of PIR's.
struct Phrase {
  struct Operand {
    std::string_view name;
    // The slot that the operand comes from; empty: nothing is given.
    std::string_view slot;
    // The attribute whose value becomes the operand, unless one of `slots` has it. `several`: the
    // operand holds a list of numbers.
    std::string_view attribute;
    std::vector<std::string_view> slots;
    bool several = false;
    bool optional = false, list = false, computed = false;
  };
  struct Attribute {
    std::string_view name, from, kind;
    std::string_view otherwise;  // where heddle's operator has no such attribute
  };
  struct Fixed {
    std::string_view attribute;  // that must have this value
    bool value;
  };
  struct Result {
    std::string_view name, slot;
    int operand = -1;  // the operand that it overwrites
    bool optional = false, list = false;
    bool computed = false;  // a gradient reads it, so that it is always made
  };

  std::string_view pir;
  std::vector<Operand> operands;
  std::vector<Attribute> attributes;
  std::vector<Fixed> fixed;
  std::vector<Result> results;
};

// The best first; none for operators that Paddle 3 has no counterpart of.
std::vector<Phrase> PhrasesFor(std::string_view op);

}  // namespace heddle::pir
