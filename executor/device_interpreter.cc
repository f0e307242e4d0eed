#include "executor/device_interpreter.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/guard.h"
#include "core/kernel_selector.h"
#include "executor/bare_value.h"
#include "executor/check_finite.h"
#include "executor/device_errors.h"
#include "executor/device_plan.h"
#include "executor/device_times.h"
#include "executor/interpreter.h"
#include "executor/resident_copy.h"

namespace heddle {

// What a RunState keeps for its runs.
struct DeviceRun {
  std::vector<std::unique_ptr<Event>> events;  // of the plan
  std::unique_ptr<Event> done;                 // of a call that the host waits for
  Services services;                           // of kernels on streams
  bool ran = false;       // a run has come to its end
  bool replayed = false;  // the newest run had a graph
  // The kernels of a run as one piece of work. It holds while they find their operands where they were
  // when it was captured: see DeviceRunner::Addresses.
  std::unique_ptr<Graph> graph;
  std::vector<const void*> addresses;
  std::vector<std::pair<uint32_t, Value>> results;  // per slot that is read after the kernels
  // Between the captured kernels and the rest, by lane; [0]: the kernels are done.
  std::vector<std::unique_ptr<Event>> borders;
  bool refused = false;  // it cannot be captured
};

namespace {

using Kind = DeviceStep::Kind;

class DeviceRunner {
 public:
  DeviceRunner(RunState& run, DeviceRuntime& device, KernelArena& host, KernelArena& streams)
      : run_(run), plan_(run.plan()), device_plan_(*run.plan().device), device_(device),
        host_(host), kernels_(streams) {}

  Status Run() {
    auto set = device_.Acquire(device_plan_.priorities);
    if (!set.ok()) return Explain(set.status());
    set_ = *std::move(set);
    Status status;
    try {
      status = Prepare();
      if (status.ok()) status = CanReplay() ? DispatchWithGraph() : Dispatch();
    } catch (const std::bad_alloc& e) {  // memory of the host
      status = ResourceExhausted(e.what());
    } catch (const std::exception& e) {
      status = Internal("a step could not be dispatched: ", e.what());
    }
    status = Drain(std::move(status));
    held_.clear();
    if (status.ok()) status = times_.Tell(run_, device_plan_);
    if (status.ok()) run_.device_run()->ran = true;
    // What the device has is released while its streams are still this run's.
    for (uint32_t s : plan_.run_slots)
      if (plan_.slots[s].place != 0) run_.value(s) = Value();
    arena_.reset();
    device_.Release(std::move(set_));
    return status;
  }

 private:
  const Instruction& At(size_t i) const { return plan_.blocks[0].instructions[i]; }
  Stream& StreamOf(const DeviceStep& step) { return *set_->streams[step.lane - 1]; }

  // Events, and what is copied once.
  Status Prepare() {
    auto& kept = run_.device_run();
    if (kept == nullptr) {
      auto made = std::make_shared<DeviceRun>();
      for (uint32_t k = 0; k < device_plan_.events; ++k) {
        auto event = device_.device().NewEvent(false);
        if (!event.ok()) return Explain(event.status());
        made->events.push_back(*std::move(event));
      }
      auto event = device_.device().NewEvent(false);
      if (!event.ok()) return Explain(event.status());
      made->done = *std::move(event);
      kept = std::move(made);
    }
    kept->services = run_.services();
    kept->services.intra = &kernels_.intra();
    kept->replayed = false;
    HEDDLE_RETURN_IF_ERROR(TakeArena());
    for (const auto& [host, device] : device_plan_.resident)
      if (!run_.value(device).initialized())
        if (Status s = Upload(host, device); !s.ok())
          return Status(s.code(), StrCat("while '", NameOf(host),
                                         "' was copied to the device: ", s.message()));
    return Status::Ok();
  }

  // Memory for the plan's static temporaries. Where there is not enough in one piece they are given
  // theirs one by one.
  Status TakeArena() {
    if (device_plan_.arena_bytes == 0) return Status::Ok();
    BufferRef& held = set_->arena;
    if (!held || held->bytes() < device_plan_.arena_bytes) {
      held.reset();
      auto made = device_.memory().Allocate(device_plan_.arena_bytes, nullptr);
      if (!made.ok())
        return made.status().code() == StatusCode::kResourceExhausted ? Status::Ok()
                                                                      : Explain(made.status());
      held = *std::move(made);
    }
    arena_ = held;
    const auto byte = device_.device().scrub();
    if (!byte) return Status::Ok();
    Stream& stream = *set_->streams[0];
    Status status = stream.Fill(held->data(), *byte, device_plan_.arena_bytes, 0);
    if (status.ok()) status = stream.Synchronize();
    return status.ok() ? status : Explain(status);
  }

