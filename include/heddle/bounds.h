// The most that heddle makes of what callers count. Numbers above come from mistakes, or from those
// who want a process to end; each error names the option and its bound.
#pragma once

#include <cstddef>

#include "heddle/status.h"

namespace heddle {

struct ExecutorOptions;

inline constexpr int kMostThreads = 1024;   // of an executor, and runs under way at a time
inline constexpr int kMostRanks = 1024;     // of a group
inline constexpr size_t kMostRings = 4096;  // of a group

// Of programs, which are read, planned and run by recursion.
inline constexpr int kMostNestedBlocks = 200;       // branches and loops in each other
inline constexpr int kMostNestedGraphs = 100;       // in a file: ONNX's graphs, types of types
inline constexpr int kMostNestedCalls = 64;         // functions that call each other
inline constexpr size_t kMostNameBytes = 64 << 10;  // of a variable's name
// Of an error's message: of a longer one, which names of such lengths make, the middle is left out.
inline constexpr size_t kMostErrorBytes = 256 << 10;

// kInvalidArgument: a number is negative or above its bound. Executor's constructor throws
// std::invalid_argument for these, and std::system_error where the system has no more threads.
Status CheckOptions(const ExecutorOptions& options);

}  // namespace heddle
