// The values of variables in a turn of a loop, in terms of those that they had when it began.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

// Goes through the bodies of loops, one after another, in the order in which they run. The value
// that variable `v` has when the turn begins is called `v`; every value that is computed gets a
// number of its own, from the number of variables on. Copies have the number of what they copy, and
// so has a variable that both branches of a condition give the same value. No variables may be
// added while it is in use; a walk takes time by what the body does, not by the number of
// variables.
class TurnValues {
 public:
  using Number = uint32_t;
  struct Place {
    int block = 0, at = 0;
  };

  explicit TurnValues(ir::Program& program);

  // Called for each operand of an operator that is not rewritten by it, before it runs, with the
  // number of its value: a variable's where that still holds the value. It may replace the operand.
  using OnRead = std::function<void(ir::VarId& operand, Number value)>;
  // Goes through the body, in which nothing else may change meanwhile. All answers below are about
  // it until the next call.
  void Run(int body, OnRead on_read = nullptr);

  // The variables that the body, or blocks inside it, writes.
  const std::vector<ir::VarId>& written() const { return written_; }
  // All writes of `v` are copies of the value that it had when the turn began.
  bool IsPassedOn(ir::VarId v) const { return writes_[v].passes_on && !writes_[v].at.empty(); }
  // The operators that write `v`, where IsPassedOn(v).
  const std::vector<Place>& WritesOf(ir::VarId v) const { return writes_[v].at; }

 private:
  struct Writes {
    std::vector<Place> at;
    bool passes_on = true;
  };
  // A variable that a branch writes: if the condition holds, it has this value.
  struct Chosen {
    Number condition, value;
  };

  void Walk(int block);
  void WalkBranch(const ir::Op& op, int body);
  void Read(ir::Op& op);
  void ReadNested(ir::Op& op);
  void Write(ir::VarId v, Number value, const Place* copy);
  void WriteAll(const ir::Op& op);
  void WriteNested(const ir::Op& op);
  Number NumberOfSelection(const ir::Op& op) const;
  bool AreOpposite(Number a, Number b) const;
  Number New() { return next_++; }

  ir::Program& p_;
  OnRead on_read_;
  std::vector<Number> now_;     // per variable: its value
  std::vector<Writes> writes_;  // per variable
  std::vector<ir::VarId> written_;
  Number next_ = 0;
  std::unordered_map<Number, Number> negated_, cast_;  // of a bool: what it was made of
  std::unordered_map<Number, Chosen> chosen_;
};

}  // namespace heddle::passes
