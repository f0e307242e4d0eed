#include "executor/device/task_host.h"

#include <utility>

#include "core/guard.h"
#include "executor/run/interpreter.h"

namespace heddle {

TaskHost::TaskHost(DeviceSession& session, Dispatcher& dispatcher, Replayer& replayer,
                   HostPool* pool, DispatchBoard* board)
    : session_(session),
      dispatcher_(dispatcher),
      replayer_(replayer),
      pool_(pool),
      board_(board),
      tasks_(session.device_plan, {advance_, can_start_, execute_}),
      walker_(session, dispatcher, &tasks_, board, 0) {}

DeviceTasks::Error TaskHost::Dispatch() {
  dispatcher_.UseTasks(&tasks_);
  RunTrace* const trace = session_.run.control().trace();
  const auto waited = [&](int participant, uint64_t begin) {
    trace->EndSpan(participant, RunTrace::Part::kWaitTask, begin, nullptr);
  };
  const DeviceTasks::OnWait on_wait = waited;
  tasks_.ObserveWaits(trace != nullptr ? &on_wait : nullptr);
  const auto participate = [&](int participant) {
    if (trace != nullptr && participant > 0) trace->Join(participant);
    tasks_.Participate(participant);
  };
  if (pool_ != nullptr)
    pool_->Run(participate, static_cast<int>(session_.device_plan.task_streams) + 1);
  else
    participate(0);
  tasks_.ObserveWaits(nullptr);
  dispatcher_.UseTasks(nullptr);
  return tasks_.TakeError();
}

// A failure on one thread ends the run for all threads of the board.
DeviceTasks::Error TaskHost::Advancing::operator()(int participant, bool* done) const {
  host.dispatcher_.set_participant(participant);
  DeviceTasks::Error error;
  error.status = Guard([&] { return host.Advance(done); });
  error.on_device = host.dispatcher_.failed_on_device();
  if (host.board_ == nullptr) return error;
  if (!error.status.ok()) host.board_->Fail(error);
  return host.board_->is_over() ? host.board_->error() : error;
}

DeviceTasks::Error TaskHost::Executing::operator()(const DeviceTask& task, int participant) const {
  DeviceTasks::Error error = host.RunTask(task, participant);
  if (host.board_ != nullptr && !error.status.ok()) host.board_->Fail(error);
  return error;
}

Status TaskHost::Advance(bool* done) {
  *done = false;
  const auto enter = [&](Stage stage) {
    stage_ = stage;
    walker_.Restart();
  };
  if (stage_ == Stage::kStart)
    enter(board_ == nullptr && replayer_.CanReplay(session_.kept().ran) ? Stage::kBefore
                                                                        : Stage::kAll);
  if (stage_ == Stage::kAll) return walker_.Advance(std::nullopt, done);
  bool over = true;
  if (stage_ == Stage::kBefore) {
    HEDDLE_RETURN_IF_ERROR(walker_.Advance(Phase::kBefore, &over));
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
    HEDDLE_RETURN_IF_ERROR(walker_.Advance(Phase::kCaptured, &over));
    if (!over) return Status::Ok();
    enter(Stage::kAfter);
  }
  return walker_.Advance(Phase::kAfter, done);
}

// Whether all tasks that captured kernels need have finished. All of them come before the kernels,
// see FindPhases.
bool TaskHost::KernelsCanStart() {
  for (uint32_t i = 0; i < session_.device_plan.main().end; ++i)
    if (session_.device_plan.phases[i] == Phase::kCaptured && !walker_.TasksBefore(i).empty() &&
        !tasks_.Finished(walker_.TasksBefore(i)))
      return false;
  return true;
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
