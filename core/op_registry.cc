#include "core/op_registry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/thread_annotations.h"
#include "heddle/program.h"

namespace heddle {

#define HEDDLE_DECLARE_OP(name, file) void DefineOp_##name(OpDef& op);
#include "kernels/all_ops.inc"
#undef HEDDLE_DECLARE_OP

namespace {

// An operator is defined when it is first asked for: a program uses few of them, and defining all
// takes longer than loading a small one.
struct Entry {
  Entry(void (*d)(OpDef&), const char* f) : define(d), file(f) {}
  void (*const define)(OpDef&);
  const char* const file;  // "" for additions
  std::once_flag once;
  std::unique_ptr<const OpDef> def;
};
using Registry = std::unordered_map<std::string_view, Entry>;

// Operators from outside kernels/, until the registry takes them over.
struct Additions {
  Mutex mutex;
  bool frozen HEDDLE_GUARDED_BY(mutex) = false;
  std::vector<std::pair<const char*, void (*)(OpDef&)>> ops HEDDLE_GUARDED_BY(mutex);
};
Additions& TheAdditions() {
  static auto* const additions = new Additions;
  return *additions;
}

[[noreturn]] void Refuse(const char* name, const char* why) {
  std::fprintf(stderr, "heddle: cannot register operator %s: %s\n", name, why);
  std::abort();
}

Registry& TheRegistry() {
  static Registry* const registry = [] {
    auto* r = new Registry(1024);
    auto add = [r](const char* name, void (*define)(OpDef&), const char* file) {
      if (!r->try_emplace(name, define, file).second) Refuse(name, "there is one of that name");
    };
#define HEDDLE_DECLARE_OP(name, file) add(#name, &DefineOp_##name, file);
#include "kernels/all_ops.inc"
#undef HEDDLE_DECLARE_OP
    Additions& additions = TheAdditions();
    MutexLock lock(additions.mutex);
    additions.frozen = true;
    for (const auto& [name, define] : additions.ops) add(name, define, "");
    return r;
  }();
  return *registry;
}

const OpDef* DefOf(std::string_view name, Entry& entry) {
  std::call_once(entry.once, [&] {
    auto def = std::make_unique<OpDef>(std::string(name));
    entry.define(*def);
    entry.def = std::move(def);
  });
  return entry.def.get();
}

}  // namespace

void RegisterOp(const char* name, void (*define)(OpDef&)) {
  Additions& additions = TheAdditions();
  MutexLock lock(additions.mutex);
  if (additions.frozen) Refuse(name, "the operators are in use already");
  additions.ops.emplace_back(name, define);
}

const OpDef* FindOp(std::string_view type) {
  auto& registry = TheRegistry();
  auto it = registry.find(type);
  return it == registry.end() ? nullptr : DefOf(it->first, it->second);
}

std::vector<const OpDef*> AllOps() {
  std::vector<const OpDef*> ops;
  for (auto& [name, entry] : TheRegistry()) ops.push_back(DefOf(name, entry));
  std::sort(ops.begin(), ops.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
  return ops;
}

// Declared in heddle/program.h: every kernel reads op_registry.h, and none needs this.
Result<std::string> SourceOfOp(const std::string& type) {
  const auto& registry = TheRegistry();
  const auto it = registry.find(type);
  if (it == registry.end()) return NotFound("heddle has no operator '", type, "'");
  return std::string(it->second.file);
}

}  // namespace heddle
