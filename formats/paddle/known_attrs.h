// Most attributes of a file's operators belong to other back ends or to the exporter. They are
// taken out before protobuf parses the file: parsing them takes longer than all the rest.
#pragma once

#include <string>
#include <string_view>

namespace heddle::paddle {

// Read of every operator, whatever its definition says.
inline constexpr std::string_view kDeviceAttr = "op_device";
inline constexpr std::string_view kHintAttrs[] = {
    "execution_stream", "stream_priority", "scheduling_priority", "event_to_record",
    "events_to_wait",   "control_marks",   "control_after"};

// Returns a serialized ProgramDesc without the attributes that operators' definitions do not have.
// Feeds, fetches and operators that heddle does not have keep theirs. The versions of operators
// are left out, too, unless the meaning of one of them depends on its version. Returns an empty
// text when `bytes` is not well formed as far as it was looked at.
std::string WithKnownAttrs(std::string_view bytes);

}  // namespace heddle::paddle
