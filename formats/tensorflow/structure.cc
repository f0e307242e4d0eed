// The elements of a frame are its nodes and the loops directly inside it. Each element has a
// context: the sides of the Switches around it, from the outside in. Elements whose context goes
// beyond the region's, and the Merges that they lead to, are grouped by their connections; each
// group becomes branches.
#include "formats/tensorflow/structure.h"

#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/interrupts.h"
#include "formats/tensorflow/frames.h"

namespace heddle::tensorflow {
namespace {

constexpr size_t kMostContexts = 64;
constexpr size_t kMostInputs = 1000;

struct Side {
  Predicate predicate;
  int side = 0;  // 1: the true side
  bool operator==(const Side&) const = default;
};
using Context = std::vector<Side>;

std::string NamedNode(const Node& node) { return StrCat("node '", node.name, "' (", node.op, ")"); }

// Where the inputs of a Merge, or of a join inside one of its sides, come together: the predicate,
// whose two sides have them.
struct Meeting {
  int merge = 0;
  size_t depth = 0;  // length of the sides' common context
  Predicate predicate;
  Source sides[2];
  int inputs[2] = {Branches::kInside, Branches::kInside};
};

// A frame and its elements. Numbers: nodes have their index, inner loops follow, then the joins
// inside the sides of Merges with more than two inputs.
struct Elements {
  int frame = 0;
  std::vector<int> all;
  std::map<int, std::vector<int>> before;  // per element: those that it depends on
  std::map<int, Context> context;
  std::map<int, Meeting> meetings;  // of Merges and joins
  std::set<int> at_hand;  // Enter, Exit, NextIteration, and the loop's own Merges and Switches
};

class Structurer {
 public:
  Structurer(const NodeGraph& graph, const std::vector<bool>& needed, const MayWrite& may_write,
             Frames frames)
      : graph_(graph), needed_(needed), may_write_(may_write), frames_(std::move(frames)) {}

  Result<Region> Run() {
    HEDDLE_ASSIGN_OR_RETURN(Elements elements, ElementsOf(0));
    return Build(elements, elements.all, 0);
  }

 private:
  const Node& node(int i) const { return graph_.node(i); }
  int count() const { return static_cast<int>(graph_.size()); }
  int joins_from() const { return count() + static_cast<int>(frames_.frames.size()); }
  bool IsInnerJoin(int element) const { return element >= joins_from(); }
  bool IsLoop(int element) const { return element >= count() && !IsInnerJoin(element); }
  bool IsNode(int element) const { return element >= 0 && element < count(); }
  bool IsJoin(const Elements& e, int element) const { return e.meetings.contains(element); }
  int FrameOf(int element) const { return element - count(); }
  size_t At(int i) const { return static_cast<size_t>(i); }

  // The frame's element that contains a node; -1: the node lies outside the frame.
  int Lift(int i, int frame) const {
    const int below = frames_.Below(frames_.of[At(i)], frame);
    if (below < 0) return -1;
    return below == frame ? i : count() + below;
  }

  Result<Elements> ElementsOf(int frame) {
    Elements e;
    e.frame = frame;
    std::set<int> seen;
    for (int i = 0; i < count(); ++i) {
      LookForInterrupt();
      if (!needed_[At(i)]) continue;
      const int element = Lift(i, frame);
      if (element < 0) continue;
      if (seen.insert(element).second) e.all.push_back(element);
      std::vector<int>& before = e.before[element];
      const auto add = [&](int from) {
        const int other = Lift(from, frame);
        if (other >= 0 && other != element) before.push_back(other);
      };
      if (frame != 0 && element == i && IsAtHand(i, frame)) {
        e.at_hand.insert(i);
        continue;
      }
      for (const Source& input : graph_.links(i).inputs)
        if (input.is_node()) add(input.node);
      for (int control : graph_.links(i).controls) add(control);
    }
    HEDDLE_RETURN_IF_ERROR(FindContexts(&e));
    return e;
  }

  // Whether the node is part of the frame's own loop: it carries values and is no item of the body.
  bool IsAtHand(int i, int frame) const {
    const Node& n = node(i);
    if (IsEnter(n) || IsExit(n) || IsNextIteration(n)) return frames_.of[At(i)] == frame;
    if (IsMerge(n)) return IsLoopMerge(i);
    return IsSwitch(n) && IsLoopSwitch(i);
  }
  bool IsLoopMerge(int i) const {
    for (const Source& input : graph_.links(i).inputs)
      if (input.is_node() && IsNextIteration(node(input.node))) return true;
    return false;
  }
  bool IsLoopSwitch(int i) const {
    const auto& inputs = graph_.links(i).inputs;
    if (inputs.size() < 2) return false;
    const Source predicate = Root(inputs[1]);
    return predicate.is_node() && IsLoopCond(node(predicate.node)) && inputs[0].is_node() &&
           IsMerge(node(inputs[0].node)) && IsLoopMerge(inputs[0].node);
  }