  Status Upload(uint32_t host, uint32_t device) {
    const Value& from = run_.value(host);
    if (!from.is_tensor() || !from.initialized()) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(run_.value(device),
                            CopyToStay(from.tensor(), device_,
                                       *set_->streams[device_plan_.compute_streams],
                                       services().packs));
    return Status::Ok();
  }

  Services& services() { return run_.device_run()->services; }

  Status Dispatch() {
    for (size_t i = 0; i < device_plan_.steps.size(); ++i) {
      Status s = Step(i);
      if (!s.ok()) [[unlikely]]
        return s;
    }
    return Status::Ok();
  }

  Status Step(size_t i) {
    const DeviceStep& step = device_plan_.steps[i];
    const Instruction& in = At(i);
    auto& events = run_.device_run()->events;
    if (step.lane == 0) {
      for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
        if (Status s = EventOf(device_plan_.waits[w]).Wait(); !s.ok()) {
          failed_on_device_ = true;
          return Explain(s).At(plan_.Locate(in));
        }
      if (step.kind == Kind::kAwait) return Release(in);
      Status status;
      host_.Execute([&] { status = Interpreter::RunSerial({&in, 1}, run_); });
      return status;
    }
    if (run_.control().attention()) HEDDLE_RETURN_IF_ERROR(run_.control().Interrupted());
    for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
      if (Status s = StreamOf(step).WaitFor(EventOf(device_plan_.waits[w])); !s.ok())
        return Refused(s, i);
    const bool timed = run_.control().traces() && step.kind != Kind::kShare;
    const auto mark = [&] {
      return timed ? times_.Mark(i, device_.device(), StreamOf(step)) : Status::Ok();
    };
    if (Status s = mark(); !s.ok()) return Refused(s, i);
    if (Status s = Put(i); !s.ok()) return Refused(s, i);
    if (Status s = mark(); !s.ok()) return Refused(s, i);
    if (run_.control().checks_values() && step.kind == Kind::kLaunch)
      HEDDLE_RETURN_IF_ERROR(CheckValues(i));
    if (step.record != DeviceStep::kNone)
      if (Status s = StreamOf(step).Record(*events[step.record]); !s.ok()) return Refused(s, i);
    return Release(in);
  }

  // --- with the kernels captured ---

  using Phase = DevicePlan::Phase;

  // In the first run of all nothing is captured: many plans have no second one.
  bool CanReplay() const {
    const DeviceRun& kept = *run_.device_run();
    return device_.capture() && kept.ran && !kept.refused && arena_ && !run_.control().attention() &&
           !device_plan_.phases.empty();
  }

  // What comes after captured kernels waits for all of them.
  Event& EventOf(uint32_t event) {
    DeviceRun& kept = *run_.device_run();
    const bool captured =
        kept.replayed && device_plan_.phases[device_plan_.recorder[event]] == Phase::kCaptured;
    return captured ? *kept.borders[0] : *kept.events[event];
  }

  Status DispatchPhase(Phase phase) {
    for (size_t i = 0; i < device_plan_.steps.size(); ++i)
      if (device_plan_.phases[i] == phase) HEDDLE_RETURN_IF_ERROR(Step(i));
    return Status::Ok();
  }

  Status DispatchWithGraph() {
    DeviceRun& kept = *run_.device_run();
    HEDDLE_RETURN_IF_ERROR(DispatchPhase(Phase::kBefore));
    if (auto now = Addresses(); kept.graph == nullptr || now != kept.addresses) {
      kept.graph.reset();
      kept.addresses = std::move(now);
      if (Status s = Capture(); !s.ok()) {
        // As in a run without; the device tells what is wrong with it, if anything is.
        kept.refused = s.code() == StatusCode::kUnimplemented;
        kept.graph.reset();
        HEDDLE_RETURN_IF_ERROR(DispatchPhase(Phase::kCaptured));
        return DispatchPhase(Phase::kAfter);
      }
    }
    if (Status s = Replay(); !s.ok()) return Explain(s);
    kept.replayed = true;
    for (const auto& [slot, value] : kept.results) run_.value(slot) = value;
    return DispatchPhase(Phase::kAfter);
  }

