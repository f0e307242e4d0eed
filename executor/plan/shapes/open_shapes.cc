#include "executor/plan/shapes/open_shapes.h"

#include <algorithm>

#include "passes/version_view.h"

namespace heddle {

using passes::Fact;

namespace {

// Whether the instruction can be repeated without a visible effect.
bool IsRepeatable(const Plan& plan, const Instruction& in) {
  if ((in.op.def->traits() & (kRandom | kSideEffect | kCommunication | kReader)) != 0) return false;
  const auto in_scope = [&](uint32_t s) {
    return s != kNoSlot && plan.slots[s].storage == Storage::kScope;
  };
  return std::none_of(in.op.out.begin(), in.op.out.end(), in_scope) &&
         std::none_of(in.rewrites.begin(), in.rewrites.end(),
                      [&](const auto& r) { return in_scope(r.real); });
}

}  // namespace

void OpenShapes::Seed() {
  const PlanRequest& request = d_.request;
  used_ = plan_.blocks.size() > 1 && d_.CompilesBodies() && request.misjudged != nullptr &&
          !request.misjudged->load(std::memory_order_relaxed) &&
          request.dispatch != Dispatch::kDevice && !passes::UsesLoD(d_.program) &&
          std::all_of(plan_.blocks.begin(), plan_.blocks.end(), [&](const BlockPlan& block) {
            return std::all_of(block.instructions.begin(), block.instructions.end(),
                               [&](const Instruction& in) { return IsRepeatable(plan_, in); });
          });
  if (!used_) return;
  knows_.assign(plan_.slots.size(), false);
  d_.shared.written.resize(d_.program.vars.size());
}

bool OpenShapes::Infer(const Instruction& in, Facts* outs) {
  if (!used_ || in.op.def->infer_shape() == nullptr || in.op.def->has(kControlFlow)) return false;
  const ir::Op& op = d_.program.blocks[in.ir_block].ops[in.ir_op];
  if (op.def != in.op.def || !op.var_attrs.empty()) return false;
  operands_.assign(in.op.in.size(), {});
  facts_.resize(in.op.in.size());
  for (uint32_t k = 0; k < in.op.in.size(); ++k) {
    const uint32_t s = in.op.in[k];
    if (s == kNoSlot) continue;
    if (!d_.known_meta[s] && !Knows(s)) return false;
    if (!d_.frame[s]->is_tensor()) return false;
    const Tensor& t = d_.frame[s]->tensor();
    facts_[k] = {t.dtype(), t.shape()};
    operands_[k].fact = &facts_[k];
    if (t.initialized()) operands_[k].contents = &t;
  }
  return inference_.Infer(op, operands_, outs) && outs->size() == in.op.out.size();
}

void OpenShapes::Set(uint32_t s, const Fact& fact) {
  if (!used_ || fact.dtype == DType::kUnknown || !fact.shape.known_rank()) return;
  if (s >= knows_.size()) knows_.resize(plan_.slots.size());
  d_.frame[s] = plan_.metas.Of(fact.dtype, fact.shape);
  d_.known_meta[s] = false;
  knows_[s] = true;
}

// Nothing is known of slots into which operators with blocks put values.
bool OpenShapes::MayHold(uint32_t s) const {
  const Slot& slot = plan_.slots[s];
  return used_ && !slot.versioned && slot.storage != Storage::kScope &&
         !(slot.storage == Storage::kFeed && d_.handed[s]) &&
         d_.program.vars[slot.var].kind == ir::VarKind::kTensor;
}

void OpenShapes::NoteWrite(uint32_t s, const Fact* fact) {
  if (!MayHold(s)) return;
  std::optional<Fact>& written = d_.shared.written[plan_.slots[s].var];
  const Fact all = fact == nullptr ? Fact() : written ? passes::Join(*written, *fact) : *fact;
  d_.shared.contradicted = d_.shared.contradicted || (written && !(*written == all));
  written = all;
}

bool OpenShapes::SetShared(uint32_t s) {
  if (!MayHold(s)) return false;
  const std::optional<Fact>& written = d_.shared.written[plan_.slots[s].var];
  if (!written || written->dtype == DType::kUnknown || !written->shape.known_rank()) return false;
  Set(s, *written);
  return true;
}

}  // namespace heddle
