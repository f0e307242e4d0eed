// Converts graphs with old control flow (Switch, Merge, Enter, Exit, NextIteration) to nested
// branches and loops.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/tensorflow/node_graph.h"
#include "heddle/status.h"

namespace heddle::tensorflow {

struct Item;

// Items in topological order.
struct Region {
  std::vector<Item> items;
};

// The condition of a branch: that a bool is true, or that a number equals `equals`.
struct Predicate {
  Source value;
  int equals = -1;  // -1: the value is a bool
  bool operator==(const Predicate&) const = default;
};

// The nodes that run if a predicate is true, and those that run if it is false. A Merge takes its
// value from the side that ran.
struct Branches {
  // A Merge of more than two inputs becomes several joins: the outermost joins the two sides, and a
  // side with several of the inputs has joins inside it.
  struct Join {
    int merge = 0;
    Source sides[2];                     // of the false and the true side; see kInside
    int inputs[2] = {kInside, kInside};  // which input of the Merge each side gives
    bool is_inside = false;              // belongs to another join, not to a Merge's output
  };
  static constexpr int kInside = -1;  // the side has several inputs: a join inside decides
  Predicate predicate;
  Region sides[2];  // false, true
  std::vector<Join> joins;
};

// A loop frame: it iterates until LoopCond is false.
struct Loop {
  struct Variable {
    int merge = 0;
    Source first, next;
    std::vector<int> switches, exits;
  };
  std::string_view frame;
  std::vector<Variable> variables;
  std::vector<int> invariants;  // Enter nodes of values that do not change
  Source condition;
  // The nodes of the condition, which run before the first iteration and after each one, and those
  // of the body.
  Region before, body;
};

struct Item {
  int node = -1;  // the node, if it is one
  std::unique_ptr<Branches> branches;
  std::unique_ptr<Loop> loop;
};

// Whether a node, or a function that it calls, may write a variable or draw random numbers.
using MayWrite = std::function<bool(const Node&)>;

// Structures the needed nodes. kInvalidArgument: a cycle, a frame without an exit, or other control
// flow that is not structured.
Result<Region> Structure(const NodeGraph& graph, const std::vector<bool>& needed,
                         const MayWrite& may_write);

}  // namespace heddle::tensorflow
