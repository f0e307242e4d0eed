#include "partition/match.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace heddle::partition {
namespace {

// Compares one operator with one pattern. `why`, unless it is nullptr, is set to the first
// condition that fails.
class Comparison {
 public:
  Comparison(const Graph& graph, OpIndex i, const Pattern& pattern, bool static_shapes,
             std::string* why)
      : g_(graph), i_(i), p_(pattern), static_shapes_(static_shapes), why_(why) {}

  bool Run() {
    return std::all_of(p_.attrs.begin(), p_.attrs.end(),
                       [&](const AttrRule& rule) { return CheckAttr(rule); }) &&
           CheckOperands() &&
           std::all_of(p_.slots.begin(), p_.slots.end(),
                       [&](const SlotRule& rule) { return CheckSlot(rule); });
  }

 private:
  template <typename... Parts>
  bool Fail(const Parts&... parts) const {
    if (why_ != nullptr) *why_ = StrCat(parts...);
    return false;
  }

  bool CheckAttr(const AttrRule& rule) const {
    const Attr* attr = g_.description().FindAttr(g_.op(i_), rule.name);
    if (attr == nullptr && !rule.fallback)
      return rule.may_be_absent || Fail("attribute '", rule.name, "' is absent");
    std::optional<Literal> value = attr == nullptr ? rule.fallback : ValueOf(*attr);
    if (!value) value.emplace();  // an empty literal
    for (const Test& test : rule.tests) {
      const bool comparable = !value->items.empty() || value->is_list ||
                              test.kind == Test::Kind::kNotEqual || test.kind == Test::Kind::kNotIn;
      if (!comparable || !test.Holds(*value))
        return Fail("attribute '", rule.name, "' is ", ToString(*value), ", not ", test.ToString());
    }
    return true;
  }

  static std::string Types(const std::vector<DType>& dtypes) {
    std::string text;
    for (const DType dtype : dtypes)
      text += (text.empty() ? "" : " or ") + std::string(Name(dtype));
    return text.empty() ? "none" : text;
  }
  static bool Contains(const std::vector<DType>& dtypes, DType dtype) {
    return dtype != DType::kUnknown &&
           std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
  }
  std::string Text(ValueId v) const { return "'" + std::string(g_.var(v).name) + "'"; }

  bool CheckOperands() const {
    for (const Use& use : g_.reads(i_))
      if (!CheckOperand(use.value, g_.value(use.value).constant)) return false;
    for (const Use& use : g_.writes(i_))
      if (use.slot != "XShape" && !CheckOperand(use.value, false)) return false;
    return true;
  }

  bool CheckOperand(ValueId v, bool constant) const {
    const Variable& var = g_.var(v);
    if (p_.dtypes && !Contains(*p_.dtypes, var.dtype))
      return Fail(Text(v), " is ", std::string(Name(var.dtype)), ", not ", Types(*p_.dtypes));
    if (constant) return true;
    if (p_.rank && !var.ranked) return Fail("the rank of ", Text(v), " is not known");
    const auto rank = static_cast<int64_t>(var.dims.size());
    if (p_.rank && (rank < p_.rank->least || rank > p_.rank->most))
      return Fail(Text(v), " has rank ", rank, ", not ", p_.rank->least, " to ", p_.rank->most);
    if (static_shapes_ && (!var.ranked || std::any_of(var.dims.begin(), var.dims.end(),
                                                      [](int64_t dim) { return dim < 0; })))
      return Fail("the shape of ", Text(v), " is not fully known");
    return true;
  }

  bool CheckSlot(const SlotRule& rule) const {
    bool found = false;
    for (const Use& use : g_.reads(i_)) {
      if (use.slot != rule.slot) continue;
      found = true;
      if (!CheckArgument(rule, use.value)) return false;
    }
    return found || rule.may_be_absent || Fail("slot ", rule.slot, " is empty");
  }

