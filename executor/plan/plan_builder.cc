#include "executor/plan/plan_builder.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stdexcept>

#include "core/error.h"
#include "core/interrupts.h"
#include "core/kernel_context.h"
#include "core/kernel_tuner.h"
#include "core/memory/buffer_slab.h"
#include "core/memory/contents_error.h"
#include "core/memory/large_memory.h"
#include "core/memory/lazy_buffer.h"
#include "core/operands/any_address.h"
#include "device/device.h"
#include "executor/plan/calls/plan_calls.h"
#include "executor/plan/dependency_graph.h"
#include "executor/plan/memory_edges.h"
#include "executor/plan/plan_draft.h"

namespace heddle {
namespace {

bool IsPrepared(const Instruction& in) {
  return in.mode == Instruction::Mode::kStatic || in.mode == Instruction::Mode::kPooled ||
         in.mode == Instruction::Mode::kReplace;
}

// The device whose own kernel executes the instruction; nullptr: the host's kernel executes it.
const Device* WithKernelOf(const PlanDraft& d, const Instruction& in,
                           const std::vector<std::vector<uint8_t>>& places) {
  for (size_t b = 0; b < places.size(); ++b) {
    const auto& ins = d.plan->blocks[b].instructions;
    if (places[b].empty() || &in < ins.data() || &in >= ins.data() + ins.size()) continue;
    const uint8_t place = places[b][static_cast<size_t>(&in - ins.data())];
    if (place == 0) return nullptr;  // the host
    const Device* const device = d.request.devices[place - 1u];
    return device->has_host_kernels() ? nullptr : device;
  }
  return nullptr;
}

// The error for a parameter whose contents cannot be read.
Status ParameterError(const Plan& plan, uint32_t slot, const Status& status) {
  const ir::VarId var = plan.slots[slot].var;
  if (var == ir::kNoVar) return status;
  return ErrorWith(status.code(), "parameter '", plan.program->vars[var].name,
                   "': ", status.message());
}

// Prepares the host's kernel only to check the operands: a device relies on that.
Status CheckByHost(const PlanDraft& d, const Instruction& in, Services services) {
  services.forced = nullptr;
  services.lean = true;
  PrepareContext ctx(in.op, d.frame.data(), services, nullptr);
  return in.op.def->prepare()(ctx).status();
}

// The error for an operand whose contents cannot be read, with the parameter's name.
Status NoContents(const PlanDraft& d, const Instruction& in, const ContentsError& e) {
  for (const uint32_t s : in.op.in)
    if (s != kNoSlot && d.frame[s] != nullptr && d.frame[s]->is_tensor() &&
        e.IsAbout(d.frame[s]->tensor()))
      return ParameterError(*d.plan, s, e.status());
  return e.status();
}

// `choices` receives the implementations that could be chosen.
Status PrepareOne(PlanDraft& d, Instruction& in, const Device* device,
                  std::vector<ImplementationChoice>* choices) {
  try {
    Services services = *d.request.services;
    if (d.request.given) {
      const auto given = d.request.given->find({in.ir_block, in.ir_op});
      if (given != d.request.given->end()) services.forced = &given->second;
    }
    if (device != nullptr) HEDDLE_RETURN_IF_ERROR(CheckByHost(d, in, services));
    LookForInterrupt();
    ChoiceLog& log = LogOf(*services.packs);
    log.Open(&in.op);
    PrepareContext ctx(in.op, d.frame.data(), services, &d.plan->constant);
    auto state = device != nullptr ? device->Prepare(ctx) : in.op.def->prepare()(ctx);
    *choices = log.Take(&in.op);
    if (!state.ok()) return state.status();
    in.state_owner = *std::move(state);
    in.state = in.state_owner.get();
    return Status::Ok();
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted("while preparing: ", e.what());
  } catch (const ContentsError& e) {
    return NoContents(d, in, e);
  } catch (const std::invalid_argument& e) {
    return InvalidArgument(e.what());
  } catch (const std::length_error& e) {
    return ResourceExhausted("while preparing: more elements than memory can hold: ", e.what());
  } catch (const std::exception& e) {
    return Internal("while preparing: ", e.what());
  }
}

// Prepares kernels on several threads, since libraries compile code and parameters are packed. The
// failure reported is the first one in the program's order, whichever thread met it.
Status PrepareAll(PlanDraft& d, const std::vector<Instruction*>& todo,
                  const std::vector<std::vector<uint8_t>>& places) {
  std::vector<Status> results(todo.size());
  std::vector<std::vector<ImplementationChoice>> choices(todo.size());
  std::atomic<size_t> next{0};
  std::atomic<bool> failed{false};
  IntraOp& intra = *d.request.services->intra;
  // One thread if kernels are measured: a measurement needs all threads, and waits for other
  // measurements.
  const KernelTuner* tuner = TunerOf(*d.request.services->packs);
  const int threads = tuner != nullptr && tuner->measures() ? 1 : std::max(1, intra.threads());
  const auto pieces = static_cast<int64_t>(std::min(todo.size(), static_cast<size_t>(threads)));
  intra.ParallelFor(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      for (size_t i; !failed && (i = next++) < todo.size();) {
        results[i] = PrepareOne(d, *todo[i], WithKernelOf(d, *todo[i], places), &choices[i]);
        if (!results[i].ok()) failed = true;
      }
    }
  });
  // Instructions are taken in order, so all before the first failure were prepared.
  for (size_t i = 0; i < todo.size(); ++i)
    if (!results[i].ok()) return results[i].At(d.plan->Locate(*todo[i]));
  for (size_t i = 0; i < todo.size(); ++i)
    if (!choices[i].empty())
      d.plan->choices[{todo[i]->ir_block, todo[i]->ir_op}] = std::move(choices[i]);
  return Status::Ok();
}

