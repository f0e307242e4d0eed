// Read once for all kernels (HEDDLE_PRECOMPILE).
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "core/error.h"
#include "core/kernel_context.h"
#include "core/op_registry.h"
#include "core/shape_context.h"
#include "core/shapes.h"
