#include "core/op_registry.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

namespace heddle {

#define HEDDLE_DECLARE_OP(name) void DefineOp_##name(OpDef& op);
#include "kernels/all_ops.inc"
#undef HEDDLE_DECLARE_OP

namespace {

using Registry = std::unordered_map<std::string_view, std::unique_ptr<const OpDef>>;

const Registry& TheRegistry() {
  static const Registry* const registry = [] {
    auto* r = new Registry;
    auto add = [r](const char* name, void (*define)(OpDef&)) {
      auto def = std::make_unique<OpDef>(name);
      define(*def);
      std::string_view key = def->name();
      r->emplace(key, std::move(def));
    };
#define HEDDLE_DECLARE_OP(name) add(#name, &DefineOp_##name);
#include "kernels/all_ops.inc"
#undef HEDDLE_DECLARE_OP
    return r;
  }();
  return *registry;
}

}  // namespace

const OpDef* FindOp(std::string_view type) {
  const auto& registry = TheRegistry();
  auto it = registry.find(type);
  return it == registry.end() ? nullptr : it->second.get();
}

std::vector<const OpDef*> AllOps() {
  std::vector<const OpDef*> ops;
  for (const auto& [name, def] : TheRegistry()) ops.push_back(def.get());
  std::sort(ops.begin(), ops.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
  return ops;
}

}  // namespace heddle
