#include "scheduler/stream_sync.h"

#include <algorithm>
#include <compare>
#include <queue>
#include <utility>

namespace heddle {
namespace {

constexpr uint32_t kNoNode = ~0u;

void Join(uint32_t* into, const uint32_t* from, uint32_t streams) {
  for (uint32_t l = 0; l < streams; ++l) into[l] = std::max(into[l], from[l]);
}

}  // namespace

StreamSync PlanStreamSync(const StaticGraph& g, const std::vector<uint32_t>& stream_of,
                          uint32_t streams, const std::vector<bool>& awaited) {
  StreamSync s;
  s.streams = streams;
  s.recorded.assign(g.size, false);
  s.clocks.assign(size_t{g.size} * streams, 0);
  s.position.resize(g.size);
  s.wait_begin.reserve(g.size + 1);
  s.wait_begin.push_back(0);
  std::vector<uint32_t> last(streams, kNoNode), count(streams, 0);
  // Per stream: nodes certainly finished when the host comes to v.
  std::vector<uint32_t> host(streams, 0);
  const auto clock = [&](uint32_t v) { return &s.clocks[size_t{v} * streams]; };
  // Adds to v's clock what is finished when `u` is.
  const auto join_after = [&](uint32_t v, uint32_t u) {
    Join(clock(v), clock(u), streams);
    clock(v)[stream_of[u]] = std::max(clock(v)[stream_of[u]], s.position[u]);
  };
  for (uint32_t v = 0; v < g.size; ++v) {
    const uint32_t stream = stream_of[v];
    s.position[v] = ++count[stream];
    if (last[stream] != kNoNode) join_after(v, last[stream]);
    Join(clock(v), host.data(), streams);
    // The latest predecessor first: what its clock shows as finished needs no wait.
    for (uint32_t k = g.pred_begin[v + 1]; k-- > g.pred_begin[v];) {
      const uint32_t u = g.pred[k];
      if (s.Knows(v, u, stream_of)) continue;
      s.waits.push_back(u);
      s.recorded[u] = true;
      join_after(v, u);
    }
    s.wait_begin.push_back(static_cast<uint32_t>(s.waits.size()));
    last[stream] = v;
    if (stream != 0 && (awaited.empty() || !awaited[v])) continue;
    Join(host.data(), clock(v), streams);
    host[stream] = std::max(host[stream], s.position[v]);
  }
  return s;
}

std::vector<uint32_t> ChooseStreams(const StaticGraph& g, const std::vector<uint32_t>& group,
                                    const std::vector<uint32_t>& streams,
                                    const std::vector<float>& cost_ns,
                                    const std::vector<uint32_t>& given) {
  constexpr double kHandOverNs = 2000;  // cost of an event between streams
  std::vector<uint32_t> first(streams.size() + 1, 1);
  for (size_t k = 1; k < streams.size(); ++k) first[k + 1] = first[k] + streams[k];
  std::vector<double> free_at(first[streams.size()], 0), finish(g.size, 0);
  std::vector<uint32_t> stream_of(g.size, 0);
  for (uint32_t v = 0; v < g.size; ++v) {
    uint32_t best = 0, latest = kNoNode;
    double best_start = 0;
    if (g.in_degree(v) > 0) latest = stream_of[g.pred[g.pred_begin[v + 1] - 1]];
    const uint32_t k = group[v];
    const uint32_t begin = k == 0 ? 0 : first[k], end = k == 0 ? 1 : first[k + 1];
    for (uint32_t stream = begin; stream < end; ++stream) {
      if (!given.empty() && given[v] != 0 && given[v] != stream) continue;
      double start = free_at[stream];
      for (uint32_t e = g.pred_begin[v]; e < g.pred_begin[v + 1]; ++e) {
        const uint32_t u = g.pred[e];
        start = std::max(start, finish[u] + (stream_of[u] == stream ? 0 : kHandOverNs));
      }
      if (stream == begin || best == 0 || start < best_start ||
          (start == best_start && stream == latest)) {
        best = stream;
        best_start = start;
      }
    }
    stream_of[v] = best;
    finish[v] = free_at[best] = best_start + cost_ns[v];
  }
  return stream_of;
}

namespace {

// Finds the order in which the host goes through the nodes: see StreamsFirst.
class HostOrder {
 public:
  HostOrder(const StaticGraph& g, const std::vector<uint32_t>& group,
            const std::vector<int64_t>& priority, uint32_t threads,
            const std::vector<float>& cost_ns)
      : g_(g),
        group_(group),
        priority_(priority),
        threads_(threads),
        waiting_(g.size),
        unknown_(g.size, 0),
        known_(g.size, false),
        placed_(g.size, false),
        finish_(g.size, 0) {
    for (uint32_t v = 0; v < g.size; ++v) {
      waiting_[v] = g.in_degree(v);
      finish_[v] = LatestOf(v, [](uint32_t) { return true; });
      if (!cost_ns.empty()) finish_[v] += static_cast<double>(cost_ns[v]);
      if (OnThread(v)) continue;
      for (uint32_t e = g.pred_begin[v]; e < g.pred_begin[v + 1]; ++e)
        unknown_[v] += OnThread(g.pred[e]);
    }
  }

