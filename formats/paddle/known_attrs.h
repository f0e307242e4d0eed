// Most attributes of a file's operators are other back ends' or the exporter's own. They are taken
// out of what is parsed: making messages of them takes longer than all the rest.
#pragma once

#include <string>
#include <string_view>

namespace heddle::paddle {

// Read of every operator, whatever its definition says.
inline constexpr std::string_view kDeviceAttr = "op_device";
inline constexpr std::string_view kHintAttrs[] = {"execution_stream", "stream_priority",
                                                  "scheduling_priority", "event_to_record",
                                                  "events_to_wait"};

// A serialized ProgramDesc without the attributes that operators' definitions do not have; those of
// operators that heddle does not have, and of feeds and fetches, stay. Empty where `bytes` is not
// well formed as far as looked at.
std::string WithKnownAttrs(std::string_view bytes);

}  // namespace heddle::paddle
