// Names in a target that no operator has.
#include <algorithm>
#include <set>

#include "core/error.h"
#include "core/op_def.h"
#include "core/op_registry.h"
#include "partition/target.h"

namespace heddle::partition {
namespace {

template <typename Named>
std::vector<std::string> NamesOf(const std::vector<Named>& list) {
  std::vector<std::string> names;
  for (const Named& one : list) names.push_back(one.name);
  return names;
}

class Check {
 public:
  void Read(const Pattern& pattern) {
    const OpDef* const def = FindOp(pattern.type);
    if (def == nullptr) {
      if (seen_.insert(pattern.type).second)
        found_.push_back({"no operator", pattern.type, Operators()});
      return;
    }
    const auto attributes = NamesOf(def->attrs()), slots = NamesOf(def->inputs());
    for (const AttrRule& rule : pattern.attrs)
      Look(StrCat("no attribute of ", pattern.type), rule.name, attributes);
    for (const SlotRule& rule : pattern.slots)
      Look(StrCat("no input slot of ", pattern.type), rule.slot, slots);
  }
  std::vector<UnknownName> found() && { return std::move(found_); }

 private:
  static std::vector<std::string> Operators() {
    std::vector<std::string> names;
    for (const OpDef* op : AllOps()) names.push_back(op->name());
    return names;
  }
  void Look(const std::string& what, const std::string& name,
            const std::vector<std::string>& known) {
    if (std::find(known.begin(), known.end(), name) != known.end()) return;
    if (seen_.insert(StrCat(what, " ", name)).second) found_.push_back({what, name, known});
  }

  std::set<std::string> seen_;
  std::vector<UnknownName> found_;
};

}  // namespace

std::vector<UnknownName> UnknownNames(const Target& target) {
  Check check;
  for (const Unit& unit : target.units)
    for (const Pattern& pattern : unit.patterns) check.Read(pattern);
  for (const Pattern& pattern : target.helpers) check.Read(pattern);
  return std::move(check).found();
}

}  // namespace heddle::partition
