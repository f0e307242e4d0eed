#include "executor/plan/plan.h"

#include <algorithm>
#include <utility>

namespace heddle {

const std::string& ImplementationOf(const Instruction& in) {
  static const std::string kOnlyOne;
  return in.state != nullptr ? in.state->facts().implementation : kOnlyOne;
}

const ir::Op* Plan::NearestOperator(const Instruction& in) const {
  const std::vector<ir::Op>& ops = program->blocks[in.ir_block].ops;
  return static_cast<size_t>(in.ir_op) < ops.size() ? &ops[in.ir_op] : nullptr;
}
const ir::Op* Plan::OperatorOf(const Instruction& in) const {
  const ir::Op* const near = NearestOperator(in);
  return near != nullptr && near->def == in.op.def ? near : nullptr;
}
OpLocation Plan::Locate(const Instruction& in) const {
  if (const ir::Op* const near = NearestOperator(in)) return program->Locate(in.ir_block, *near);
  OpLocation where;
  where.block = in.ir_block;
  return where;
}

Status Plan::Blame(const Status& status, const Instruction& in) const {
  const std::string& implementation = ImplementationOf(in);
  const bool stopped =
      status.code() == StatusCode::kCancelled || status.code() == StatusCode::kDeadlineExceeded;
  if (implementation.empty() || stopped || status.location()) return status.At(Locate(in));
  return Status(status.code(), StrCat(status.message(), " (implementation: ", implementation, ")"))
      .At(Locate(in));
}

Status Plan::BlameLargest(const Status& status) const {
  const Instruction* largest = nullptr;
  size_t most = 0;
  for (const Instruction& in : blocks[0].instructions)
    for (uint32_t s : in.op.out) {
      if (s == kNoSlot || !slots[s].is_static || slots[s].bytes() <= most) continue;
      most = slots[s].bytes();
      largest = &in;
    }
  if (largest == nullptr) return status;
  return Status(status.code(),
                StrCat(status.message(), "; the operator's output takes ", most, " of them"))
      .At(Locate(*largest));
}

bool Plan::Claims(const Instruction& in) const {
  if (claimed == nullptr) return false;
  const auto is_claimed = [&](uint32_t s) {
    return s != kNoSlot && slots[s].var != ir::kNoVar && (*claimed)[slots[s].var];
  };
  return std::any_of(in.op.out.begin(), in.op.out.end(), is_claimed) ||
         std::any_of(in.rewrites.begin(), in.rewrites.end(),
                     [&](const auto& r) { return is_claimed(r.real); });
}

size_t Plan::MarkWritten() const {
  size_t count = 0;
  for (size_t i = 0; i < scope_slots.size(); ++i) {
    if (!scope_uses[i].written) continue;
    scope->MarkWritten(program->vars[slots[scope_slots[i]].var].name);
    ++count;
  }
  return count;
}

}  // namespace heddle
