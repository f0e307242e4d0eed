// Streams for the nodes of a graph, and the events that keep its order.
//
// One thread, the host, goes through the nodes in order. A node of lane 0 is the host's own: it is
// finished before the next one is looked at. A node of any other lane is put on that stream, which
// executes what it is given one after another, in its own time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scheduler/static_graph.h"

namespace heddle {

struct StreamSync {
  // Node v waits for the nodes waits[wait_begin[v] .. wait_begin[v + 1]), whose finishing is
  // recorded on their streams, the latest first.
  std::vector<uint32_t> wait_begin, waits;
  std::vector<bool> recorded;  // per node: somebody waits for it
  uint32_t lanes = 0;
  // Per node and lane: how many nodes of the lane are finished when the node starts, as far as that
  // is certain.
  std::vector<uint32_t> clocks;
  std::vector<uint32_t> position;  // per node: its number on its lane, from 1

  bool Knows(uint32_t node, uint32_t other, const std::vector<uint32_t>& lane_of) const {
    return clocks[std::size_t{node} * lanes + lane_of[other]] >= position[other];
  }
};

// The fewest waits that give the graph's order: none is implied by the others, by the streams' own
// order and by what the host waited for before it put the node there. Time grows with
// nodes * lanes + edges.
// `awaited`: nodes of streams that the host waits for as soon as it has put them there; may be
// empty.
StreamSync PlanStreamSync(const StaticGraph& graph, const std::vector<uint32_t>& lane_of,
                          uint32_t lanes, const std::vector<bool>& awaited = {});

// A lane for each node. `group[v]`: 0 is the host; any other is a set of streams, of which group k
// has `streams[k]` (streams[0] is not looked at). Lanes count from 1, group after group. A node
// goes where it would start first; where that is the same, to the stream of its latest predecessor.
// `given`: lanes that are decided already, 0 where not; may be empty.
std::vector<uint32_t> ChooseStreams(const StaticGraph& graph, const std::vector<uint32_t>& group,
                                    const std::vector<uint32_t>& streams,
                                    const std::vector<float>& cost_ns,
                                    const std::vector<uint32_t>& given = {});

// An order of the nodes, each after its predecessors, in which the host comes to its own nodes as
// late as it can: streams have something to do meanwhile. Otherwise those of less `priority` (may
// be empty: all the same) go first, then as the nodes are numbered.
std::vector<uint32_t> StreamsFirst(const StaticGraph& graph, const std::vector<uint32_t>& group,
                                   const std::vector<int64_t>& priority = {});

// The same where other threads of the host have a part, to which nodes of group `threads` are
// handed over: those go first. Nodes that cannot be put on a stream before such a node has finished
// come as late as the host's own; among these, those first that are ready first when every node
// takes `cost_ns`.
std::vector<uint32_t> StreamsFirst(const StaticGraph& graph, const std::vector<uint32_t>& group,
                                   const std::vector<int64_t>& priority, uint32_t threads,
                                   const std::vector<float>& cost_ns);

}  // namespace heddle
