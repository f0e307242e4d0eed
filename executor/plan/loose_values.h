// Values whose memory is taken one by one while a plan runs, and the tokens that they could share.
#pragma once

#include <span>
#include <vector>

#include "executor/plan/plan.h"
#include "memory/token_planner.h"

namespace heddle {

// Returns the indices in Plan::loose of the values that lie at the place, in ascending order.
std::vector<uint32_t> LooseValuesAt(const Plan& plan, uint8_t place);

// Values of one kind may share a token: on the host all, on a device those of one dtype.
uint32_t TokenKind(uint8_t place, DType dtype);

// Tokens for some of Plan::loose, by so many bytes each; none for those whose size nobody has seen
// (0 bytes), and none at all where the bytes are too many to add up. `kinds`: see TokenKind; empty:
// all are of one.
TokenPlan PlanLooseValues(const Plan& plan, std::span<const uint32_t> values,
                          std::span<const size_t> bytes, std::span<const uint32_t> kinds = {});

}  // namespace heddle
