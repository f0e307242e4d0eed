// Computes results while planning, if all that they depend on is known.
#include <utility>

#include "core/kernel_context.h"
#include "core/memory/lazy_buffer.h"
#include "executor/plan/plan_draft.h"

namespace heddle {
namespace {

// The largest results, in bytes, that a plan keeps instead of computing them in each run.
constexpr size_t kMaxKnownBytes = 16 << 10;

bool OperandsKnown(const PlanDraft& d, const Instruction& in) {
  const OpDef& def = *in.op.def;
  for (size_t i = 0; i < def.inputs().size(); ++i) {
    const bool shape_only = (def.inputs()[i].flags & kNoBuffer) != 0;
    for (uint32_t k = in.op.in_begin[i]; k < in.op.in_begin[i + 1]; ++k) {
      const uint32_t s = in.op.in[k];
      if (s != kNoSlot && !shape_only && !d.frame[s]->tensor().initialized()) return false;
    }
  }
  return true;
}

bool MayCompute(const PlanDraft& d, const Instruction& in) {
  if (in.op.def->traits() & (kRandom | kSideEffect | kCommunication | kReader | kControlFlow))
    return false;
  if (d.HasControlEdges(in) || !OperandsKnown(d, in)) return false;
  size_t bytes = 0;
  for (uint32_t s : in.op.out) {
    if (s == kNoSlot) continue;
    if (!d.plan->slots[s].versioned) return false;  // a variable of the scope
    if (!d.plan->slots[s].is_static) return false;  // the kernel leaves it unwritten
    bytes += d.plan->slots[s].bytes();
  }
  if (bytes > kMaxKnownBytes) return false;
  for (uint32_t s : in.op.in)
    if (s != kNoSlot && !MakeResident(d.frame[s]->tensor()).ok()) return false;
  return true;
}

Status Compute(PlanDraft& d, const Instruction& in) {
  std::unique_ptr<KernelState> state;
  if (in.op.def->prepare() != nullptr) {
    PrepareContext prepare(in.op, d.frame.data(), *d.request.services, nullptr);
    auto made = in.op.def->prepare()(prepare);
    if (!made.ok()) return made.status();
    state = *std::move(made);
  }
  KernelContext ctx(in.op, d.frame.data(), *d.request.services, state.get());
  return in.fn(ctx);
}

}  // namespace

bool ComputeKnown(PlanDraft& d, const Instruction& in) {
  if (!MayCompute(d, in)) return false;
  Plan& plan = *d.plan;
  for (uint32_t s : in.op.out)
    if (s != kNoSlot)
      d.frame[s] =
          &d.contents.emplace_back(Tensor::Zeros(plan.slots[s].dtype, plan.slots[s].shape()));
  const bool computed = GuardPlanning([&] { return Compute(d, in); }).ok();
  for (uint32_t s : in.op.out) {
    if (s == kNoSlot) continue;
    if (!computed) {  // the run reports the error, if it gets there
      d.frame[s] = plan.metas.Of(plan.slots[s].dtype, plan.slots[s].shape());
      continue;
    }
    plan.slots[s].storage = Storage::kConst;
    plan.constant[s] = true;
    plan.constants.emplace_back(s, *d.frame[s]);
  }
  return computed;
}

}  // namespace heddle
