#include "executor/device/task_host.h"

#include <utility>

#include "core/guard.h"
#include "executor/run/interpreter.h"

namespace heddle {

using Kind = DeviceStep::Kind;

Status TaskHost::Dispatch() {
  const auto advance = [this](int participant, bool* done) -> DeviceTasks::Error {
    dispatcher_.set_participant(participant);
    Status status = Guard([&] { return Advance(done); });
    return {std::move(status), session_.failed_on_device};
  };
  const auto can_start = [this](const DeviceTask& task) { return CanStart(task); };
  const auto execute = [this](const DeviceTask& task, int participant) {
    return RunTask(task, participant);
  };
  DeviceTasks tasks(session_.device_plan, {advance, can_start, execute});
  tasks_ = &tasks;
  dispatcher_.UseTasks(&tasks);
  is_put_off_.assign(session_.device_plan.steps.size(), false);
  put_off_lanes_.assign(session_.device_plan.lanes, 0);
  RunTrace* const trace = session_.run.control().trace();
  const auto waited = [&](int participant, uint64_t begin) {
    trace->EndSpan(participant, RunTrace::Part::kWaitTask, begin, nullptr);
  };
  const DeviceTasks::OnWait on_wait = waited;
  tasks.ObserveWaits(trace != nullptr ? &on_wait : nullptr);
  const auto participate = [&](int participant) {
    if (trace != nullptr && participant > 0) trace->Join(participant);
    tasks.Participate(participant);
  };
  if (pool_ != nullptr)
    pool_->Run(participate, static_cast<int>(session_.device_plan.task_lanes) + 1);
  else
    participate(0);
  tasks_ = nullptr;
  dispatcher_.UseTasks(nullptr);
  DeviceTasks::Error error = tasks.TakeError();
  session_.failed_on_device = error.on_device;
  return std::move(error.status);
}

Status TaskHost::Advance(bool* done) {
  *done = false;
  const auto enter = [&](Stage stage) {
    stage_ = stage;
    next_ = 0;
  };
  if (stage_ == Stage::kStart) enter(replayer_.CanReplay() ? Stage::kBefore : Stage::kAll);
  if (stage_ == Stage::kAll) return DispatchAround(std::nullopt, done);
  bool over = true;
  if (stage_ == Stage::kBefore) {
    HEDDLE_RETURN_IF_ERROR(DispatchAround(Phase::kBefore, &over));
    if (!over) return Status::Ok();
    enter(Stage::kKernels);
  }
  if (stage_ == Stage::kKernels) {
    if (!KernelsCanStart()) return Status::Ok();
    bool replayed = false;
    HEDDLE_RETURN_IF_ERROR(replayer_.ReplayKernels(&replayed));
    enter(replayed ? Stage::kAfter : Stage::kOneByOne);
  }
  if (stage_ == Stage::kOneByOne) {
    HEDDLE_RETURN_IF_ERROR(DispatchAround(Phase::kCaptured, &over));
    if (!over) return Status::Ok();
    enter(Stage::kAfter);
  }
  return DispatchAround(Phase::kAfter, done);
}

Status TaskHost::DispatchAround(std::optional<Phase> phase, bool* done) {
  const auto count = static_cast<uint32_t>(session_.device_plan.steps.size());
  uint32_t seen = tasks_->news();
  HEDDLE_RETURN_IF_ERROR(DispatchPutOff());
  while (next_ < count) {
    if (const uint32_t now = tasks_->news(); now != seen) {
      seen = now;
      HEDDLE_RETURN_IF_ERROR(DispatchPutOff());
    }
    if (phase && session_.device_plan.phases[next_] != *phase) {
      ++next_;
    } else if (CanDispatch(next_)) {
      HEDDLE_RETURN_IF_ERROR(dispatcher_.Step(next_++));
    } else if (IsBarrier(next_)) {
      break;
    } else {
      PutOff(next_++);
    }
  }
  *done = next_ == count && put_off_.empty();
  return Status::Ok();
}

// All tasks that they wait for come before them: see FindPhases.
bool TaskHost::KernelsCanStart() {
  for (size_t i = 0; i < session_.device_plan.steps.size(); ++i)
    if (session_.device_plan.phases[i] == Phase::kCaptured && !TasksBefore(i).empty() &&
        !tasks_->Finished(TasksBefore(i)))
      return false;
  return true;
}

// No step that it must come behind is put off.
bool TaskHost::CanDispatch(size_t i) const {
  const DeviceStep& step = session_.StepAt(i);
  if (!put_off_.empty()) {
    if (step.kind != Kind::kTask && put_off_lanes_[step.lane] > 0) return false;
    for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
      if (is_put_off_[session_.device_plan.recorder[session_.device_plan.waits[w]]]) return false;
  }
  // Tasks look after each other.
  return step.task_begin == step.task_end || step.kind == Kind::kTask ||
         tasks_->Finished(TasksBefore(i));
}

bool TaskHost::IsBarrier(size_t i) const {
  const DeviceStep& step = session_.StepAt(i);
  return step.lane == 0 ||
         (step.kind == Kind::kLaunch && session_.At(i).mode == Instruction::Mode::kDynamic);
}

void TaskHost::PutOff(uint32_t i) {
  put_off_.push_back(i);
  is_put_off_[i] = true;
  if (const uint32_t lane = session_.StepAt(i).lane; lane < session_.device_plan.lanes)
    ++put_off_lanes_[lane];
}

// Dispatches the steps that were put off and need not wait any more.
Status TaskHost::DispatchPutOff() {
  std::vector<uint32_t> steps;
  steps.swap(put_off_);
  for (uint32_t i : steps) {
    is_put_off_[i] = false;
    if (const uint32_t lane = session_.StepAt(i).lane; lane < session_.device_plan.lanes)
      --put_off_lanes_[lane];
  }
  for (uint32_t i : steps) {
    if (!CanDispatch(i))
      PutOff(i);
    else
      HEDDLE_RETURN_IF_ERROR(dispatcher_.Step(i));
  }
  return Status::Ok();
}

bool TaskHost::CanStart(const DeviceTask& task) {
  const DeviceStep& step = session_.StepAt(task.step);
  for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
    if (!session_.EventOf(session_.device_plan.waits[w]).Reached()) return false;
  return true;
}

DeviceTasks::Error TaskHost::RunTask(const DeviceTask& task, int participant) {
  DeviceTasks::Error error;
  error.status = Guard([&] {
    if (Status s = dispatcher_.AwaitEvents(task.step, participant); !s.ok()) {
      error.on_device = true;
      return s;
    }
    Status status;
    session_.host.Execute(
        [&] { status = Interpreter::RunOne(session_.At(task.step), session_.run, participant); });
    return status;
  });
  return error;
}

}  // namespace heddle
