// Upper bounds for numbers that callers give. Larger ones come from mistakes, or are meant to
// exhaust the process; each error names the option and its bound.
#pragma once

#include <cstddef>

#include "heddle/status.h"

namespace heddle {

struct ExecutorOptions;

inline constexpr int kMostThreads = 1024;   // threads of an executor, and runs at a time
inline constexpr int kMostRanks = 1024;     // of a group
inline constexpr size_t kMostRings = 4096;  // of a group

// For programs, which are read, planned and run by recursion.
inline constexpr int kMostNestedBlocks = 200;       // branches and loops inside each other
inline constexpr int kMostNestedGraphs = 100;       // in a file: ONNX's graphs, types of types
inline constexpr int kMostNestedCalls = 64;         // functions that call one another
inline constexpr size_t kMostNameBytes = 64 << 10;  // of a variable's name
// For an error's message: a longer one, due to long names, loses its middle.
inline constexpr size_t kMostErrorBytes = 256 << 10;

// kInvalidArgument: a number is negative or above its bound. Executor's constructor throws
// std::invalid_argument in that case, and std::system_error if the system cannot start its threads.
Status CheckOptions(const ExecutorOptions& options);

}  // namespace heddle
