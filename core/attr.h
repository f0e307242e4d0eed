// Typed attribute values of an operator.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace heddle {

// A sub-block of the program.
struct BlockRef {
  int id = -1;
  friend bool operator==(const BlockRef&, const BlockRef&) = default;
};

// The value of an attribute. All integers are int64_t, all floats double, and a list of bools is a
// list of integers: the types in files differ between versions, and an operator reads the one type
// that it declared.
using AttrValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, BlockRef, std::vector<BlockRef>>;

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;

}  // namespace heddle
