// Graphs of old control flow (Switch, Merge, Enter, Exit, NextIteration) as branches and loops that
// lie in each other.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/tensorflow/node_graph.h"
#include "heddle/status.h"

namespace heddle::tensorflow {

struct Item;

// Items in an order in which what they need comes first.
struct Region {
  std::vector<Item> items;
};

// The condition of a branch: a truth value, or that a number is `equals`.
struct Predicate {
  Source value;
  int equals = -1;  // -1: the value is a truth
  bool operator==(const Predicate&) const = default;
};

// The nodes that run if a predicate is true, and those for false. A Merge takes its value from the
// side that ran.
struct Branches {
  // A Merge of more than two inputs is several: one joins two sides, and those inside join what the
  // sides have of its inputs.
  struct Join {
    int merge = 0;
    Source sides[2];                     // of the false and the true side; see kInside
    int inputs[2] = {kInside, kInside};  // which input of the Merge each side gives
    bool is_inside = false;              // another join has its value
  };
  static constexpr int kInside = -1;  // the side is of several inputs: a join inside tells which
  Predicate predicate;
  Region sides[2];  // false, true
  std::vector<Join> joins;
};

// A frame: values go around until LoopCond is false.
struct Loop {
  struct Variable {
    int merge = 0;
    Source first, next;
    std::vector<int> switches, exits;
  };
  std::string_view frame;
  std::vector<Variable> variables;
  std::vector<int> invariants;  // Enter nodes of values that stay
  Source condition;
  // The condition's nodes run before the first round and behind each.
  Region before, body;
};

struct Item {
  int node = -1;  // where it is one
  std::unique_ptr<Branches> branches;
  std::unique_ptr<Loop> loop;
};

// Whether a node, or a function that it calls, may write a variable or draw random numbers.
using MayWrite = std::function<bool(const Node&)>;

// The needed nodes. kInvalidArgument: a cycle, a frame that is never left, and what else no program
// of structured control flow can say.
Result<Region> Structure(const NodeGraph& graph, const std::vector<bool>& needed,
                         const MayWrite& may_write);

}  // namespace heddle::tensorflow
