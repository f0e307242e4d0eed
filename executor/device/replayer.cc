#include "executor/device/replayer.h"

#include <utility>

#include "core/guard.h"
#include "executor/run/bare_value.h"

namespace heddle {

using Kind = DeviceStep::Kind;
using Phase = DevicePlan::Phase;

bool Replayer::CanReplay(bool again) const {
  return again && section_.captured && session_.devices[0]->capture() && !kept_.refused &&
         session_.arenas[0] && !session_.run.control().attention();
}

Status Replayer::ReplayKernels(bool* replayed) {
  kept_.replayed = false;
  if (kept_.graph == nullptr || !Holds()) {
    kept_.graph.reset();
    kept_.arena = session_.arenas[0]->data();
    FindInputs();
    if (Status s = Capture(); !s.ok()) {
      // Not an error: the kernels run without capture, and then the device reports what is wrong,
      // if anything is.
      kept_.refused = s.code() == StatusCode::kUnimplemented;
      kept_.graph.reset();
      return Status::Ok();
    }
  }
  if (Status s = Replay(); !s.ok()) return session_.ExplainOf(0, s);
  kept_.replayed = *replayed = true;
  for (const auto& [slot, value] : kept_.results) session_.run.value(slot) = value;
  return Status::Ok();
}

const void* Replayer::AddressOf(uint32_t slot) {
  const Value& v = session_.run.value(slot);
  return v.is_tensor() && v.initialized() ? v.tensor().raw() : nullptr;
}

bool Replayer::Holds() {
  if (kept_.arena != session_.arenas[0]->data()) return false;
  for (const auto& [slot, address] : kept_.inputs)
    if (AddressOf(slot) != address) return false;
  return true;
}

void Replayer::FindInputs() {
  std::vector<bool> seen(session_.plan.slots.size(), false);
  kept_.inputs.clear();
  for (size_t i = section_.begin; i < section_.end; ++i) {
    if (session_.device_plan.phases[i] != Phase::kCaptured) continue;
    for (uint32_t s : session_.At(i).op.in) {
      if (s == kNoSlot || seen[s] || session_.plan.slots[s].place == 0) continue;
      seen[s] = true;
      kept_.inputs.emplace_back(s, AddressOf(s));
    }
    for (uint32_t s : session_.At(i).op.out)
      if (s != kNoSlot) seen[s] = true;
  }
}

Status Replayer::Capture() {
  DeviceRun& kept = session_.kept();
  while (kept.borders.size() < session_.device_plan.streams) {
    HEDDLE_ASSIGN_OR_RETURN(auto event, session_.devices[0]->device().NewEvent(false));
    kept.borders.push_back(std::move(event));
  }
  Stream& origin = session_.stream(0);
  HEDDLE_RETURN_IF_ERROR(origin.BeginCapture());
  Status status = Guard([&] { return PutCaptured(); });
  auto graph = origin.EndCapture();
  if (status.ok()) status = graph.status();
  if (!status.ok()) return status;
  kept_.graph = *std::move(graph);
  kept_.results.clear();
  for (size_t i = section_.begin; i < section_.end; ++i) {
    if (session_.device_plan.phases[i] != Phase::kCaptured) continue;
    for (uint32_t s : session_.At(i).op.out)
      if (s != kNoSlot && session_.plan.slots[s].place != 0)
        kept_.results.emplace_back(s, Detached(session_.run.value(s)));
  }
  return Status::Ok();
}

Status Replayer::PutCaptured() {
  DeviceRun& kept = session_.kept();
  Stream& origin = session_.stream(0);
  HEDDLE_RETURN_IF_ERROR(origin.Record(*kept.borders[0]));
  for (uint32_t stream = 2; stream <= session_.device_plan.compute_streams; ++stream)
    HEDDLE_RETURN_IF_ERROR(session_.stream(stream - 1).WaitFor(*kept.borders[0]));
  for (size_t i = section_.begin; i < section_.end; ++i) {
    if (session_.device_plan.phases[i] != Phase::kCaptured) continue;
    const DeviceStep& step = session_.StepAt(i);
    for (uint32_t w = step.wait_begin; w < step.wait_end; ++w) {
      const uint32_t event = session_.device_plan.waits[w];
      const uint32_t recorder = session_.device_plan.recorder[event];
      if (session_.device_plan.phases[recorder] == Phase::kCaptured)
        HEDDLE_RETURN_IF_ERROR(session_.StreamOf(step).WaitFor(*kept.events[event]));
    }
    HEDDLE_RETURN_IF_ERROR(launcher_.Put(i));
    for (uint32_t s : session_.At(i).op.out)
      if (s != kNoSlot && !InPlace(s)) return Unimplemented("memory outside of the block");
    if (step.record != DeviceStep::kNone)
      HEDDLE_RETURN_IF_ERROR(session_.StreamOf(step).Record(*kept.events[step.record]));
  }
  for (uint32_t stream = 2; stream <= session_.device_plan.compute_streams; ++stream) {
    HEDDLE_RETURN_IF_ERROR(session_.stream(stream - 1).Record(*kept.borders[stream]));
    HEDDLE_RETURN_IF_ERROR(origin.WaitFor(*kept.borders[stream]));
  }
  return Status::Ok();
}

bool Replayer::InPlace(uint32_t slot) {
  const Value& v = session_.run.value(slot);
  return !v.is_tensor() || !v.initialized() || v.tensor().bytes() == 0 ||
         v.tensor().buffer().get() == session_.arenas[0].get();
}

Status Replayer::Replay() {
  DeviceRun& kept = session_.kept();
  Stream& origin = session_.stream(0);
  for (uint32_t stream = session_.device_plan.compute_streams + 1;
       stream < session_.device_plan.streams; ++stream) {
    HEDDLE_RETURN_IF_ERROR(session_.stream(stream - 1).Record(*kept.borders[stream]));
    HEDDLE_RETURN_IF_ERROR(origin.WaitFor(*kept.borders[stream]));
  }
  HEDDLE_RETURN_IF_ERROR(origin.Replay(*kept_.graph));
  return origin.Record(*kept.borders[0]);
}

}  // namespace heddle
