// Makes a plan for a device: which instructions run there, their order and streams, and the events
// that order the streams.
#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/kernel_tuner.h"
#include "device/measure_kernel.h"
#include "executor/plan/block_access.h"
#include "executor/plan/dependency_graph.h"
#include "executor/plan/device/device_memory.h"
#include "executor/plan/device/device_phases.h"
#include "executor/plan/device/insert_copies.h"
#include "executor/plan/device_plan.h"
#include "executor/plan/plan_draft.h"
#include "passes/ir_text.h"
#include "scheduler/host_pool.h"
#include "scheduler/stream_sync.h"

namespace heddle {
namespace {

// The groups of streams that the scheduler distinguishes: the host, three groups per device, and
// the tasks.
enum Group : uint32_t { kHostGroup, kComputeGroup, kInGroup, kOutGroup };
constexpr uint32_t kGroupsOfDevice = 3;

// Plans one block that a device executes.
class DevicePlanner {
 public:
  // `place`: the places of the block's instructions.
  DevicePlanner(PlanDraft& d, int block, std::vector<uint8_t> place, DevicePlan* result)
      : d_(d),
        plan_(*d.plan),
        block_(block),
        ins_(plan_.blocks[block].instructions),
        result_(result),
        place_(std::move(place)) {}

  // The stages, in this order; each is called for all blocks, outer blocks first, except LayOut,
  // which needs inner blocks first.
  void OrderSteps() {
    MeasureKernels();
    ChooseTasks();
    PutStreamsFirst();
  }
  void ChooseStreams() { AssignStreams(); }
  void LayOut(std::vector<BodyMemory>* memory) {
    if (d_.request.reuse == Reuse::kNone) return;
    for (uint32_t k = 0; k < Devices(); ++k) {
      BodyMemory laid;
      const auto waits = PlanDeviceMemory(d_, static_cast<uint8_t>(kOnDevice + k), block_,
                                          stream_of_, sync_, *memory, &laid);
      if (block_ == 0) {
        for (const auto& [s, offset] : laid.places) result_->offsets[s] = offset;
        result_->arena_bytes[k] = laid.bytes;
      } else {
        (*memory)[block_] = std::move(laid);
      }
      if (waits.empty()) continue;
      AddWaits(waits, &graph_);
      PlanSync();
    }
  }
  void Finish() {
    MakeSteps();
    FindBarriers();
    FindPhases();
  }
  bool HasTasks() const { return std::find(task_.begin(), task_.end(), true) != task_.end(); }

 private:
  uint32_t Devices() const { return static_cast<uint32_t>(d_.request.devices.size()); }
  uint32_t TaskGroup() const { return 1 + kGroupsOfDevice * Devices(); }
  // The place of the device on whose streams the instruction is; kOnHost for one of the host.
  uint8_t DeviceOf(size_t i) const {
    if (ins_[i].op.def != &CopyDef() || place_[i] != kOnHost) return place_[i];
    return plan_.slots[ins_[i].op.in[0]].place;
  }
  // kHostGroup, or the group within the device's three.
  Group KindOfGroup(size_t i) const {
    if (ins_[i].op.def == &CopyDef()) return place_[i] != kOnHost ? kInGroup : kOutGroup;
    return place_[i] != kOnHost ? kComputeGroup : kHostGroup;
  }
  uint32_t GroupOf(size_t i) const {
    const Group kind = KindOfGroup(i);
    if (kind == kHostGroup) return task_[i] ? TaskGroup() : kHostGroup;
    return kind + kGroupsOfDevice * (DeviceOf(i) - kOnDevice);
  }
  std::vector<uint32_t> Groups() const {
    std::vector<uint32_t> groups(ins_.size());
    for (size_t i = 0; i < groups.size(); ++i) groups[i] = GroupOf(i);
    return groups;
  }

