#include "executor/device/device_session.h"

#include <optional>
#include <utility>

#include "core/error.h"
#include "executor/device/resident_copy.h"

namespace heddle {

Status DeviceSession::Open() {
  auto set = device.Acquire(device_plan.priorities, device_plan.copy_in_streams);
  if (!set.ok()) return Explain(set.status());
  set_ = *std::move(set);
  return Status::Ok();
}

Status DeviceSession::Prepare() {
  if (run.device_run() == nullptr) HEDDLE_RETURN_IF_ERROR(MakeKept());
  kept().services = run.services();
  kept().services.intra = &kernels.intra();
  kept().replayed = false;
  HEDDLE_RETURN_IF_ERROR(TakeArena());
  for (const auto& [from, to] : device_plan.resident) {
    if (run.value(to).initialized()) continue;
    if (Status s = Upload(from, to); !s.ok())
      return Status(s.code(), StrCat("while '", plan.program->vars[plan.slots[from].var].name,
                                     "' was copied to the device: ", s.message()));
  }
  return Status::Ok();
}

Status DeviceSession::MakeKept() {
  auto made = std::make_shared<DeviceRun>();
  for (uint32_t k = 0; k < device_plan.events; ++k) {
    auto event = device.device().NewEvent(false);
    if (!event.ok()) return Explain(event.status());
    made->events.push_back(*std::move(event));
  }
  auto event = device.device().NewEvent(false);
  if (!event.ok()) return Explain(event.status());
  made->done = *std::move(event);
  run.device_run() = std::move(made);
  return Status::Ok();
}

Status DeviceSession::TakeArena() {
  if (device_plan.arena_bytes == 0) return Status::Ok();
  BufferRef& held = set_->arena;
  if (!held || held->bytes() < device_plan.arena_bytes) {
    held.reset();
    auto made = device.memory().Allocate(device_plan.arena_bytes, nullptr);
    if (!made.ok())
      return made.status().code() == StatusCode::kResourceExhausted ? Status::Ok()
                                                                    : Explain(made.status());
    held = *std::move(made);
  }
  arena = held;
  const auto byte = device.device().scrub();
  if (!byte) return Status::Ok();
  Stream& first = stream(0);
  Status status = first.Fill(held->data(), *byte, device_plan.arena_bytes, 0);
  if (status.ok()) status = first.Synchronize();
  return status.ok() ? status : Explain(status);
}

Status DeviceSession::Upload(uint32_t from, uint32_t to) {
  const Value& value = run.value(from);
  if (!value.is_tensor() || !value.initialized()) return Status::Ok();
  HEDDLE_ASSIGN_OR_RETURN(
      run.value(to),
      CopyToStay(value.tensor(), device, stream(device_plan.compute_streams), services().packs));
  return Status::Ok();
}

Event& DeviceSession::EventOf(uint32_t event) {
  // The order matters: tasks that wait for no captured kernel may ask while kernels are captured.
  const bool captured =
      !device_plan.phases.empty() &&
      device_plan.phases[device_plan.recorder[event]] == DevicePlan::Phase::kCaptured &&
      kept().replayed;
  return captured ? *kept().borders[0] : *kept().events[event];
}

Status DeviceSession::Drain(Status status) {
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
  if (!status.ok() && !failed_on_device) return status;
  if (!first) return status.ok() && !refused.ok() ? Explain(refused) : status;
  // A stream that waited for the failed one carries its failure; the step says where it happened.
  if (first->tag != 0) lane = device_plan.steps[first->tag - 1].lane;
  const Status told = Explain(first->status, lane);
  return first->tag == 0 ? told : told.At(plan.Locate(At(first->tag - 1)));
}

void DeviceSession::Close() {
  // Device memory is released while the streams still belong to this run.
  for (uint32_t s : plan.run_slots)
    if (plan.slots[s].place != 0) run.value(s) = Value();
  arena.reset();
  device.Release(std::move(set_));
}

}  // namespace heddle
