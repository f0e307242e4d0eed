#include "executor/plan/calls/plan_calls.h"

#include <algorithm>
#include <span>
#include <utility>

#include "core/interrupts.h"
#include "executor/plan/block_access.h"
#include "executor/plan/slot_index.h"
#include "passes/functions/outline_functions.h"

namespace heddle {
namespace {

using Mode = Instruction::Mode;

// The instructions of block 0 that call a function, with the function's index.
template <typename Fn>
void ForCalls(Plan& plan, Fn&& fn) {
  if (plan.functions.empty()) return;
  for (Instruction& in : plan.blocks[0].instructions)
    for (const int block : BlocksOf(plan, in))
      if (const uint32_t f = plan.blocks[static_cast<size_t>(block)].function; f != kNoSlot)
        fn(in, f);
}

class FunctionFinder {
 public:
  explicit FunctionFinder(PlanDraft& d) : d_(d), plan_(*d.plan), runs_(plan_.blocks.size(), 0) {}

  void Run() {
    CountRuns();
    std::vector<int> calls(plan_.blocks.size(), 0);
    std::vector<const Instruction*> first(plan_.blocks.size(), nullptr);
    passes::OutlinedCalls outlined(d_.program);
    for (const Instruction& in : plan_.blocks[0].instructions) {
      if (!in.op.def->has(kControlFlow)) continue;
      const ir::Op& op = d_.program.blocks[0].ops[static_cast<size_t>(in.ir_op)];
      if (!outlined.Is(op) || !Versioned(in)) continue;
      const int block = op.SubBlocks()[0];
      ++calls[static_cast<size_t>(block)];
      if (first[static_cast<size_t>(block)] == nullptr) first[static_cast<size_t>(block)] = &in;
    }
    for (size_t b = 1; b < calls.size(); ++b)
      if (calls[b] > 0 && calls[b] == runs_[b]) Add(static_cast<int>(b), *first[b]);
  }

 private:
  // Counts the operators that run each block.
  void CountRuns() {
    for (const ir::Block& block : d_.program.blocks)
      for (const ir::Op& op : block.ops) {
        LookForInterrupt();
        if (op.def->has(kControlFlow))
          for (int sub : op.SubBlocks()) ++runs_[static_cast<size_t>(sub)];
      }
  }

  // Whether the results are values that nothing writes again.
  bool Versioned(const Instruction& in) const {
    for (uint32_t k = in.op.out_begin[0]; k < in.op.out_begin[1]; ++k)
      if (in.op.out[k] == kNoSlot || !plan_.slots[in.op.out[k]].versioned) return false;
    for (uint32_t k = in.op.in_begin[0]; k < in.op.in_begin[1]; ++k)
      if (in.op.in[k] == kNoSlot) return false;
    return true;
  }

  void Add(int block, const Instruction& call) {
    FunctionPlan f;
    f.block = block;
    const OpDef& def = *call.op.def;
    const int in = def.FindInput("sub_block:results"), out = def.FindOutput("sub_block:parameters");
    f.results.assign(call.op.in.begin() + call.op.in_begin[in],
                     call.op.in.begin() + call.op.in_begin[in + 1]);
    f.parameters.assign(call.op.out.begin() + call.op.out_begin[out],
                        call.op.out.begin() + call.op.out_begin[out + 1]);
    if (!IsClosed(f)) return;
    for (const auto* list : {&f.parameters, &f.results})
      for (uint32_t s : *list) {
        plan_.slots[s].home = block;
        d_.handed[s] = false;
      }
    d_.run_once[static_cast<size_t>(block)] = false;
    plan_.blocks[static_cast<size_t>(block)].function =
        static_cast<uint32_t>(plan_.functions.size());
    plan_.functions.push_back(std::move(f));
    d_.signatures.emplace_back();
  }

  // Whether the block uses nothing but what it makes, its operands, and parameters of the program.
  bool IsClosed(const FunctionPlan& f) const {
    BlockSlots bound(plan_.slots.size());
    for (const auto* list : {&f.parameters, &f.results})
      for (uint32_t s : *list) {
        if (s == kNoSlot || plan_.slots[s].storage != Storage::kPool) return false;
        bound.Add(s);
      }
    for (const Instruction& in : plan_.blocks[static_cast<size_t>(f.block)].instructions) {
      LookForInterrupt();
      if (!in.rewrites.empty() || !in.var_attrs.empty()) return false;
      for (uint32_t s : in.op.out)
        if (s != kNoSlot && !bound.Has(s) &&
            !(plan_.slots[s].versioned && plan_.slots[s].home == f.block))
          return false;
      for (uint32_t s : in.op.in) {
        if (s == kNoSlot || bound.Has(s)) continue;
        const Slot& slot = plan_.slots[s];
        if (slot.storage != Storage::kScope && !(slot.versioned && slot.home == f.block))
          return false;
      }
    }
    return true;
  }