  bool CheckArgument(const SlotRule& rule, ValueId v) const {
    const Variable& var = g_.var(v);
    if (rule.constant && g_.value(v).constant != *rule.constant)
      return Fail("slot ", rule.slot, ": ", Text(v),
                  *rule.constant ? " is no parameter" : " is a parameter");
    if (rule.dtypes && !Contains(*rule.dtypes, var.dtype))
      return Fail("slot ", rule.slot, ": ", Text(v), " is ", std::string(Name(var.dtype)), ", not ",
                  Types(*rule.dtypes));
    const auto rank = static_cast<int64_t>(var.dims.size());
    if (rule.rank && (rank < rule.rank->least || rank > rule.rank->most))
      return Fail("slot ", rule.slot, ": ", Text(v), " has rank ", rank, ", not ", rule.rank->least,
                  " to ", rule.rank->most);
    if (rule.max_elements && var.elements() > *rule.max_elements)
      return Fail("slot ", rule.slot, ": ", Text(v), " has ", var.elements(), " elements, at most ",
                  *rule.max_elements, " are taken");
    return true;
  }

  const Graph& g_;
  const OpIndex i_;
  const Pattern& p_;
  const bool static_shapes_;
  std::string* why_;
};

}  // namespace

Matches::Matches(const Graph& graph, const Target& target) : graph_(graph), target_(target) {
  struct Candidate {
    UnitId unit;
    const Pattern* pattern;
  };
  const Description& d = graph.description();
  std::vector<std::vector<Candidate>> by_type(d.num_types());
  std::vector<std::vector<const Pattern*>> helpers(d.num_types());
  std::unordered_map<std::string_view, TypeId> types;
  for (TypeId t = 0; t < d.num_types(); ++t) types.emplace(d.type(t), t);
  for (size_t u = 0; u < target.units.size(); ++u)
    for (const Pattern& p : target.units[u].patterns)
      if (const auto at = types.find(p.type); at != types.end())
        by_type[at->second].push_back({static_cast<UnitId>(u), &p});
  for (const Pattern& p : target.helpers)
    if (const auto at = types.find(p.type); at != types.end()) helpers[at->second].push_back(&p);
  helper_.resize(static_cast<size_t>(graph.size()));
  for (OpIndex i = 0; i < graph.size(); ++i) {
    UnitId last = -1;
    const TypeId type = graph.op(i).type;
    if (graph.never(i) == Never::kNo && !target.refused.contains({graph.block(), i})) {
      for (const Candidate& c : by_type[type]) {
        if (c.unit == last) continue;  // an earlier pattern of the unit takes it
        if (!Comparison(graph, i, *c.pattern, target.limits.static_shapes, nullptr).Run()) continue;
        last = c.unit;
        choices_.Add({c.unit, c.pattern->cost.call + c.pattern->cost.element *
                                                         static_cast<double>(graph.elements(i))});
      }
      if (last < 0)
        helper_[static_cast<size_t>(i)] = std::any_of(
            helpers[type].begin(), helpers[type].end(),
            [&](const Pattern* p) { return Comparison(graph, i, *p, false, nullptr).Run(); });
    }
    choices_.EndList();
  }
}

double Matches::host_cost(OpIndex i) const {
  const Never never = graph_.never(i);
  if (never == Never::kFeed || never == Never::kFetch) return 0;
  return target_.host.call + target_.host.element * static_cast<double>(graph_.elements(i));
}

const double* Matches::cost(OpIndex i, UnitId unit) const {
  for (const Choice& choice : choices(i))
    if (choice.unit == unit) return &choice.cost;
  return nullptr;
}

std::string Matches::WhyNot(OpIndex i) const {
  if (const auto at = target_.refused.find({graph_.block(), i}); at != target_.refused.end())
    return at->second;
  constexpr size_t kMost = 3;
  std::string text;
  size_t count = 0;
  for (const Unit& unit : target_.units) {
    for (const Pattern& p : unit.patterns) {
      if (p.type != graph_.type(i)) continue;
      std::string why;
      if (Comparison(graph_, i, p, target_.limits.static_shapes, &why).Run()) continue;
      if (++count > kMost) continue;
      text += (text.empty() ? "" : "; ") + unit.name + ": " + why;
    }
  }
  if (count == 0) return "no unit of " + target_.name + " takes " + std::string(graph_.type(i));
  if (count > kMost) text += StrCat("; and ", count - kMost, " more patterns");
  return "no unit of " + target_.name + " takes it: " + text;
}

}  // namespace heddle::partition
