#include "executor/device_interpreter.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/kernel_selector.h"
#include "executor/check_finite.h"
#include "executor/device_plan.h"
#include "executor/interpreter.h"

namespace heddle {

// What a RunState keeps for its runs.
struct DeviceRun {
  std::vector<std::unique_ptr<Event>> events;  // of the plan
  std::unique_ptr<Event> done;                 // of a call that the host waits for
};

namespace {

using Kind = DeviceStep::Kind;

// A parameter's copy on the device, shared by all plans of the program.
struct ResidentCopy {
  Tensor tensor;
  Status status;  // when there is none
};

// The tensor without its hold on the memory, which the host keeps until the device may have it back.
Value Detached(const Value& v) {
  if (!v.is_tensor() || !v.initialized()) return Value();
  const Tensor& t = v.tensor();
  Tensor bare;
  bare.SetMeta(t.dtype(), t.shape());
  bare.Bind(const_cast<void*>(t.raw()));
  if (t.has_lod()) bare.set_lod(t.lod());
  return Value(std::move(bare));
}

// Dtype, shape and sequence offsets, as if the contents were not known.
Value ShapeOf(const Value& v) {
  if (!v.is_tensor() || !v.initialized()) return Value();
  Tensor bare;
  bare.SetMeta(v.tensor().dtype(), v.tensor().shape());
  if (v.tensor().has_lod()) bare.set_lod(v.tensor().lod());
  return Value(std::move(bare));
}

class DeviceRunner {
 public:
  DeviceRunner(RunState& run, DeviceRuntime& device, KernelArena& host, KernelArena& streams)
      : run_(run), plan_(run.plan()), device_plan_(*run.plan().device), device_(device),
        host_(host), kernels_(streams), services_(run.services()) {
    services_.intra = &streams.intra();
  }

  Status Run() {
    auto set = device_.Acquire();
    if (!set.ok()) return Explain(set.status());
    set_ = *std::move(set);
    Status status;
    try {
      status = Prepare();
      if (status.ok()) status = Dispatch();
    } catch (const std::bad_alloc& e) {  // memory of the host
      status = ResourceExhausted(e.what());
    } catch (const std::exception& e) {
      status = Internal("a step could not be dispatched: ", e.what());
    }
    status = Drain(std::move(status));
    held_.clear();
    // What the device has is released while its streams are still this run's.
    for (uint32_t s : plan_.run_slots)
      if (plan_.slots[s].place != 0) run_.value(s) = Value();
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
        auto event = device_.device().NewEvent();
        if (!event.ok()) return Explain(event.status());
        made->events.push_back(*std::move(event));
      }
      auto event = device_.device().NewEvent();
      if (!event.ok()) return Explain(event.status());
      made->done = *std::move(event);
      kept = std::move(made);
    }
    for (const auto& [host, device] : device_plan_.resident)
      if (!run_.value(device).initialized())
        if (Status s = Upload(host, device); !s.ok())
          return Status(s.code(), StrCat("while '", NameOf(host),
                                         "' was copied to the device: ", s.message()));
    return Status::Ok();
  }

  Status Upload(uint32_t host, uint32_t device) {
    const Value& from = run_.value(host);
    if (!from.is_tensor() || !from.initialized()) return Status::Ok();
    const Tensor& t = from.tensor();
    if (t.buffer()) {
      // Other executors of the program may have other devices.
      const std::string key =
          StrCat("device ", reinterpret_cast<uintptr_t>(&device_.device()), " ", Name(t.dtype()), " ",
                 t.shape().ToString());
      const auto copy =
          services_.packs->Get<ResidentCopy>(t, key, [&] { return Copy(t).release(); });
      if (copy->status.ok()) run_.value(device) = copy->tensor.Reshaped(t.shape());
      // A failure is not for ever, so it is not kept either.
      if (copy->status.ok()) return Status::Ok();
    }
    const auto copy = Copy(t);
    if (copy->status.ok()) run_.value(device) = std::move(copy->tensor);
    return copy->status;
  }

