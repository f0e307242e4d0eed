// Makes a Plan from a program and a feed signature: chooses slots and kernels, infers shapes,
// computes what is already known, derives dependencies, plans memory. Executes no operator of the
// program except small pure ones whose inputs are all known (shape arithmetic).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/machine.h"
#include "core/programs/ir.h"
#include "core/services.h"
#include "executor/plan/plan.h"

namespace heddle {

struct FeedSignature {
  std::string name;
  Value::Kind kind = Value::Kind::kTensor;
  DType dtype = DType::kUnknown;
  Shape shape;
  bool has_lod = false;
};

class TuningCache;

// The program that is planned; the same for all plans of a compiled program's form.
struct PlanSource {
  std::shared_ptr<const ir::Program> program;
  // Where variables are looked up: the user's parameters and folded ones.
  std::shared_ptr<Scope> scope;
  std::shared_ptr<Scope> root_scope;  // where new persistable variables are made
  std::vector<ir::VarId> fetches;
  std::shared_ptr<PackCache> packs;
  std::shared_ptr<TuningCache> tuning;               // of kernels; nullptr: none
  std::shared_ptr<const std::vector<bool>> claimed;  // see Plan
  // For tests: corrupts the finished plan, so that a check can be seen to notice.
  std::function<void(Plan&)> spoil;
};

// The executor's resources; the same for all its plans.
struct PlanTarget {
  int threads = 1;
  bool tokens = true;                 // runs may keep memory for loose values, see RunTokens
  std::vector<Device*> devices = {};  // for kDevice
  uint32_t compute_streams = 1;
  float host_task_ns = 0;  // see ExecutorOptions
};

// The user's options, see CompileOptions; the same for all plans of a compiled program.
struct PlanChoices {
  Reuse reuse = Reuse::kOrdered;
  bool in_place = true;
  bool lean = false;
  bool dynamic_bodies = false;
  uint64_t shuffle_seed = 0;  // kQueue
  // kDevice: where operators run whose place the program does not state.
  Placement placement = Placement::kDevice;
  uint64_t placement_seed = 0;
  std::shared_ptr<const ForcedImplementations> forced;  // nullptr: none
  std::shared_ptr<const Machine> machine;  // nullptr: this machine; else the plan only describes
  // Plans may rely on open shapes (shapes/open_shapes.h) while this is false; a run that finds one
  // to be wrong sets it. nullptr: they may not.
  std::shared_ptr<std::atomic<bool>> misjudged;
};

// How the plan's instructions are given to threads.
struct PlanWay {
  // `lanes` are for the instructions of `twin`; without them kLanes schedules by estimated costs.
  Dispatch dispatch = Dispatch::kSerial;
  bool ask_worth = false;  // fill in Plan::worth_measuring and worth_body_lanes
  // kSerial: sub-blocks run in lanes if that is expected to pay.
  bool body_lanes = false;
  std::shared_ptr<const LaneSchedule> lanes;
  // With `lanes`: per instruction of `twin`, whether its kernel may use the other lanes' threads;
  // may be empty.
  std::vector<bool> wide;
  // kLanes without `lanes`: additional dependencies between instructions of the serial plan
  // (executor/plan/memory_edges.h).
  std::vector<std::pair<uint32_t, uint32_t>> order_edges = {};
  // By operator (block and position): the implementations that its kernel must use.
  std::shared_ptr<const std::map<std::pair<int, int>, ForcedImplementations>> given = {};
  // A plan for the same request in another way: its prepared kernel states are reused.
  std::shared_ptr<const Plan> twin;
};

struct PlanRequest : PlanSource, PlanTarget, PlanChoices, PlanWay {
  std::vector<FeedSignature> feeds;
  Services* services = nullptr;  // for preparing kernels
};

Result<std::shared_ptr<const Plan>> BuildPlan(const PlanRequest& request);

}  // namespace heddle
