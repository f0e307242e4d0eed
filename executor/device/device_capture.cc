// Runs whose kernels go to the device as one captured piece.
#include "core/guard.h"
#include "executor/device/device_runner.h"
#include "executor/plan/bare_value.h"

namespace heddle {

bool DeviceRunner::CanReplay() const {
  const DeviceRun& kept = *run_.device_run();
  return device_.capture() && kept.ran && !kept.refused && arena_ && !run_.control().attention() &&
         !device_plan_.phases.empty();
}

Status DeviceRunner::DispatchPhase(Phase phase) {
  for (size_t i = 0; i < device_plan_.steps.size(); ++i)
    if (device_plan_.phases[i] == phase) HEDDLE_RETURN_IF_ERROR(Step(i));
  return Status::Ok();
}

Status DeviceRunner::DispatchWithGraph() {
  HEDDLE_RETURN_IF_ERROR(DispatchPhase(Phase::kBefore));
  bool replayed = false;
  HEDDLE_RETURN_IF_ERROR(ReplayKernels(&replayed));
  if (!replayed) HEDDLE_RETURN_IF_ERROR(DispatchPhase(Phase::kCaptured));
  return DispatchPhase(Phase::kAfter);
}

Status DeviceRunner::ReplayKernels(bool* replayed) {
  DeviceRun& kept = *run_.device_run();
  if (auto now = Addresses(); kept.graph == nullptr || now != kept.addresses) {
    kept.graph.reset();
    kept.addresses = std::move(now);
    if (Status s = Capture(); !s.ok()) {
      // As in a run without; the device tells what is wrong with it, if anything is.
      kept.refused = s.code() == StatusCode::kUnimplemented;
      kept.graph.reset();
      return Status::Ok();
    }
  }
  if (Status s = Replay(); !s.ok()) return Explain(s);
  kept.replayed = *replayed = true;
  for (const auto& [slot, value] : kept.results) run_.value(slot) = value;
  return Status::Ok();
}

std::vector<const void*> DeviceRunner::Addresses() {
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

Status DeviceRunner::Capture() {
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
      if (s != kNoSlot && plan_.slots[s].place != 0)
        kept.results.emplace_back(s, Detached(run_.value(s)));
  }
  return Status::Ok();
}

Status DeviceRunner::PutCaptured() {
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

bool DeviceRunner::InPlace(uint32_t slot) {
  const Value& v = run_.value(slot);
  return !v.is_tensor() || !v.initialized() || v.tensor().bytes() == 0 ||
         v.tensor().buffer().get() == arena_.get();
}

Status DeviceRunner::Replay() {
  DeviceRun& kept = *run_.device_run();
  Stream& origin = *set_->streams[0];
  for (uint32_t lane = device_plan_.compute_streams + 1; lane < device_plan_.lanes; ++lane) {
    HEDDLE_RETURN_IF_ERROR(set_->streams[lane - 1]->Record(*kept.borders[lane]));
    HEDDLE_RETURN_IF_ERROR(origin.WaitFor(*kept.borders[lane]));
  }
  HEDDLE_RETURN_IF_ERROR(origin.Replay(*kept.graph));
  return origin.Record(*kept.borders[0]);
}

}  // namespace heddle