  // Replaces estimated costs of device kernels by kept or measured times (CompileOptions::tune).
  void MeasureKernels() {
    KernelTuner* tuner = TunerOf(*d_.request.services->packs);
    if (tuner == nullptr) return;
    for (size_t i = 0; i < ins_.size(); ++i) {
      Instruction& in = ins_[i];
      if (place_[i] == kOnHost || in.mode != Instruction::Mode::kStatic || in.fn == nullptr ||
          in.op.def->has(kRandom))
        continue;
      Device& device = *d_.request.devices[place_[i] - kOnDevice];
      const std::string key = TimeKey(in, device);
      double ns = tuner->KeptNs(key);
      if (ns <= 0 && tuner->measures())
        ns = tuner->MeasureNs(key, [&] { return TimeOf(in, device); });
      if (ns <= 0) continue;
      in.cost_ns = static_cast<float>(ns);
      in.measured = true;
    }
  }

  // The tuning key of a kernel, with everything that its time depends on: the device, the operator,
  // its attributes, dtypes and shapes.
  std::string TimeKey(const Instruction& in, const Device& device) const {
    std::string key = StrCat("kernel on ", device.name(), ":", device.number(), " ",
                             in.op.def->name(), " ", ImplementationOf(in));
    for (const auto* list : {&in.op.in, &in.op.out})
      for (uint32_t s : *list)
        key += s == kNoSlot
                   ? std::string(" -")
                   : StrCat(" ", Name(plan_.slots[s].dtype), plan_.slots[s].shape().ToString());
    const auto& defs = in.op.def->attrs();
    for (size_t a = 0; a < defs.size() && in.op.attrs != nullptr; ++a)
      key += StrCat(" ", defs[a].name, "=", ir::AttrText(in.op.attrs[a]));
    for (char& c : key)
      if (c == '\t' || c == '\n') c = ' ';
    return key;
  }
  double TimeOf(const Instruction& in, Device& device) {
    DeviceStep step;
    BindCall(in, &step);
    // A stream's thread executes a host kernel alone, with its work cut for as many threads as it
    // was prepared for.
    InlineIntraOp intra(d_.request.services->intra->threads());
    Services services = *d_.request.services;
    services.intra = &intra;
    KernelCall call;
    call.op = &step.call;
    call.state = in.state;
    call.services = &services;
    call.host_kernel = in.fn;
    std::vector<Value> operands;
    std::vector<bool> on_device;
    for (uint32_t s : step.operands) {
      operands.push_back(*plan_.slots[s].meta);
      on_device.push_back(plan_.slots[s].storage != Storage::kShape);
    }
    return MeasureKernel(device, call, operands, on_device);
  }

  // Host operators that take long enough become tasks for other threads, if there are any.
  void ChooseTasks() {
    task_.assign(ins_.size(), false);
    if (d_.request.threads == 1 || block_ != 0) return;
    for (size_t i = 0; i < ins_.size(); ++i)
      task_[i] = place_[i] == kOnHost && MayBeTask(ins_[i]) &&
                 CostOnHost(ins_[i]) >= d_.request.host_task_ns;
  }

  // No task may read the shape of a device value, which the dispatching thread sets.
  bool MayBeTask(const Instruction& in) const {
    uint32_t from, to;
    if (IsAdded(in) || d_.FindView(in, &from, &to)) return false;
    return std::none_of(in.op.in.begin(), in.op.in.end(), [&](uint32_t s) {
      return s != kNoSlot && plan_.slots[s].place != kOnHost;
    });
  }

  // An operator that runs blocks is assumed to run them once. Counting stops at host_task_ns, since
  // nested operators may run the same blocks many times over.
  float CostOnHost(const Instruction& in) const {
    float cost = in.cost_ns;
    for (int block : BlocksOf(plan_, in))
      for (const Instruction& inner : plan_.blocks[static_cast<size_t>(block)].instructions) {
        if (cost >= d_.request.host_task_ns) return cost;
        cost += std::max(in.cost_ns, CostOnHost(inner));
      }
    return cost;
  }

  // The hints of the instruction's operator; nullptr: it has none, or planning has added the
  // instruction.
  const ir::StreamHints* HintsOf(size_t i) const {
    const Instruction& in = ins_[i];
    if (IsAdded(in)) return nullptr;
    return d_.program.blocks[in.ir_block].ops[in.ir_op].hints.get();
  }

