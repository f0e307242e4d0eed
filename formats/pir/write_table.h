// How heddle's operators are said in PIR: a generated table (scripts/pir_table.py --write).
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace heddle::pir {

// One way to say an operator.
struct Phrase {
  struct Operand {
    std::string_view name;
    // The slot it comes from; empty: nothing is given.
    std::string_view slot;
    // The value of an attribute, unless one of `slots` has it. Of one number, or of several.
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
    int operand = -1;  // that it is
    bool optional = false, list = false;
    bool computed = false;  // for a gradient, whether or not somebody asks for it
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
