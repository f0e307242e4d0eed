// The description that a piece of hardware, or a library, gives of itself: which operators its
// units take, which unit feeds which, the limits of groups, and costs. docs/partition.md describes
// the file.
//
// Ownership: values. Threads: any may read. Errors: kNotFound, kInvalidArgument, kDataLoss, one
// line that names the file and the place in it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/status.h"

namespace heddle::partition {

// A number or a text. Bools are the numbers 0 and 1.
struct Scalar {
  bool is_text = false;
  bool is_integer = false;
  int64_t integer = 0;  // if the scalar is an integer
  double number = 0;    // also set for an integer
  std::string text;
  friend bool operator==(const Scalar& a, const Scalar& b);
};

// The value of an attribute: one scalar or a list.
struct Literal {
  bool is_list = false;
  std::vector<Scalar> items;
  friend bool operator==(const Literal& a, const Literal& b) = default;
};
std::string ToString(const Literal& literal);

struct Test {
  enum class Kind : uint8_t { kEqual, kNotEqual, kIn, kNotIn, kMin, kMax, kAll, kLength };
  Kind kind = Kind::kEqual;
  std::vector<Literal> values;  // one, except for kIn and kNotIn
  // For a list, kMin, kMax and kAll apply to each element.
  bool Holds(const Literal& value) const;
  std::string ToString() const;  // "at most 4"
};

// A condition on an attribute.
struct AttrRule {
  std::string name;
  std::vector<Test> tests;
  std::optional<Literal> fallback;  // used if the attribute is absent
  bool may_be_absent = false;
};

struct RankRange {
  int64_t least = 0, most = 0;
};

// A condition on each variable of an input slot.
struct SlotRule {
  std::string slot;
  std::optional<bool> constant;  // a persistable variable, before the block writes it
  std::optional<std::vector<DType>> dtypes;
  std::optional<RankRange> rank;
  std::optional<int64_t> max_elements;
  bool may_be_absent = false;
};

// `call`: per operator; `element`: per element of its largest output.
struct Cost {
  double call = 0, element = 0;
};

struct Pattern {
  std::string type;
  std::vector<AttrRule> attrs;
  std::vector<SlotRule> slots;
  std::optional<std::vector<DType>> dtypes;  // of every input and output
  std::optional<RankRange> rank;             // of every input and output that is not a parameter
  Cost cost;                                 // the unit's if the pattern does not give one
};

struct Unit {
  std::string name;
  std::vector<Pattern> patterns;
};

using UnitId = int;  // an index into Target::units

struct Link {
  UnitId from = 0, to = 0;
};

struct Limits {
  static constexpr int64_t kNone = int64_t{1} << 30;
  int64_t min_group = 1, max_group = kNone;  // operators, without helpers
  int64_t max_inputs = kNone, max_outputs = kNone;
  bool static_shapes = false;  // no unknown dimension in a group
};

enum class Objective : uint8_t {
  kCover,  // more operators in groups first, then fewer groups
  kCost,   // a lower total cost
};

struct Target {
  std::string name;
  Objective objective = Objective::kCover;
  std::vector<Unit> units;
  std::vector<Link> links;
  std::vector<UnitId> start;     // where a group may begin
  std::vector<Pattern> helpers;  // constants and shape operators that join their reader
  Limits limits;
  double group_cost = 0, byte_cost = 0;  // of a group; per byte of its inputs and outputs
  Cost host = {1, 0};                    // of an operator that stays

  // The units that may follow each unit along one or more links, nearest first, and those with
  // which a group may begin. A unit follows itself only by a link to itself, and not along a cycle
  // of others.
  std::vector<std::vector<UnitId>> next;
  std::vector<UnitId> first;

  // Operators of one program (block, index) that are not taken, whatever the patterns say, with the
  // reason. Not part of the file.
  std::map<std::pair<int, int>, std::string> refused;
};

// A name in a target that no operator, or not this operator, has. Such a pattern never holds, or
// holds where the name is absent; operators of an embedding program may be unknown here.
struct UnknownName {
  std::string what;  // "no operator", "no attribute of conv2d"
  std::string name;
  std::vector<std::string> known;  // names that there are
};
// Each once, in the order of the file.
std::vector<UnknownName> UnknownNames(const Target& target);

// `name` precedes error messages.
Result<Target> ParseTarget(std::string_view json, const std::string& name);
Result<Target> LoadTarget(const std::string& path);

}  // namespace heddle::partition