  // The dependencies by operands and by the operators' hints about events. `ordered`: the
  // instructions are in the host's order, and the host reads the source of a copy to the device
  // when it comes to the copy (StepLauncher::CopyIn).
  DependencyGraph FindDependencies(bool ordered) {
    std::vector<bool> at_once;
    // Not with tasks, when copies may be deferred, nor with several devices, when other threads
    // dispatch them: see StepWalker.
    ordered = ordered && !HasTasks() && Devices() == 1;
    for (size_t i = 0; ordered && i < ins_.size(); ++i)
      at_once.push_back(KindOfGroup(i) == kInGroup || IsOnFirstStream(i));
    DependencyGraph dependencies = BuildDependencies(plan_, ins_, at_once);
    std::map<std::string, uint32_t> recorder;
    std::vector<std::pair<uint32_t, uint32_t>> waits;
    for (uint32_t i = 0; i < ins_.size(); ++i) {
      const ir::StreamHints* hints = HintsOf(i);
      if (hints == nullptr) continue;
      for (const std::string& event : hints->events_to_wait)
        if (const auto at = recorder.find(event); at != recorder.end())
          waits.emplace_back(at->second, i);
      if (!hints->event_to_record.empty()) recorder[hints->event_to_record] = i;
    }
    AddWaits(waits, &dependencies.graph);
    if (block_ != 0) AddWaits(Borders(), &dependencies.graph);
    return dependencies;
  }

  // All streams wait for the block's first mark, and its last mark waits for all streams.
  std::vector<std::pair<uint32_t, uint32_t>> Borders() const {
    std::vector<std::pair<uint32_t, uint32_t>> waits;
    const auto last = static_cast<uint32_t>(ins_.size() - 1);
    for (uint32_t i = 1; i < last; ++i)
      if (KindOfGroup(i) != kHostGroup) waits.emplace_back(0, i);
    for (uint32_t i = 0; i < last; ++i) waits.emplace_back(i, last);
    return waits;
  }
  bool IsOnFirstStream(size_t i) const {
    return ins_[i].op.def == &MarkDef() ||
           (ins_[i].op.def->has(kControlFlow) && place_[i] != kOnHost);
  }

  static void AddWaits(const std::vector<std::pair<uint32_t, uint32_t>>& waits,
                       StaticGraph* graph) {
    if (waits.empty()) return;
    StaticGraph g;
    g.size = graph->size;
    g.priority = graph->priority;
    g.pred_begin.push_back(0);
    auto next = waits.begin();
    for (uint32_t v = 0; v < g.size; ++v) {
      const auto row = static_cast<std::ptrdiff_t>(g.pred.size());
      g.pred.insert(g.pred.end(), graph->pred.begin() + graph->pred_begin[v],
                    graph->pred.begin() + graph->pred_begin[v + 1]);
      for (; next != waits.end() && next->second == v; ++next) g.pred.push_back(next->first);
      std::sort(g.pred.begin() + row, g.pred.end());
      g.pred.erase(std::unique(g.pred.begin() + row, g.pred.end()), g.pred.end());
      g.pred_begin.push_back(static_cast<uint32_t>(g.pred.size()));
    }
    CompleteSuccessors(&g);
    *graph = std::move(g);
  }

  // Per instruction: the stream that its operator names, numbered in order of appearance; 0: any.
  std::vector<uint32_t> NamedStreams(uint32_t* compute) {
    constexpr uint32_t kMostStreams = 16;
    std::map<std::string, uint32_t> stream_of;
    std::vector<uint32_t> given(ins_.size(), 0);
    std::vector<int> priorities;
    for (uint32_t i = 0; i < ins_.size(); ++i)
      if (IsOnFirstStream(i)) given[i] = 1;
    if (block_ != 0) return given;
    for (uint32_t i = 0; i < ins_.size(); ++i) {
      const ir::StreamHints* hints = HintsOf(i);
      if (hints == nullptr || hints->execution_stream.empty() || given[i] != 0 ||
          KindOfGroup(i) != kComputeGroup)
        continue;
      const auto next = static_cast<uint32_t>(stream_of.size()) % kMostStreams + 1;
      given[i] = stream_of.emplace(hints->execution_stream, next).first->second;
      if (given[i] > priorities.size()) priorities.resize(given[i], 0);
      int& priority = priorities[given[i] - 1];
      priority = std::min(priority, static_cast<int>(hints->stream_priority));
    }
    // A name means one stream on each device.
    *compute = std::max(*compute, static_cast<uint32_t>(priorities.size()));
    priorities.resize(*compute, 0);
    result_->priorities = std::move(priorities);
    return given;
  }

