#include "executor/device/device_interpreter.h"

#include <optional>
#include <utility>

#include "core/error.h"
#include "executor/device/body_runner.h"
#include "executor/device/device_session.h"
#include "executor/device/dispatch_team.h"
#include "executor/device/dispatcher.h"
#include "executor/device/replayer.h"
#include "executor/device/step_launcher.h"
#include "executor/device/task_host.h"

namespace heddle {
namespace {

// Dispatches a plan without tasks on this thread.
Status DispatchInOrder(DeviceSession& session, Dispatcher& dispatcher, StepLauncher& launcher) {
  try {
    return DispatchSection(session, dispatcher, launcher, 0, session.kept().ran);
  } catch (const std::bad_alloc& e) {  // host memory
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
  // One of these two is used, according to the plan.
  StepLauncher launcher(session);
  Dispatcher dispatcher(session, launcher);
  BodyRunner bodies(session, dispatcher, launcher);
  run.UseDeviceBodies(&bodies);
  std::optional<DispatchTeam> team;
  DeviceTasks::Error error;
  try {
    error.status = session.Prepare();
    if (error.status.ok()) {
      // If the run waits after each step, several threads would have nothing to do concurrently.
      if (crew != nullptr && session.device_plan.devices == crew->size() &&
          !run.control().waits_after_each()) {
        team.emplace(session, pool);
        if (!team->Dispatch(*crew, &error)) team.reset();
      }
      if (!team) {
        Replayer replayer(session, launcher, 0);
        if (session.device_plan.tasks.empty())
          error = {DispatchInOrder(session, dispatcher, launcher), launcher.failed_on_device()};
        else
          error = TaskHost(session, dispatcher, replayer, pool).Dispatch();
      }
    }
  } catch (const std::bad_alloc& e) {  // host memory
    error.status = ResourceExhausted(e.what());
  }
  Status status = session.Drain(std::move(error.status), error.on_device);
  if (trace != nullptr) trace->EndSpan(0, RunTrace::Part::kWaitStreams, Ticks(), nullptr);
  if (status.ok()) status = team ? team->TellTimes() : dispatcher.TellTimes();
  if (status.ok()) session.kept().ran = true;
  run.set_replayed(run.device_run() != nullptr && session.kept().captured[0].replayed);
  run.UseDeviceBodies(nullptr);
  launcher.Drop();
  if (team) team->Drop();
  session.Close();
  return status;
}

}  // namespace heddle
