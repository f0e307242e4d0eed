#include "memory/arena_planner.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <utility>

namespace heddle {
namespace {

// Beyond these, time is better than the last few bytes: the orders that look at every buffer alive
// at the same time are not tried, or given up.
constexpr size_t kMostBuffers = 100000;
constexpr size_t kMostWork = size_t{1} << 24;    // looks at a buffer, of all orders: about 0.1 s
constexpr size_t kRepairWork = size_t{1} << 22;  // no repairs beyond
constexpr int kRepairs = 24;                     // of one order
constexpr size_t kMoveWork = size_t{1} << 23;    // for moves of single buffers: about 50 ms
constexpr int kMoves = 4000;                     // of one order
constexpr size_t kNearEnough = 256;              // no moves for a smaller part of the bound

size_t Round(size_t n, size_t alignment) { return (n + alignment - 1) / alignment * alignment; }

// Positions of buffers by a step each, steps ascending, buffers of one step in their order.
struct BySteps {
  std::vector<int32_t> begin, list;  // of step t: list[begin[t] .. begin[t + 1])

  template <typename StepOf>
  BySteps(size_t buffers, int32_t steps, StepOf&& step_of)
      : begin(static_cast<size_t>(steps) + 2, 0), list(buffers) {
    for (size_t i = 0; i < buffers; ++i) ++begin[step_of(i) + 1];
    std::partial_sum(begin.begin(), begin.end(), begin.begin());
    std::vector<int32_t> at(begin.begin(), begin.end() - 1);
    for (size_t i = 0; i < buffers; ++i) list[at[step_of(i)]++] = static_cast<int32_t>(i);
  }
};

// Free places below the end of the used part.
class FreePlaces {
 public:
  // The smallest place that fits, the lowest of those; else the end.
  size_t Take(size_t size) {
    const auto fit = by_size_.lower_bound({size, 0});
    if (fit == by_size_.end()) {
      end_ += size;
      return end_ - size;
    }
    const auto [room, offset] = *fit;
    by_size_.erase(fit);
    by_offset_.erase(offset);
    if (room > size) Insert(offset + size, room - size);
    return offset;
  }
  void GiveBack(size_t offset, size_t size) {
    auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.end() && after->first == offset + size) {
      size += after->second;
      after = Erase(after);
    }
    if (after != by_offset_.begin()) {
      const auto before = std::prev(after);
      if (before->first + before->second == offset) {
        offset = before->first;
        size += before->second;
        Erase(before);
      }
    }
    if (offset + size == end_)
      end_ = offset;
    else
      Insert(offset, size);
  }

 private:
  using Offsets = std::map<size_t, size_t>;
  void Insert(size_t offset, size_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  Offsets::iterator Erase(Offsets::iterator place) {
    by_size_.erase({place->second, place->first});
    return by_offset_.erase(place);
  }
  Offsets by_offset_;                            // offset -> size
  std::set<std::pair<size_t, size_t>> by_size_;  // (size, offset)
  size_t end_ = 0;
};

// Best fit in the order of starts, which needs no more than the free places of each step. Finds the
// peak of live bytes on the way. O(n log n + steps).
ArenaLayout PlaceByStart(std::span<const LiveRange> buffers, int32_t steps, size_t alignment) {
  const BySteps starts(buffers.size(), steps, [&](size_t i) { return buffers[i].first; });
  const BySteps ends(buffers.size(), steps, [&](size_t i) { return buffers[i].last; });
  ArenaLayout layout;
  layout.offsets.assign(buffers.size(), 0);
  FreePlaces free;
  size_t live = 0;
  for (int32_t step = 0; step <= steps; ++step) {
    for (int32_t k = starts.begin[step]; k < starts.begin[step + 1]; ++k) {
      const int32_t i = starts.list[k];
      const size_t size = Round(buffers[i].bytes, alignment);
      if (size == 0) continue;
      layout.offsets[i] = free.Take(size);
      layout.bytes = std::max(layout.bytes, layout.offsets[i] + size);
      live += size;
    }
    layout.bound = std::max(layout.bound, live);
    for (int32_t k = ends.begin[step]; k < ends.begin[step + 1]; ++k) {
      const int32_t i = ends.list[k];
      const size_t size = Round(buffers[i].bytes, alignment);
      if (size > 0) free.GiveBack(layout.offsets[i], size);
      live -= size;
    }
  }
  return layout;
}

// Buffers placed so far, findable by the steps they live in: steps are cut into segments, each
// with the buffers that touch it, so that short-lived neighbours are all that is looked at.
class Placed {
 public:
  Placed(std::span<const LiveRange> buffers, int32_t steps)
      : buffers_(buffers), segments_(static_cast<size_t>(steps / kSegment) + 1) {}
  // Steps of work done so far.
  size_t work() const { return work_; }

