#include "benchmarks/scheduling/engine.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace heddle::bench {
namespace {

std::vector<EngineInfo>& Registry() {
  static std::vector<EngineInfo> engines;
  return engines;
}

}  // namespace

bool RegisterEngine(EngineInfo info) {
  std::vector<EngineInfo>& engines = Registry();
  const auto before = [](const EngineInfo& a, const EngineInfo& b) {
    return std::tie(a.kind, a.name) < std::tie(b.kind, b.name);
  };
  engines.insert(std::upper_bound(engines.begin(), engines.end(), info, before), std::move(info));
  return true;
}

std::span<const EngineInfo> Engines() { return Registry(); }

}  // namespace heddle::bench
