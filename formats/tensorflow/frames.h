// Which loop frame each node runs in.
#pragma once

#include <string_view>
#include <vector>

#include "formats/tensorflow/node_graph.h"
#include "heddle/status.h"

namespace heddle::tensorflow {

bool IsSwitch(const Node& node);
bool IsSwitchN(const Node& node);  // by a number; one that no output has is the last one's
bool IsMerge(const Node& node);
bool IsEnter(const Node& node);
bool IsExit(const Node& node);
bool IsNextIteration(const Node& node);
bool IsLoopCond(const Node& node);

struct Frame {
  int parent = -1;  // the first frame, which has none, is the graph outside of loops
  std::string_view name;
};

struct Frames {
  std::vector<Frame> frames;
  std::vector<int> of;      // by node: where it runs; an Enter runs inside, and so does an Exit
  std::vector<int> result;  // by node: where its outputs are
  // The frame directly inside of `outer` that `frame` lies in; `outer` itself; -1: it lies outside.
  int Below(int frame, int outer) const;
};

// kInvalidArgument: names that nothing has, cycles without a NextIteration, and values of one frame
// that are used in another.
Result<Frames> FindFrames(const NodeGraph& graph, const std::vector<bool>& needed);

}  // namespace heddle::tensorflow
