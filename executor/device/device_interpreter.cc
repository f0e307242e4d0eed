#include "executor/device/device_interpreter.h"

#include "core/error.h"
#include "executor/device/device_runner.h"
#include "executor/plan/resident_copy.h"
#include "executor/run/interpreter.h"

namespace heddle {

Status DeviceRunner::Run() {
  auto set = device_.Acquire(device_plan_.priorities, device_plan_.copy_in_streams);
  if (!set.ok()) return Explain(set.status());
  set_ = *std::move(set);
  Status status;
  try {
    status = Prepare();
    if (status.ok()) status = device_plan_.tasks.empty() ? Dispatch() : DispatchWithTasks();
  } catch (const std::bad_alloc& e) {  // memory of the host
    status = ResourceExhausted(e.what());
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

Status DeviceRunner::Prepare() {
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
        return Status(s.code(),
                      StrCat("while '", NameOf(host), "' was copied to the device: ", s.message()));
  return Status::Ok();
}

Status DeviceRunner::TakeArena() {
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

Status DeviceRunner::Upload(uint32_t host, uint32_t device) {
  const Value& from = run_.value(host);
  if (!from.is_tensor() || !from.initialized()) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(
      run_.value(device),
      CopyToStay(from.tensor(), device_, *set_->streams[device_plan_.compute_streams],
                 services().packs));
  return Status::Ok();
}

Status DeviceRunner::Dispatch() {
  try {
    if (CanReplay()) return DispatchWithGraph();
    for (size_t i = 0; i < device_plan_.steps.size(); ++i) {
      Status s = Step(i);
      if (!s.ok()) [[unlikely]]
        return s;
    }
    return Status::Ok();
  } catch (const std::bad_alloc& e) {  // memory of the host
    return ResourceExhausted(e.what());
  } catch (const std::exception& e) {
    return Internal("a step could not be dispatched: ", e.what());
  }
}

Status DeviceRunner::Step(size_t i) {
  const DeviceStep& step = device_plan_.steps[i];
  if (step.kind == Kind::kTask) {
    tasks_->HandOver(step.task);
    return Status::Ok();
  }
  if (step.lane == 0) return HostStep(i);
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
    if (Status s = StreamOf(step).Record(*run_.device_run()->events[step.record]); !s.ok())
      return Refused(s, i);
  return Release(At(i));
}

Status DeviceRunner::HostStep(size_t i) {
  if (Status s = AwaitEvents(i); !s.ok()) {
    failed_on_device_ = true;
    return s;
  }
  const Instruction& in = At(i);
  if (device_plan_.steps[i].kind == Kind::kAwait) return Release(in);
  Status status;
  host_.Execute([&] { status = Interpreter::RunOne(in, run_, participant_); });
  return status;
}

Status DeviceRunner::AwaitEvents(size_t i) {
  const DeviceStep& step = device_plan_.steps[i];
  for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
    if (Status s = EventOf(device_plan_.waits[w]).Wait(); !s.ok())
      return Explain(s).At(plan_.Locate(At(i)));
  return Status::Ok();
}

Event& DeviceRunner::EventOf(uint32_t event) {
  DeviceRun& kept = *run_.device_run();
  // The order matters: tasks that wait for no captured kernel may ask while kernels are captured.
  const bool captured = !device_plan_.phases.empty() &&
                        device_plan_.phases[device_plan_.recorder[event]] == Phase::kCaptured &&
                        kept.replayed;
  return captured ? *kept.borders[0] : *kept.events[event];
}

Status DeviceRunner::Release(const Instruction& in) {
  for (uint32_t slot : in.release) run_.value(slot) = Value();
  for (uint32_t slot : in.reads) run_.CountRead(slot);
  return Status::Ok();
}

Status DeviceRunner::Drain(Status status) {
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

bool DeviceInterpreter::Replayed(RunState& run) {
  return run.device_run() != nullptr && run.device_run()->replayed;
}

Status DeviceInterpreter::Run(RunState& run, DeviceRuntime& device, HostPool* pool,
                              KernelArena& host, KernelArena& streams) {
  return DeviceRunner(run, device, pool, host, streams).Run();
}

}  // namespace heddle
