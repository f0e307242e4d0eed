// The parsed form of a contract.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/contracts/contract.h"

namespace heddle::contracts {

// A dimension: a product of factors, divided by others.
struct Factor {
  enum class Kind { kNumber, kLetter, kAttribute };
  Kind kind = Kind::kNumber;
  int64_t number = 0;  // or the letter's or the attribute's
};
struct Dimension {
  bool any = false;
  std::vector<Factor> over, under;
  std::string text;
  bool is_letter() const {
    return over.size() == 1 && under.empty() && over[0].kind == Factor::Kind::kLetter;
  }
};

struct ShapePattern {
  std::vector<Dimension> head, tail;  // before and behind the dots
  bool has_dots = false;
  bool shares_dots = false;  // the dots stand for the same dimensions in the whole contract
  std::string text;          // "[N, C, ...]"
};

constexpr int kNone = -1;

struct Clause {
  std::string name;
  int at = kNone;  // of the slot or attribute in the definition

  // The fields from here on are those of operands.
  uint32_t dtypes = 0;  // bits by DType; 0: not said
  std::string dtype_text;
  int dtype_of = kNone;  // an input slot
  bool has_shape = false;
  ShapePattern shape;
  int like = kNone;    // an input slot
  int lod_of = kNone;  // an input slot
  bool one = false;
  int count_of = kNone;  // an input slot
  bool has_count = false;
  Dimension count;

  // The fields from here on are those of attributes.
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false, below = false;  // least and most themselves are not in the range
  bool has_length = false;
  Dimension length, dividend;
  bool divides = false;
  int axis_of = kNone;  // an input slot
  bool distinct = false;
  std::vector<std::string> texts;
};

}  // namespace heddle::contracts
