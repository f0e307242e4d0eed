// The variables that an instruction's sub-blocks read and write.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "executor/plan/plan.h"

namespace heddle {

// The blocks that an instruction runs; empty for all but control flow.
std::vector<int> BlocksOf(const Plan& plan, const Instruction& in);
// The inputs that an instruction writes, too: a record of blocks' runs is used up by whoever reads
// it, and the variables that it is of have the values of earlier runs meanwhile.
std::vector<uint32_t> RecordsOf(const Instruction& in);

// Gathers the slots each block touches and the traits of its operators, those of the blocks its
// instructions run included, once a block. Refers to the plan, whose instructions must not change
// meanwhile.
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
  // The gathering that met a slot or a block last; empty until a first block is asked for.
  std::vector<int> read_by_, written_by_, entered_by_;
};

}  // namespace heddle
