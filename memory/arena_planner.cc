#include "memory/arena_planner.h"

#include <algorithm>
#include <numeric>

namespace heddle {
namespace {

size_t Round(size_t n, size_t alignment) { return (n + alignment - 1) / alignment * alignment; }

size_t PeakOfLive(std::span<const LiveRange> buffers, size_t alignment) {
  struct Event {
    int32_t step;
    bool end;  // at one step, ends count after starts: both ends are inclusive
    size_t bytes;
  };
  std::vector<Event> events;
  for (const LiveRange& b : buffers) {
    events.push_back({b.first, false, Round(b.bytes, alignment)});
    events.push_back({b.last, true, Round(b.bytes, alignment)});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return a.step != b.step ? a.step < b.step : a.end < b.end;
  });
  size_t live = 0, peak = 0;
  for (const Event& e : events) {
    live = e.end ? live - e.bytes : live + e.bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

// Buffers placed so far, findable by the steps they live in: steps are cut into segments, each
// with the buffers that touch it, so that short-lived neighbours are all that is looked at.
class Placed {
 public:
  Placed(std::span<const LiveRange> buffers, int32_t steps)
      : buffers_(buffers), segments_(static_cast<size_t>(steps / kSegment) + 1) {}

  void Add(int32_t i) {
    for (int32_t s = buffers_[i].first / kSegment; s <= buffers_[i].last / kSegment; ++s)
      segments_[s].push_back(i);
  }
  void Conflicts(int32_t i, std::vector<int32_t>* out) {
    out->clear();
    const LiveRange& b = buffers_[i];
    for (int32_t s = b.first / kSegment; s <= b.last / kSegment; ++s) {
      for (int32_t j : segments_[s]) {
        const LiveRange& o = buffers_[j];
        const bool first_meeting = std::max(o.first, b.first) / kSegment == s;
        if (o.first <= b.last && b.first <= o.last && first_meeting) out->push_back(j);
      }
    }
  }

 private:
  static constexpr int32_t kSegment = 16;
  std::span<const LiveRange> buffers_;
  std::vector<std::vector<int32_t>> segments_;
};

void Place(std::span<const LiveRange> buffers, const std::vector<int32_t>& order, int32_t steps,
           size_t alignment, ArenaLayout* layout) {
  layout->offsets.assign(buffers.size(), 0);
  layout->bytes = 0;
  Placed placed(buffers, steps);
  std::vector<int32_t> conflicts;
  for (int32_t i : order) {
    const size_t size = Round(buffers[i].bytes, alignment);
    placed.Conflicts(i, &conflicts);
    std::sort(conflicts.begin(), conflicts.end(), [&](int32_t a, int32_t b) {
      return layout->offsets[a] < layout->offsets[b];
    });
    size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
    for (int32_t j : conflicts) {
      const size_t begin = layout->offsets[j];
      if (begin > end && begin - end >= size && begin - end < best_gap) {
        best = end;
        best_gap = begin - end;
      }
      end = std::max(end, begin + Round(buffers[j].bytes, alignment));
    }
    if (best == SIZE_MAX) best = end;
    layout->offsets[i] = best;
    layout->bytes = std::max(layout->bytes, best + size);
    placed.Add(i);
  }
}

}  // namespace

ArenaLayout PlanArena(std::span<const LiveRange> buffers, size_t alignment) {
  ArenaLayout best;
  best.bound = PeakOfLive(buffers, alignment);
  int32_t steps = 0;
  for (const LiveRange& b : buffers) steps = std::max(steps, b.last);
  std::vector<int32_t> order(buffers.size());
  auto length = [&](int32_t i) { return buffers[i].last - buffers[i].first; };
  for (int strategy = 0; strategy < 3; ++strategy) {
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      if (strategy == 0) return buffers[a].bytes > buffers[b].bytes;
      if (strategy == 1) return length(a) > length(b);
      return buffers[a].first < buffers[b].first;
    });
    ArenaLayout layout;
    Place(buffers, order, steps, alignment, &layout);
    if (strategy == 0 || layout.bytes < best.bytes) {
      best.offsets = std::move(layout.offsets);
      best.bytes = layout.bytes;
    }
    if (best.bytes == best.bound) break;
  }
  return best;
}

}  // namespace heddle
