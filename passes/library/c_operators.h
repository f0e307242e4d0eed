// Operators as heddle/passes/heddle_pass.h has them, and as heddle/pass.h does.
//
// Ownership: a COperator holds what its structure points to. Threads: one at a time.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "heddle/pass.h"
#include "heddle/passes/heddle_pass.h"

namespace heddle::passes {

class COperator {
 public:
  explicit COperator(OpSpec spec);
  COperator(const COperator&) = delete;
  COperator& operator=(const COperator&) = delete;

  const heddle_pass_operator& get() const { return op_; }

 private:
  using NamedSlots = std::vector<std::pair<std::string, std::vector<std::string>>>;
  void AddSlots(const NamedSlots& from, std::vector<const heddle_pass_slot*>* to);
  void AddAttribute(const std::string& name, const AttributeValue& value);

  const OpSpec spec_;
  // Addresses of what lies in a deque stay.
  std::deque<heddle_pass_slot> slots_;
  std::deque<heddle_engine_attribute> attributes_;
  std::deque<std::vector<const char*>> texts_;
  std::deque<int64_t> bools_;
  std::vector<const heddle_pass_slot*> inputs_, outputs_;
  std::vector<const heddle_engine_attribute*> attribute_list_;
  heddle_pass_operator op_ = {};
};

// kInvalidArgument: something in it is missing or of no known kind.
Result<OpSpec> SpecOf(const heddle_pass_operator* op);

}  // namespace heddle::passes
