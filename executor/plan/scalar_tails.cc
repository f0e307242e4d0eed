// Moves the instructions of loops' counters and conditions to the end of the body, where an
// unobserved run computes them without calling kernels.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/kernel_context.h"
#include "core/programs/sub_block_slots.h"
#include "executor/plan/block_access.h"
#include "executor/plan/plan_draft.h"

namespace heddle {
namespace {

// Calls fn for the bodies of loops that exactly one instruction runs.
template <typename Fn>
void ForEachBody(PlanDraft& draft, Fn&& fn) {
  if (!draft.CompilesBodies()) return;
  Plan& plan = *draft.plan;
  for (const BlockPlan& block : plan.blocks)
    for (const Instruction& in : block.instructions)
      for (int body : BlocksOf(plan, in))
        if (ir::RunsAgain(*in.op.def) && draft.run_once[static_cast<size_t>(body)]) fn(body);
}

// Whether the slot, and the slot that it may be a view of, have one element.
bool IsOneElement(const Plan& plan, uint32_t slot) {
  const auto one = [](const Slot& s) { return s.is_static && s.shape().numel() == 1; };
  return one(plan.slots[slot]) && one(plan.slots[plan.RootOf(slot)]);
}

// The variable that the instruction writes, also as a rewrite of one whose memory stays the same;
// else kNoSlot.
uint32_t WrittenBy(const PlanDraft& draft, const Instruction& in) {
  if (in.op.out.empty() || in.op.out[0] == kNoSlot) return kNoSlot;
  for (size_t k = 1; k < in.op.out.size(); ++k)
    if (in.op.out[k] != kNoSlot) return kNoSlot;
  if (in.rewrites.empty()) return in.mode == Instruction::Mode::kStatic ? in.op.out[0] : kNoSlot;
  if (in.mode != Instruction::Mode::kReplace) return kNoSlot;
  for (const auto& r : in.rewrites)
    if (r.hidden == in.op.out[0] && draft.IsFixed(r.real)) return r.real;
  return kNoSlot;
}

// The scalar step that computes the same as the instruction. It has no function if there is none:
// an operand has several elements, or its memory or its release concerns other instructions.
ScalarStep StepOf(const PlanDraft& draft, const Instruction& in) {
  const Plan& plan = *draft.plan;
  const ScalarOp* scalar = FindScalarOp(in.op.def->name());
  ScalarStep step;
  if (scalar == nullptr || in.once || in.gives_back || !in.var_attrs.empty() ||
      draft.HasControlEdges(in))
    return {};
  step.out = WrittenBy(draft, in);
  if (step.out == kNoSlot || !IsOneElement(plan, step.out)) return {};
  const auto operands = static_cast<size_t>(scalar->operands);
  for (size_t k = 0; k < in.op.in.size(); ++k)
    if ((in.op.in[k] != kNoSlot) != (k < operands) ||
        (k < operands && !IsOneElement(plan, in.op.in[k])))
      return {};
  if (in.op.in.size() < operands) return {};
  for (size_t k = 0; k < operands; ++k) {
    step.in[k] = in.op.in[k];
    if (plan.slots[in.op.in[k]].dtype != plan.slots[in.op.in[0]].dtype) return {};
  }
  Services services;
  step.fn = scalar->make(KernelContext(in.op, nullptr, services, nullptr),
                         plan.slots[in.op.in[0]].dtype, &step);
  return step;
}

// Moves scalar instructions of a body after all others, if the others neither read what they write
// nor write what they touch.
class Sinker {
 public:
  explicit Sinker(PlanDraft& draft)
      : draft_(draft),
        plan_(*draft.plan),
        access_(plan_),
        read_(plan_.slots.size(), -1),
        written_(plan_.slots.size(), -1) {}

  void Sink(int body) {
    auto& ins = plan_.blocks[static_cast<size_t>(body)].instructions;
    std::vector<bool> sinks(ins.size(), false);
    for (size_t at = ins.size(); at-- > 0;) {
      sinks[at] = CanSink(ins[at], body);
      if (!sinks[at]) Note(ins[at], body);
    }
    std::vector<Instruction> order;
    order.reserve(ins.size());
    for (const bool last : {false, true})
      for (size_t at = 0; at < ins.size(); ++at)
        if (sinks[at] == last) order.push_back(std::move(ins[at]));
    ins = std::move(order);
  }

 private:
  bool CanSink(const Instruction& in, int body) const {
    const ScalarStep step = StepOf(draft_, in);
    if (step.fn == nullptr) return false;
    const uint32_t out = plan_.RootOf(step.out);
    return read_[out] != body && written_[out] != body &&
           std::all_of(in.op.in.begin(), in.op.in.end(), [&](uint32_t s) {
             return s == kNoSlot || written_[plan_.RootOf(s)] != body;
           });
  }
  // Marks the slots that an instruction which is not moved touches.
  void Note(const Instruction& in, int body) {
    const auto note = [&](std::vector<int>* touched, const auto& slots) {
      for (uint32_t s : slots)
        if (s != kNoSlot) (*touched)[plan_.RootOf(s)] = body;
    };
    note(&read_, in.op.in);
    note(&written_, in.op.out);
    for (const auto& rewrite : in.rewrites)
      note(&written_, std::array{rewrite.hidden, rewrite.real});
    for (int inner : BlocksOf(plan_, in)) {
      note(&read_, access_.Of(inner).reads);
      note(&written_, access_.Of(inner).writes);
    }
  }

  PlanDraft& draft_;
  Plan& plan_;
  BlockAccess access_;
  // Per root slot: the body in which a later instruction reads or writes it.
  std::vector<int> read_, written_;
};

}  // namespace

void SinkScalars(PlanDraft& draft) {
  std::vector<int> bodies;
  ForEachBody(draft, [&](int body) { bodies.push_back(body); });
  if (bodies.empty()) return;
  Sinker sinker(draft);
  for (int body : bodies) sinker.Sink(body);
}

void MakeTails(PlanDraft& draft) {
  ForEachBody(draft, [&draft](int body) {
    BlockPlan& block = draft.plan->blocks[static_cast<size_t>(body)];
    for (auto in = block.instructions.rbegin(); in != block.instructions.rend(); ++in) {
      const ScalarStep step = StepOf(draft, *in);
      if (step.fn == nullptr) break;
      block.tail.insert(block.tail.begin(), step);
    }
  });
}

}  // namespace heddle