  // The source of a value, behind Identity nodes.
  Source Root(Source s) const {
    for (size_t steps = 0; s.is_node() && node(s.node).op == "Identity" && steps < graph_.size();
         ++steps) {
      const auto& inputs = graph_.links(s.node).inputs;
      if (inputs.empty()) break;
      s = inputs[0];
    }
    return s;
  }

  // The elements in topological order; empty: there is a cycle.
  std::vector<int> Order(const std::vector<int>& elements,
                         const std::map<int, std::vector<int>>& before) const {
    std::map<int, int> waits;
    std::map<int, std::vector<int>> readers;
    for (int e : elements) waits[e] = 0;
    for (int e : elements) {
      const auto needs = before.find(e);
      if (needs == before.end()) continue;
      for (int b : needs->second) {
        if (!waits.contains(b)) continue;
        readers[b].push_back(e);
        ++waits[e];
      }
    }
    // Of the ready elements, nodes that write a variable go last, after earlier nodes that may read
    // it.
    using Key = std::pair<int, int>;
    const auto key = [&](int e) { return Key(IsNode(e) && WritesVariable(node(e).op) ? 1 : 0, e); };
    std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
    for (int e : elements)
      if (waits[e] == 0) ready.push(key(e));
    std::vector<int> order;
    while (!ready.empty()) {
      const int e = ready.top().second;
      ready.pop();
      order.push_back(e);
      for (int reader : readers[e])
        if (--waits[reader] == 0) ready.push(key(reader));
    }
    if (order.size() < elements.size()) order.clear();
    return order;
  }

  // --- contexts

  Context OfValue(const Elements& e, Source source) const {
    if (!source.is_node()) return {};
    const int element = Lift(source.node, e.frame);
    if (element < 0) return {};
    const auto known = e.context.find(element);
    Context context = known == e.context.end() ? Context() : known->second;
    if (element != source.node || e.at_hand.contains(element) ||
        graph_.links(element).inputs.size() < 2)
      return context;
    const Source by = Root(graph_.links(element).inputs[1]);
    if (IsSwitch(node(element))) context.push_back({{by}, source.port == 0 ? 0 : 1});
    if (IsSwitchN(node(element))) AddNumbered(by, source.port, node(element), &context);
    return context;
  }

  // Adds the sides for output `port` of a Switch by number: the number is none of those before and,
  // unless the output is the last, it is this one.
  static void AddNumbered(Source by, int port, const Node& node, Context* context) {
    const Attribute* count = node.Find("num_outs");
    const int64_t outputs = count != nullptr && count->kind == Attribute::kInt ? count->i : 0;
    const int most = static_cast<int>(kMostContexts);
    for (int k = 0; k < port && k < most; ++k) context->push_back({{by, k}, 0});
    if (int64_t{port} + 1 < outputs) context->push_back({{by, port}, 1});
  }

  static void Join(const Context& other, Context* context) {
    for (const Side& side : other)
      if (std::find(context->begin(), context->end(), side) == context->end())
        context->push_back(side);
  }

  Status FindContexts(Elements* e) {
    const std::vector<int> order = Order(e->all, e->before);
    if (order.empty() && !e->all.empty())
      return InvalidArgument("the graph has a cycle that no NextIteration closes");
    for (int element : order) {
      LookForInterrupt();
      Context context;
      if (!IsLoop(element) && IsMerge(node(element)) && !e->at_hand.contains(element)) {
        HEDDLE_RETURN_IF_ERROR(Meet(e, element, &context));
      } else if (!e->at_hand.contains(element)) {
        const auto add = [&](int i) {
          for (const Source& input : graph_.links(i).inputs)
            if (!input.is_node() || Lift(input.node, e->frame) != element)
              Join(OfValue(*e, input), &context);
          for (int control : graph_.links(i).controls) {
            const int from = Lift(control, e->frame);
            if (from >= 0 && from != element) Join(e->context[from], &context);
          }
        };
        if (!IsLoop(element)) {
          add(element);
        } else {
          for (int i = 0; i < count(); ++i)
            if (needed_[At(i)] && Lift(i, e->frame) == element) add(i);
        }
      }
      if (context.size() > kMostContexts)
        return InvalidArgument("conditions lie in each other more than ", kMostContexts, " deep");
      e->context[element] = std::move(context);
    }
    return Status::Ok();
  }

