// The plan while it is being made: what one analysis leaves for the next.
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

// Variables that several blocks touch have one slot. Its shape is part of the plan if every
// operator that writes the variable gives it the same one; whether it is so is found by assuming
// it, and by planning anew without the assumption where an operator contradicts.
struct SharedShapes {
  std::vector<bool> varies;  // per variable: no one shape; empty: none is known to
  // Per variable that varies: what its writes have in common, see shapes/open_shapes.h.
  std::vector<std::optional<passes::Fact>> written;
  bool none = false;          // no shared variable has a shape
  bool contradicted = false;  // by the latest analysis
};

struct PlanDraft {
  const PlanRequest& request;
  const ir::Program& program;
  std::shared_ptr<Plan> plan;
  // Shape analysis: a frame of values that hold dtype and shape, and contents where those are
  // known.
  std::vector<Value*> frame;
  std::deque<Value> contents;    // where the frame has contents; other values of it are plan->metas
  std::vector<bool> known_meta;  // per slot: the frame tells dtype and shape for certain
  SharedShapes& shared;
  // Per slot: operators with sub-blocks put values there themselves, in memory that they bring, or
  // keep what is there.
  std::vector<bool> handed;
  // Per slot: somebody may read it before it is written.
  std::vector<bool> unsure;
  std::vector<bool> run_once;  // per block: one instruction runs it
  std::vector<bool> fetched;   // per slot
  // kDevice: blocks whose instructions a device executes, see device_bodies.h; empty: block 0
  // alone.
  std::vector<bool> device_bodies;
  bool has_tasks = false;  // kDevice: several threads go through the steps, see device_plan.h

  PlanDraft(const PlanRequest& r, SharedShapes& shapes)
      : request(r), program(*r.program), plan(std::make_shared<Plan>()), shared(shapes) {}

  // Sub-blocks are planned as block 0 is; else their operators find shapes while running.
  bool CompilesBodies() const { return !shared.none; }
  // Their temporaries have places in the host's arena; else memory is taken as they run.
  bool PlacesBodies() const { return CompilesBodies() && request.dispatch != Dispatch::kDevice; }
  // Precondition: the plan is for a device.
  bool RunsOnDevice(int block) const {
    return block == 0 || (!device_bodies.empty() && device_bodies[static_cast<size_t>(block)]);
  }
  // A shared variable whose memory is the same throughout a run.
  bool IsFixed(uint32_t slot) const;
  bool Stable(uint32_t slot) const;
  bool FindView(const Instruction& in, uint32_t* from, uint32_t* to) const;
  // Other instructions wait for it by control edges, or it for them: it is executed, each time.
  bool HasControlEdges(const Instruction& in) const {
    const ir::Op& op = program.blocks[in.ir_block].ops[in.ir_op];
    return op.has_control_edges() && op.def == in.op.def;
  }
  // The input that the instruction's outputs are parts of, if they may be views of it; kNoSlot.
  uint32_t FindWhole(const Instruction& in) const;
  // The instruction looks at more than the slot's dtype, shape and sequence offsets.
  static bool ReadsContents(const Instruction& in, uint32_t slot);
  // The same of the operands of input `input` of its definition, of attributes behind those.
  static bool ReadsInput(const Instruction& in, size_t input);

  // Ends the stage that runs, for PlanStats, and starts the one called `name` (nullptr: none).
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

// Calls an operator's function; what it throws is an error of the program.
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
// Erases the marked ones; the others keep their order.
inline void EraseMarked(const std::vector<bool>& marked, std::vector<Instruction>* ins) {
  size_t kept = 0;
  for (size_t i = 0; i < ins->size(); ++i) {
    if (marked[i]) continue;
    if (kept != i) (*ins)[kept] = std::move((*ins)[i]);
    ++kept;
  }
  ins->erase(ins->begin() + static_cast<std::ptrdiff_t>(kept), ins->end());
}

// Computes an instruction's outputs where everything they depend on is known and they are small.
// True: the instruction is not needed any more. Precondition: their shapes are known.
bool ComputeKnown(PlanDraft& draft, const Instruction& in);

// The analyses, in the order they run.
Status AssignSlots(PlanDraft& draft);      // slots, bound operands, instructions in file order
Status PropagateShapes(PlanDraft& draft);  // static shapes, known values, kernels
void FindInvariants(PlanDraft& draft);     // what a loop computes once
void FreeShapeOperands(PlanDraft& draft);  // operands of which only the shape is read
void ResolveViews(PlanDraft& draft);       // instructions that only look at memory
void SinkScalars(PlanDraft& draft);        // counters and conditions to the ends of loops' bodies
void ChooseSchedule(PlanDraft& draft);     // costs; lanes or tasks
void PlanMemory(PlanDraft& draft);         // storages, in-place, arena
void PlanReleases(PlanDraft& draft);       // when pooled memory is given back
void FindLooseValues(PlanDraft& draft);    // whose memory may be shared while running
// Kernel states. `places`: per block and instruction; none: all are the host's.
Status PrepareKernels(PlanDraft& draft, const std::vector<std::vector<uint8_t>>& places);
void MakeTails(PlanDraft& draft);        // the scalar steps of loops' bodies
void FindLoops(PlanDraft& draft);        // Plan::loops
Status PlanForDevice(PlanDraft& draft);  // instead of those behind the shapes: see device_plan.h

}  // namespace heddle
