// Streams for the nodes of a graph, and the events that keep the graph's order.
//
// One thread, the host, goes through the nodes in order. A node of stream 0 is the host's own: it
// is finished before the host looks at the next one. A node of any other stream is put on that
// stream, which executes its nodes one after another, concurrently with the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/static_graph.h"

namespace heddle {

struct StreamSync {
  // Node v waits for the events of the nodes waits[wait_begin[v] .. wait_begin[v + 1]), the latest
  // first.
  std::vector<uint32_t> wait_begin, waits;
  // Per node: its end is recorded as an event, since a node waits for it.
  std::vector<bool> recorded;
  uint32_t streams = 0;
  // Per node and stream: how many nodes of the stream are certainly finished when the node starts.
  std::vector<uint32_t> clocks;
  std::vector<uint32_t> position;  // per node: its number on its stream, from 1

  bool Knows(uint32_t node, uint32_t other, const std::vector<uint32_t>& stream_of) const {
    return clocks[std::size_t{node} * streams + stream_of[other]] >= position[other];
  }
};

// Finds the fewest waits that keep the graph's order: none is implied by the other waits, by the
// streams' own order, or by what the host waited for before it put the node there. Time: nodes *
// streams + edges. `awaited`: nodes of streams that the host waits for as soon as it has put them
// there; may be empty.
StreamSync PlanStreamSync(const StaticGraph& graph, const std::vector<uint32_t>& stream_of,
                          uint32_t streams, const std::vector<bool>& awaited = {});

// Chooses a stream for each node. `group[v]`: 0 is the host; any other is a set of streams, of
// which group k has `streams[k]` (streams[0] is ignored). Streams are numbered from 1, group after
// group. A node goes to the stream where it would start first, among equals to that of its latest
// predecessor. `given`: streams that are decided already, 0 where not; may be empty.
std::vector<uint32_t> ChooseStreams(const StaticGraph& graph, const std::vector<uint32_t>& group,
                                    const std::vector<uint32_t>& streams,
                                    const std::vector<float>& cost_ns,
                                    const std::vector<uint32_t>& given = {});

// A topological order in which the host comes to its own nodes as late as it can, so that streams
// have work meanwhile. Otherwise nodes of less `priority` go first (empty: all have the same), then
// those with the lower number.
std::vector<uint32_t> StreamsFirst(const StaticGraph& graph, const std::vector<uint32_t>& group,
                                   const std::vector<int64_t>& priority = {});

// The same where the nodes of group `threads` are handed over to other threads of the host: those
// go first. Nodes that cannot be put on a stream before such a node has finished come as late as
// the host's own nodes; among these, the first is the one that is ready first when every node takes
// its `cost_ns`.
std::vector<uint32_t> StreamsFirst(const StaticGraph& graph, const std::vector<uint32_t>& group,
                                   const std::vector<int64_t>& priority, uint32_t threads,
                                   const std::vector<float>& cost_ns);

}  // namespace heddle
