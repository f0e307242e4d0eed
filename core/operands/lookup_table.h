// LookupTable: a hash table as the value of a variable (Value::Kind::kOther).
//
// Ownership: values share an immutable table; adding to it makes another one. Threads: as for
// Value.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "heddle/status.h"
#include "heddle/string_tensor.h"
#include "heddle/value.h"

namespace heddle {

// Keys are strings or integers; each has a row of values, which are strings or numbers of any
// dtype. A table without rows has no types yet.
class LookupTable {
 public:
  int64_t size() const { return static_cast<int64_t>(texts_.size() + numbers_.size()); }
  bool has_texts() const { return !texts_.empty(); }
  bool has_numbers() const { return !numbers_.empty(); }

  // The row of a key; -1: the key is absent.
  int64_t Find(const std::string& key) const {
    const auto found = texts_.find(key);
    return found == texts_.end() ? -1 : found->second;
  }
  int64_t Find(int64_t key) const {
    const auto found = numbers_.find(key);
    return found == numbers_.end() ? -1 : found->second;
  }

  // The rows: numbers [capacity, ...], of which the rows of existing keys are used; or one string
  // each.
  const Tensor& values() const { return values_; }
  const std::vector<std::string>& value_texts() const { return value_texts_; }
  bool values_are_texts() const { return values_are_texts_; }

  // Adds keys with their values, whose leading dimensions are those of the keys. Existing keys get
  // new values if `replaces`; otherwise a different value is an error. kInvalidArgument: types or
  // shapes do not fit the table's, or each other.
  Status Insert(const Value& keys, const Value& values, bool replaces);

 private:
  struct Rows;
  Status Fit(const Rows& rows);
  Status Put(int64_t row, const Rows& rows, int64_t from, bool known, bool replaces);

  std::unordered_map<std::string, int64_t> texts_;
  std::unordered_map<int64_t, int64_t> numbers_;
  Tensor values_;
  bool values_are_texts_ = false;
  std::vector<std::string> value_texts_;
};

using SharedTable = std::shared_ptr<const LookupTable>;

// The table in a value; nullptr: it holds something else.
SharedTable TableIn(const Value& value);
Value ValueOf(LookupTable table);

}  // namespace heddle
