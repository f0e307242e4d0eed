#include "executor/device/step_walker.h"

namespace heddle {

using Kind = DeviceStep::Kind;

StepWalker::StepWalker(DeviceSession& session, Dispatcher& dispatcher, DeviceTasks* tasks,
                       DispatchBoard* board, uint32_t thread)
    : session_(session),
      dispatcher_(dispatcher),
      tasks_(tasks),
      board_(board),
      thread_(thread),
      is_put_off_(session.device_plan.steps.size(), false),
      put_off_of_(session.device_plan.streams, 0) {}

Status StepWalker::Advance(std::optional<DevicePlan::Phase> phase, bool* done) {
  const uint32_t count = session_.device_plan.main().end;
  *done = false;
  uint64_t seen = News();
  if (IsOver()) return Status::Ok();
  HEDDLE_RETURN_IF_ERROR(DispatchPutOff());
  while (next_ < count) {
    if (const uint64_t now = News(); now != seen) {
      seen = now;
      if (IsOver()) return Status::Ok();
      HEDDLE_RETURN_IF_ERROR(DispatchPutOff());
    }
    if (!IsMine(next_) || (phase && session_.device_plan.phases[next_] != *phase)) {
      ++next_;
    } else if (CanDispatch(next_)) {
      HEDDLE_RETURN_IF_ERROR(Dispatch(next_++));
    } else if (HoldsUp(next_)) {
      break;
    } else {
      PutOff(next_++);
    }
  }
  *done = next_ == count && put_off_.empty();
  return Status::Ok();
}

Status StepWalker::Dispatch(size_t i) {
  HEDDLE_RETURN_IF_ERROR(dispatcher_.Step(i));
  if (board_ != nullptr) board_->Done(i);
  return Status::Ok();
}

// Whether the step can be dispatched: nothing that must come before it is deferred, or still to be
// done by another thread.
bool StepWalker::CanDispatch(size_t i) const {
  const DeviceStep& step = session_.StepAt(i);
  const DevicePlan& plan = session_.device_plan;
  if (!IsBehindBarriers(i)) return false;
  if (!put_off_.empty() && step.kind != Kind::kTask && put_off_of_[step.stream] > 0) return false;
  for (uint32_t w = step.wait_begin; w < step.wait_end; ++w) {
    const uint32_t event = plan.waits[w];
    if (board_ != nullptr ? !board_->IsRecorded(event) : is_put_off_[plan.recorder[event]])
      return false;
  }
  // A task need not be checked: it waits for other tasks itself.
  return step.task_begin == step.task_end || step.kind == Kind::kTask ||
         tasks_->Finished(TasksBefore(i));
}

bool StepWalker::HoldsUp(size_t i) const {
  const DeviceStep& step = session_.StepAt(i);
  return !IsBehindBarriers(i) || step.stream == 0 ||
         (step.kind == Kind::kLaunch && session_.At(i).mode == Instruction::Mode::kDynamic);
}

void StepWalker::PutOff(uint32_t i) {
  put_off_.push_back(i);
  is_put_off_[i] = true;
  if (const uint32_t stream = session_.StepAt(i).stream; stream < session_.device_plan.streams)
    ++put_off_of_[stream];
}

// Dispatches the deferred steps that need not wait any more.
Status StepWalker::DispatchPutOff() {
  std::vector<uint32_t> steps;
  steps.swap(put_off_);
  for (uint32_t i : steps) {
    is_put_off_[i] = false;
    if (const uint32_t stream = session_.StepAt(i).stream; stream < session_.device_plan.streams)
      --put_off_of_[stream];
  }
  for (uint32_t i : steps) {
    if (!CanDispatch(i))
      PutOff(i);
    else
      HEDDLE_RETURN_IF_ERROR(Dispatch(i));
  }
  return Status::Ok();
}

}  // namespace heddle
