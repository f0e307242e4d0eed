#include "executor/device/device_errors.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "core/error.h"

namespace heddle {
namespace {

// Slots of the device at `place` that threads of other devices read, and may release at any time.
std::vector<bool> ReadByOtherThreads(const Plan& plan, uint8_t place) {
  std::vector<bool> read(plan.slots.size(), false);
  if (plan.device->devices == 1) return read;
  for (size_t i = 0; i < plan.device->steps.size(); ++i) {
    if (plan.device->ThreadOf(plan.device->steps[i].stream) == place) continue;
    const DeviceStep& step = plan.device->steps[i];
    for (uint32_t s : plan.blocks[step.block].instructions[step.at].op.in)
      if (s != kNoSlot) read[s] = true;
  }
  return read;
}

}  // namespace

Status ExplainFailure(const Status& status, const Device& device, const DevicePlan& plan,
                      uint32_t stream) {
  std::string where = StrCat("on device '", device.name());
  if (device.number() != 0) where += StrCat(":", device.number());
  where += "'";
  if (stream != 0) where += StrCat(", stream '", plan.StreamName(stream), "'");
  return Status(status.code(),
                StrCat(where, ": ", status.message(),
                       device.lost() ? "; the executor can run nothing more on this device"
                                     : "; the executor stays usable"));
}

Status ExplainNoMemory(const Status& status, RunState& run, const DeviceRuntime& device,
                       uint32_t slot, size_t bytes) {
  if (status.code() != StatusCode::kResourceExhausted) return status;
  const Plan& plan = run.plan();
  const uint8_t place = plan.slots[slot].place;
  const auto name_of = [&](uint32_t s) { return plan.program->vars[plan.slots[s].var].name; };
  const std::vector<bool> read_by_others = ReadByOtherThreads(plan, place);
  std::vector<std::pair<size_t, uint32_t>> holders;
  for (uint32_t k = 0; k < plan.slots.size(); ++k) {
    if (read_by_others[k]) continue;
    const Value& v = run.value(k);
    if (plan.slots[k].place == place && v.is_tensor() && v.tensor().buffer())
      holders.emplace_back(v.tensor().bytes(), k);
  }
  constexpr size_t kNamed = 3;
  const size_t named = std::min(kNamed, holders.size());
  std::partial_sort(holders.begin(), holders.begin() + static_cast<std::ptrdiff_t>(named),
                    holders.end(), std::greater<>());
  std::string text = StrCat("no memory for '", name_of(slot), "': ", bytes,
                            " bytes are asked for, ", device.memory().bytes_in_use(), " are held");
  for (size_t k = 0; k < named; ++k)
    text += StrCat(k == 0 ? ", most of it by '" : ", '", name_of(holders[k].second), "' (",
                   holders[k].first, ")");
  return ResourceExhausted(text, ": ", status.message());
}

}  // namespace heddle
