#include "heddle/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "core/machine.h"
#include "core/threads/primitives_library.h"
#include "scheduler/host_pool.h"

namespace heddle {
namespace {

std::string FieldOf(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || line.compare(0, key.size(), key) != 0) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

int64_t Kilobytes(const std::string& key) {
  const std::string text = FieldOf("/proc/meminfo", key);
  int64_t kb = 0;
  for (char c : text) {
    if (c < '0' || c > '9') break;
    kb = kb * 10 + (c - '0');
  }
  return kb * 1024;
}

int64_t MemoryLimit(int64_t machine) {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    int64_t bytes = 0;
    if (file >> bytes) return bytes < machine || machine == 0 ? bytes : 0;
  }
  return 0;
}

std::vector<std::string> FindGpus() {
  std::vector<std::string> found;
  const std::string folder = "/proc/driver/nvidia/gpus";
  if (const auto names = NamesIn(folder); names.ok())
    for (const std::string& name : *names)
      found.push_back(FieldOf((folder + "/" + name + "/information").c_str(), "Model"));
  return found;
}

}  // namespace

HostReport InspectHost() {
  HostReport r;
  r.version = HEDDLE_VERSION;
  r.cpu = FieldOf("/proc/cpuinfo", "model name");
  InstructionSetNames sets = ProcessorInstructionSets();
  r.instruction_sets = std::move(sets.offered);
  r.missing = std::move(sets.missing);
  r.processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t set;
  CPU_ZERO(&set);
  r.allowed_processors =
      sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : r.processors;
  r.processor_quota = ProcessorQuota();
  r.threads = AvailableThreads();
  r.memory_bytes = Kilobytes("MemTotal");
  r.available_memory_bytes = Kilobytes("MemAvailable");
  r.memory_limit_bytes = MemoryLimit(r.memory_bytes);
  r.onednn = PrimitivesVersion();
  r.gpus = FindGpus();
  return r;
}

Status CheckProcessor() {
  HostReport r;
  InstructionSetNames sets = ProcessorInstructionSets();
  r.instruction_sets = std::move(sets.offered);
  r.missing = std::move(sets.missing);
  if (r.missing.empty()) return Status::Ok();
  std::string names;
  for (const std::string& m : r.missing) names += (names.empty() ? "" : ", ") + m;
  return Status(StatusCode::kUnimplemented,
                StrCat("this processor has no ", names, ", which heddle's kernels are built for"));
}

}  // namespace heddle
