// What --json prints: one object on a line-broken text, described in docs/json.md. Not installed.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "heddle/heddle.h"
#include "tools/profile_measure.h"

namespace heddle::tools {

using Json = nlohmann::ordered_json;

// An object that begins with the name of its form, "heddle.<command>/1".
Json NewJson(const std::string& command, int version = 1);
// Of `json`, names of a model in whatever encoding.
std::string JsonText(const Json& json);
void WriteJson(const Json& json);
// What stands on stdout when a command fails that was given --json.
Json ErrorJson(const Status& status);

// Adds the plan itself to what a command says about it; "instructions" is their number there, they
// themselves are the "steps".
void AddDescription(const PlanDescription& plan, Json* json);
void AddMemory(const MemoryReport& report, Json* json);
// What `heddle profile --json` prints.
Json ProfileJson(const std::string& program, const Profile& profile);

}  // namespace heddle::tools
