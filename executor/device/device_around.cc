// Dispatching a plan with tasks of the host: steps that have to wait for a task are put off, and
// the thread that dispatches goes on.
//
// What is certain when a step comes (StreamSync) rests on three orders, which hold here, too: that
// of each lane; that of records and waits of an event; and that nothing comes before a barrier, a
// step that the host waits for, which comes behind it in the plan. Whatever else stands between two
// steps in the plan may come behind both.
#include <algorithm>

#include "core/guard.h"
#include "executor/device/device_runner.h"
#include "executor/run/interpreter.h"

namespace heddle {

Status DeviceRunner::DispatchWithTasks() {
  const auto advance = [this](int participant, bool* done) -> DeviceTasks::Error {
    participant_ = participant;
    Status status = Guard([&] { return Advance(done); });
    return {std::move(status), failed_on_device_};
  };
  const auto can_start = [this](const DeviceTask& task) { return CanStart(task); };
  const auto execute = [this](const DeviceTask& task, int participant) {
    return RunTask(task, participant);
  };
  DeviceTasks tasks(device_plan_, {advance, can_start, execute});
  tasks_ = &tasks;
  is_put_off_.assign(device_plan_.steps.size(), false);
  put_off_lanes_.assign(device_plan_.lanes, 0);
  const auto participate = [&](int participant) { tasks.Participate(participant); };
  if (pool_ != nullptr)
    pool_->Run(participate, static_cast<int>(device_plan_.task_lanes) + 1);
  else
    participate(0);
  tasks_ = nullptr;
  DeviceTasks::Error error = tasks.TakeError();
  failed_on_device_ = error.on_device;
  return std::move(error.status);
}

Status DeviceRunner::Advance(bool* done) {
  *done = false;
  const auto enter = [&](Stage stage) {
    stage_ = stage;
    next_ = 0;
  };
  if (stage_ == Stage::kStart) enter(CanReplay() ? Stage::kBefore : Stage::kAll);
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
    HEDDLE_RETURN_IF_ERROR(ReplayKernels(&replayed));
    enter(replayed ? Stage::kAfter : Stage::kOneByOne);
  }
  if (stage_ == Stage::kOneByOne) {
    HEDDLE_RETURN_IF_ERROR(DispatchAround(Phase::kCaptured, &over));
    if (!over) return Status::Ok();
    enter(Stage::kAfter);
  }
  return DispatchAround(Phase::kAfter, done);
}

Status DeviceRunner::DispatchAround(std::optional<Phase> phase, bool* done) {
  const auto count = static_cast<uint32_t>(device_plan_.steps.size());
  uint32_t seen = tasks_->news();
  HEDDLE_RETURN_IF_ERROR(DispatchPutOff());
  while (next_ < count) {
    if (const uint32_t now = tasks_->news(); now != seen) {
      seen = now;
      HEDDLE_RETURN_IF_ERROR(DispatchPutOff());
    }
    if (phase && device_plan_.phases[next_] != *phase) {
      ++next_;
    } else if (CanDispatch(next_)) {
      HEDDLE_RETURN_IF_ERROR(Step(next_++));
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
bool DeviceRunner::KernelsCanStart() {
  for (size_t i = 0; i < device_plan_.steps.size(); ++i)
    if (device_plan_.phases[i] == Phase::kCaptured && !TasksBefore(i).empty() &&
        !tasks_->Finished(TasksBefore(i)))
      return false;
  return true;
}

// No step that it must come behind is put off.
bool DeviceRunner::CanDispatch(size_t i) const {
  const DeviceStep& step = device_plan_.steps[i];
  if (!put_off_.empty()) {
    if (step.kind != Kind::kTask && put_off_lanes_[step.lane] > 0) return false;
    for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
      if (is_put_off_[device_plan_.recorder[device_plan_.waits[w]]]) return false;
  }
  // Tasks look after each other.
  return step.task_begin == step.task_end || step.kind == Kind::kTask ||
         tasks_->Finished(TasksBefore(i));
}

bool DeviceRunner::IsBarrier(size_t i) const {
  const DeviceStep& step = device_plan_.steps[i];
  return step.lane == 0 ||
         (step.kind == Kind::kLaunch && At(i).mode == Instruction::Mode::kDynamic);
}

void DeviceRunner::PutOff(uint32_t i) {
  put_off_.push_back(i);
  is_put_off_[i] = true;
  if (const uint32_t lane = device_plan_.steps[i].lane; lane < device_plan_.lanes)
    ++put_off_lanes_[lane];
}

// What need not wait any more.
Status DeviceRunner::DispatchPutOff() {
  std::vector<uint32_t> steps;
  steps.swap(put_off_);
  for (uint32_t i : steps) {
    is_put_off_[i] = false;
    if (const uint32_t lane = device_plan_.steps[i].lane; lane < device_plan_.lanes)
      --put_off_lanes_[lane];
  }
  for (uint32_t i : steps) {
    if (!CanDispatch(i))
      PutOff(i);
    else
      HEDDLE_RETURN_IF_ERROR(Step(i));
  }
  return Status::Ok();
}

bool DeviceRunner::CanStart(const DeviceTask& task) {
  const DeviceStep& step = device_plan_.steps[task.step];
  for (uint32_t w = step.wait_begin; w < step.wait_end; ++w)
    if (!EventOf(device_plan_.waits[w]).Reached()) return false;
  return true;
}

DeviceTasks::Error DeviceRunner::RunTask(const DeviceTask& task, int participant) {
  DeviceTasks::Error error;
  error.status = Guard([&] {
    if (Status s = AwaitEvents(task.step); !s.ok()) {
      error.on_device = true;
      return s;
    }
    Status status;
    host_.Execute([&] { status = Interpreter::RunOne(At(task.step), run_, participant); });
    return status;
  });
  return error;
}

}  // namespace heddle