  // Finds the meeting of a Merge's inputs, and the context that is left for the Merge.
  Status Meet(Elements* e, int merge, Context* context) {
    std::vector<int> inputs;
    for (size_t k = 0; k < graph_.links(merge).inputs.size(); ++k)
      inputs.push_back(static_cast<int>(k));
    if (inputs.size() < 2)
      return InvalidArgument(NamedNode(node(merge)), " has ", inputs.size(),
                             " inputs; two are expected, or more");
    if (inputs.size() > kMostInputs)
      return InvalidArgument(NamedNode(node(merge)), " has ", inputs.size(),
                             " inputs; heddle reads those of up to ", kMostInputs);
    return MeetAt(e, merge, merge, inputs, context);
  }

  // Finds the meeting of `inputs` for `element`, a Merge or a join: a predicate such that each
  // input is on one of its sides.
  Status MeetAt(Elements* e, int element, int merge, const std::vector<int>& inputs,
                Context* context) {
    std::vector<Context> contexts;
    for (int k : inputs)
      contexts.push_back(OfValue(*e, graph_.links(merge).inputs[static_cast<size_t>(k)]));
    const Context& first = contexts[0];
    const auto has = [](const Context& c, const Side& s) {
      return std::find(c.begin(), c.end(), s) != c.end();
    };
    for (size_t i = 0; i < first.size(); ++i) {
      std::vector<int> sides[2];
      for (size_t k = 0; k < inputs.size(); ++k)
        for (int side : {0, 1})
          if (has(contexts[k], {first[i].predicate, side})) sides[side].push_back(inputs[k]);
      if (sides[0].empty() || sides[1].empty() ||
          sides[0].size() + sides[1].size() != inputs.size())
        continue;
      Meeting m;
      m.merge = merge;
      m.depth = i;
      m.predicate = first[i].predicate;
      *context = Context(first.begin(), first.begin() + static_cast<int64_t>(i));
      // With a further condition the Merge could be without a value, which branches cannot express.
      for (size_t k = 0; k < inputs.size(); ++k)
        if (contexts[k].size() != i + 1 && IsAlone(sides, inputs[k]))
          return InvalidArgument(NamedNode(node(merge)), ": its input ", inputs[k],
                                 " runs under further conditions than its own side of a Switch; "
                                 "heddle does not read such a graph");
      for (size_t s = 0; s < 2; ++s) HEDDLE_RETURN_IF_ERROR(TakeSide(e, element, sides[s], s, &m));
      e->meetings[element] = m;
      return Status::Ok();
    }
    return InvalidArgument(NamedNode(node(merge)), ": its inputs are not ",
                           inputs.size() == 2 ? "the two sides of one Switch"
                                              : "sides of Switches that exclude each other");
  }
  static bool IsAlone(const std::vector<int> (&sides)[2], int input) {
    for (const std::vector<int>& side : sides)
      if (side.size() == 1 && side[0] == input) return true;
    return false;
  }
  Status TakeSide(Elements* e, int element, const std::vector<int>& inputs, size_t side,
                  Meeting* m) {
    if (inputs.size() == 1) {
      m->sides[side] = graph_.links(m->merge).inputs[static_cast<size_t>(inputs[0])];
      m->inputs[side] = inputs[0];
      return Status::Ok();
    }
    const int inner = joins_from() + inner_joins_++;
    e->all.push_back(inner);
    for (int k : inputs) {
      const Source& input = graph_.links(m->merge).inputs[static_cast<size_t>(k)];
      const int from = input.is_node() ? Lift(input.node, e->frame) : -1;
      if (from >= 0) e->before[inner].push_back(from);
    }
    e->before[element].push_back(inner);
    m->sides[side] = {m->merge, 0};
    Context context;
    HEDDLE_RETURN_IF_ERROR(MeetAt(e, inner, m->merge, inputs, &context));
    e->context[inner] = std::move(context);
    return Status::Ok();
  }

  // --- regions

  static int Leader(std::map<int, int>* leaders, int e) {
    // Path halving, which keeps later searches short.
    for (int* up = &(*leaders)[e]; *up != e; up = &(*leaders)[e]) e = *up = (*leaders)[*up];
    return e;
  }