  void PutStreamsFirst() {
    const DependencyGraph dependencies = FindDependencies(false);
    std::vector<int64_t> priority(ins_.size(), 0);
    for (size_t i = 0; i < ins_.size(); ++i)
      if (const ir::StreamHints* hints = HintsOf(i)) priority[i] = hints->scheduling_priority;
    const std::vector<uint32_t> order =
        HasTasks() ? StreamsFirst(dependencies.graph, Groups(), priority, TaskGroup(), Costs())
                   : StreamsFirst(dependencies.graph, Groups(), priority);
    std::vector<Instruction> ins;
    std::vector<uint8_t> place;
    std::vector<bool> task;
    ins.reserve(order.size());
    for (uint32_t i : order) {
      ins.push_back(std::move(ins_[i]));
      place.push_back(place_[i]);
      task.push_back(task_[i]);
    }
    ins_ = std::move(ins);
    place_ = std::move(place);
    task_ = std::move(task);
  }

  std::vector<float> Costs() const {
    std::vector<float> cost;
    for (const Instruction& in : ins_) cost.push_back(in.cost_ns);
    return cost;
  }

  // Twice as many as threads, so that few tasks wait for an unrelated one.
  uint32_t TaskStreams() const {
    constexpr ptrdiff_t kMost = 8;
    return static_cast<uint32_t>(std::min(
        {std::count(task_.begin(), task_.end(), true), ptrdiff_t{2} * d_.request.threads, kMost}));
  }

  void AssignStreams() {
    DependencyGraph dependencies = FindDependencies(true);
    if (block_ == 0) {
      plan_.stats.dependencies_found = dependencies.found;
      plan_.stats.dependencies = dependencies.graph.pred.size();
    }
    uint32_t compute = std::max<uint32_t>(1, d_.request.compute_streams);
    std::vector<uint32_t> given = NamedStreams(&compute);
    if (block_ == 0) CountStreams(compute);
    std::vector<uint32_t> streams = {1};
    for (uint32_t k = 0; k < Devices(); ++k)
      streams.insert(streams.end(), {result_->compute_streams, result_->copy_in_streams, 1});
    streams.push_back(result_->task_streams);
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i] != 0) given[i] += (DeviceOf(i) - kOnDevice) * result_->streams_of_device;
    stream_of_ = heddle::ChooseStreams(dependencies.graph, Groups(), streams, Costs(), given);
    // The host waits for an instruction that infers shapes at run time: see DeviceInterpreter.
    awaited_.assign(ins_.size(), false);
    for (size_t i = 0; i < ins_.size(); ++i)
      awaited_[i] = stream_of_[i] != 0 && !task_[i] && !IsOnFirstStream(i) &&
                    ins_[i].mode == Instruction::Mode::kDynamic;
    graph_ = std::move(dependencies.graph);
    PlanSync();
  }

  void CountStreams(uint32_t compute) {
    result_->compute_streams = compute;
    // With one copy stream per task stream, the copy of a task's output does not wait for another
    // task.
    constexpr uint32_t kMostCopiesIn = 4;
    const uint32_t tasks = result_->task_streams = TaskStreams();
    result_->copy_in_streams = std::min(1 + tasks, kMostCopiesIn);
    result_->streams_of_device = compute + result_->copy_in_streams + 1;
    result_->devices = Devices();
    result_->streams = 1 + Devices() * result_->streams_of_device;
  }

  void PlanSync() {
    sync_ = PlanStreamSync(graph_, stream_of_, result_->streams + result_->task_streams, awaited_);
  }

