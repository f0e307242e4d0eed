// The mapping of PIR's operators to heddle's, which have ProgramDesc's names: a generated table
// (scripts/pir_table.py), parsed entry by entry on demand.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/op_def.h"

namespace heddle::pir {

// One way to express an operator of PIR by one of heddle's.
struct Mapping {
  struct Operand {
    std::string_view name;
    // The input slot that the operand goes to, or the attribute, which may also be given by a
    // variable in one of `slots`. Both empty: the operand is dropped.
    std::string_view slot, attribute;
    std::vector<std::string_view> slots;
  };
  struct Attribute {
    std::string_view name, to;
  };
  struct Result {
    std::string_view name, slot;
    int operand = -1;  // the operand that it overwrites, if in place
  };
  struct Fixed {
    std::string_view to;
    int64_t value;
  };

  const OpDef* def = nullptr;
  std::vector<Operand> operands;  // one per operand in the file
  std::vector<Attribute> attributes;
  std::vector<Fixed> fixed;     // attributes with a constant value
  std::vector<Result> results;  // one per result in the file
};

// Threads: one at a time. Ownership: mappings live as long as the table.
class OpTable {
 public:
  // The mappings of an operator, the best first; none if heddle has no counterpart.
  const std::vector<Mapping>& Find(std::string_view pir);
  // The in-place results of an operator as pairs (result, operand), by its first mapping in the
  // table, whether or not heddle has that operator.
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
