// Finds the loop frame that each node runs in.
#pragma once

#include <string_view>
#include <vector>

#include "formats/tensorflow/node_graph.h"
#include "heddle/status.h"

namespace heddle::tensorflow {

bool IsSwitch(const Node& node);
// Selects an output by number; a number that has none means the last.
bool IsSwitchN(const Node& node);
bool IsMerge(const Node& node);
bool IsEnter(const Node& node);
bool IsExit(const Node& node);
bool IsNextIteration(const Node& node);
bool IsLoopCond(const Node& node);

struct Frame {
  int parent = -1;  // -1 for the first frame, the graph outside of loops
  std::string_view name;
};

struct Frames {
  std::vector<Frame> frames;
  std::vector<int> of;      // by node: the frame where it runs, the inner one for Enter and Exit
  std::vector<int> result;  // by node: the frame of its outputs
  // The frame directly inside `outer` that contains `frame`; `outer` if they are the same; -1 if
  // `frame` lies outside.
  int Below(int frame, int outer) const;
};

// Finds the frames. kInvalidArgument: an unknown name, a cycle without a NextIteration, or a value
// of one frame that is used in another.
Result<Frames> FindFrames(const NodeGraph& graph, const std::vector<bool>& needed);

}  // namespace heddle::tensorflow
