// The plan while it is being made: what one analysis leaves for the next.
#pragma once

#include <chrono>
#include <deque>
#include <vector>

#include "executor/plan/plan.h"
#include "executor/plan/plan_builder.h"

namespace heddle {

struct PlanDraft {
  const PlanRequest& request;
  const ir::Program& program;
  std::shared_ptr<Plan> plan;
  // Shape analysis: a frame of values that hold dtype and shape, and contents where those are
  // known.
  std::vector<Value*> frame;
  std::deque<Value> contents;    // where the frame has contents; other values of it are plan->metas
  std::vector<bool> known_meta;  // per slot: the frame tells dtype and shape for certain
  std::vector<bool> fetched;     // per slot
  bool has_tasks = false;        // kDevice: see device_plan.h

  PlanDraft(const PlanRequest& r)
      : request(r), program(*r.program), plan(std::make_shared<Plan>()) {}

  bool Stable(uint32_t slot) const;
  bool FindView(const Instruction& in, uint32_t* from, uint32_t* to) const;

  // Ends the stage that runs, for PlanStats, and starts the one called `name` (nullptr: none).
  void BeginStage(const char* name) {
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

// The analyses, in the order they run.
Status AssignSlots(PlanDraft& draft);      // slots, bound operands, instructions in file order
Status PropagateShapes(PlanDraft& draft);  // static shapes, known values, kernels
void ResolveViews(PlanDraft& draft);       // instructions that only look at memory
void ChooseSchedule(PlanDraft& draft);     // costs; lanes or tasks
void PlanMemory(PlanDraft& draft);         // storages, in-place, arena
void PlanReleases(PlanDraft& draft);       // when pooled memory is given back
void FindLooseValues(PlanDraft& draft);    // whose memory may be shared while running
Status PrepareKernels(PlanDraft& draft);   // per-signature kernel states
Status PlanForDevice(PlanDraft& draft);    // instead of those behind the shapes: see device_plan.h

}  // namespace heddle