  void Add(int32_t i) {
    for (int32_t s = buffers_[i].first / kSegment; s <= buffers_[i].last / kSegment; ++s)
      segments_[s].push_back(i);
    work_ += static_cast<size_t>((buffers_[i].last - buffers_[i].first) / kSegment);
  }
  void Conflicts(int32_t i, std::vector<int32_t>* out) {
    out->clear();
    const LiveRange& b = buffers_[i];
    for (int32_t s = b.first / kSegment; s <= b.last / kSegment; ++s) {
      work_ += 1 + segments_[s].size();
      for (int32_t j : segments_[s]) {
        const LiveRange& o = buffers_[j];
        const bool first_meeting = std::max(o.first, b.first) / kSegment == s;
        if (o.first <= b.last && b.first <= o.last && first_meeting) out->push_back(j);
      }
    }
    work_ += 8 * out->size();  // to be sorted
  }

 private:
  static constexpr int32_t kSegment = 16;
  std::span<const LiveRange> buffers_;
  std::vector<std::vector<int32_t>> segments_;
  size_t work_ = 0;
};

enum class Fit { kBest, kFirst };

// Tries orders of the buffers until one needs no more than the peak of live bytes.
class OrderSearch {
 public:
  OrderSearch(std::span<const LiveRange> buffers, int32_t steps, size_t alignment,
              ArenaLayout* best)
      : buffers_(buffers), steps_(steps), alignment_(alignment), best_(best) {}

  // False when there is no time for it, or no need.
  bool Try(const std::vector<int32_t>& order, Fit fit) {
    if (best_->bytes == best_->bound || work_ > kMostWork || !Place(order, fit)) return false;
    if (layout_.bytes < best_->bytes) {
      best_->offsets = layout_.offsets;
      best_->bytes = layout_.bytes;
    }
    return true;
  }
  // Retries the order with those buffers first that it placed above the bound.
  void Repair(std::vector<int32_t> order, Fit fit) {
    for (int round = 0; round <= kRepairs && work_ < kRepairWork && Try(order, fit); ++round) {
      const auto above = [&](int32_t i) {
        return layout_.offsets[i] + Round(buffers_[i].bytes, alignment_) > best_->bound;
      };
      const auto rest = std::stable_partition(order.begin(), order.end(), above);
      if (rest == order.begin()) return;
    }
  }
  // Moves single buffers of the order forward, mostly such as were placed above the bound, and
  // keeps what does no harm. The moves are the same in every run.
  void Move(std::vector<int32_t> order, Fit fit) {
    std::mt19937 random(7);
    const auto pick = [&](size_t n) { return static_cast<size_t>(random() % n); };
    const size_t work_begin = work_, work_end = work_ + kMoveWork;
    size_t bytes = SIZE_MAX;
    std::vector<int32_t> above, next = order;
    for (int move = 0; move < kMoves && !NearEnough() && work_ < work_end; ++move) {
      if (!Try(next, fit)) return;
      // A few moves of many buffers find nothing.
      if (move == 0 && (work_ - work_begin) * order.size() > kMoveWork) return;
      if (layout_.bytes <= bytes) {
        bytes = layout_.bytes;
        order = next;
        above.clear();
        for (int32_t i : order)
          if (layout_.offsets[i] + Round(buffers_[i].bytes, alignment_) > best_->bound)
            above.push_back(i);
      }
      const int32_t moved =
          !above.empty() && pick(10) < 7 ? above[pick(above.size())] : order[pick(order.size())];
      next = order;
      const auto from = std::find(next.begin(), next.end(), moved);
      const auto to =
          next.begin() + static_cast<ptrdiff_t>(pick(static_cast<size_t>(from - next.begin()) + 1));
      std::rotate(to, from, from + 1);
    }
  }

