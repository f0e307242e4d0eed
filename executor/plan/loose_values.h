// Loose values: those whose memory is taken one by one while a plan runs. Values that are not alive
// at the same time can share a token.
#pragma once

#include <span>
#include <vector>

#include "executor/plan/plan.h"
#include "memory/token_planner.h"

namespace heddle {

// The indices in Plan::loose of the values at the place, ascending.
std::vector<uint32_t> LooseValuesAt(const Plan& plan, uint8_t place);

// Values of one kind may share a token: on the host all values, on a device those of one dtype.
uint32_t TokenKind(uint8_t place, DType dtype);

// Plans tokens for the given indices in Plan::loose, with sizes in bytes. A value of 0 bytes, whose
// size has not been seen, gets none; if the sizes are too large to add up, there are no tokens at
// all. `kinds`: see TokenKind; empty: all of one kind.
TokenPlan PlanLooseValues(const Plan& plan, std::span<const uint32_t> values,
                          std::span<const size_t> bytes, std::span<const uint32_t> kinds = {});

}  // namespace heddle
