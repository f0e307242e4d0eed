#include "scheduler/simulate_lanes.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace heddle {

double SimulateLanes(const LaneSchedule& schedule, std::span<const float> cost_ns,
                     double hand_over_ns, LaneTimes* times) {
  if (times != nullptr) {
    times->start.resize(schedule.order.size());
    times->end.resize(schedule.order.size());
  }
  const auto lanes = static_cast<size_t>(schedule.lanes);
  std::vector<double> now(lanes, 0);
  std::vector<std::vector<double>> signalled(lanes);  // per lane and signal: its time in ns
  std::vector<uint32_t> at(schedule.segment_begin.begin(), schedule.segment_begin.end() - 1);
  const auto ready = [&](const LaneSegment& s) {
    for (uint32_t w = s.wait_begin; w < s.wait_end; ++w)
      if (signalled[schedule.waits[w].lane].size() < schedule.waits[w].signal) return false;
    return true;
  };
  // Moves each lane as far as it can go, again and again, until all are at their ends.
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t l = 0; l < lanes; ++l) {
      for (; at[l] < schedule.segment_begin[l + 1] && ready(schedule.segments[at[l]]); ++at[l]) {
        const LaneSegment& s = schedule.segments[at[l]];
        moved = true;
        for (uint32_t w = s.wait_begin; w < s.wait_end; ++w) {
          const LaneWait& wait = schedule.waits[w];
          now[l] = std::max(now[l], signalled[wait.lane][wait.signal - 1] + hand_over_ns);
        }
        for (uint32_t p = s.begin; p < s.end; ++p) {
          if (times != nullptr) times->start[p] = now[l];
          now[l] += cost_ns[schedule.order[p]];
          if (times != nullptr) times->end[p] = now[l];
        }
        if (s.signal != 0) signalled[l].push_back(now[l]);
      }
    }
  }
  return *std::max_element(now.begin(), now.end());
}

std::vector<bool> FindLonely(const LaneSchedule& schedule, const LaneTimes& times,
                             double tolerance) {
  std::vector<bool> lonely(schedule.order.size(), false);
  const auto lanes = static_cast<size_t>(schedule.lanes);
  // Nodes sorted by start. Each lane is in order already, so this merges the lanes in time.
  std::vector<uint32_t> by_start(schedule.order.size());
  std::iota(by_start.begin(), by_start.end(), 0u);
  std::stable_sort(by_start.begin(), by_start.end(),
                   [&](uint32_t a, uint32_t b) { return times.start[a] < times.start[b]; });
  std::vector<uint32_t> at(schedule.lane_begin.begin(), schedule.lane_begin.end() - 1);
  for (uint32_t p : by_start) {
    double busy = 0;
    for (size_t l = 0; l < lanes; ++l) {
      const uint32_t end = schedule.lane_begin[l + 1];
      if (p >= schedule.lane_begin[l] && p < end) continue;
      while (at[l] < end && times.end[at[l]] <= times.start[p]) ++at[l];
      for (uint32_t q = at[l]; q < end && times.start[q] < times.end[p]; ++q)
        busy += std::min(times.end[q], times.end[p]) - std::max(times.start[q], times.start[p]);
    }
    lonely[p] = busy <= tolerance * (times.end[p] - times.start[p]);
  }
  return lonely;
}

}  // namespace heddle
