// The file that keeps which way of computing was the fastest where. A first line with version and
// checksum of the rest, then a line per choice: environment, key, choice, microseconds, parted by
// tabs.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "heddle/status.h"

namespace heddle {

struct TunedChoice {
  std::string name;
  double us = 0;  // a run took, when it was chosen
};
// By environment (machine, threads and build) and key.
using TunedChoices = std::map<std::pair<std::string, std::string>, TunedChoice>;

std::string WriteTunedChoices(const TunedChoices& choices);
// An error for what WriteTunedChoices of this version did not write, or not like this.
Result<TunedChoices> ReadTunedChoices(std::string_view text);

// The conditions, besides the operator, that measured times depend on: processor, threads, build.
std::string TuningEnvironment(int threads);

}  // namespace heddle
