#include "formats/tensorflow/frames.h"

#include <map>
#include <utility>

#include "core/error.h"

namespace heddle::tensorflow {
namespace {

constexpr size_t kMostFrames = 4000;
constexpr int kMostDepth = 32;  // nesting of loops

bool Is(const Node& node, std::string_view name) {
  return node.op == name || (node.op.starts_with("Ref") && node.op.substr(3) == name);
}

std::string Named(const Node& node) { return StrCat("node '", node.name, "' (", node.op, ")"); }

class Finder {
 public:
  Finder(const NodeGraph& graph, const std::vector<bool>& needed)
      : graph_(graph), needed_(needed), waits_(graph.size()), readers_(graph.size()) {
    found_.frames.push_back({});
    found_.of.assign(graph.size(), 0);
    found_.result.assign(graph.size(), 0);
  }

  Result<Frames> Run() {
    std::vector<int> ready;
    size_t left = 0;
    for (int i = 0; i < static_cast<int>(graph_.size()); ++i) {
      if (!needed_[static_cast<size_t>(i)]) continue;
      ++left;
      HEDDLE_RETURN_IF_ERROR(CheckNames(i));
      ForNodes(i, [&](int from) {
        readers_[static_cast<size_t>(from)].push_back(i);
        ++waits_[static_cast<size_t>(i)];
      });
      if (waits_[static_cast<size_t>(i)] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const int i = ready.back();
      ready.pop_back();
      --left;
      HEDDLE_RETURN_IF_ERROR(Place(i));
      for (int reader : readers_[static_cast<size_t>(i)])
        if (--waits_[static_cast<size_t>(reader)] == 0) ready.push_back(reader);
    }
    if (left == 0) return std::move(found_);
    for (int i = 0; i < static_cast<int>(graph_.size()); ++i)
      if (needed_[static_cast<size_t>(i)] && waits_[static_cast<size_t>(i)] > 0)
        return InvalidArgument(Named(graph_.node(i)),
                               " lies on or behind a cycle that no NextIteration closes");
    return std::move(found_);
  }

 private:
  // Calls `each` for the nodes that a node depends on, except over the back edge of a loop.
  template <typename Each>
  void ForNodes(int i, Each each) {
    const bool is_merge = IsMerge(graph_.node(i));
    for (const Source& input : graph_.links(i).inputs)
      if (input.is_node() && !(is_merge && IsNextIteration(graph_.node(input.node))))
        each(input.node);
    for (int control : graph_.links(i).controls) each(control);
  }

  Status CheckNames(int i) {
    const Links& links = graph_.links(i);
    for (size_t k = 0; k < links.inputs.size(); ++k)
      if (links.inputs[k].node == Source::kMissing)
        return InvalidArgument(Named(graph_.node(i)), ": input ", k, " is '", links.names[k],
                               "', which nothing in the graph makes");
    for (size_t k = 0; k < links.controls.size(); ++k)
      if (links.controls[k] < 0)
        return InvalidArgument(Named(graph_.node(i)), " waits for '^", links.control_names[k],
                               "', which the graph does not have");
    return Status::Ok();
  }

  Status Place(int i) {
    const Node& node = graph_.node(i);
    int frame = 0;
    Status status;
    ForNodes(i, [&](int from) {
      const int other = found_.result[static_cast<size_t>(from)];
      if (other == frame || found_.Below(frame, other) >= 0) return;
      if (found_.Below(other, frame) < 0)
        status = InvalidArgument(Named(node), " uses values of two loops, '",
                                 found_.frames[static_cast<size_t>(frame)].name, "' and '",
                                 found_.frames[static_cast<size_t>(other)].name, "'");
      frame = other;
    });
    HEDDLE_RETURN_IF_ERROR(status);
    int result = frame;
    if (IsEnter(node)) {
      const Attribute* name = node.Find("frame_name");
      if (name == nullptr || name->kind != Attribute::kString)
        return InvalidArgument(Named(node), " has no attribute 'frame_name'");
      const auto key = std::pair(frame, name->s);
      auto known = names_.find(key);
      if (known == names_.end()) {
        if (found_.frames.size() >= kMostFrames)
          return InvalidArgument("the graph has more than ", kMostFrames, " loops");
        int depth = 0;
        for (int f = frame; f > 0; f = found_.frames[static_cast<size_t>(f)].parent) ++depth;
        if (depth >= kMostDepth)
          return InvalidArgument(Named(node), ": loops lie in each other more than ", kMostDepth,
                                 " deep");
        known = names_.emplace(key, static_cast<int>(found_.frames.size())).first;
        found_.frames.push_back({frame, name->s});
      }
      frame = result = known->second;
    } else if (IsExit(node)) {
      if (frame == 0) return InvalidArgument(Named(node), " lies in no loop that it could leave");
      result = found_.frames[static_cast<size_t>(frame)].parent;
    } else if (frame == 0 && (IsNextIteration(node) || IsLoopCond(node))) {
      return InvalidArgument(Named(node), " lies in no loop");
    }
    found_.of[static_cast<size_t>(i)] = frame;
    found_.result[static_cast<size_t>(i)] = result;
    return Status::Ok();
  }

  const NodeGraph& graph_;
  const std::vector<bool>& needed_;
  Frames found_;
  std::map<std::pair<int, std::string_view>, int> names_;
  std::vector<int> waits_;
  std::vector<std::vector<int>> readers_;
};

}  // namespace

bool IsSwitch(const Node& node) { return Is(node, "Switch"); }
bool IsSwitchN(const Node& node) { return node.op == "_SwitchN"; }
bool IsMerge(const Node& node) { return Is(node, "Merge"); }
bool IsEnter(const Node& node) { return Is(node, "Enter"); }
bool IsExit(const Node& node) { return Is(node, "Exit"); }
bool IsNextIteration(const Node& node) { return Is(node, "NextIteration"); }
bool IsLoopCond(const Node& node) { return node.op == "LoopCond"; }

int Frames::Below(int frame, int outer) const {
  int below = frame;
  while (frame != outer) {
    if (frame < 0) return -1;
    below = frame;
    frame = frames[static_cast<size_t>(frame)].parent;
  }
  return below;
}

Result<Frames> FindFrames(const NodeGraph& graph, const std::vector<bool>& needed) {
  return Finder(graph, needed).Run();
}

}  // namespace heddle::tensorflow