  std::unique_ptr<ResidentCopy> Copy(const Tensor& t) {
    auto copy = std::make_unique<ResidentCopy>();
    auto memory = device_.memory().Allocate(t.bytes(), nullptr);
    if (!memory.ok()) {
      copy->status = memory.status();
      return copy;
    }
    Stream& stream = *set_->streams[device_plan_.compute_streams];
    Tensor made(t.dtype(), t.shape(), *std::move(memory));
    if (t.has_lod()) made.set_lod(t.lod());
    copy->status = stream.CopyToDevice(made.mutable_raw(), t.raw(), t.bytes(), 0);
    if (Status s = stream.Synchronize(); copy->status.ok()) copy->status = std::move(s);
    if (copy->status.ok()) copy->tensor = std::move(made);
    return copy;
  }

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
        if (Status s = events[device_plan_.waits[w]]->Wait(); !s.ok()) {
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
      if (Status s = StreamOf(step).WaitFor(*events[device_plan_.waits[w]]); !s.ok())
        return Refused(s, i);
    if (Status s = Put(i); !s.ok()) return Refused(s, i);
    if (run_.control().checks_values() && step.kind == Kind::kLaunch)
      HEDDLE_RETURN_IF_ERROR(CheckValues(i));
    if (step.record != DeviceStep::kNone)
      if (Status s = StreamOf(step).Record(*events[step.record]); !s.ok()) return Refused(s, i);
    return Release(in);
  }

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
      Tensor copy(t.dtype(), t.shape(), services_.allocator->Allocate(t.bytes()));
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
    auto memory =
        device_.memory().Allocate(BytesFor(dtype, shape), &StreamOf(device_plan_.steps[i]));
    if (!memory.ok()) return OutOfMemory(memory.status(), slot, BytesFor(dtype, shape));
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
    held_.push_back(t);  // the stream reads it later
    return StreamOf(step).CopyToDevice(run_.value(to).tensor().mutable_raw(), t.raw(), t.bytes(),
                                       i + 1);
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
      target = Tensor(t.dtype(), t.shape(), services_.allocator->Allocate(t.bytes()));
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
      Tensor copy(t.dtype(), t.shape(), services_.allocator->Allocate(t.bytes()));
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
      auto kept = in.states->Get(step.call, frame.data(), services_, &constant);
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
    call.services = &services_;
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

  std::string LaneName(uint32_t lane) const {
    const uint32_t compute = device_plan_.compute_streams;
    if (lane <= compute) return StrCat("compute stream ", lane - 1);
    return lane == compute + 1 ? "the stream of copies in" : "the stream of copies out";
  }

  // The device's own words, with what is left of it.
  Status Explain(const Status& s, uint32_t lane = 0) const {
    std::string where = StrCat("on device '", device_.device().name(), "'");
    if (lane != 0) where += StrCat(", ", LaneName(lane));
    return Status(s.code(),
                  StrCat(where, ": ", s.message(),
                         device_.device().lost()
                             ? "; the executor can run nothing more on this device"
                             : "; the executor stays usable"));
  }

  // The device did not take the step, or the host could not make it ready.
  Status Refused(const Status& s, size_t i) {
    return Explain(s, device_plan_.steps[i].lane).At(plan_.Locate(At(i)));
  }

  const std::string& NameOf(uint32_t slot) const {
    return plan_.program->vars[plan_.slots[slot].var].name;
  }

  Status OutOfMemory(const Status& s, uint32_t slot, size_t bytes) {
    if (s.code() != StatusCode::kResourceExhausted) return s;
    std::vector<std::pair<size_t, uint32_t>> holders;
    for (uint32_t k = 0; k < plan_.slots.size(); ++k) {
      const Value& v = run_.value(k);
      if (plan_.slots[k].place != 0 && v.is_tensor() && v.tensor().buffer())
        holders.emplace_back(v.tensor().buffer()->bytes(), k);
    }
    constexpr size_t kNamed = 3;
    const size_t named = std::min(kNamed, holders.size());
    std::partial_sort(holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(named),
                      holders.end(), std::greater<>());
    std::string text = StrCat("no memory for '", NameOf(slot), "': ", bytes, " bytes are asked for, ",
                              device_.memory().bytes_in_use(), " are held");
    for (size_t k = 0; k < named; ++k)
      text += StrCat(k == 0 ? ", most of it by '" : ", '", NameOf(holders[k].second), "' (",
                     holders[k].first, ")");
    return ResourceExhausted(text, ": ", s.message());
  }

  RunState& run_;
  const Plan& plan_;
  const DevicePlan& device_plan_;
  DeviceRuntime& device_;
  KernelArena& host_;
  KernelArena& kernels_;
  Services services_;  // of kernels on streams
  std::unique_ptr<StreamSet> set_;
  std::vector<Tensor> held_;  // memory of the host that streams read
  std::vector<std::shared_ptr<const KernelState>> states_;
  bool failed_on_device_ = false;
};

}  // namespace

Status DeviceInterpreter::Run(RunState& run, DeviceRuntime& device, KernelArena& host,
                              KernelArena& streams) {
  return DeviceRunner(run, device, host, streams).Run();
}

}  // namespace heddle
