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

// kInvalidArgument: a number is negative or above its bound. Executor's constructor throws
// std::invalid_argument for these, and std::system_error where the system has no more threads.
Status CheckOptions(const ExecutorOptions& options);

}  // namespace heddle
