#include "executor/device/device_session.h"

#include <optional>
#include <utility>

#include "core/error.h"
#include "executor/device/resident_copy.h"

namespace heddle {

Status DeviceSession::Open() {
  for (uint32_t k = 0; k < sets_.size(); ++k) {
    auto set = devices[k]->Acquire(device_plan.priorities, device_plan.copy_in_streams);
    if (!set.ok()) {
      Close();
      return ExplainOf(k, set.status());
    }
    sets_[k] = *std::move(set);
  }
  return Status::Ok();
}

Status DeviceSession::Prepare() {
  if (run.device_run() == nullptr) HEDDLE_RETURN_IF_ERROR(MakeKept());
  kept().services = run.services();
  kept().services.intra = &kernels.intra();
  for (CapturedSection& section : kept().captured) section.replayed = false;
  for (DeviceTokens& tokens : kept().tokens) tokens.Begin();
  for (uint32_t k = 0; k < device_plan.devices; ++k) HEDDLE_RETURN_IF_ERROR(TakeArena(k));
  for (const auto& [from, to] : device_plan.resident) {
    if (run.value(to).initialized()) continue;
    if (Status s = Upload(from, to); !s.ok())
      return ExplainOf(
          plan.slots[to].place - 1u,
          Status(s.code(), StrCat("while '", plan.program->vars[plan.slots[from].var].name,
                                  "' was copied to the device: ", s.message())));
  }
  return Status::Ok();
}

Status DeviceSession::MakeKept() {
  auto made = std::make_shared<DeviceRun>();
  for (uint32_t k = 0; k < device_plan.events; ++k) {
    const uint32_t device = device_plan.DeviceOf(StepAt(device_plan.recorder[k]).stream);
    auto event = devices[device]->device().NewEvent(false);
    if (!event.ok()) return ExplainOf(device, event.status());
    made->events.push_back(*std::move(event));
  }
  for (uint32_t k = 0; k < device_plan.devices; ++k) {
    auto event = devices[k]->device().NewEvent(false);
    if (!event.ok()) return ExplainOf(k, event.status());
    made->done.push_back(*std::move(event));
  }
  for (uint32_t k = 0; k < device_plan.devices; ++k)
    made->tokens.emplace_back(plan, static_cast<uint8_t>(k + 1), *devices[k]);
  made->captured.resize(device_plan.sections.size());
  made->turns.resize(device_plan.sections.size());
  for (size_t b = 1; b < made->turns.size(); ++b) {
    if (!device_plan.Runs(static_cast<int>(b))) continue;
    for (std::unique_ptr<Event>& turn : made->turns[b]) {
      auto event = devices[0]->device().NewEvent(false);
      if (!event.ok()) return ExplainOf(0, event.status());
      turn = *std::move(event);
    }
  }
  run.device_run() = std::move(made);
  return Status::Ok();
}

Status DeviceSession::TakeArena(uint32_t k) {
  const size_t bytes = device_plan.arena_bytes[k];
  if (bytes == 0) return Status::Ok();
  BufferRef& held = sets_[k]->arena;
  if (!held || held->bytes() < bytes) {
    held.reset();
    auto made = devices[k]->memory().Allocate(bytes, nullptr);
    if (!made.ok())
      return made.status().code() == StatusCode::kResourceExhausted ? Status::Ok()
                                                                    : ExplainOf(k, made.status());
    held = *std::move(made);
  }
  arenas[k] = held;
  const auto byte = devices[k]->device().scrub();
  if (!byte) return Status::Ok();
  Stream& first = *sets_[k]->streams[0];
  Status status = first.Fill(held->data(), *byte, bytes, 0);
  if (status.ok()) status = first.Synchronize();
  return status.ok() ? status : ExplainOf(k, status);
}

Status DeviceSession::Upload(uint32_t from, uint32_t to) {
  const Value& value = run.value(from);
  if (!value.is_tensor() || !value.initialized()) return Status::Ok();
  const auto k = static_cast<uint32_t>(plan.slots[to].place - 1);
  Stream& copies = *sets_[k]->streams[device_plan.compute_streams];
  HEDDLE_ASSIGN_OR_RETURN(run.value(to),
                          CopyToStay(value.tensor(), *devices[k], copies, services().packs));
  return Status::Ok();
}

Event& DeviceSession::EventOf(uint32_t event) {
  // The order of the conditions matters: a task may ask while kernels are being captured, and must
  // not read `replayed` then.
  const uint32_t recorder = device_plan.recorder[event], block = StepAt(recorder).block;
  const bool captured = device_plan.sections[block].captured &&
                        device_plan.phases[recorder] == DevicePlan::Phase::kCaptured &&
                        kept().captured[block].replayed;
  return captured ? *kept().borders[0] : *kept().events[event];
}

Status DeviceSession::Drain(Status status, bool on_device) {
  std::optional<StreamError> first;
  uint32_t failed = 0;
  Status refused;
  for (uint32_t k = 0; k + 1 < device_plan.streams; ++k) {
    Status s = stream(k).Synchronize();
    auto error = stream(k).TakeError();
    if (!error && !s.ok() && refused.ok()) refused = Explain(s, k + 1);
    if (!error || (first && first->order <= error->order)) continue;
    first = std::move(error);
    failed = k + 1;
  }
  if (!status.ok() && !on_device) return status;
  if (!first) return status.ok() && !refused.ok() ? refused : status;
  // A stream that waited for the failed one reports its failure; the tag says in which step it
  // happened.
  if (first->tag != 0) failed = device_plan.steps[first->tag - 1].stream;
  const Status told = Explain(first->status, failed);
  return first->tag == 0 ? told : told.At(plan.Locate(At(first->tag - 1)));
}

void DeviceSession::Close() {
  // Device memory is released before the streams are lent to another run.
  for (uint32_t s : plan.run_slots)
    if (plan.slots[s].place != 0) run.value(s) = Value();
  if (run.device_run() != nullptr)
    for (DeviceTokens& tokens : kept().tokens) tokens.End();
  for (uint32_t k = 0; k < sets_.size(); ++k) {
    arenas[k].reset();
    if (sets_[k] != nullptr) devices[k]->Release(std::move(sets_[k]));
  }
}

}  // namespace heddle
