#include "executor/plan/block_access.h"

#include <algorithm>

#include "core/programs/sub_block_slots.h"

namespace heddle {

std::vector<int> BlocksOf(const Plan& plan, const Instruction& in) {
  if (!in.op.def->has(kControlFlow)) return {};
  return plan.program->blocks[in.ir_block].ops[in.ir_op].SubBlocks();
}

std::vector<uint32_t> RecordsOf(const Instruction& in) {
  std::vector<uint32_t> records;
  if (!in.op.def->has(kControlFlow)) return records;
  const auto& inputs = in.op.def->inputs();
  const auto is_record = [](const SlotDef& slot) { return (slot.flags & kRecord) != 0; };
  if (std::none_of(inputs.begin(), inputs.end(), is_record)) return records;
  for (size_t s = 0; s < inputs.size(); ++s)
    if (is_record(inputs[s]) || ir::IsRecordedSlot(inputs[s]))
      records.insert(records.end(), in.op.in.begin() + in.op.in_begin[s],
                     in.op.in.begin() + in.op.in_begin[s + 1]);
  return records;
}

const BlockAccess::Slots& BlockAccess::Of(int block) {
  if (known_.empty()) known_.resize(plan_.blocks.size());
  if (!known_[block]) Gather(block, &known_[block].emplace());
  return *known_[block];
}

void BlockAccess::Gather(int block, Slots* slots) {
  if (read_by_.empty()) {
    read_by_.assign(plan_.slots.size(), -1);
    written_by_.assign(plan_.slots.size(), -1);
    entered_by_.assign(plan_.blocks.size(), -1);
  }
  const auto add = [&](uint32_t s, std::vector<int>* met, std::vector<uint32_t>* list) {
    if (s == kNoSlot || (*met)[s] == block) return;
    (*met)[s] = block;
    list->push_back(s);
  };
  std::vector<int> open = {block};
  entered_by_[block] = block;
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    for (const Instruction& in : plan_.blocks[at].instructions) {
      slots->traits |= in.op.def->traits();
      for (uint32_t s : in.op.in) add(s, &read_by_, &slots->reads);
      for (uint32_t s : in.op.out) add(s, &written_by_, &slots->writes);
      for (const auto& r : in.rewrites) add(r.real, &written_by_, &slots->writes);
      for (uint32_t s : RecordsOf(in)) add(s, &written_by_, &slots->writes);
      for (int sub : BlocksOf(plan_, in)) {
        if (entered_by_[sub] == block) continue;
        entered_by_[sub] = block;
        open.push_back(sub);
      }
    }
  }
}

}  // namespace heddle
