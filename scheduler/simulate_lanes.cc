#include "scheduler/simulate_lanes.h"

#include <algorithm>
#include <vector>

namespace heddle {

double SimulateLanes(const LaneSchedule& schedule, std::span<const float> cost_ns,
                     double hand_over_ns) {
  const auto lanes = static_cast<size_t>(schedule.lanes);
  std::vector<double> now(lanes, 0);
  std::vector<std::vector<double>> signalled(lanes);  // when, per lane and signal
  std::vector<uint32_t> at(schedule.segment_begin.begin(), schedule.segment_begin.end() - 1);
  const auto ready = [&](const LaneSegment& s) {
    for (uint32_t w = s.wait_begin; w < s.wait_end; ++w)
      if (signalled[schedule.waits[w].lane].size() < schedule.waits[w].signal) return false;
    return true;
  };
  // Each lane goes as far as it can, again and again, until all are at their ends.
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
        for (uint32_t p = s.begin; p < s.end; ++p) now[l] += cost_ns[schedule.order[p]];
        if (s.signal != 0) signalled[l].push_back(now[l]);
      }
    }
  }
  return *std::max_element(now.begin(), now.end());
}

}  // namespace heddle
