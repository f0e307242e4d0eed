#include "core/op_registry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace heddle {

#define HEDDLE_DECLARE_OP(name) void DefineOp_##name(OpDef& op);
#include "kernels/all_ops.inc"
#undef HEDDLE_DECLARE_OP

namespace {

using Registry = std::unordered_map<std::string_view, std::unique_ptr<const OpDef>>;

// Operators from outside kernels/, until the registry takes them over.
struct Additions {
  std::mutex mutex;
  bool frozen = false;  // guarded by mutex, like the rest
  std::vector<std::pair<const char*, void (*)(OpDef&)>> ops;
};
Additions& TheAdditions() {
  static auto* const additions = new Additions;
  return *additions;
}

[[noreturn]] void Refuse(const char* name, const char* why) {
  std::fprintf(stderr, "heddle: cannot register operator %s: %s\n", name, why);
  std::abort();
}

const Registry& TheRegistry() {
  static const Registry* const registry = [] {
    auto* r = new Registry;
    auto add = [r](const char* name, void (*define)(OpDef&)) {
      auto def = std::make_unique<OpDef>(name);
      define(*def);
      std::string_view key = def->name();
      if (!r->emplace(key, std::move(def)).second) Refuse(name, "there is one of that name");
    };
#define HEDDLE_DECLARE_OP(name) add(#name, &DefineOp_##name);
#include "kernels/all_ops.inc"
#undef HEDDLE_DECLARE_OP
    Additions& additions = TheAdditions();
    std::lock_guard lock(additions.mutex);
    additions.frozen = true;
    for (const auto& [name, define] : additions.ops) add(name, define);
    return r;
  }();
  return *registry;
}

}  // namespace

void RegisterOp(const char* name, void (*define)(OpDef&)) {
  Additions& additions = TheAdditions();
  std::lock_guard lock(additions.mutex);
  if (additions.frozen) Refuse(name, "the operators are in use already");
  additions.ops.emplace_back(name, define);
}

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