 private:
  bool NearEnough() const { return best_->bytes - best_->bound <= best_->bound / kNearEnough; }

  // Places the buffers in this order. False when that would take too long.
  bool Place(const std::vector<int32_t>& order, Fit fit) {
    layout_.offsets.assign(buffers_.size(), 0);
    layout_.bytes = 0;
    Placed placed(buffers_, steps_);
    for (int32_t i : order) {
      const size_t size = Round(buffers_[i].bytes, alignment_);
      placed.Conflicts(i, &conflicts_);
      std::sort(conflicts_.begin(), conflicts_.end(),
                [&](int32_t a, int32_t b) { return layout_.offsets[a] < layout_.offsets[b]; });
      const size_t at = FindPlace(size, fit);
      layout_.offsets[i] = at;
      layout_.bytes = std::max(layout_.bytes, at + size);
      placed.Add(i);
      if (work_ + placed.work() > kMostWork) break;
    }
    work_ += placed.work();
    return work_ <= kMostWork;
  }

  // Between the conflicts: the smallest gap that holds `size` bytes, or the lowest; else behind
  // them.
  size_t FindPlace(size_t size, Fit fit) const {
    size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
    for (int32_t j : conflicts_) {
      const size_t begin = layout_.offsets[j];
      if (begin > end && begin - end >= size && begin - end < best_gap) {
        best = end;
        best_gap = begin - end;
        if (fit == Fit::kFirst) break;
      }
      end = std::max(end, begin + Round(buffers_[j].bytes, alignment_));
    }
    return best == SIZE_MAX ? end : best;
  }

  std::span<const LiveRange> buffers_;
  const int32_t steps_;
  const size_t alignment_;
  ArenaLayout* best_;
  size_t work_ = 0;
  ArenaLayout layout_;  // of the present try
  std::vector<int32_t> conflicts_;
};

// Greatest first, by what `key` says of a buffer.
template <typename Key>
std::vector<int32_t> OrderBy(std::span<const LiveRange> buffers, Key&& key) {
  std::vector<int32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return key(buffers[a]) > key(buffers[b]); });
  return order;
}

}  // namespace

size_t PeakOf(std::span<const LiveRange> buffers, size_t alignment) {
  std::vector<std::pair<int32_t, int64_t>> changes;
  for (const LiveRange& b : buffers) {
    const auto size = static_cast<int64_t>(Round(b.bytes, alignment));
    changes.emplace_back(b.first, size);
    changes.emplace_back(b.last + 1, -size);
  }
  std::sort(changes.begin(), changes.end());  // at one step, what ends comes first
  int64_t live = 0, peak = 0;
  for (const auto& change : changes) peak = std::max(peak, live += change.second);
  return static_cast<size_t>(peak);
}

ArenaLayout PlanArena(std::span<const LiveRange> buffers, size_t alignment) {
  int32_t steps = 0;
  for (const LiveRange& b : buffers) steps = std::max(steps, b.last);
  ArenaLayout best = PlaceByStart(buffers, steps, alignment);
  if (best.bytes == best.bound || buffers.size() > kMostBuffers) return best;
  const auto size = [](const LiveRange& b) { return b.bytes; };
  const auto length = [](const LiveRange& b) { return static_cast<size_t>(b.last - b.first) + 1; };
  OrderSearch search(buffers, steps, alignment, &best);
  const std::vector<int32_t> orders[] = {
      OrderBy(buffers, size), OrderBy(buffers, length),
      OrderBy(buffers, [&](const LiveRange& b) { return size(b) * length(b); }),
      OrderBy(buffers, [](const LiveRange& b) { return b.last; }),
      OrderBy(buffers, [](const LiveRange& b) { return -b.first; })};
  for (const Fit fit : {Fit::kBest, Fit::kFirst})
    for (const auto& order : orders) search.Try(order, fit);
  for (const Fit fit : {Fit::kBest, Fit::kFirst})
    for (const auto& order : orders) search.Repair(order, fit);
  for (int k : {0, 2}) search.Move(orders[k], Fit::kBest);
  return best;
}

