// What the gradient pass knows of an operator.
//
// The gradient of an operator is, in this order:
// - what the table of gradient/rules says: a composition of other operators, a gradient operator
//   whose slots have names of their own, or nothing, with a reason;
// - the operator `<op>_grad`, if heddle has it. Its slots say what it reads and gives: X and Out
// are
//   operands of the forward operator, Out@GRAD the gradient of an output, X@GRAD that of an input.
//
// Threads: any; the tables are immutable.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/programs/ir.h"
#include "heddle/status.h"

namespace heddle::gradient {

class OpGradient;

// Emits the operators that compute the gradients of one operator's inputs.
using ComposeFn = Status (*)(OpGradient& g);

struct Rule {
  enum class Kind : uint8_t {
    kMissing,   // heddle does not know the operator's gradient
    kNamed,     // one gradient operator
    kComposed,  // a composition
    kNone,      // there is no gradient: nothing flows through the operator
  };
  Kind kind = Kind::kMissing;
  // kNamed: the gradient operator. `slots` pairs its slots with what they stand for, where the
  // names do not say it: "DDX=X@GRAD@GRAD".
  const OpDef* gradient = nullptr;
  std::string_view slots = {};
  // kComposed: the function, the input slots that it gives gradients, the output slots whose
  // gradients it takes; empty: all.
  ComposeFn compose = nullptr;
  std::string_view gives = {}, takes = {};
  std::string_view reason = {};  // kNone
};

// An entry of the tables in gradient/rules/, one table per family of operators.
struct RuleEntry {
  std::string_view op;
  Rule::Kind kind;
  std::string_view text;  // kNamed: the gradient operator; kNone: the reason
  ComposeFn compose = nullptr;
  std::string_view gives = {}, takes = {};  // kNamed: `gives` has the slots
};
using RuleTable = std::vector<RuleEntry>;

inline RuleEntry Composed(std::string_view op, ComposeFn fn, std::string_view gives = {},
                          std::string_view takes = {}) {
  return {op, Rule::Kind::kComposed, {}, fn, gives, takes};
}
inline RuleEntry Named(std::string_view op, std::string_view gradient, std::string_view slots) {
  return {op, Rule::Kind::kNamed, gradient, nullptr, slots, {}};
}
inline RuleEntry None(std::string_view op, std::string_view reason) {
  return {op, Rule::Kind::kNone, reason, nullptr, {}, {}};
}

RuleTable ElementRules();    // rules/element.cc
RuleTable ShapeRules();      // rules/shape.cc
RuleTable ReductionRules();  // rules/reduction.cc
RuleTable NetworkRules();    // rules/network.cc
RuleTable HigherRules();     // rules/higher_order.cc
RuleTable ControlRules();    // rules/control.cc
RuleTable NoRules();         // rules/no_gradient.cc
// Why an operator of kind kMissing has no gradient, for people; empty: nobody has said it.
std::string_view MissingReason(std::string_view op);

Status RecurrentNetworkGradient(OpGradient& g);  // rules/recurrent.cc

const Rule& RuleOf(const OpDef& op);

// What a slot of a gradient operator stands for: an operand of the forward operator, or the
// gradient of one.
struct Meant {
  enum class What : uint8_t { kNothing, kInput, kOutput, kInputGradient, kOutputGradient };
  What what = What::kNothing;
  int slot = -1;  // of the forward operator
};
Meant MeaningOfInput(const OpDef& op, const Rule& rule, std::string_view slot);
Meant MeaningOfOutput(const OpDef& op, const Rule& rule, std::string_view slot);

// Whether gradients flow from an output slot, and to an input slot.
bool Takes(const OpDef& op, const Rule& rule, int output);
bool Gives(const OpDef& op, const Rule& rule, int input);

}  // namespace heddle::gradient
