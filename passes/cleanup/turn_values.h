// The values that variables have in a turn of a loop (one iteration), in terms of their values at
// its beginning.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/programs/ir.h"

namespace heddle::passes {

// Numbers the values in the bodies of loops, in the order of execution. The value that variable `v`
// has at the beginning of a turn has the number `v`; every computed value gets a number of its own,
// from the number of variables on. A copy has the number of its source, and a variable that both
// branches of a condition give the same value has that value's number. Variables must not be added
// meanwhile. A walk takes time proportional to the body, not to the number of variables.
class TurnValues {
 public:
  using Number = uint32_t;
  struct Place {
    int block = 0, at = 0;
  };

  explicit TurnValues(ir::Program& program);

  // Called for each operand that its operator does not also write, before the operator, with the
  // number of the operand's value: that of a variable if it had the value at the beginning of the
  // turn. May replace the operand.
  using OnRead = std::function<void(ir::VarId& operand, Number value)>;
  // Walks through a body, which only `on_read` may change meanwhile. All answers below are about
  // this body until the next call.
  void Run(int body, OnRead on_read = nullptr);

  // The variables that the body or a block inside it writes.
  const std::vector<ir::VarId>& written() const { return written_; }
  // Whether all writes of `v` are copies of the value that it had at the beginning of the turn.
  bool IsPassedOn(ir::VarId v) const { return writes_[v].passes_on && !writes_[v].at.empty(); }
  // The operators that write `v`, if IsPassedOn(v).
  const std::vector<Place>& WritesOf(ir::VarId v) const { return writes_[v].at; }

 private:
  struct Writes {
    std::vector<Place> at;
    bool passes_on = true;
  };
  // The value of a variable that a branch writes, if the condition holds.
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
  std::vector<Number> now_;     // per variable: the number of its value
  std::vector<Writes> writes_;  // per variable
  std::vector<ir::VarId> written_;
  Number next_ = 0;
  std::unordered_map<Number, Number> negated_, cast_;  // of a bool: the value it was computed from
  std::unordered_map<Number, Chosen> chosen_;
};

}  // namespace heddle::passes
