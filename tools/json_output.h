// The output of --json: one indented object, described in docs/json.md. Not installed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "heddle/heddle.h"
#include "tools/profile_measure.h"

namespace heddle::tools {

using Json = nlohmann::ordered_json;

// An object that begins with the name of its form, "heddle.<command>/1".
Json NewJson(const std::string& command, int version = 1);
// The text of `json`, whose names may have any encoding.
std::string JsonText(const Json& json);
void WriteJson(const Json& json);
// The object that a failed command with --json prints on stdout.
Json ErrorJson(const Status& status);

// Of what `heddle plan --json` prints.
inline constexpr int kPlanSchema = 3;

// Adds the plan itself to what a command says about it; "instructions" is their number there, they
// themselves are the "steps".
void AddDescription(const PlanDescription& plan, Json* json);
void AddMemory(const MemoryReport& report, Json* json);
// The memory that an executor has at its places.
Json PlacesJson(const std::vector<PlaceMemory>& places);
// The object that `heddle profile --json` prints.
Json ProfileJson(const std::string& program, const Profile& profile);

}  // namespace heddle::tools
