#include "core/op_registry.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/own_ops/own_registry.h"
#include "core/tables/static_name_table.h"
#include "core/thread_annotations.h"
#include "heddle/program.h"

namespace heddle {

#define HEDDLE_DECLARE_OP(name, file) void DefineOp_##name(OpDef& op);
#include "kernels/all_ops.inc"
#undef HEDDLE_DECLARE_OP

namespace {

using Define = void (*)(OpDef&);

// The operators of kernels/, in a constant table: one on the heap would have to be built before the
// first program is loaded, which took as long as loading a small one.
#define HEDDLE_DECLARE_OP(name, file) #name "\0"
constexpr char kNames[] =
#include "kernels/all_ops.inc"
    ;
#undef HEDDLE_DECLARE_OP
#define HEDDLE_DECLARE_OP(name, file) file "\0"
constexpr char kFiles[] =
#include "kernels/all_ops.inc"
    ;
#undef HEDDLE_DECLARE_OP
#define HEDDLE_DECLARE_OP(name, file) &DefineOp_##name,
constexpr Define kDefines[] = {
#include "kernels/all_ops.inc"
};
#undef HEDDLE_DECLARE_OP

constexpr StaticNameTable<std::size(kDefines), sizeof(kNames)> kTable(kNames);
static_assert(kTable.unique(), "two operators of kernels/ have one name");

// An operator's definition, made at the first request: a program uses few of them, and making all
// takes longer than loading a small program.
struct Made {
  std::once_flag once;
  const OpDef* def = nullptr;

  const OpDef* Get(std::string_view name, Define define) {
    std::call_once(once, [&] {
      auto made = std::make_unique<OpDef>(std::string(name));
      define(*made);
      def = made.release();  // lives as long as the process
    });
    return def;
  }
};

// Operators from outside kernels/, collected until the registry is first used.
struct Additions {
  Mutex mutex;
  bool frozen HEDDLE_GUARDED_BY(mutex) = false;
  std::vector<std::pair<const char*, Define>> ops HEDDLE_GUARDED_BY(mutex);
};
Additions& TheAdditions() {
  static auto* const additions = new Additions;
  return *additions;
}

[[noreturn]] void Refuse(const char* name, const char* why) {
  std::fprintf(stderr, "heddle: cannot register operator %s: %s\n", name, why);
  std::abort();
}

// Operators have numbers: those of kernels/ in the order of the tables, then the additions.
class Registry {
 public:
  Registry() {
    Additions& additions = TheAdditions();
    MutexLock lock(additions.mutex);
    additions.frozen = true;
    for (const auto& [name, define] : additions.ops) {
      if (Find(name) != kTable.kNone) Refuse(name, "there is one of that name");
      added_.emplace(name, kTable.size() + added_.size());
      added_defines_.push_back(define);
    }
    made_added_ = std::make_unique<Made[]>(added_.size());
  }

  // The number of an operator; kNone: there is none of that name.
  size_t Find(std::string_view name) const {
    if (const size_t at = kTable.Find(name); at != kTable.kNone) return at;
    const auto found = added_.find(name);
    return found == added_.end() ? kTable.kNone : found->second;
  }
  const OpDef* DefOf(size_t at, std::string_view name) {
    // Zero-initialised: its pages cost nothing until they are written.
    static constinit Made made[kTable.size()];
    if (at < kTable.size()) return made[at].Get(name, kDefines[at]);
    return made_added_[at - kTable.size()].Get(name, added_defines_[at - kTable.size()]);
  }
  std::vector<std::string_view> Names() const {
    std::vector<std::string_view> names;
    for (size_t at = 0; at < kTable.size(); ++at) names.push_back(kTable[at]);
    for (const auto& [name, at] : added_) names.push_back(name);
    return names;
  }

 private:
  std::unordered_map<std::string_view, size_t> added_;
  std::vector<Define> added_defines_;
  std::unique_ptr<Made[]> made_added_;  // parallel to added_defines_
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;
  return *registry;
}

// The source file of an operator; "" for additions.
std::string FileOf(size_t at) {
  const char* file = kFiles;
  for (size_t k = 0; k < std::min(at, kTable.size()); ++k)
    file += std::string_view(file).size() + 1;
  return file;  // an empty text ends the list
}

}  // namespace

void RegisterOp(const char* name, void (*define)(OpDef&)) {
  Additions& additions = TheAdditions();
  MutexLock lock(additions.mutex);
  if (additions.frozen) Refuse(name, "the operators are in use already");
  additions.ops.emplace_back(name, define);
}

const OpDef* FindOp(std::string_view type) {
  Registry& registry = TheRegistry();
  const size_t at = registry.Find(type);
  return at == kTable.kNone ? FindOwnOp(type) : registry.DefOf(at, type);
}

std::vector<const OpDef*> AllOps() {
  std::vector<std::string_view> names = TheRegistry().Names();
  std::sort(names.begin(), names.end());
  std::vector<const OpDef*> ops;
  for (const std::string_view name : names) ops.push_back(FindOp(name));
  const std::vector<const OpDef*> own = AllOwnOps();
  const auto by_name = [](const OpDef* a, const OpDef* b) { return a->name() < b->name(); };
  const auto middle = ops.insert(ops.end(), own.begin(), own.end());
  std::inplace_merge(ops.begin(), middle, ops.end(), by_name);
  return ops;
}

// Declared in heddle/program.h, since every kernel includes op_registry.h and none needs this.
Result<std::string> SourceOfOp(const std::string& type) {
  const size_t at = TheRegistry().Find(type);
  if (at == kTable.kNone && FindOwnOp(type) != nullptr) return std::string();
  if (at == kTable.kNone) return NotFound("heddle has no operator '", type, "'");
  return FileOf(at);
}

}  // namespace heddle
