// The variables that an instruction's sub-blocks read and write.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/plan/plan.h"

namespace heddle {

// The blocks that an instruction runs; empty for all but control flow.
std::vector<int> BlocksOf(const Plan& plan, const Instruction& in);
// The inputs that an instruction also writes: reading a record of a block's runs consumes it, and
// the recorded variables have their earlier values meanwhile.
std::vector<uint32_t> RecordsOf(const Instruction& in);

// BlockAccess: for each block, the slots that it touches and the traits of its operators, including
// those of the blocks that its instructions run. Each block is visited once. Refers to the plan,
// whose instructions must not change meanwhile.
class BlockAccess {
 public:
  struct Slots {
    std::vector<uint32_t> reads, writes;  // each slot once per list
    unsigned traits = 0;                  // OpTraits of any operator
  };
  explicit BlockAccess(const Plan& plan) : plan_(plan) {}
  const Slots& Of(int block);

 private:
  void Gather(int block, Slots* slots);

  const Plan& plan_;
  std::vector<std::optional<Slots>> known_;  // per block; empty until a first one is asked for
  // The block in whose visit a slot or a block was met last; empty until the first visit.
  std::vector<int> read_by_, written_by_, entered_by_;
};

}  // namespace heddle