  void MakeSteps() {
    std::vector<uint32_t> event(ins_.size(), DeviceStep::kNone);
    const auto begin = static_cast<uint32_t>(result_->steps.size());
    const auto end = static_cast<uint32_t>(begin + ins_.size());
    result_->steps.resize(end);
    result_->sections[block_] = {begin, end};
    for (uint32_t i = 0; i < ins_.size(); ++i) {
      DeviceStep& step = result_->steps[begin + i];
      step.block = static_cast<uint32_t>(block_);
      step.at = i;
      step.kind = KindOf(i);
      step.stream = stream_of_[i];
      step.wait_begin = static_cast<uint32_t>(result_->waits.size());
      step.task_begin = static_cast<uint32_t>(result_->task_waits.size());
      for (uint32_t k = sync_.wait_begin[i]; k < sync_.wait_begin[i + 1]; ++k) {
        const uint32_t other = sync_.waits[k];
        if (task_[other])
          result_->task_waits.push_back(result_->steps[other].task);
        else
          result_->waits.push_back(event[other]);
      }
      step.wait_end = static_cast<uint32_t>(result_->waits.size());
      step.task_end = static_cast<uint32_t>(result_->task_waits.size());
      if (task_[i]) {
        AddTask(i, &step);
      } else if (sync_.recorded[i]) {
        step.record = event[i] = result_->events++;
        result_->recorder.push_back(begin + i);
      }
      if (step.kind == DeviceStep::Kind::kLaunch) BindCall(ins_[i], &step);
      if (step.kind == DeviceStep::Kind::kLaunch) ++plan_.stats.device_instructions;
      result_->copies += ins_[i].op.def == &CopyDef();
      result_->peer_copies += step.kind == DeviceStep::Kind::kCopyPeer;
    }
  }

  // Barriers are the host's own steps, and steps whose end the host awaits to know shapes.
  // StreamSync relies on these being finished before later steps start.
  void FindBarriers() {
    if (Devices() == 1) return;
    uint32_t count = 0;
    for (uint32_t i = 0; i < ins_.size(); ++i) {
      result_->barriers_before.push_back(count);
      result_->is_barrier.push_back(stream_of_[i] == 0 || awaited_[i]);
      count += result_->is_barrier.back();
    }
    result_->crosses.assign(result_->events, false);
    for (const DeviceStep& step : result_->steps)
      for (uint32_t w = step.wait_begin; w < step.wait_end; ++w) {
        const uint32_t event = result_->waits[w];
        if (result_->ThreadOf(step.stream) !=
            result_->ThreadOf(result_->steps[result_->recorder[event]].stream))
          result_->crosses[event] = true;
      }
  }

  void AddTask(uint32_t i, DeviceStep* step) {
    const auto at = static_cast<uint32_t>(result_->tasks.size());
    DeviceTask task;
    task.step = i;
    last_task_.resize(result_->task_streams, DeviceStep::kNone);
    uint32_t& last = last_task_[step->stream - result_->streams];
    const auto needs = [&](uint32_t other) {
      ++task.needs;
      result_->tasks[other].next.push_back(at);
    };
    if (last != DeviceStep::kNone) needs(last);
    for (uint32_t k = step->task_begin; k < step->task_end; ++k) needs(result_->task_waits[k]);
    step->task = last = at;
    result_->tasks.push_back(std::move(task));
  }

  void FindPhases() {
    std::vector<DevicePlan::Phase> phases;
    std::string why = Devices() > 1
                          ? "the plan has several devices"
                          : heddle::FindPhases(plan_, block_, stream_of_, sync_, *result_,
                                               d_.request.devices[0]->has_host_kernels(), &phases);
    phases.resize(ins_.size());
    result_->sections[block_].captured = why.empty();
    result_->phases.insert(result_->phases.end(), phases.begin(), phases.end());
    if (block_ == 0) plan_.stats.no_capture = std::move(why);
  }
  DeviceStep::Kind KindOf(uint32_t i) const {
    using Kind = DeviceStep::Kind;
    const Instruction& in = ins_[i];
    if (in.op.def == &CopyDef()) {
      if (place_[i] == kOnHost) return Kind::kCopyOut;
      return IsPeerCopy(plan_, in) ? Kind::kCopyPeer : Kind::kCopyIn;
    }
    if (in.op.def == &AwaitDef()) return Kind::kAwait;
    if (in.op.def == &MarkDef()) return Kind::kMark;
    if (place_[i] != kOnHost && in.op.def->has(kControlFlow)) return Kind::kBlocks;
    if (place_[i] == kOnHost) return task_[i] ? Kind::kTask : Kind::kHost;
    return in.mode == Instruction::Mode::kShare ? Kind::kShare : Kind::kLaunch;
  }

