// The file of measured choices. The first line has a version and a checksum of the rest; each
// further line is a choice: environment, key, choice and microseconds, separated by tabs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "heddle/status.h"

namespace heddle {

struct TunedChoice {
  std::string name;
  double us = 0;  // time of a run when it was chosen
};
// By environment (machine, threads and build) and key.
using TunedChoices = std::map<std::pair<std::string, std::string>, TunedChoice>;

std::string WriteTunedChoices(const TunedChoices& choices);
// An error if the text is not what WriteTunedChoices of this version writes.
Result<TunedChoices> ReadTunedChoices(std::string_view text);

// What measured times depend on besides the operator: processor, threads, build.
std::string TuningEnvironment(int threads);

}  // namespace heddle
