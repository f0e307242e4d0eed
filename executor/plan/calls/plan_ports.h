// PlanFeed and PlanFetch: the inputs and the outputs of a plan's runs.
#pragma once

#include <cstdint>
#include <string>

#include "core/bound_op.h"

namespace heddle {

struct PlanFeed {
  std::string name;
  uint32_t slot = kNoSlot;
  bool copied = false;  // the program writes to it, so runs use a copy
};
struct PlanFetch {
  std::string name;
  uint32_t slot = kNoSlot;
  bool move = false;  // the run owns the memory and hands it over instead of copying
};

}  // namespace heddle
