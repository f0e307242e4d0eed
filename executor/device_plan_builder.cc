// What runs on the device, in which order it is put on which stream, and which events keep the streams
// apart.
#include <algorithm>

#include "executor/dependency_graph.h"
#include "executor/device_plan.h"
#include "executor/place_instructions.h"
#include "executor/plan_draft.h"
#include "scheduler/stream_sync.h"

namespace heddle {
namespace {

// As groups of streams for the scheduler.
enum Group : uint32_t { kHostGroup, kComputeGroup, kInGroup, kOutGroup };

class DevicePlanner {
 public:
  explicit DevicePlanner(PlanDraft& d)
      : d_(d), plan_(*d.plan), ins_(plan_.blocks[0].instructions),
        result_(std::make_shared<DevicePlan>()) {}

  Status Run() {
    plan_.dispatch = Dispatch::kDevice;
    d_.fetched.assign(plan_.slots.size(), false);
    for (const PlanFetch& f : plan_.fetches) d_.fetched[f.slot] = true;
    d_.BeginStage("costs");
    ChooseSchedule(d_);
    // As the host's instructions: what parameters are packed into is the same at both places.
    d_.BeginStage("kernels");
    HEDDLE_RETURN_IF_ERROR(PrepareKernels(d_));
    d_.BeginStage("places");
    place_ = PlaceInstructions(d_);
    InsertCopies(d_, &place_, &result_->resident);
    d_.BeginStage("streams");
    PutStreamsFirst();
    ChooseLanes();
    d_.BeginStage("memory");
    PlanMemory(d_);
    // What is copied once is there for every run.
    std::erase_if(plan_.run_slots, [&](uint32_t s) { return plan_.constant[s]; });
    d_.BeginStage("releases");
    PlanReleases(d_);
    MakeSteps();
    plan_.stats.copies = static_cast<int>(result_->copies);
    plan_.stats.events = static_cast<int>(result_->events);
    plan_.stats.event_waits = static_cast<int>(result_->waits.size());
    plan_.device = std::move(result_);
    return Status::Ok();
  }

 private:
  uint32_t GroupOf(size_t i) const {
    if (ins_[i].op.def != &CopyDef()) return place_[i] == kOnDevice ? kComputeGroup : kHostGroup;
    return place_[i] == kOnDevice ? kInGroup : kOutGroup;
  }
  std::vector<uint32_t> Groups() const {
    std::vector<uint32_t> groups(ins_.size());
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = GroupOf(i);
    return groups;
  }

  void PutStreamsFirst() {
    DependencyGraph dependencies = BuildDependencies(plan_, ins_);
    const std::vector<uint32_t> order = StreamsFirst(dependencies.graph, Groups());
    std::vector<Instruction> ins;
    std::vector<uint8_t> place;
    ins.reserve(order.size());
    for (uint32_t i : order) {
      ins.push_back(std::move(ins_[i]));
      place.push_back(place_[i]);
    }
    ins_ = std::move(ins);
    place_ = std::move(place);
  }

  void ChooseLanes() {
    const DependencyGraph dependencies = BuildDependencies(plan_, ins_);
    plan_.stats.dependencies_found = dependencies.found;
    plan_.stats.dependencies = dependencies.graph.pred.size();
    std::vector<float> cost;
    for (const Instruction& in : ins_) cost.push_back(static_cast<float>(in.cost_ns));
    const uint32_t compute = std::max<uint32_t>(1, d_.request.compute_streams);
    result_->compute_streams = compute;
    result_->lanes = compute + 3;
    lane_of_ = ChooseStreams(dependencies.graph, Groups(), {1, compute, 1, 1}, cost);
    // What infers shapes as it runs is waited for: see DeviceInterpreter.
    std::vector<bool> awaited(ins_.size(), false);
    for (size_t i = 0; i < ins_.size(); ++i)
      awaited[i] = lane_of_[i] != 0 && ins_[i].mode == Instruction::Mode::kDynamic;
    sync_ = PlanStreamSync(dependencies.graph, lane_of_, result_->lanes, awaited);
  }