  // Everything that captured kernels take for granted about where their operands are.
  std::vector<const void*> Addresses() {
    std::vector<const void*> all = {arena_->data()};
    const auto add = [&](uint32_t slot) {
      const Value& v = run_.value(slot);
      all.push_back(v.is_tensor() && v.initialized() ? v.tensor().raw() : nullptr);
    };
    for (const auto& [host, device] : device_plan_.resident) add(device);
    for (size_t i = 0; i < device_plan_.steps.size(); ++i)
      if (device_plan_.steps[i].kind == Kind::kCopyIn && device_plan_.phases[i] == Phase::kBefore)
        add(At(i).op.out[0]);
    return all;
  }

  Status Capture() {
    DeviceRun& kept = *run_.device_run();
    while (kept.borders.size() < device_plan_.lanes) {
      HEDDLE_ASSIGN_OR_RETURN(auto event, device_.device().NewEvent(false));
      kept.borders.push_back(std::move(event));
    }
    Stream& origin = *set_->streams[0];
    HEDDLE_RETURN_IF_ERROR(origin.BeginCapture());
    Status status = Guard([&] { return PutCaptured(); });
    auto graph = origin.EndCapture();
    if (status.ok()) status = graph.status();
    if (!status.ok()) return status;
    kept.graph = *std::move(graph);
    kept.results.clear();
    for (size_t i = 0; i < device_plan_.steps.size(); ++i) {
      if (device_plan_.phases[i] != Phase::kAfter) continue;
      for (uint32_t s : At(i).op.in)
        if (s != kNoSlot && plan_.slots[s].place != 0) kept.results.emplace_back(s, Detached(run_.value(s)));
    }
    return Status::Ok();
  }

  // The kernels of all streams, between a fork from the first one and a join with it.
  Status PutCaptured() {
    DeviceRun& kept = *run_.device_run();
    Stream& origin = *set_->streams[0];
    HEDDLE_RETURN_IF_ERROR(origin.Record(*kept.borders[0]));
    for (uint32_t lane = 2; lane <= device_plan_.compute_streams; ++lane)
      HEDDLE_RETURN_IF_ERROR(set_->streams[lane - 1]->WaitFor(*kept.borders[0]));
    for (size_t i = 0; i < device_plan_.steps.size(); ++i) {
      if (device_plan_.phases[i] != Phase::kCaptured) continue;
      const DeviceStep& step = device_plan_.steps[i];
      for (uint32_t w = step.wait_begin; w < step.wait_end; ++w) {
        const uint32_t event = device_plan_.waits[w];
        if (device_plan_.phases[device_plan_.recorder[event]] == Phase::kCaptured)
          HEDDLE_RETURN_IF_ERROR(StreamOf(step).WaitFor(*kept.events[event]));
      }
      HEDDLE_RETURN_IF_ERROR(Put(i));
      for (uint32_t s : At(i).op.out)
        if (s != kNoSlot && !InPlace(s)) return Unimplemented("memory outside of the block");
      if (step.record != DeviceStep::kNone)
        HEDDLE_RETURN_IF_ERROR(StreamOf(step).Record(*kept.events[step.record]));
    }
    for (uint32_t lane = 2; lane <= device_plan_.compute_streams; ++lane) {
      HEDDLE_RETURN_IF_ERROR(set_->streams[lane - 1]->Record(*kept.borders[lane]));
      HEDDLE_RETURN_IF_ERROR(origin.WaitFor(*kept.borders[lane]));
    }
    return Status::Ok();
  }
  // Memory that is there in the next run too.
  bool InPlace(uint32_t slot) {
    const Value& v = run_.value(slot);
    return !v.is_tensor() || !v.initialized() || v.tensor().bytes() == 0 ||
           v.tensor().buffer().get() == arena_.get();
  }

  Status Replay() {
    DeviceRun& kept = *run_.device_run();
    Stream& origin = *set_->streams[0];
    for (uint32_t lane = device_plan_.compute_streams + 1; lane < device_plan_.lanes; ++lane) {
      HEDDLE_RETURN_IF_ERROR(set_->streams[lane - 1]->Record(*kept.borders[lane]));
      HEDDLE_RETURN_IF_ERROR(origin.WaitFor(*kept.borders[lane]));
    }
    HEDDLE_RETURN_IF_ERROR(origin.Replay(*kept.graph));
    return origin.Record(*kept.borders[0]);
  }

  // --- steps ---

