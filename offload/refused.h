// Which operators of a group an engine does not take.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "offload/engine_library.h"
#include "offload/group.h"
#include "offload/onnx/write.h"

namespace heddle::offload {

// Their positions in the group's program, ascending, and why.
using Refusals = std::vector<std::pair<size_t, std::string>>;

// An engine that answers for many operators at once is asked for parts of the group, down to those
// that it refuses. `certain`: whether it refused them, and did not fail. `onnx`: a writer of the
// group's program, for engines that want its words.
Refusals RefusedBy(EngineLibrary& engine, const Group& group, OnnxWriter* onnx, bool* certain);
Refusals RefusedBy(EngineLibrary& engine, const Group& group);

// As bytes, and back; nothing: these are not such bytes for a group of so many operators.
std::string BytesOf(const Refusals& refusals);
std::optional<Refusals> RefusalsOf(std::string_view bytes, size_t operators);

}  // namespace heddle::offload
