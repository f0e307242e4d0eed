#include "scheduler/stream_arena.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace heddle {
namespace {

constexpr size_t kAlign = 256;
constexpr size_t kFewBuffers = 2048;  // up to which all pairs are compared
constexpr uint32_t kNoUser = StreamBuffer::kNoUser;

size_t Rounded(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

struct Interval {
  size_t begin, end;
};

// The offset of the smallest sufficient gap between the intervals, or the end of the last one.
size_t FindGap(std::vector<Interval>* taken, size_t bytes) {
  std::sort(taken->begin(), taken->end(),
            [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
  size_t end = 0, best = 0, best_size = ~size_t{0};
  for (const Interval& t : *taken) {
    if (t.begin >= end + bytes && t.begin - end < best_size) {
      best = end;
      best_size = t.begin - end;
    }
    end = std::max(end, t.end);
  }
  return best_size == ~size_t{0} ? end : best;
}

class Packer {
 public:
  Packer(std::span<const StreamBuffer> buffers, const StreamSync& sync,
         const std::vector<uint32_t>& stream_of)
      : buffers_(buffers), sync_(sync), stream_of_(stream_of) {
    for (const StreamBuffer& b : buffers) last_.push_back(b.last());
  }

  // Places the buffers in the order of their first users. A buffer that would end beyond `limit`
  // takes over memory in use, and its first user waits for the users of that memory.
  StreamArena InOrder(size_t limit) {
    StreamArena arena;
    arena.offsets.assign(buffers_.size(), 0);
    std::vector<uint32_t> active;
    Frontier frontier(*this);
    for (uint32_t a = 0; a < buffers_.size(); ++a) {
      if (a % 16 == 0) {
        frontier.MoveTo(buffers_[a].first);
        std::erase_if(active, [&](uint32_t b) { return frontier.Passed(buffers_[b]); });
      }
      PlaceNext(a, limit, active, &arena);
      active.push_back(a);
    }
    return arena;
  }

  // Places the largest buffers first.
  StreamArena BySize() {
    StreamArena arena;
    arena.offsets.assign(buffers_.size(), 0);
    std::vector<uint32_t> order(buffers_.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return buffers_[a].bytes > buffers_[b].bytes; });
    for (size_t k = 0; k < order.size(); ++k) {
      const uint32_t a = order[k];
      taken_.clear();
      for (size_t j = 0; j < k; ++j) {
        const uint32_t b = order[j];
        if (!Over(std::min(a, b), buffers_[std::max(a, b)].first)) Take(b, arena);
      }
      Set(a, FindGap(&taken_, Rounded(buffers_[a].bytes)), &arena);
    }
    return arena;
  }

  // Takes the offsets as given; each buffer's first user waits for the users of its memory before
  // it.
  StreamArena AsGiven(std::span<const size_t> offsets) {
    StreamArena arena;
    arena.offsets.assign(offsets.begin(), offsets.end());
    std::map<size_t, std::pair<size_t, uint32_t>> owners;  // begin -> end, buffer
    for (uint32_t a = 0; a < buffers_.size(); ++a) {
      const size_t begin = offsets[a], end = begin + Rounded(buffers_[a].bytes);
      if (begin == end) continue;
      arena.bytes = std::max(arena.bytes, end);
      auto at = owners.upper_bound(begin);
      if (at != owners.begin() && std::prev(at)->second.first > begin) --at;
      while (at != owners.end() && at->first < end) {
        const auto [from, rest] = *at;
        const auto [to, b] = rest;
        WaitForAll(b, a, &arena);
        at = owners.erase(at);
        if (from < begin) owners[from] = {begin, b};
        if (to > end) at = owners.emplace(end, std::pair(to, b)).first;
      }
      owners[begin] = {end, a};
    }
    return arena;
  }

 private:
  // Per stream, the number of nodes that every later first user of a buffer knows to be finished.
  class Frontier {
   public:
    explicit Frontier(const Packer& p)
        : p_(p),
          latest_(p.sync_.streams, kNoUser),
          end_(p.sync_.streams, 0),
          known_(p.sync_.streams, 0) {
      for (const StreamBuffer& b : p.buffers_) end_[p.stream_of_[b.first]] = b.first + 1;
    }
    void MoveTo(uint32_t node) {
      for (; at_ < node; ++at_) latest_[p_.stream_of_[at_]] = at_;
      std::fill(known_.begin(), known_.end(), ~0u);
      for (uint32_t stream = 0; stream < known_.size(); ++stream) {
        if (end_[stream] <= node) continue;
        // A stream without nodes so far starts with what the host knows.
        const uint32_t v = latest_[stream] != kNoUser ? latest_[stream] : latest_[0];
        for (uint32_t l = 0; l < known_.size(); ++l)
          known_[l] = std::min(known_[l], v == kNoUser ? 0 : p_.FinishedAfter(v, l));
      }
    }
    bool Passed(const StreamBuffer& b) const {
      for (uint32_t l = 0; l < known_.size(); ++l)
        if (b.users[l] != kNoUser && p_.sync_.position[b.users[l]] > known_[l]) return false;
      return true;
    }

   private:
    const Packer& p_;
    uint32_t at_ = 0;
    std::vector<uint32_t> latest_, end_, known_;  // per stream
  };

  // The number of nodes of stream l that are certainly finished when v is.
  uint32_t FinishedAfter(uint32_t v, uint32_t l) const {
    const uint32_t before = sync_.clocks[size_t{v} * sync_.streams + l];
    return stream_of_[v] == l ? std::max(before, sync_.position[v]) : before;
  }
  bool Over(uint32_t b, uint32_t node) const {
    for (uint32_t u : buffers_[b].users)
      if (u != kNoUser && (u >= node || !sync_.Knows(node, u, stream_of_))) return false;
    return true;
  }
  void Take(uint32_t b, const StreamArena& arena) {
    taken_.push_back({arena.offsets[b], arena.offsets[b] + Rounded(buffers_[b].bytes)});
  }
  void Set(uint32_t a, size_t offset, StreamArena* arena) {
    arena->offsets[a] = offset;
    arena->bytes = std::max(arena->bytes, offset + Rounded(buffers_[a].bytes));
  }
  void WaitForAll(uint32_t b, uint32_t a, StreamArena* arena) {
    const uint32_t first = buffers_[a].first;
    for (uint32_t u : buffers_[b].users)
      if (u != kNoUser && !sync_.Knows(first, u, stream_of_)) arena->waits.emplace_back(u, first);
  }

  void PlaceNext(uint32_t a, size_t limit, const std::vector<uint32_t>& active,
                 StreamArena* arena) {
    const StreamBuffer& buffer = buffers_[a];
    const size_t bytes = Rounded(buffer.bytes);
    std::vector<uint32_t> running;  // earlier buffers that are not certainly free at `first`
    taken_.clear();
    for (uint32_t b : active) {
      if (Over(b, buffer.first)) continue;
      Take(b, *arena);
      if (last_[b] < buffer.first) running.push_back(b);
    }
    size_t at = FindGap(&taken_, bytes);
    if (at + bytes <= limit || running.empty()) return Set(a, at, arena);
    taken_.clear();
    for (uint32_t b : active)
      if (last_[b] >= buffer.first) Take(b, *arena);
    at = FindGap(&taken_, bytes);
    Set(a, at, arena);
    for (uint32_t b : running) {
      const size_t begin = arena->offsets[b], end = begin + Rounded(buffers_[b].bytes);
      if (begin < at + bytes && at < end) WaitForAll(b, a, arena);
    }
  }

  std::span<const StreamBuffer> buffers_;
  const StreamSync& sync_;
  const std::vector<uint32_t>& stream_of_;
  std::vector<uint32_t> last_;
  std::vector<Interval> taken_;
};

}  // namespace

uint32_t StreamBuffer::last() const {
  uint32_t last = first;
  for (uint32_t u : users)
    if (u != kNoUser) last = std::max(last, u);
  return last;
}

StreamArena PlanStreamArena(std::span<const StreamBuffer> buffers, const StreamSync& sync,
                            const std::vector<uint32_t>& stream_of, std::span<const size_t> serial,
                            size_t serial_bytes, size_t limit) {
  Packer packer(buffers, sync, stream_of);
  StreamArena best = packer.InOrder(~size_t{0});
  if (best.bytes > serial_bytes && buffers.size() <= kFewBuffers)
    if (StreamArena other = packer.BySize(); other.bytes < best.bytes) best = std::move(other);
  if (best.bytes <= limit) return best;
  StreamArena waiting = packer.InOrder(limit);
  return waiting.bytes <= limit ? waiting : packer.AsGiven(serial);
}

}  // namespace heddle