  PlanDraft& d_;
  Plan& plan_;
  std::vector<int> runs_;  // per block: operators that run it
};

// Whether the block's shapes follow from those of its operands, and nothing in it is for a run to
// find out.
bool IsSettled(const PlanDraft& d, const FunctionPlan& f) {
  for (const Instruction& in : d.plan->blocks[static_cast<size_t>(f.block)].instructions)
    if (in.mode != Mode::kStatic || in.fn == nullptr) return false;
  return std::all_of(f.results.begin(), f.results.end(),
                     [&](uint32_t s) { return d.known_meta[s] && d.plan->slots[s].is_static; });
}

// The same call in the plan whose states are reused; nullptr: there is none.
const Instruction* TwinOf(const PlanDraft& d, const Instruction& call) {
  if (!d.request.twin) return nullptr;
  for (const Instruction& in : d.request.twin->blocks[0].instructions)
    if (in.ir_op == call.ir_op && in.fn == RunPlannedCall) return &in;
  return nullptr;
}

float WorkOf(const PlanDraft& d, int block) {
  float ns = 0;
  for (const Instruction& in : d.plan->blocks[static_cast<size_t>(block)].instructions)
    ns += EstimateCost(d, in);
  return ns;
}

}  // namespace

void FindFunctions(PlanDraft& d) {
  if (d.PlacesBodies()) FunctionFinder(d).Run();
}

Result<bool> VisitCall(PlanDraft& d, Instruction& in,
                       FunctionRef<void(uint32_t, const Slot&)> set_known,
                       FunctionRef<Status(int)> visit) {
  Plan& plan = *d.plan;
  const int block = BlocksOf(plan, in)[0];
  const uint32_t index = plan.blocks[static_cast<size_t>(block)].function;
  FunctionPlan& f = plan.functions[index];
  const auto give_up = [&] {
    d.shared.expanded.push_back(block);
    d.shared.contradicted = true;
    return false;
  };
  const uint32_t given = in.op.in_begin[1], taken = in.op.out_begin[1];
  std::vector<const Value*> signature = {nullptr};  // not empty, even without operands
  for (uint32_t k = 0; k < given; ++k) {
    const Slot& slot = plan.slots[in.op.in[k]];
    if (!d.known_meta[in.op.in[k]] || !slot.is_static) return give_up();
    signature.push_back(plan.metas.Of(slot.dtype, slot.shape()));
  }
  if (d.signatures[index].empty()) {
    for (uint32_t k = 0; k < given; ++k) set_known(f.parameters[k], plan.slots[in.op.in[k]]);
    HEDDLE_RETURN_IF_ERROR(visit(block));
    if (!IsSettled(d, f) || WorkOf(d, block) < kLeastFunctionNs) return give_up();
    for (const auto* list : {&f.parameters, &f.results})
      for (uint32_t s : *list) plan.slots[s].storage = Storage::kBound;
    d.signatures[index] = std::move(signature);
  } else if (signature != d.signatures[index]) {
    return give_up();
  }
  for (uint32_t k = 0; k < taken; ++k) set_known(in.op.out[k], plan.slots[f.results[k]]);
  // The call keeps the arguments and the results alone; the block has its parameters.
  in.op.in = IdList(std::span<const uint32_t>(in.op.in.begin(), given));
  in.op.out = IdList(std::span<const uint32_t>(in.op.out.begin(), taken));
  in.op.in_begin = {0, given, given};
  in.op.out_begin = {0, taken, taken};
  in.mode = Mode::kStatic;
  in.fn = RunPlannedCall;
  return true;
}

void SumCallCosts(Plan& plan) {
  ForCalls(plan, [&](Instruction& in, uint32_t f) {
    in.cost_ns = 0;
    for (const Instruction& inner :
         plan.blocks[static_cast<size_t>(plan.functions[f].block)].instructions)
      in.cost_ns += inner.cost_ns;
  });
}

void FindBoundViews(Plan& plan) {
  if (plan.functions.empty()) return;
  for (uint32_t s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    if (slot.storage != Storage::kView || plan.slots[slot.base].storage != Storage::kBound)
      continue;
    const uint32_t f = plan.blocks[static_cast<size_t>(plan.slots[slot.base].home)].function;
    plan.functions[f].views.push_back(s);
  }
}

bool IsPreparedPerCall(const PlanDraft& d, int block, const Instruction& in) {
  const uint32_t index = d.plan->blocks[static_cast<size_t>(block)].function;
  if (index == kNoSlot) return false;
  const FunctionPlan& f = d.plan->functions[index];
  for (uint32_t s : in.op.in) {
    if (s == kNoSlot) continue;
    const uint32_t root = d.plan->RootOf(s);
    const auto at = std::find(f.parameters.begin(), f.parameters.end(), root);
    if (at == f.parameters.end()) continue;
    const auto k = static_cast<size_t>(at - f.parameters.begin());
    bool constant = false;  // in some call
    ForCalls(*d.plan, [&](const Instruction& call, uint32_t of) {
      constant = constant || (of == index && d.plan->constant[call.op.in[k]]);
    });
    if (constant) return true;
  }
  return false;
}

Status PrepareCalls(PlanDraft& d, FunctionRef<Status(const std::vector<Instruction*>&)> prepare) {
  Plan& plan = *d.plan;
  if (plan.functions.empty()) return Status::Ok();
  std::vector<std::vector<Instruction*>> todo(plan.functions.size());
  for (size_t f = 0; f < todo.size(); ++f) {
    const int block = plan.functions[f].block;
    for (Instruction& in : plan.blocks[static_cast<size_t>(block)].instructions)
      if (in.op.def->prepare() != nullptr && IsPreparedPerCall(d, block, in))
        todo[f].push_back(&in);
  }
  Status status;
  ForCalls(plan, [&](Instruction& call, uint32_t f) {
    if (!status.ok()) return;
    const FunctionPlan& function = plan.functions[f];
    std::vector<Value*> before;
    for (size_t k = 0; k < function.parameters.size(); ++k) {
      const uint32_t to = function.parameters[k], from = call.op.in[k];
      before.push_back(d.frame[to]);
      if (!plan.constant[from]) continue;
      d.frame[to] = d.frame[from];
      plan.constant[to] = true;
    }
    auto state = std::make_shared<PlannedCall>();
    state->function = f;
    const Instruction* const twin = TwinOf(d, call);
    const auto* const made =
        twin != nullptr ? dynamic_cast<const PlannedCall*>(twin->state) : nullptr;
    const auto& ins = plan.blocks[static_cast<size_t>(function.block)].instructions;
    if (made != nullptr && made->states.size() == (todo[f].empty() ? 0 : ins.size())) {
      state->states = made->states;
    } else if (!todo[f].empty()) {
      status = prepare(todo[f]);
      state->states.resize(ins.size());
      for (Instruction* in : todo[f]) {
        state->states[static_cast<size_t>(in - ins.data())] = std::move(in->state_owner);
        in->state_owner = nullptr;
        in->state = nullptr;
      }
    }
    call.state_owner = state;
    call.state = state.get();
    for (size_t k = 0; k < function.parameters.size(); ++k) {
      d.frame[function.parameters[k]] = before[k];
      plan.constant[function.parameters[k]] = false;
    }
  });
  return status;
}

void ForGivenOperands(
    const Plan& plan, const Instruction& call,
    FunctionRef<void(uint32_t, const Instruction&, const KernelState*, size_t)> fn) {
  const auto* const state = dynamic_cast<const PlannedCall*>(call.state);
  if (state == nullptr) return;
  const FunctionPlan& f = plan.functions[state->function];
  BlockSlots number(plan.slots.size());
  for (uint32_t s : f.parameters) number.Add(s);
  const auto& ins = plan.blocks[static_cast<size_t>(f.block)].instructions;
  for (size_t i = 0; i < ins.size(); ++i) {
    const KernelState* own = state->states.empty() ? nullptr : state->states[i].get();
    for (size_t k = 0; k < ins[i].op.in.size(); ++k) {
      if (ins[i].op.in[k] == kNoSlot) continue;
      const uint32_t root = plan.RootOf(ins[i].op.in[k]);
      if (number.Has(root)) fn(call.op.in[number[root]], ins[i], own ? own : ins[i].state, k);
    }
  }
}

void ExpandCalls(const std::vector<int>& blocks, PlanRequest* request) {
  auto program = std::make_shared<ir::Program>(*request->program);
  for (const int block : blocks) passes::ExpandFunctions(*program, block);
  if (request->claimed) {
    auto claimed = std::make_shared<std::vector<bool>>(*request->claimed);
    claimed->resize(program->vars.size(), false);
    request->claimed = std::move(claimed);
  }
  request->program = std::move(program);
}

}  // namespace heddle
