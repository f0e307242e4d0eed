// The memory report of a plan.
#pragma once

#include "executor/plan.h"
#include "heddle/memory_report.h"

namespace heddle {

MemoryReport ReportMemory(const Plan& plan);

}  // namespace heddle
