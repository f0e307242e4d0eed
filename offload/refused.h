// Which operators of a group an engine does not take.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "offload/engine_library.h"
#include "offload/group.h"

namespace heddle::offload {

// Their positions in the group's program, ascending, and why. An engine that answers for many
// operators at once is asked for parts of the group, down to those that it refuses.
std::vector<std::pair<size_t, std::string>> RefusedBy(EngineLibrary& engine, const Group& group);

}  // namespace heddle::offload
