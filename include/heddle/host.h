// The machine as heddle sees it, and the libraries that heddle was built with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/status.h"

namespace heddle {

struct HostReport {
  std::string version;  // of heddle
  std::string cpu;      // the processor's name; empty when the system does not say
  // Instruction sets that matter to the kernels, as the processor offers them: "avx2", "fma", …
  std::vector<std::string> instruction_sets;
  std::vector<std::string> missing;  // those the kernels cannot do without
  int processors = 0;                // of the machine
  int allowed_processors = 0;        // by this process's affinity mask
  double processor_quota = 0;        // by its control group; 0 = no limit
  int threads = 0;                   // what ExecutorOptions::threads = 0 stands for
  int64_t memory_bytes = 0, available_memory_bytes = 0;  // of the machine; 0 = unknown
  int64_t memory_limit_bytes = 0;                        // by the control group; 0 = no limit
  std::string onednn;                                    // its version; empty: built without
  std::vector<std::string> gpus;  // that the system knows of; heddle need not be able to use them
};

// Looks at the machine; any thread, some milliseconds at most. Never fails: what cannot be found
// out stays empty.
HostReport InspectHost();

// OK when this processor can run the kernels, else kUnimplemented with what it lacks.
Status CheckProcessor();

}  // namespace heddle