  // Looks for NaN and infinity in copies of what the step writes.
  Status CheckValues(size_t i) {
    const Instruction& in = At(i);
    Stream& stream = StreamOf(device_plan_.steps[i]);
    std::vector<Value> copies(in.op.out.size());
    std::vector<Value*> frame(run_.frame(), run_.frame() + plan_.slots.size());
    for (size_t k = 0; k < copies.size(); ++k) {
      const uint32_t slot = in.op.out[k];
      if (slot == kNoSlot || !run_.value(slot).initialized()) continue;
      const Tensor& t = run_.value(slot).tensor();
      Tensor copy(t.dtype(), t.shape(), services().allocator->Allocate(t.bytes()));
      if (Status s = stream.CopyToHost(copy.mutable_raw(), t.raw(), t.bytes(), i + 1); !s.ok())
        return Refused(s, i);
      copies[k] = std::move(copy);
      frame[slot] = &copies[k];
    }
    Status status = stream.Synchronize();
    failed_on_device_ = !status.ok();
    if (status.ok()) status = CheckFinite(plan_, in, frame.data());
    return status.At(plan_.Locate(in));
  }

  Status Put(size_t i) {
    const DeviceStep& step = device_plan_.steps[i];
    const Instruction& in = At(i);
    switch (step.kind) {
      case Kind::kCopyIn:
        return CopyIn(i);
      case Kind::kCopyOut:
        return CopyOut(i);
      case Kind::kShare: {
        const uint32_t out = in.op.out[in.takeovers[1]];
        run_.value(out) = run_.value(in.op.in[in.takeovers[0]]).tensor().Reshaped(plan_.slots[out].shape());
        return Status::Ok();
      }
      default:
        return in.mode == Instruction::Mode::kDynamic ? LaunchDynamic(i) : LaunchShaped(i);
    }
  }

  // Memory of the device for a slot that work of the step writes.
  Status Provide(size_t i, uint32_t slot, DType dtype, const Shape& shape) {
    const Slot& planned = plan_.slots[slot];
    if (arena_ && device_plan_.offsets[slot] != DevicePlan::kNoOffset && planned.dtype == dtype &&
        planned.shape() == shape) {
      run_.value(slot) = Tensor(dtype, shape, arena_, device_plan_.offsets[slot]);
      return Status::Ok();
    }
    auto memory =
        device_.memory().Allocate(BytesFor(dtype, shape), &StreamOf(device_plan_.steps[i]));
    if (!memory.ok())
      return ExplainNoMemory(memory.status(), run_, device_, slot, BytesFor(dtype, shape));
    run_.value(slot) = Tensor(dtype, shape, *std::move(memory));
    return Status::Ok();
  }

  void Use(uint32_t slot, Stream& stream) {
    const Value& v = run_.value(slot);
    if (v.is_tensor() && v.tensor().buffer()) CachingAllocator::Use(*v.tensor().buffer().get(), stream);
  }

  Status CopyIn(size_t i) {
    const Instruction& in = At(i);
    const uint32_t from = in.op.in[0], to = in.op.out[0];
    Value& source = run_.value(from);
    if (!source.is_tensor() || !source.initialized()) {
      run_.value(to) = Value();
      return Status::Ok();
    }
    const Tensor t = source.tensor().Contiguous();
    const DeviceStep& step = device_plan_.steps[i];
    const Value& old = run_.value(to);
    const bool fits = !plan_.slots[to].versioned && old.initialized() &&
                      old.tensor().dtype() == t.dtype() && old.tensor().shape() == t.shape();
    if (!fits) HEDDLE_RETURN_IF_ERROR(Provide(i, to, t.dtype(), t.shape()));
    Use(to, StreamOf(step));
    run_.value(to).tensor().set_lod(t.lod());
    held_.push_back(Pinned(t, !plan_.slots[from].versioned));  // the stream reads it later
    return StreamOf(step).CopyToDevice(run_.value(to).tensor().mutable_raw(), held_.back().raw(),
                                       t.bytes(), i + 1);
  }

  // In memory from which copies need no detour, where there is some. `changes`: the host may write to
  // the tensor before the copy is done.
  Tensor Pinned(const Tensor& t, bool changes) {
    PinnedPool& pool = device_.pinned();
    if (t.bytes() == 0 || (!changes && pool.Holds(t.raw(), t.bytes()))) return t;
    BufferRef memory = pool.Allocate(t.bytes());
    if (!memory && !changes) return t;
    if (!memory) memory = services().allocator->Allocate(t.bytes());
    std::memcpy(memory->data(), t.raw(), t.bytes());
    return Tensor(t.dtype(), t.shape(), std::move(memory));
  }

