// Read once for all sources of the tool (HEDDLE_PRECOMPILE).
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heddle/heddle.h"
