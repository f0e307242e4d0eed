#include "gradient/rule.h"

#include <map>
#include <unordered_map>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/programs/sub_block_slots.h"
#include "gradient/gradient.h"

namespace heddle::gradient {
namespace {

constexpr std::string_view kGrad = "@GRAD";

// Words, separated by blanks.
template <typename Fn>
void EachWord(std::string_view text, Fn&& fn) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    if (end > 0) fn(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool Names(std::string_view list, std::string_view name) {
  bool found = false;
  EachWord(list, [&](std::string_view word) { found = found || word == name; });
  return found;
}

// What a slot stands for where the rule says it: "DDX=grad(X@GRAD)".
std::string_view Said(std::string_view slots, std::string_view slot) {
  std::string_view said;
  EachWord(slots, [&](std::string_view word) {
    const size_t equals = word.find('=');
    if (word.substr(0, equals) == slot) said = word.substr(equals + 1);
  });
  return said;
}

bool TakeGrad(std::string_view* text) {
  if (!text->starts_with("grad(") || !text->ends_with(")")) return false;
  *text = text->substr(5, text->size() - 6);
  return true;
}

// Whether all that the gradient operator needs is known by the names of its slots.
bool SaysAll(const OpDef& op, const Rule& rule) {
  bool takes = false, gives = false;
  for (const SlotDef& slot : rule.gradient->inputs()) {
    const Meant meant = MeaningOfInput(op, rule, slot.name);
    takes = takes || meant.what == Meant::What::kOutputGradient;
    if (meant.what == Meant::What::kNothing && (slot.flags & kOptional) == 0 &&
        !ir::IsSubBlockSlot(slot))
      return false;
  }
  for (const SlotDef& slot : rule.gradient->outputs())
    gives = gives || MeaningOfOutput(op, rule, slot.name).what == Meant::What::kInputGradient;
  return takes && gives;
}

Rule Find(const OpDef& op) {
  static const auto* const table = [] {
    auto* all = new std::unordered_map<std::string_view, RuleEntry>;
    for (const RuleTable& family : {ElementRules(), ShapeRules(), ReductionRules(), NetworkRules(),
                                    HigherRules(), ControlRules(), NoRules()})
      for (const RuleEntry& entry : family) all->emplace(entry.op, entry);
    return all;
  }();
  Rule rule;
  if (const auto found = table->find(op.name()); found != table->end()) {
    const RuleEntry& entry = found->second;
    rule.kind = entry.kind;
    rule.compose = entry.compose;
    rule.gives = entry.gives;
    rule.takes = entry.takes;
    if (entry.kind == Rule::Kind::kNone) rule.reason = entry.text;
    if (entry.kind == Rule::Kind::kNamed) {
      rule.gradient = FindOp(entry.text);
      rule.slots = entry.gives;
      if (rule.gradient == nullptr) rule.kind = Rule::Kind::kMissing;
    }
    return rule;
  }
  rule.gradient = FindOp(op.name() + "_grad");
  if (rule.gradient != nullptr && SaysAll(op, rule)) rule.kind = Rule::Kind::kNamed;
  return rule;
}

}  // namespace

const Rule& RuleOf(const OpDef& op) {
  // Each definition is made once, and so is its rule. The pass is called from one thread at a time
  // per program, but programs may be worked on at the same time.
  thread_local std::unordered_map<const OpDef*, Rule> known;
  const auto found = known.find(&op);
  if (found != known.end()) return found->second;
  return known.emplace(&op, Find(op)).first->second;
}

Meant MeaningOfInput(const OpDef& op, const Rule& rule, std::string_view slot) {
  std::string_view said = Said(rule.slots, slot);
  if (!said.empty()) {
    if (TakeGrad(&said)) return {Meant::What::kOutputGradient, op.FindOutput(said)};
    if (const int s = op.FindInput(said); s >= 0) return {Meant::What::kInput, s};
    if (const int s = op.FindOutput(said); s >= 0) return {Meant::What::kOutput, s};
    return {};
  }
  if (const int s = op.FindInput(slot); s >= 0) return {Meant::What::kInput, s};
  if (const int s = op.FindOutput(slot); s >= 0) return {Meant::What::kOutput, s};
  if (slot.ends_with(kGrad))
    if (const int s = op.FindOutput(slot.substr(0, slot.size() - kGrad.size())); s >= 0)
      return {Meant::What::kOutputGradient, s};
  return {};
}

Meant MeaningOfOutput(const OpDef& op, const Rule& rule, std::string_view slot) {
  std::string_view said = Said(rule.slots, slot);
  if (!said.empty())
    return TakeGrad(&said) ? Meant{Meant::What::kInputGradient, op.FindInput(said)} : Meant{};
  if (slot.ends_with(kGrad))
    if (const int s = op.FindInput(slot.substr(0, slot.size() - kGrad.size())); s >= 0)
      return {Meant::What::kInputGradient, s};
  return {};
}

bool Takes(const OpDef& op, const Rule& rule, int output) {
  if (rule.kind == Rule::Kind::kComposed)
    return rule.takes.empty() || Names(rule.takes, op.outputs()[static_cast<size_t>(output)].name);
  if (rule.kind != Rule::Kind::kNamed) return false;
  for (const SlotDef& slot : rule.gradient->inputs()) {
    const Meant meant = MeaningOfInput(op, rule, slot.name);
    if (meant.what == Meant::What::kOutputGradient && meant.slot == output) return true;
  }
  return false;
}

bool Gives(const OpDef& op, const Rule& rule, int input) {
  if (ir::IsSubBlockSlot(op.inputs()[static_cast<size_t>(input)])) return false;
  if (rule.kind == Rule::Kind::kComposed)
    return rule.gives.empty() || Names(rule.gives, op.inputs()[static_cast<size_t>(input)].name);
  if (rule.kind != Rule::Kind::kNamed) return false;
  for (const SlotDef& slot : rule.gradient->outputs()) {
    const Meant meant = MeaningOfOutput(op, rule, slot.name);
    if (meant.what == Meant::What::kInputGradient && meant.slot == input) return true;
  }
  return false;
}

namespace {

// "X, Out@GRAD": the forward operator's names of what the gradient operator takes or gives.
template <typename Slots, typename Fn>
std::string MeantText(const OpDef& op, const Slots& slots, Fn&& meaning) {
  std::string text;
  for (const SlotDef& slot : slots) {
    const Meant meant = meaning(slot.name);
    const auto at = static_cast<size_t>(meant.slot);
    std::string name;
    switch (meant.what) {
      case Meant::What::kNothing:
        continue;
      case Meant::What::kInput:
        name = op.inputs()[at].name;
        break;
      case Meant::What::kOutput:
        name = op.outputs()[at].name;
        break;
      case Meant::What::kInputGradient:
        name = StrCat(op.inputs()[at].name, kGrad);
        break;
      case Meant::What::kOutputGradient:
        name = StrCat(op.outputs()[at].name, kGrad);
        break;
    }
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

// The slots of `all` for which `is` holds, with `suffix`.
template <typename Slots, typename Fn>
std::string SlotsText(const Slots& all, std::string_view suffix, Fn&& is) {
  std::string text;
  for (size_t s = 0; s < all.size(); ++s) {
    if (ir::IsSubBlockSlot(all[s]) || !is(static_cast<int>(s))) continue;
    text += StrCat(text.empty() ? "" : ", ", all[s].name, suffix);
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace

std::string GradientRuleText(const std::string& type) {
  const OpDef* op = FindOp(type);
  if (op == nullptr) return "";
  const Rule& rule = RuleOf(*op);
  switch (rule.kind) {
    case Rule::Kind::kNamed:
      return StrCat(
          rule.slots.empty() && rule.gradient->name() == type + "_grad" ? "derived: " : "named: ",
          rule.gradient->name(), " reads ",
          MeantText(*op, rule.gradient->inputs(),
                    [&](const std::string& slot) { return MeaningOfInput(*op, rule, slot); }),
          "; gives ", MeantText(*op, rule.gradient->outputs(), [&](const std::string& slot) {
            return MeaningOfOutput(*op, rule, slot);
          }));
    case Rule::Kind::kComposed:
      return StrCat("composition: other operators, from ",
                    SlotsText(op->outputs(), kGrad, [&](int s) { return Takes(*op, rule, s); }),
                    "; gives ",
                    SlotsText(op->inputs(), kGrad, [&](int s) { return Gives(*op, rule, s); }));
    case Rule::Kind::kNone:
      return StrCat("none: ", rule.reason);
    case Rule::Kind::kMissing:
      break;
  }
  const std::string_view reason = MissingReason(type);
  return reason.empty() ? "" : StrCat("none: ", reason);
}

}  // namespace heddle::gradient
