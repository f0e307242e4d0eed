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

// Every integer width is int64_t, every float width double, and a bool list a list of integers: the
// files' types drift between versions, an operator asks for the one type it declared.
using AttrValue =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, BlockRef, std::vector<BlockRef>>;

using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;

}  // namespace heddle
