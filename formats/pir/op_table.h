// The mapping of PIR's operators to heddle's, which have ProgramDesc's names: a generated table
// (scripts/pir_table.py), read as far as a program needs it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/op_def.h"

namespace heddle::pir {

// One way to say an operator of PIR with one of heddle's.
struct Mapping {
  struct Operand {
    std::string_view name;
    // An input slot, or an attribute that may also come in one of `slots`. Both empty: not handed
    // on.
    std::string_view slot, attribute;
    std::vector<std::string_view> slots;
  };
  struct Attribute {
    std::string_view name, to;
  };
  struct Result {
    std::string_view name, slot;
    int operand = -1;  // that it is, where the operator works in place
  };
  struct Fixed {
    std::string_view to;
    int64_t value;
  };

  const OpDef* def = nullptr;
  std::vector<Operand> operands;  // one for each of the file
  std::vector<Attribute> attributes;
  std::vector<Fixed> fixed;     // attributes that are always set
  std::vector<Result> results;  // one for each of the file
};

// Threads: one at a time. Ownership: mappings live as long as the table.
class OpTable {
 public:
  // The best first; none for operators that heddle has no counterpart of.
  const std::vector<Mapping>& Find(std::string_view pir);
  // Operands that results are, as pairs (result, operand), by the first counterpart in the table,
  // whether heddle has it or not.
  const std::vector<std::pair<int, int>>& InPlace(std::string_view pir);

 private:
  struct Entry {
    std::vector<Mapping> mappings;
    std::vector<std::pair<int, int>> in_place;
  };
  const Entry& Get(std::string_view pir);

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace heddle::pir