// The size in bytes of the parameters that are not in memory yet; most of them will be packed.
size_t BytesToPack(const Plan& plan) {
  size_t bytes = 0;
  for (const auto& use : plan.scope_uses) {
    const Value& value = *use.stamp.value;
    if (value.is_tensor() && IsAbsent(value.tensor()) &&
        value.tensor().bytes() < BufferSlab::kOwnBlock)
      bytes += value.tensor().bytes();
  }
  return bytes;
}

}  // namespace

Status PrepareKernels(PlanDraft& d, const std::vector<std::vector<uint8_t>>& places) {
  if (d.request.lean) PackSlab(*d.request.services->packs, BytesToPack(*d.plan), true);
  std::vector<Instruction*> todo;
  if (d.request.twin) d.plan->choices = d.request.twin->choices;
  for (size_t b = 0; b < d.plan->blocks.size(); ++b) {
    std::vector<std::shared_ptr<const KernelState>> made;  // by operator
    if (d.request.twin) {
      made.resize(d.program.blocks[b].ops.size());
      for (const Instruction& in : d.request.twin->blocks[b].instructions)
        made[static_cast<size_t>(in.ir_op)] = in.state_owner;
    }
    for (Instruction& in : d.plan->blocks[b].instructions) {
      LookForInterrupt();
      if (!IsPrepared(in) || in.op.def->prepare() == nullptr ||
          IsPreparedPerCall(d, static_cast<int>(b), in))
        continue;
      if (!made.empty() && made[static_cast<size_t>(in.ir_op)]) {
        in.state_owner = made[static_cast<size_t>(in.ir_op)];
        in.state = in.state_owner.get();
      } else {
        todo.push_back(&in);
      }
    }
  }
  HEDDLE_RETURN_IF_ERROR(PrepareAll(d, todo, places));
  return PrepareCalls(
      d, [&](const std::vector<Instruction*>& some) { return PrepareAll(d, some, places); });
}

