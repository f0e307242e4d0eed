// The precompiled header of all sources of the library except the kernels (HEDDLE_PRECOMPILE).
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