  std::vector<uint32_t> Run() {
    std::vector<uint32_t> order;
    order.reserve(g_.size);
    for (uint32_t v = 0; v < g_.size; ++v)
      if (waiting_[v] == 0) Offer(v);
    while (order.size() < g_.size) {
      Ready& from = !for_threads_.empty()   ? for_threads_
                    : !for_streams_.empty() ? for_streams_
                                            : late_;
      const uint32_t v = from.top().node;
      from.pop();
      if (placed_[v]) continue;
      placed_[v] = true;
      order.push_back(v);
      if (!OnThread(v)) Learn(v);
      for (uint32_t e = g_.succ_begin[v]; e < g_.succ_begin[v + 1]; ++e)
        if (--waiting_[g_.succ[e]] == 0) Offer(g_.succ[e]);
    }
    return order;
  }

 private:
  struct Entry {
    int64_t priority;
    double at_ns;  // for nodes in `late_`: when it could start, in ns
    uint32_t node;
    auto operator<=>(const Entry&) const = default;
  };
  using Ready = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

  bool OnThread(uint32_t v) const { return group_[v] == threads_; }
  template <typename Which>
  double LatestOf(uint32_t v, Which&& which) const {
    double at = 0;
    for (uint32_t e = g_.pred_begin[v]; e < g_.pred_begin[v + 1]; ++e)
      if (which(g_.pred[e])) at = std::max(at, finish_[g_.pred[e]]);
    return at;
  }

  void Offer(uint32_t v) {
    const int64_t priority = priority_.empty() ? 0 : priority_[v];
    const bool waits = unknown_[v] > 0;
    if (group_[v] != 0 && !waits)
      return (OnThread(v) ? for_threads_ : for_streams_).push({priority, 0, v});
    const auto blocks = [&](uint32_t u) {
      return OnThread(u) ? !known_[u] : group_[v] == 0 && group_[u] != 0;
    };
    // Where no other threads take part, late nodes keep the order of their numbers.
    late_.push({priority, threads_ == kNoNode ? 0 : LatestOf(v, blocks), v});
  }

  // Called when v has been placed: all nodes of other threads that v depends on, directly or not,
  // are then known to be finished. Nodes that waited for nothing else can be put on streams at
  // once.
  void Learn(uint32_t v) {
    std::vector<uint32_t> open = {v};
    while (!open.empty()) {
      const uint32_t at = open.back();
      open.pop_back();
      for (uint32_t e = g_.pred_begin[at]; e < g_.pred_begin[at + 1]; ++e) {
        const uint32_t u = g_.pred[e];
        if (!OnThread(u) || known_[u]) continue;
        known_[u] = true;
        open.push_back(u);
        for (uint32_t k = g_.succ_begin[u]; k < g_.succ_begin[u + 1]; ++k) {
          const uint32_t w = g_.succ[k];
          if (OnThread(w)) continue;
          if (--unknown_[w] == 0 && waiting_[w] == 0 && !placed_[w]) Offer(w);
        }
      }
    }
  }

  const StaticGraph& g_;
  const std::vector<uint32_t>& group_;
  const std::vector<int64_t>& priority_;
  const uint32_t threads_;
  std::vector<uint32_t> waiting_;  // per node: predecessors that are not yet placed
  // Per node: predecessors on other threads that are not known to be finished.
  std::vector<uint32_t> unknown_;
  std::vector<bool> known_;  // per node of other threads: known to be finished
  std::vector<bool> placed_;
  std::vector<double> finish_;  // per node, in ns: its end if it waited for its predecessors alone
  Ready for_threads_, for_streams_, late_;
};

}  // namespace

std::vector<uint32_t> StreamsFirst(const StaticGraph& g, const std::vector<uint32_t>& group,
                                   const std::vector<int64_t>& priority) {
  return HostOrder(g, group, priority, kNoNode, {}).Run();
}

std::vector<uint32_t> StreamsFirst(const StaticGraph& g, const std::vector<uint32_t>& group,
                                   const std::vector<int64_t>& priority, uint32_t threads,
                                   const std::vector<float>& cost_ns) {
  return HostOrder(g, group, priority, threads, cost_ns).Run();
}

}  // namespace heddle
