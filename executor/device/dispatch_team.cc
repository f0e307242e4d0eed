#include "executor/device/dispatch_team.h"

#include <optional>
#include <utility>

#include "core/guard.h"
#include "executor/device/step_walker.h"
#include "executor/device/task_host.h"

namespace heddle {

DispatchTeam::DispatchTeam(DeviceSession& session, HostPool* pool)
    : session_(session), pool_(pool) {
  for (uint32_t k = 0; k <= session.device_plan.devices; ++k) members_.emplace_back(session);
}

bool DispatchTeam::Dispatch(DispatchCrew& crew, DeviceTasks::Error* error) {
  DispatchBoard board(session_.device_plan);
  Dispatcher& own = members_[0].dispatcher;
  Replayer replayer(session_, members_[0].launcher, 0);
  std::optional<TaskHost> host;
  if (!session_.device_plan.tasks.empty()) host.emplace(session_, own, replayer, pool_, &board);
  DeviceTasks* const tasks = host ? &host->tasks() : nullptr;
  // The end of a task wakes the devices' threads; their steps wake the thread that shares out
  // tasks.
  const auto tell = [&] { board.Tell(); };
  const auto poke = [&] { tasks->Poke(); };
  const FunctionRef<void()> on_end = tell, on_news = poke;
  if (host) {
    tasks->ObserveEnds(&on_end);
    board.Observe(&on_news);
  }
  RunTrace* const trace = session_.run.control().trace();
  // In the trace the crew's threads follow those of the executor.
  const size_t first = trace != nullptr ? trace->threads.size() - crew.size() : 0;
  const bool ran = crew.Run(
      [&](size_t k) {
        Walk(static_cast<uint32_t>(k + 1), static_cast<int>(first + k), tasks, &board);
      },
      [&] {
        if (!host) return Walk(0, 0, nullptr, &board);
        Status thrown = Guard([&] {
          (void)host->Dispatch();  // the board has the error
          return Status::Ok();
        });
        if (!thrown.ok()) board.Fail({std::move(thrown), false});
      });
  if (ran) *error = board.error();
  return ran;
}

void DispatchTeam::Walk(uint32_t member, int participant, DeviceTasks* tasks,
                        DispatchBoard* board) {
  Dispatcher& dispatcher = members_[member].dispatcher;
  dispatcher.set_participant(participant);
  RunTrace* const trace = session_.run.control().trace();
  DeviceTasks::Error error;
  error.status = Guard([&] {
    if (trace != nullptr && member > 0) trace->Join(participant);
    StepWalker walker(session_, dispatcher, tasks, board, member);
    for (;;) {
      const uint64_t seen = board->news();
      bool done = false;
      HEDDLE_RETURN_IF_ERROR(walker.Advance(std::nullopt, &done));
      if (done || board->is_over()) return Status::Ok();
      const uint64_t begin = trace != nullptr ? Ticks() : 0;
      board->Await(seen);
      if (trace != nullptr)
        trace->EndSpan(participant, RunTrace::Part::kWaitDispatch, begin, nullptr);
    }
  });
  error.on_device = dispatcher.failed_on_device();
  if (!error.status.ok()) board->Fail(std::move(error));
}

Status DispatchTeam::TellTimes() const {
  for (const Member& m : members_) HEDDLE_RETURN_IF_ERROR(m.dispatcher.TellTimes());
  return Status::Ok();
}

void DispatchTeam::Drop() {
  for (Member& m : members_) m.launcher.Drop();
}

}  // namespace heddle
