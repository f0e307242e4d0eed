// The machine as heddle sees it, and the libraries that heddle was built with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/status.h"

namespace heddle {

struct HostReport {
  std::string version;  // of heddle
  std::string cpu;      // the processor's name; empty: unknown
  // The processor's instruction sets that kernels use: "avx2", "fma", …
  std::vector<std::string> instruction_sets;
  std::vector<std::string> missing;  // those that the kernels require and it lacks
  int processors = 0;                // of the machine
  int allowed_processors = 0;        // in this process's affinity mask
  double processor_quota = 0;        // in the process's control group; 0 = no limit
  int threads = 0;                   // the meaning of ExecutorOptions::threads = 0
  int64_t memory_bytes = 0, available_memory_bytes = 0;  // of the machine; 0 = unknown
  int64_t memory_limit_bytes = 0;                        // in the control group; 0 = no limit
  std::string onednn;  // its version; empty: heddle was built without it, or does not find it
  std::vector<std::string> gpus;  // that the system lists, whether heddle can use them or not
};

// Inspects the machine, in some milliseconds. Any thread. Never fails: what is unknown stays empty.
HostReport InspectHost();

// OK if this processor can run the kernels; kUnimplemented: it lacks the named instruction sets.
Status CheckProcessor();

}  // namespace heddle
