#include "core/op_registry.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
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
// takes longer than loading a small one. A map would allocate a node for each operator: instead,
// rows lie in one list, and a hash table with open addressing holds their indices.
class Registry {
 public:
  struct Row {
    std::string_view name;
    void (*define)(OpDef&);
    const char* file;  // "" for additions
  };

  explicit Registry(size_t count) : places_(std::bit_ceil(2 * count), kNone) {
    rows_.reserve(count);
  }
  // False: the registry has an operator of that name.
  bool Add(const Row& row) {
    uint32_t& place = places_[PlaceOf(row.name)];
    if (place != kNone) return false;
    place = static_cast<uint32_t>(rows_.size());
    rows_.push_back(row);
    return true;
  }
  // After the last Add.
  void Close() { made_ = std::make_unique<Made[]>(rows_.size()); }

  // kNone: the registry has no operator of that name.
  uint32_t Find(std::string_view name) const { return places_[PlaceOf(name)]; }
  size_t size() const { return rows_.size(); }
  const Row& row(uint32_t at) const { return rows_[at]; }
  const OpDef* DefOf(uint32_t at) {
    Made& made = made_[at];
    std::call_once(made.once, [&] {
      auto def = std::make_unique<OpDef>(std::string(rows_[at].name));
      rows_[at].define(*def);
      made.def = std::move(def);
    });
    return made.def.get();
  }
  static constexpr uint32_t kNone = ~0u;

 private:
  struct Made {
    std::once_flag once;
    std::unique_ptr<const OpDef> def;
  };
  // The place of the name, or the free place to put it. The search ends: of the places, at least
  // half are free.
  size_t PlaceOf(std::string_view name) const {
    const size_t mask = places_.size() - 1;
    size_t at = std::hash<std::string_view>()(name) & mask;
    while (places_[at] != kNone && rows_[places_[at]].name != name) at = (at + 1) & mask;
    return at;
  }

  std::vector<Row> rows_;
  std::vector<uint32_t> places_;
  std::unique_ptr<Made[]> made_;  // parallel to rows_
};

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
#define HEDDLE_DECLARE_OP(name, file) +1
    constexpr size_t kOperators = 0
#include "kernels/all_ops.inc"
        ;
#undef HEDDLE_DECLARE_OP
    Additions& additions = TheAdditions();
    MutexLock lock(additions.mutex);
    additions.frozen = true;
    auto* r = new Registry(kOperators + additions.ops.size());
    auto add = [r](std::string_view name, void (*define)(OpDef&), const char* file) {
      if (!r->Add({name, define, file})) Refuse(name.data(), "there is one of that name");
    };
#define HEDDLE_DECLARE_OP(name, file) add(#name, &DefineOp_##name, file);
#include "kernels/all_ops.inc"
#undef HEDDLE_DECLARE_OP
    for (const auto& [name, define] : additions.ops) add(name, define, "");
    r->Close();
    return r;
  }();
  return *registry;
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
  const uint32_t at = registry.Find(type);
  return at == Registry::kNone ? nullptr : registry.DefOf(at);
}

std::vector<const OpDef*> AllOps() {
  std::vector<const OpDef*> ops;
  Registry& registry = TheRegistry();
  for (uint32_t at = 0; at < registry.size(); ++at) ops.push_back(registry.DefOf(at));
  std::sort(ops.begin(), ops.end(), [](auto* a, auto* b) { return a->name() < b->name(); });
  return ops;
}

// Declared in heddle/program.h: every kernel reads op_registry.h, and none needs this.
Result<std::string> SourceOfOp(const std::string& type) {
  const auto& registry = TheRegistry();
  const uint32_t at = registry.Find(type);
  if (at == Registry::kNone) return NotFound("heddle has no operator '", type, "'");
  return std::string(registry.row(at).file);
}

}  // namespace heddle