  void MakeSteps() {
    std::vector<uint32_t> event(ins_.size(), DeviceStep::kNone);
    result_->steps.resize(ins_.size());
    for (uint32_t i = 0; i < ins_.size(); ++i) {
      DeviceStep& step = result_->steps[i];
      step.kind = KindOf(i);
      step.lane = lane_of_[i];
      step.wait_begin = static_cast<uint32_t>(result_->waits.size());
      for (uint32_t k = sync_.wait_begin[i]; k < sync_.wait_begin[i + 1]; ++k)
        result_->waits.push_back(event[sync_.waits[k]]);
      step.wait_end = static_cast<uint32_t>(result_->waits.size());
      if (sync_.recorded[i]) step.record = event[i] = result_->events++;
      if (step.kind == DeviceStep::Kind::kLaunch) BindCall(ins_[i], &step);
      plan_.stats.device_instructions += step.kind == DeviceStep::Kind::kLaunch;
      result_->copies += ins_[i].op.def == &CopyDef();
    }
  }

  DeviceStep::Kind KindOf(uint32_t i) const {
    using Kind = DeviceStep::Kind;
    const Instruction& in = ins_[i];
    if (in.op.def == &CopyDef()) return place_[i] == kOnDevice ? Kind::kCopyIn : Kind::kCopyOut;
    if (in.op.def == &AwaitDef()) return Kind::kAwait;
    if (place_[i] == kOnHost) return Kind::kHost;
    return in.mode == Instruction::Mode::kShare ? Kind::kShare : Kind::kLaunch;
  }

  // A slot named twice is one operand: kernels may ask whether two are the same.
  static uint32_t PositionOf(uint32_t slot, std::vector<uint32_t>* operands) {
    const auto at = std::find(operands->begin(), operands->end(), slot);
    if (at != operands->end()) return static_cast<uint32_t>(at - operands->begin());
    operands->push_back(slot);
    return static_cast<uint32_t>(operands->size() - 1);
  }

  void BindCall(const Instruction& in, DeviceStep* step) {
    BoundOp& call = step->call;
    call.def = in.op.def;
    call.attrs = in.op.attrs;
    call.in_begin = in.op.in_begin;
    call.out_begin = in.op.out_begin;
    const uint32_t operands = in.op.in_begin.back();
    for (uint32_t k = 0; k < operands; ++k)
      call.in.push_back(in.op.in[k] == kNoSlot ? kNoSlot
                                               : PositionOf(in.op.in[k], &step->operands));
    for (uint32_t s : in.op.out)
      call.out.push_back(s == kNoSlot ? kNoSlot : PositionOf(s, &step->operands));
    step->host.assign(step->operands.size(), kNoSlot);
    if (in.mode != Instruction::Mode::kDynamic) return;
    // The shape-giving operands, in the order in which they were put behind the others.
    uint32_t behind = operands;
    for (size_t i = 0; i < in.op.def->inputs().size(); ++i)
      for (uint32_t k = in.op.in_begin[i]; k < in.op.in_begin[i + 1]; ++k) {
        if (in.op.in[k] == kNoSlot) continue;
        if (in.op.def->inputs()[i].flags & kShapeValue)
          step->host[call.in[k]] = in.op.in[behind++];
        else if (plan_.constant[in.op.in[k]])
          step->host[call.in[k]] = HostOf(in.op.in[k]);
      }
  }
  uint32_t HostOf(uint32_t resident) {
    if (host_of_.empty()) {
      host_of_.assign(plan_.slots.size(), kNoSlot);
      for (const auto& [host, device] : result_->resident) host_of_[device] = host;
    }
    return host_of_[resident];
  }

  PlanDraft& d_;
  Plan& plan_;
  std::vector<Instruction>& ins_;
  std::shared_ptr<DevicePlan> result_;
  std::vector<uint8_t> place_;
  std::vector<uint32_t> lane_of_, host_of_;
  StreamSync sync_;
};

}  // namespace

Status PlanForDevice(PlanDraft& draft) { return DevicePlanner(draft).Run(); }

}  // namespace heddle