namespace {

// Tells each instruction what the next one, in its lane, reads first. Kernel states live as long as
// the plan.
void LookAhead(Plan* plan) {
  for (BlockPlan& block : plan->blocks) {
    auto& ins = block.instructions;
    for (size_t i = 1; i < ins.size(); ++i)
      if (ins[i].state != nullptr) ins[i - 1].op.ahead = ins[i].state->facts().prefetch;
  }
}

void WidenInstructions(const std::vector<bool>& wide, Plan* plan) {
  auto& ins = plan->blocks[0].instructions;
  for (size_t p = 0; p < ins.size(); ++p)
    if (wide[plan->lanes->order[p]] && ins[p].mode == Instruction::Mode::kStatic)
      ins[p].mode = Instruction::Mode::kWide;
}

// Marks instructions that update a parameter in place: they are completed even if their run is to
// end, so that a parameter always has a complete value.
void KeepWhole(Plan* plan) {
  const auto in_scope = [&](uint32_t s) {
    return s != kNoSlot && plan->slots[plan->RootOf(s)].storage == Storage::kScope;
  };
  for (BlockPlan& block : plan->blocks) {
    for (Instruction& in : block.instructions) {
      LookForInterrupt();
      if (in.op.def->has(kControlFlow)) continue;
      in.whole = std::any_of(in.op.out.begin(), in.op.out.end(), in_scope) ||
                 std::any_of(in.rewrites.begin(), in.rewrites.end(),
                             [&](const auto& r) { return r.inplace && in_scope(r.real); });
      if (in.whole && in.mode == Instruction::Mode::kStatic) in.mode = Instruction::Mode::kWhole;
    }
  }
}

// Reads parameters whose contents are not in memory, except those of which kernels have copies and
// that nothing else touches. Parameters from which kernels only pick elements are used in their
// file, if the plan would be made anew after a write to them, since the file does not change.
Status BringInParameters(Plan& plan) {
  std::vector<bool> packed(plan.slots.size(), false), touched(plan.slots.size(), false);
  std::vector<bool> picked(plan.slots.size(), false);
  // Notes that the instruction reads the slot by its k-th operand.
  const auto use = [&](uint32_t s, const Instruction& in, const KernelState* state, size_t k) {
    const uint32_t copied = state != nullptr ? state->facts().packed_inputs : 0;
    const auto& slots = in.op.def->inputs();
    size_t slot = 0;
    while (slot < slots.size() && in.op.in_begin[slot + 1] <= k) ++slot;
    const bool has_copy = slot < 32 && slot < slots.size() && (copied >> slot & 1);
    const bool picks = slot < slots.size() && (slots[slot].flags & kAnyAddress) != 0;
    (has_copy ? packed : picks ? picked : touched)[s] = true;
  };
  for (const BlockPlan& block : plan.blocks) {
    for (const Instruction& in : block.instructions) {
      LookForInterrupt();
      for (size_t k = 0; k < in.op.in.size() && in.fn != RunPlannedCall; ++k)
        if (in.op.in[k] != kNoSlot) use(in.op.in[k], in, in.state, k);
      for (uint32_t s : in.op.out)
        if (s != kNoSlot) touched[s] = true;
    }
  }
  for (const Slot& slot : plan.slots)
    if (slot.base != kNoSlot) touched[slot.base] = true;
  for (const Instruction& in : plan.blocks[0].instructions)
    ForGivenOperands(plan, in,
                     [&](uint32_t given, const Instruction& inner, const KernelState* state,
                         size_t k) { use(given, inner, state, k); });
  for (const PlanFetch& f : plan.fetches) touched[f.slot] = true;
  for (size_t i = 0; i < plan.scope_slots.size(); ++i) {
    const uint32_t s = plan.scope_slots[i];
    const Value& value = *plan.scope_uses[i].stamp.value;
    const bool as_it_lies = !touched[s] && plan.dispatch != Dispatch::kDevice;
    if (!value.is_tensor() || (packed[s] && !picked[s] && as_it_lies)) continue;
    if (picked[s] && as_it_lies && plan.scope_uses[i].contents)
      if (Tensor t = ContentsInFile(value.tensor()); t.initialized()) {
        plan.in_file.emplace_back(s, Value(std::move(t)));
        continue;
      }
    if (const Status there = MakeResident(value.tensor()); !there.ok())
      return ParameterError(plan, s, there);
  }
  return Status::Ok();
}

// Whether as much has passed through the heap while kernels packed parameters that returning it is
// worth a few milliseconds.
bool HasLargeParameters(const Plan& plan) {
  constexpr size_t kLarge = 32 << 20;
  size_t bytes = 0;
  for (const auto& use : plan.scope_uses)
    if (use.stamp.value->is_tensor()) bytes += use.stamp.value->tensor().bytes();
  return bytes >= kLarge;
}

// Assigns slots and infers shapes, repeatedly while a shared variable turns out to have no single
// shape. In a chain of variables that take their shapes from each other, each repetition finds one
// more.
Status Analyse(PlanRequest& request, SharedShapes& shapes, std::optional<PlanDraft>* draft) {
  constexpr int kMostTimes = 32;  // after that, no shared variable is assumed to have a shape
  for (int times = 1;; ++times) {
    shapes.none = request.dynamic_bodies || times >= kMostTimes;
    PlanDraft& d = draft->emplace(request, shapes);
    d.BeginStage("slots");
    HEDDLE_RETURN_IF_ERROR(AssignSlots(d));
    d.BeginStage("shapes");
    // An error may follow from an assumption that was contradicted; then it does not count.
    const Status status = PropagateShapes(d);
    if (!shapes.contradicted) return status;
    if (shapes.expanded.empty()) continue;
    draft->reset();  // it refers to the program
    ExpandCalls(shapes.expanded, &request);
    shapes = {};
  }
}

// See ShapedCalls::makes_tensors.
bool MakesTensors(const Instruction& in, const Plan& plan) {
  return std::ranges::none_of(in.op.out, [&](uint32_t slot) {
    if (slot == kNoSlot) return false;
    const ir::VarId v = plan.slots[slot].var;
    return (v != ir::kNoVar && plan.program->vars[v].kind == ir::VarKind::kArray) ||
           std::ranges::find(in.op.in, slot) != in.op.in.end();
  });
}

Result<std::shared_ptr<const Plan>> Build(const PlanRequest& given) {
  const auto start = std::chrono::steady_clock::now();
  PlanRequest request = given;
  if (request.twin) request.program = request.twin->program;  // with the calls that it has
  SharedShapes shapes;
  std::optional<PlanDraft> analysed;
  HEDDLE_RETURN_IF_ERROR(Analyse(request, shapes, &analysed));
  PlanDraft& draft = *analysed;
  if (request.dispatch == Dispatch::kDevice) {
    HEDDLE_RETURN_IF_ERROR(PlanForDevice(draft));
    if (request.tokens && request.reuse != Reuse::kNone) FindLooseValues(draft);
  } else {
    FindInvariants(draft);
    draft.BeginStage("views");
    FreeShapeOperands(draft);
    ResolveViews(draft);
    SinkScalars(draft);
    draft.BeginStage("costs");
    ChooseSchedule(draft);
    draft.BeginStage("memory");
    PlanMemory(draft);
    draft.BeginStage("releases");
    PlanReleases(draft);
    if (request.tokens && request.reuse != Reuse::kNone) FindLooseValues(draft);
    draft.BeginStage("kernels");
    HEDDLE_RETURN_IF_ERROR(PrepareKernels(draft, {}));
    MakeTails(draft);
    LookAhead(draft.plan.get());
    FindLoops(draft);
  }
  // Now, before parameters are read and a run takes memory, so that neither adds to the peak of
  // loading and planning.
  if (request.lean || HasLargeParameters(*draft.plan)) TrimHeap();
  if (!request.machine) HEDDLE_RETURN_IF_ERROR(BringInParameters(*draft.plan));
  draft.BeginStage(nullptr);
  Plan& plan = *draft.plan;
  if (plan.lanes && !request.wide.empty()) WidenInstructions(request.wide, &plan);
  KeepWhole(&plan);
  plan.stats.parallel = plan.dispatch != Dispatch::kSerial || plan.body_lanes > 0;
  plan.stats.lanes = std::max(1, plan.lanes ? plan.lanes->lanes : plan.body_lanes);
  plan.stats.arena_bytes = plan.arena_bytes;
  plan.stats.arena_bound_bytes = plan.arena_bound;
  plan.stats.static_shapes = true;
  for (BlockPlan& block : plan.blocks) {
    for (Instruction& in : block.instructions) {
      LookForInterrupt();
      in.claims = plan.Claims(in);
      plan.draws_random = plan.draws_random || in.op.def->has(kRandom);
      block.once += in.once;
      if (!in.calls) continue;
      in.calls->place = plan.shaped_calls++;
      in.calls->makes_tensors = MakesTensors(in, plan);
    }
  }
  for (const Instruction& in : plan.blocks[0].instructions) {
    LookForInterrupt();
    ++plan.stats.instructions;
    if (in.mode == Instruction::Mode::kDynamic) plan.stats.static_shapes = false;
  }
  const auto took = std::chrono::steady_clock::now() - start;
  if (request.spoil) request.spoil(plan);
  plan.stats.build_ms = std::chrono::duration<double, std::milli>(took).count();
  return std::shared_ptr<const Plan>(draft.plan);
}

// Builds plans with lanes, without and with the memory edges that a serial plan suggests, and
// returns the one that needs less memory.
Result<std::shared_ptr<const Plan>> BuildTightLanes(const PlanRequest& given) {
  PlanRequest request = given;
  request.spoil = nullptr;
  request.dispatch = Dispatch::kSerial;
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const Plan> serial, Build(request));
  const auto& ins = serial->blocks[0].instructions;
  std::vector<float> cost;
  for (const Instruction& in : ins) cost.push_back(in.cost_ns);
  request.order_edges = FindMemoryEdges(*serial, BuildDependencies(*serial, ins).graph, cost);
  request.twin = serial;
  request.spoil = given.spoil;
  request.dispatch = Dispatch::kLanes;
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> tight, Build(request));
  if (request.order_edges.empty()) return tight;
  request.order_edges.clear();
  HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const Plan> loose, Build(request));
  return tight->arena_bytes < loose->arena_bytes ? tight : loose;
}

}  // namespace

Result<std::shared_ptr<const Plan>> BuildPlan(const PlanRequest& request) {
  try {
    if (request.dispatch == Dispatch::kLanes && request.reuse == Reuse::kEdges && !request.lanes)
      return BuildTightLanes(request);
    return Build(request);
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted("no memory to plan ", request.program->name, ": ", e.what());
  }
}

}  // namespace heddle
