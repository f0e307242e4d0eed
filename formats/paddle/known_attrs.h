// Most attributes in a file belong to other back ends or to the exporter. They are removed before
// protobuf parses the file, since parsing them would take longer than all the rest.
#pragma once

#include <string>
#include <string_view>

namespace heddle::paddle {

// Attributes that are read for every operator, whatever its definition says.
inline constexpr std::string_view kDeviceAttr = "op_device";
inline constexpr std::string_view kHintAttrs[] = {
    "execution_stream", "stream_priority", "scheduling_priority", "event_to_record",
    "events_to_wait",   "control_marks",   "control_after"};
// What an operator is for, where it is not forward; and pairs of a parameter and its gradient.
inline constexpr std::string_view kRoleAttr = "op_role", kRolePairsAttr = "op_role_var";

// Returns the serialized ProgramDesc without attributes that the operators' definitions lack.
// Feeds, fetches and operators that heddle lacks keep theirs. The operator versions are removed
// too, unless some operator's meaning depends on its version. Returns an empty string if `bytes` is
// found to be malformed.
std::string WithKnownAttrs(std::string_view bytes);

}  // namespace heddle::paddle
