// Whether an engine executes every task once and after its predecessors.
#pragma once

#include <string>

#include "benchmarks/scheduling/engine.h"

namespace heddle::bench {

// Runs graphs of every form several times each. Returns what went wrong, empty when nothing did.
std::string CheckEngine(const EngineInfo& info, int workers);

// Whether CheckEngine refuses engines that make each of the mistakes it is there for.
bool CheckFindsMistakes();

}  // namespace heddle::bench