namespace {

// Greedy placement where who meets whom is a list per buffer.
class ConflictSearch {
 public:
  ConflictSearch(std::span<const size_t> bytes, FunctionRef<bool(int32_t, int32_t)> conflict,
                 size_t alignment)
      : neighbours_(bytes.size()) {
    for (const size_t b : bytes) sizes_.push_back(Round(b, alignment));
    const auto n = static_cast<int32_t>(bytes.size());
    for (int32_t j = 0; j < n; ++j)
      for (int32_t i = 0; i < j; ++i)
        if (sizes_[i] > 0 && sizes_[j] > 0 && conflict(i, j)) {
          neighbours_[i].push_back(j);
          neighbours_[j].push_back(i);
        }
    best_.bytes = SIZE_MAX;
  }

  ArenaLayout Run() {
    const auto weight = [&](int32_t i) {  // of a buffer and all it meets
      size_t sum = sizes_[i];
      for (int32_t j : neighbours_[i]) sum += sizes_[j];
      return sum;
    };
    std::vector<size_t> weights;
    for (size_t i = 0; i < sizes_.size(); ++i) weights.push_back(weight(static_cast<int32_t>(i)));
    Improve(OrderBy([&](int32_t i) { return sizes_[i]; }));
    Improve(OrderBy([&](int32_t i) { return weights[i]; }));
    Improve(OrderBy([&](int32_t i) { return sizes_[i] * neighbours_[i].size(); }));
    Improve(OrderBy([](int32_t i) { return -i; }));
    return std::move(best_);
  }

 private:
  template <typename Key>
  std::vector<int32_t> OrderBy(Key&& key) const {
    std::vector<int32_t> order(sizes_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return key(a) > key(b); });
    return order;
  }

  // The order, and what becomes of it when those that came to lie on top go first.
  void Improve(std::vector<int32_t> order) {
    constexpr int kRounds = 24;
    for (int round = 0; round <= kRounds; ++round) {
      ArenaLayout layout;
      Place(order, &layout);
      if (layout.bytes < best_.bytes) best_ = layout;
      const auto on_top = [&](int32_t i) { return layout.offsets[i] + sizes_[i] == layout.bytes; };
      const auto rest = std::stable_partition(order.begin(), order.end(), on_top);
      if (rest == order.begin()) return;
    }
  }

  void Place(const std::vector<int32_t>& order, ArenaLayout* layout) {
    std::vector<bool> placed(sizes_.size(), false);
    layout->offsets.assign(sizes_.size(), 0);
    for (int32_t i : order) {
      if (sizes_[i] == 0) continue;
      met_.clear();
      for (int32_t j : neighbours_[i])
        if (placed[j]) met_.emplace_back(layout->offsets[j], layout->offsets[j] + sizes_[j]);
      std::sort(met_.begin(), met_.end());
      size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
      for (const auto& [from, to] : met_) {
        if (from > end && from - end >= sizes_[i] && from - end < best_gap) {
          best = end;
          best_gap = from - end;
        }
        end = std::max(end, to);
      }
      layout->offsets[i] = best == SIZE_MAX ? end : best;
      layout->bytes = std::max(layout->bytes, layout->offsets[i] + sizes_[i]);
      placed[i] = true;
    }
  }

  std::vector<size_t> sizes_;  // rounded
  std::vector<std::vector<int32_t>> neighbours_;
  std::vector<std::pair<size_t, size_t>> met_;  // places of those placed, of the present buffer
  ArenaLayout best_;
};

}  // namespace

ArenaLayout PlanArenaByConflicts(std::span<const size_t> bytes,
                                 FunctionRef<bool(int32_t, int32_t)> conflict, size_t alignment) {
  if (bytes.size() > kMostConflicting || bytes.empty()) return {};
  return ConflictSearch(bytes, conflict, alignment).Run();
}

}  // namespace heddle