  // Builds a region of these elements, whose contexts agree in the first `depth` sides.
  Result<Region> Build(const Elements& e, const std::vector<int>& elements, size_t depth) {
    const std::set<int> here(elements.begin(), elements.end());
    std::map<int, int> leaders;
    const auto is_deeper = [&](int x) {
      return here.contains(x) && e.context.at(x).size() > depth;
    };
    const auto is_join = [&](int x) { return IsJoin(e, x) && e.context.at(x).size() == depth; };
    for (int x : elements)
      if (is_deeper(x) || is_join(x)) leaders[x] = x;
    const auto unite = [&](int a, int b) { leaders[Leader(&leaders, a)] = Leader(&leaders, b); };
    for (int x : elements) {
      const bool deeper = is_deeper(x);
      if (!deeper && !is_join(x)) continue;
      const auto needs = e.before.find(x);
      if (needs == e.before.end()) continue;
      for (int from : needs->second) {
        if (!is_deeper(from)) continue;
        if (!deeper || e.context.at(from)[depth] == e.context.at(x)[depth]) unite(x, from);
      }
    }
    // Each group is one item, with a negative number.
    std::map<int, std::vector<int>> groups;
    for (const auto& [x, leader] : leaders) groups[-1 - Leader(&leaders, x)].push_back(x);
    const auto item_of = [&](int x) { return leaders.contains(x) ? -1 - Leader(&leaders, x) : x; };
    std::vector<int> items;
    std::map<int, std::vector<int>> before;
    for (int x : elements) {
      if (e.at_hand.contains(x)) continue;
      const int item = item_of(x);
      if (item == x || groups[item].front() == x) items.push_back(item);
      const auto needs = e.before.find(x);
      if (needs == e.before.end()) continue;
      for (int from : needs->second)
        if (here.contains(from) && item_of(from) != item && !e.at_hand.contains(from))
          before[item].push_back(item_of(from));
    }
    const std::vector<int> order = Order(items, before);
    if (order.empty() && !items.empty())
      return InvalidArgument("branches wait for each other; heddle does not read such a graph");
    Region region;
    for (int item : order) {
      LookForInterrupt();
      Item& made = region.items.emplace_back();
      if (item < 0) {
        HEDDLE_ASSIGN_OR_RETURN(Branches branches, BuildBranches(e, groups[item], depth));
        made.branches = std::make_unique<Branches>(std::move(branches));
      } else if (IsLoop(item)) {
        HEDDLE_ASSIGN_OR_RETURN(Loop loop, BuildLoop(FrameOf(item)));
        made.loop = std::make_unique<Loop>(std::move(loop));
      } else {
        made.node = item;
      }
    }
    return region;
  }

  Result<Branches> BuildBranches(const Elements& e, const std::vector<int>& group, size_t depth) {
    Branches branches;
    std::vector<int> sides[2];
    bool known = false;
    const auto is_of = [&](const Predicate& predicate) {
      if (!known) branches.predicate = predicate;
      known = true;
      return branches.predicate == predicate;
    };
    for (int x : group) {
      if (e.context.at(x).size() > depth) {
        const Side& side = e.context.at(x)[depth];
        if (!is_of(side.predicate))
          return InvalidArgument("branches of two conditions are mixed; heddle does not read them");
        sides[side.side].push_back(x);
        continue;
      }
      const Meeting& m = e.meetings.at(x);
      if (!is_of(m.predicate))
        return InvalidArgument(NamedNode(node(m.merge)), " joins branches of two conditions");
      branches.joins.push_back(
          {m.merge, {m.sides[0], m.sides[1]}, {m.inputs[0], m.inputs[1]}, IsInnerJoin(x)});
    }
    for (size_t s = 0; s < 2; ++s) {
      HEDDLE_ASSIGN_OR_RETURN(branches.sides[s], Build(e, sides[s], depth + 1));
    }
    return branches;
  }

  // --- loops