  Status CopyOut(size_t i) {
    const Instruction& in = At(i);
    const uint32_t from = in.op.in[0], to = in.op.out[0];
    const Value& source = run_.value(from);
    Value& target = run_.value(to);
    if (!source.is_tensor() || !source.initialized()) {
      target = Value();
      return Status::Ok();
    }
    const Tensor& t = source.tensor();
    const DeviceStep& step = device_plan_.steps[i];
    // A variable of the scope keeps its memory, as it does when an operator of the host updates it.
    const bool fits = plan_.slots[to].storage == Storage::kScope && target.is_tensor() &&
                      target.initialized() && target.tensor().dtype() == t.dtype() &&
                      target.tensor().shape() == t.shape() && target.tensor().is_contiguous();
    if (!fits) {
      BufferRef memory = device_.pinned().Allocate(t.bytes());
      if (!memory) memory = services().allocator->Allocate(t.bytes());
      target = Tensor(t.dtype(), t.shape(), std::move(memory));
      if (const auto byte = device_.device().scrub(); byte && t.bytes() > 0)
        std::memset(target.tensor().mutable_raw(), *byte, t.bytes());
    }
    target.tensor().set_lod(t.lod());
    Use(from, StreamOf(step));
    return StreamOf(step).CopyToHost(target.tensor().mutable_raw(), t.raw(), t.bytes(), i + 1);
  }

  Status LaunchShaped(size_t i) {
    const Instruction& in = At(i);
    for (uint32_t s : in.op.out) {
      if (s == kNoSlot || IsInput(in, s)) continue;
      HEDDLE_RETURN_IF_ERROR(Provide(i, s, plan_.slots[s].dtype, plan_.slots[s].shape()));
    }
    return Launch(i, in.fn, in.state, nullptr);
  }

  static bool IsInput(const Instruction& in, uint32_t slot) {
    return std::find(in.op.in.begin(), in.op.in.end(), slot) != in.op.in.end();
  }

  // The inputs' contents, on the host.
  Status FetchOperands(const DeviceStep& step, std::vector<Value>* values) {
    for (uint32_t k : step.call.in) {
      if (k == kNoSlot || (*values)[k].initialized()) continue;
      const Value& v = run_.value(step.operands[k]);
      if (!v.is_tensor() || !v.initialized()) continue;
      const Tensor& t = v.tensor();
      Tensor copy(t.dtype(), t.shape(), services().allocator->Allocate(t.bytes()));
      copy.set_lod(t.lod());
      HEDDLE_RETURN_IF_ERROR(StreamOf(step).CopyToHost(copy.mutable_raw(), t.raw(), t.bytes(), 0));
      (*values)[k] = std::move(copy);
    }
    return StreamOf(step).Synchronize();
  }

  // Shapes are inferred now. Sequence offsets are known when the kernel is done, so the host waits.
  Status LaunchDynamic(size_t i) {
    const Instruction& in = At(i);
    const DeviceStep& step = device_plan_.steps[i];
    const OpDef& def = *step.call.def;
    std::vector<Value> values;
    std::vector<bool> constant;
    for (size_t k = 0; k < step.operands.size(); ++k) {
      const bool host = step.host[k] != kNoSlot;
      values.push_back(host ? run_.value(step.host[k]) : ShapeOf(run_.value(step.operands[k])));
      constant.push_back(host && plan_.constant[step.host[k]]);
    }
    std::vector<Value*> frame;
    for (Value& v : values) frame.push_back(&v);
    std::optional<ShapeContext> shapes(std::in_place, step.call, frame.data());
    HEDDLE_RETURN_IF_ERROR(def.infer_shape()(*shapes));
    if (shapes->deferred()) {  // it looks at values that its definition does not name
      HEDDLE_RETURN_IF_ERROR(FetchOperands(step, &values));
      shapes.emplace(step.call, frame.data());
      HEDDLE_RETURN_IF_ERROR(def.infer_shape()(*shapes));
    }
    const auto& outs = shapes->outs();
    for (size_t k = 0; k < outs.size(); ++k) {
      const uint32_t slot = in.op.out[k];
      if (!outs[k].set || slot == kNoSlot) continue;
      HEDDLE_RETURN_IF_ERROR(Provide(i, slot, outs[k].dtype, outs[k].shape));
      if (outs[k].has_lod) run_.value(slot).tensor().set_lod(outs[k].lod);
      values[step.call.out[k]] = ShapeOf(run_.value(slot));
    }
    KernelFn fn = in.fn;
    if (fn == nullptr) HEDDLE_RETURN_IF_ERROR(SelectKernel(step.call, frame.data(), &fn));
    std::shared_ptr<const KernelState> state;
    if (def.prepare() != nullptr) {
      auto kept = in.states->Get(step.call, frame.data(), services(), &constant);
      if (!kept.ok()) return kept.status();
      state = *std::move(kept);
      states_.push_back(state);
    }
    HEDDLE_RETURN_IF_ERROR(Launch(i, fn, state.get(), [this, &step](size_t k, const LoD& lod) {
      run_.value(step.operands[k]).tensor().set_lod(lod);
    }));
    Event& done = *run_.device_run()->done;
    HEDDLE_RETURN_IF_ERROR(StreamOf(step).Record(done));
    Status status = done.Wait();
    failed_on_device_ = !status.ok();
    return status;
  }

