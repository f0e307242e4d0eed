#include "executor/device/device_interpreter.h"

#include <optional>
#include <utility>

#include "core/error.h"
#include "executor/device/device_session.h"
#include "executor/device/dispatch_team.h"
#include "executor/device/dispatcher.h"
#include "executor/device/replayer.h"
#include "executor/device/step_launcher.h"
#include "executor/device/task_host.h"

namespace heddle {
namespace {

using Phase = DevicePlan::Phase;

// Dispatches a plan without tasks on this thread: every step in the plan's order, or the kernels as
// one captured graph.
Status DispatchInOrder(Dispatcher& dispatcher, Replayer& replayer) {
  try {
    if (!replayer.CanReplay()) return dispatcher.AllOf(std::nullopt);
    HEDDLE_RETURN_IF_ERROR(dispatcher.AllOf(Phase::kBefore));
    bool replayed = false;
    HEDDLE_RETURN_IF_ERROR(replayer.ReplayKernels(&replayed));
    if (!replayed) HEDDLE_RETURN_IF_ERROR(dispatcher.AllOf(Phase::kCaptured));
    return dispatcher.AllOf(Phase::kAfter);
  } catch (const std::bad_alloc& e) {  // memory of the host
    return ResourceExhausted(e.what());
  } catch (const std::exception& e) {
    return Internal("a step could not be dispatched: ", e.what());
  }
}

}  // namespace

Status DeviceInterpreter::Run(RunState& run, const DeviceRuntimes& devices, DispatchCrew* crew,
                              HostPool* pool, KernelArena& host, KernelArena& streams) {
  DeviceSession session(run, devices, host, streams);
  RunTrace* const trace = run.control().trace();
  if (trace != nullptr) trace->Join(0);
  HEDDLE_RETURN_IF_ERROR(session.Open());
  // One of the two is used.
  StepLauncher launcher(session);
  Dispatcher dispatcher(session, launcher);
  std::optional<DispatchTeam> team;
  DeviceTasks::Error error;
  try {
    error.status = session.Prepare();
    if (error.status.ok()) {
      // A run that waits after each step leaves several threads nothing to do at the same time.
      if (crew != nullptr && session.device_plan.devices == crew->size() &&
          !run.control().waits_after_each()) {
        team.emplace(session, pool);
        if (!team->Dispatch(*crew, &error)) team.reset();
      }
      if (!team) {
        Replayer replayer(session, launcher);
        if (session.device_plan.tasks.empty())
          error = {DispatchInOrder(dispatcher, replayer), launcher.failed_on_device()};
        else
          error = TaskHost(session, dispatcher, replayer, pool).Dispatch();
      }
    }
  } catch (const std::bad_alloc& e) {  // memory of the host
    error.status = ResourceExhausted(e.what());
  }
  Status status = session.Drain(std::move(error.status), error.on_device);
  if (trace != nullptr) trace->EndSpan(0, RunTrace::Part::kWaitStreams, Ticks(), nullptr);
  if (status.ok()) status = team ? team->TellTimes() : dispatcher.TellTimes();
  if (status.ok()) session.kept().ran = true;
  run.set_replayed(run.device_run() != nullptr && session.kept().replayed);
  launcher.Drop();
  if (team) team->Drop();
  session.Close();
  return status;
}

}  // namespace heddle
