// PlanDraft: a plan while it is being made, with what one analysis leaves for the next.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/interrupts.h"
#include "executor/plan/plan.h"
#include "executor/plan/plan_builder.h"
#include "passes/facts/declarations.h"

namespace heddle {

// Shared variables, which several blocks touch, have one slot. Its shape is part of the plan if
// every operator that writes the variable gives it the same one. That is assumed first; if an
// operator contradicts, planning begins again without the assumption.
struct SharedShapes {
  std::vector<bool> varies;  // per variable: it has no single shape; empty: none is known to vary
  // Per varying variable: what its writes have in common, see shapes/open_shapes.h.
  std::vector<std::optional<passes::Fact>> written;
  // Blocks whose operators are to be put back in the place of their calls, see calls/plan_calls.h.
  std::vector<int> expanded;
  bool none = false;          // no shared variable is assumed to have a shape
  bool contradicted = false;  // the latest analysis contradicted an assumption
};

struct PlanDraft {
  const PlanRequest& request;
  const ir::Program& program;
  std::shared_ptr<Plan> plan;
  // Shape analysis: a frame of values with dtype and shape, and with contents where those are
  // known.
  std::vector<Value*> frame;
  std::deque<Value> contents;    // values with contents; the frame's others are in plan->metas
  std::vector<bool> known_meta;  // per slot: the frame has its certain dtype and shape
  SharedShapes& shared;
  // Per slot: an operator with sub-blocks puts a value there, in memory of its own, or keeps the
  // value that is there.
  std::vector<bool> handed;
  // Per slot: it may be read before it is written.
  std::vector<bool> unsure;
  std::vector<bool> run_once;  // per block: exactly one instruction runs it
  std::vector<bool> fetched;   // per slot
  // Per function: dtypes and shapes of the operands, once a call was visited.
  std::vector<std::vector<const Value*>> signatures;
  // kDevice: blocks that a device executes, see device_bodies.h; empty: block 0 alone.
  std::vector<bool> device_bodies;
  bool has_tasks = false;  // kDevice: several threads go through the steps

  PlanDraft(const PlanRequest& r, SharedShapes& shapes)
      : request(r), program(*r.program), plan(std::make_shared<Plan>()), shared(shapes) {}

  // Whether sub-blocks are planned as block 0 is; otherwise their shapes are found at run time.
  bool CompilesBodies() const { return !shared.none; }
  // Whether temporaries of sub-blocks have offsets in the host's arena; otherwise their memory is
  // taken at run time.
  bool PlacesBodies() const { return CompilesBodies() && request.dispatch != Dispatch::kDevice; }
  bool IsFunction(int block) const {
    return plan->blocks[static_cast<size_t>(block)].function != kNoSlot;
  }
  // Precondition: the plan is for a device.
  bool RunsOnDevice(int block) const {
    return block == 0 || (!device_bodies.empty() && device_bodies[static_cast<size_t>(block)]);
  }
  // Whether the slot is a shared variable whose memory stays the same during a run.
  bool IsFixed(uint32_t slot) const;
  bool Stable(uint32_t slot) const;
  bool FindView(const Instruction& in, uint32_t* from, uint32_t* to) const;
  // Whether control edges connect it with other instructions: it must then be executed, each time.
  bool HasControlEdges(const Instruction& in) const {
    const ir::Op& op = program.blocks[in.ir_block].ops[in.ir_op];
    return op.has_control_edges() && op.def == in.op.def;
  }
  // The input of which the instruction's outputs are parts, if they may be views of it; else
  // kNoSlot.
  uint32_t FindWhole(const Instruction& in) const;
  // Whether the instruction reads more than the slot's dtype, shape and sequence offsets.
  static bool ReadsContents(const Instruction& in, uint32_t slot);
  // The same for the operands of input `input` of its definition; numbers after the inputs mean
  // attributes.
  static bool ReadsInput(const Instruction& in, size_t input);

  // Ends the present stage, for PlanStats, and starts the one called `name` (nullptr: none).
  void BeginStage(const char* name) {
    LookForInterrupt();
    const auto now = std::chrono::steady_clock::now();
    auto& stages = plan->stats.stages;
    if (stage_runs_)
      stages.back().ms = std::chrono::duration<double, std::milli>(now - stage_start_).count();
    stage_runs_ = name != nullptr;
    stage_start_ = now;
    if (stage_runs_) stages.push_back({name, 0});
  }

 private:
  std::chrono::steady_clock::time_point stage_start_;
  bool stage_runs_ = false;
};

// Calls a function of an operator; an exception becomes an error of the program.
template <typename Fn>
Status GuardPlanning(Fn&& fn) {
  try {
    return fn();
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted(e.what());
  } catch (const std::exception& e) {
    return InvalidArgument(e.what());
  }
}
// Erases the marked instructions; the others keep their order.
inline void EraseMarked(const std::vector<bool>& marked, std::vector<Instruction>* ins) {
  size_t kept = 0;
  for (size_t i = 0; i < ins->size(); ++i) {
    if (marked[i]) continue;
    if (kept != i) (*ins)[kept] = std::move((*ins)[i]);
    ++kept;
  }
  ins->erase(ins->begin() + static_cast<std::ptrdiff_t>(kept), ins->end());
}

// Computes an instruction's outputs if everything they depend on is known and they are small. True:
// the instruction is not needed any more. Precondition: the outputs' shapes are known.
bool ComputeKnown(PlanDraft& draft, const Instruction& in);

// The estimated time of an instruction on one thread, in ns.
float EstimateCost(const PlanDraft& draft, const Instruction& in);

// The analyses, in the order in which they run.
Status AssignSlots(PlanDraft& draft);      // slots, bound operands, instructions in file order
Status PropagateShapes(PlanDraft& draft);  // static shapes, known values, kernels
void FindInvariants(PlanDraft& draft);  // instructions that only a loop's first iteration executes
void FreeShapeOperands(PlanDraft& draft);  // operands of which only the shape is read
void ResolveViews(PlanDraft& draft);       // instructions that become views
void SinkScalars(PlanDraft& draft);     // moves counters and conditions to the end of loops' bodies
void ChooseSchedule(PlanDraft& draft);  // costs; lanes or tasks
void PlanMemory(PlanDraft& draft);      // storages, in-place, arena
void PlanReleases(PlanDraft& draft);    // when pooled memory is released
void FindLooseValues(PlanDraft& draft);  // values whose memory may be shared at run time
// Prepares kernel states. `places`: per block and instruction; empty: all are on the host.
Status PrepareKernels(PlanDraft& draft, const std::vector<std::vector<uint8_t>>& places);
void MakeTails(PlanDraft& draft);  // scalar steps of loops' bodies
void FindLoops(PlanDraft& draft);  // Plan::loops
// In place of the analyses after PropagateShapes: see device_plan.h.
Status PlanForDevice(PlanDraft& draft);

}  // namespace heddle