  Result<Loop> BuildLoop(int frame) {
    Loop loop;
    loop.frame = frames_.frames[At(frame)].name;
    std::map<int, size_t> places;  // of a Merge: index in `variables`
    std::vector<int> conditions;
    std::vector<Source> round;  // values that an iteration computes
    for (int i = 0; i < count(); ++i) {
      LookForInterrupt();
      if (!needed_[At(i)] || frames_.of[At(i)] != frame) continue;
      const Node& n = node(i);
      if (IsLoopCond(n)) conditions.push_back(i);
      if (IsEnter(n)) loop.invariants.push_back(i);
      if (!IsMerge(n) || !IsLoopMerge(i)) continue;
      const auto& inputs = graph_.links(i).inputs;
      if (inputs.size() != 2)
        return InvalidArgument(NamedNode(n), " has ", inputs.size(), " inputs; a loop's has two");
      const size_t back = IsNextIteration(node(inputs[0].node)) ? 0 : 1;
      const int next = inputs[back].node;
      if (graph_.links(next).inputs.empty())
        return InvalidArgument(NamedNode(node(next)), " has no input");
      places.emplace(i, loop.variables.size());
      round.push_back(graph_.links(next).inputs[0]);
      for (int control : graph_.links(next).controls) round.push_back({control, 0});
      loop.variables.push_back({i, inputs[1 - back], graph_.links(next).inputs[0], {}, {}});
    }
    if (conditions.size() != 1)
      return InvalidArgument("the loop '", loop.frame, "' has ", conditions.size(),
                             " LoopConds, where one says when it ends");
    for (int i = 0; i < count(); ++i) {
      LookForInterrupt();
      if (!needed_[At(i)] || frames_.of[At(i)] != frame) continue;
      const Node& n = node(i);
      if (!IsSwitch(n) || !IsLoopSwitch(i)) continue;
      const auto place = places.find(graph_.links(i).inputs[0].node);
      if (place == places.end())
        return InvalidArgument(NamedNode(n), " switches a variable of another loop than '",
                               loop.frame, "', which it is in");
      loop.variables[place->second].switches.push_back(i);
    }
    bool leaves = false;
    for (int i = 0; i < count(); ++i) {
      LookForInterrupt();
      if (!needed_[At(i)] || frames_.of[At(i)] != frame || !IsExit(node(i))) continue;
      const auto& inputs = graph_.links(i).inputs;
      const Source from = inputs.empty() ? Source{} : Root(inputs[0]);
      bool found = false;
      for (Loop::Variable& v : loop.variables) {
        if (from.port != 0 ||
            std::find(v.switches.begin(), v.switches.end(), from.node) == v.switches.end())
          continue;
        v.exits.push_back(i);
        found = leaves = true;
      }
      if (!found)
        return InvalidArgument(NamedNode(node(i)), " does not leave the loop '", loop.frame,
                               "' from the Switch of one of its variables");
    }
    if (!leaves) return InvalidArgument("nothing leaves the loop '", loop.frame, "'");
    HEDDLE_ASSIGN_OR_RETURN(const Elements elements, ElementsOf(frame));
    loop.condition = {conditions[0], 0};
    HEDDLE_ASSIGN_OR_RETURN(loop.before, Build(elements, Leading(elements, {loop.condition}), 0));
    const std::vector<int> body = Leading(elements, round);
    for (int element : Leading(elements, {loop.condition}))
      if (const int writer = WriterIn(element, frame);
          writer >= 0 && std::binary_search(body.begin(), body.end(), element))
        return Unimplemented(NamedNode(node(writer)), " of the loop '", loop.frame,
                             "' is of the condition and of the body, which heddle runs apart: it "
                             "would take effect twice in a round");
    HEDDLE_ASSIGN_OR_RETURN(loop.body, Build(elements, body, 0));
    return loop;
  }

  // A node of the element, which may be an inner loop, that may write a variable; -1: there is
  // none.
  int WriterIn(int element, int frame) const {
    if (IsInnerJoin(element)) return -1;
    if (!IsLoop(element)) return may_write_(node(element)) ? element : -1;
    for (int i = 0; i < count(); ++i)
      if (needed_[At(i)] && Lift(i, frame) == element && may_write_(node(i))) return i;
    return -1;
  }

  // The elements that these values depend on within an iteration.
  std::vector<int> Leading(const Elements& e, const std::vector<Source>& values) const {
    std::set<int> marked;
    std::vector<int> open;
    const auto mark = [&](int element) {
      if (element >= 0 && !e.at_hand.contains(element) && marked.insert(element).second)
        open.push_back(element);
    };
    for (const Source& value : values)
      if (value.is_node()) mark(Lift(value.node, e.frame));
    while (!open.empty()) {
      const auto needs = e.before.find(open.back());
      open.pop_back();
      if (needs == e.before.end()) continue;
      for (int from : needs->second) mark(from);
    }
    return {marked.begin(), marked.end()};
  }

  const NodeGraph& graph_;
  const std::vector<bool>& needed_;
  const MayWrite& may_write_;
  const Frames frames_;
  int inner_joins_ = 0;
};

}  // namespace

Result<Region> Structure(const NodeGraph& graph, const std::vector<bool>& needed,
                         const MayWrite& may_write) {
  HEDDLE_ASSIGN_OR_RETURN(Frames frames, FindFrames(graph, needed));
  return Structurer(graph, needed, may_write, std::move(frames)).Run();
}

}  // namespace heddle::tensorflow