  // A slot named twice is one operand: kernels may compare operands for identity.
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
    // The shape-giving operands follow the others, in the order in which they were added.
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
  const int block_;
  std::vector<Instruction>& ins_;
  DevicePlan* const result_;
  std::vector<uint8_t> place_;
  std::vector<bool> task_;
  std::vector<uint32_t> stream_of_, host_of_, last_task_;
  std::vector<bool> awaited_;
  StaticGraph graph_;
  StreamSync sync_;
};

}  // namespace

const DeviceStep& DevicePlan::StepOf(const Plan& plan, const Instruction& in) const {
  const Instruction* first = plan.blocks[in.ir_block].instructions.data();
  return steps[sections[in.ir_block].begin + static_cast<size_t>(&in - first)];
}

std::string DevicePlan::StreamName(uint32_t stream) const {
  const std::string device = devices > 1 ? StrCat(DeviceOf(stream), ": ") : std::string();
  const uint32_t at = (stream - 1) % streams_of_device, compute = compute_streams;
  if (at < compute) return StrCat(device, "compute ", at);
  if (at >= compute + copy_in_streams) return device + "copies out";
  return at == compute ? device + "copies in" : StrCat(device, "copies in ", at - compute);
}

namespace {

// The blocks that a device executes, each after the block that runs it.
std::vector<int> BlocksOnDevice(const PlanDraft& d) {
  std::vector<int> blocks = {0};
  for (size_t k = 0; k < blocks.size(); ++k)
    for (const Instruction& in : d.plan->blocks[blocks[k]].instructions)
      for (int b : BlocksOf(*d.plan, in))
        if (d.RunsOnDevice(b)) blocks.push_back(b);
  return blocks;
}

}  // namespace

Status PlanForDevice(PlanDraft& d) {
  Plan& plan = *d.plan;
  plan.dispatch = Dispatch::kDevice;
  d.fetched.assign(plan.slots.size(), false);
  for (const PlanFetch& f : plan.fetches) d.fetched[f.slot] = true;
  d.BeginStage("costs");
  ChooseSchedule(d);
  d.BeginStage("places");
  HEDDLE_ASSIGN_OR_RETURN(Places places, PlaceInstructions(d));
  // Before copies are inserted, on the host's variables: parameters are packed alike at both
  // places.
  d.BeginStage("kernels");
  HEDDLE_RETURN_IF_ERROR(PrepareKernels(d, places));
  d.BeginStage("copies");
  FreeShapeOperands(d);
  auto result = std::make_shared<DevicePlan>();
  InsertCopies(d, &places, &result->resident);
  HEDDLE_RETURN_IF_ERROR(CheckPlaces(plan, places));
  result->sections.resize(plan.blocks.size());
  result->offsets.assign(plan.slots.size(), DevicePlan::kNoOffset);
  result->arena_bytes.assign(d.request.devices.size(), 0);
  std::vector<DevicePlanner> planners;
  for (int b : BlocksOnDevice(d)) planners.emplace_back(d, b, std::move(places[b]), result.get());
  d.BeginStage("streams");
  for (DevicePlanner& p : planners) p.OrderSteps();
  PlanMemory(d);
  for (DevicePlanner& p : planners) p.ChooseStreams();
  d.BeginStage("memory");
  std::vector<BodyMemory> memory(plan.blocks.size());
  for (size_t k = planners.size(); k-- > 0;) planners[k].LayOut(&memory);
  // A constant is copied once and kept for all runs.
  std::erase_if(plan.run_slots, [&](uint32_t s) { return plan.constant[s]; });
  d.BeginStage("releases");
  d.has_tasks = planners[0].HasTasks() || d.request.devices.size() > 1;
  PlanReleases(d);
  for (DevicePlanner& p : planners) p.Finish();
  plan.stats.copies = static_cast<int>(result->copies);
  plan.stats.peer_copies = static_cast<int>(result->peer_copies);
  plan.stats.events = static_cast<int>(result->events);
  plan.stats.event_waits = static_cast<int>(result->waits.size());
  plan.stats.host_tasks = static_cast<int>(result->tasks.size());
  plan.device = std::move(result);
  return Status::Ok();
}

}  // namespace heddle
