// Read once for all sources of the library but the kernels (HEDDLE_PRECOMPILE).
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/programs/ir.h"
