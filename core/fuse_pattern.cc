#include "core/fuse_pattern.h"

#include <algorithm>

namespace heddle {

#define HEDDLE_DECLARE_FUSES(name, file) std::vector<FusePattern> FusePatternsOf_##name();
#include "kernels/all_fuses.inc"
#undef HEDDLE_DECLARE_FUSES

const std::vector<std::pair<std::string, FusePattern>>& FusePatterns() {
  static const auto* const patterns = [] {
    auto* list = new std::vector<std::pair<std::string, FusePattern>>;
    [[maybe_unused]] const auto add = [&](const char* name, std::vector<FusePattern> of) {
      for (FusePattern& p : of) list->emplace_back(name, std::move(p));
    };
#define HEDDLE_DECLARE_FUSES(name, file) add(#name, FusePatternsOf_##name());
#include "kernels/all_fuses.inc"
#undef HEDDLE_DECLARE_FUSES
    std::stable_sort(list->begin(), list->end(), [](const auto& a, const auto& b) {
      return a.second.ops.size() > b.second.ops.size();
    });
    return list;
  }();
  return *patterns;
}

}  // namespace heddle
