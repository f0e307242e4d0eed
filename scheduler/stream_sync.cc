#include "scheduler/stream_sync.h"

#include <algorithm>
#include <queue>
#include <utility>

namespace heddle {
namespace {

constexpr uint32_t kNone = ~0u;

void Join(uint32_t* into, const uint32_t* from, uint32_t lanes) {
  for (uint32_t l = 0; l < lanes; ++l) into[l] = std::max(into[l], from[l]);
}

}  // namespace

StreamSync PlanStreamSync(const StaticGraph& g, const std::vector<uint32_t>& lane_of,
                          uint32_t lanes, const std::vector<bool>& awaited) {
  StreamSync s;
  s.lanes = lanes;
  s.recorded.assign(g.size, false);
  s.clocks.assign(size_t{g.size} * lanes, 0);
  s.position.resize(g.size);
  s.wait_begin.reserve(g.size + 1);
  s.wait_begin.push_back(0);
  std::vector<uint32_t> last(lanes, kNone), count(lanes, 0);
  std::vector<uint32_t> host(lanes, 0);  // what is finished for certain when the host comes by
  const auto clock = [&](uint32_t v) { return &s.clocks[size_t{v} * lanes]; };
  // What is finished when `u` is.
  const auto join_after = [&](uint32_t v, uint32_t u) {
    Join(clock(v), clock(u), lanes);
    clock(v)[lane_of[u]] = std::max(clock(v)[lane_of[u]], s.position[u]);
  };
  for (uint32_t v = 0; v < g.size; ++v) {
    const uint32_t lane = lane_of[v];
    s.position[v] = ++count[lane];
    if (last[lane] != kNone) join_after(v, last[lane]);
    Join(clock(v), host.data(), lanes);
    // The latest first: what it implies needs no wait.
    for (uint32_t k = g.pred_begin[v + 1]; k-- > g.pred_begin[v];) {
      const uint32_t u = g.pred[k];
      if (s.Knows(v, u, lane_of)) continue;
      s.waits.push_back(u);
      s.recorded[u] = true;
      join_after(v, u);
    }
    s.wait_begin.push_back(static_cast<uint32_t>(s.waits.size()));
    last[lane] = v;
    if (lane != 0 && (awaited.empty() || !awaited[v])) continue;
    Join(host.data(), clock(v), lanes);
    host[lane] = std::max(host[lane], s.position[v]);
  }
  return s;
}

std::vector<uint32_t> ChooseStreams(const StaticGraph& g, const std::vector<uint32_t>& group,
                                    const std::vector<uint32_t>& streams,
                                    const std::vector<float>& cost_ns,
                                    const std::vector<uint32_t>& given) {
  constexpr double kHandOverNs = 2000;  // an event between streams
  std::vector<uint32_t> first(streams.size() + 1, 1);
  for (size_t k = 1; k < streams.size(); ++k) first[k + 1] = first[k] + streams[k];
  const uint32_t lanes = first[streams.size()];
  std::vector<double> free_at(lanes, 0), finish(g.size, 0);
  std::vector<uint32_t> lane_of(g.size, 0);
  for (uint32_t v = 0; v < g.size; ++v) {
    uint32_t best = 0, latest = kNone;
    double best_start = 0;
    if (g.in_degree(v) > 0) latest = lane_of[g.pred[g.pred_begin[v + 1] - 1]];
    const uint32_t k = group[v];
    const uint32_t begin = k == 0 ? 0 : first[k], end = k == 0 ? 1 : first[k + 1];
    for (uint32_t lane = begin; lane < end; ++lane) {
      if (!given.empty() && given[v] != 0 && given[v] != lane) continue;
      double start = free_at[lane];
      for (uint32_t e = g.pred_begin[v]; e < g.pred_begin[v + 1]; ++e) {
        const uint32_t u = g.pred[e];
        start = std::max(start, finish[u] + (lane_of[u] == lane ? 0 : kHandOverNs));
      }
      if (lane == begin || best == 0 || start < best_start ||
          (start == best_start && lane == latest)) {
        best = lane;
        best_start = start;
      }
    }
    lane_of[v] = best;
    finish[v] = free_at[best] = best_start + cost_ns[v];
  }
  return lane_of;
}

std::vector<uint32_t> StreamsFirst(const StaticGraph& g, const std::vector<uint32_t>& group,
                                   const std::vector<int64_t>& priority) {
  std::vector<uint32_t> order, waiting(g.size);
  order.reserve(g.size);
  using Entry = std::pair<int64_t, uint32_t>;
  using Ready = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;
  Ready host, stream;
  const auto ready = [&](uint32_t v) {
    (group[v] == 0 ? host : stream).emplace(priority.empty() ? 0 : priority[v], v);
  };
  for (uint32_t v = 0; v < g.size; ++v) {
    waiting[v] = g.in_degree(v);
    if (waiting[v] == 0) ready(v);
  }
  while (!host.empty() || !stream.empty()) {
    Ready& from = stream.empty() ? host : stream;
    const uint32_t v = from.top().second;
    from.pop();
    order.push_back(v);
    for (uint32_t e = g.succ_begin[v]; e < g.succ_begin[v + 1]; ++e)
      if (--waiting[g.succ[e]] == 0) ready(g.succ[e]);
  }
  return order;
}

}  // namespace heddle