  Status Launch(size_t i, KernelFn fn, const KernelState* state,
                std::function<void(size_t, const LoD&)> offsets) {
    const DeviceStep& step = device_plan_.steps[i];
    KernelCall call;
    call.op = &step.call;
    call.state = state;
    call.services = &services();
    call.offsets = std::move(offsets);
    for (uint32_t s : step.operands) {
      Use(s, StreamOf(step));
      call.operands.push_back(Detached(run_.value(s)));
    }
    call.host_kernel = [fn, &arena = kernels_](KernelContext& ctx) {
      Status status;
      arena.Execute([&] { status = fn(ctx); });
      return status;
    };
    return StreamOf(step).Launch(std::move(call), i + 1);
  }

  // What the instruction was the last to use. Memory of the device goes back in the order of streams;
  // that of the host is held where a stream reads it.
  Status Release(const Instruction& in) {
    for (uint32_t slot : in.release) run_.value(slot) = Value();
    return Status::Ok();
  }

  // Waits for all streams and takes their failures; the first one of all is the run's, unless it ended
  // for another reason.
  Status Drain(Status status) {
    std::optional<StreamError> first;
    uint32_t lane = 0;
    Status refused;
    for (uint32_t k = 0; k < set_->streams.size(); ++k) {
      Status s = set_->streams[k]->Synchronize();
      auto error = set_->streams[k]->TakeError();
      if (!error && !s.ok() && refused.ok()) refused = std::move(s);
      if (!error || (first && first->order <= error->order)) continue;
      first = std::move(error);
      lane = k + 1;
    }
    if (!status.ok() && !failed_on_device_) return status;
    if (!first) return status.ok() && !refused.ok() ? Explain(refused) : status;
    // A stream that waited for the failed one carries its failure; the step says where it happened.
    if (first->tag != 0) lane = device_plan_.steps[first->tag - 1].lane;
    const Status told = Explain(first->status, lane);
    return first->tag == 0 ? told : told.At(plan_.Locate(At(first->tag - 1)));
  }

  Status Explain(const Status& s, uint32_t lane = 0) const {
    return ExplainFailure(s, device_.device(), device_plan_, lane);
  }

  // The device did not take the step, or the host could not make it ready.
  Status Refused(const Status& s, size_t i) {
    return Explain(s, device_plan_.steps[i].lane).At(plan_.Locate(At(i)));
  }

  const std::string& NameOf(uint32_t slot) const {
    return plan_.program->vars[plan_.slots[slot].var].name;
  }

  RunState& run_;
  const Plan& plan_;
  const DevicePlan& device_plan_;
  DeviceRuntime& device_;
  KernelArena& host_;
  KernelArena& kernels_;
  std::unique_ptr<StreamSet> set_;
  BufferRef arena_;           // none: temporaries are allocated one by one
  DeviceTimes times_;         // of a run that is traced
  std::vector<Tensor> held_;  // memory of the host that streams read
  std::vector<std::shared_ptr<const KernelState>> states_;
  bool failed_on_device_ = false;
};

}  // namespace

bool DeviceInterpreter::Replayed(RunState& run) {
  return run.device_run() != nullptr && run.device_run()->replayed;
}

Status DeviceInterpreter::Run(RunState& run, DeviceRuntime& device, KernelArena& host,
                              KernelArena& streams) {
  return DeviceRunner(run, device, host, streams).Run();
}

}  // namespace heddle
