// A plan as data for tools: instructions, the slots they read and write, tasks, lanes.
//
// A plain value; nothing in it refers to the plan.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/shape.h"

namespace heddle {

struct PlanDescription {
  // One version of one variable.
  struct Slot {
    std::string variable;
    // none, feed, scope, const, arena, output, view, pool, or shape: no memory, since only dtype
    // and shape are read
    std::string storage;
    int block = 0;           // in whose layout it lies, if it has a place
    bool is_static = false;  // dtype, shape and bytes are known before the run
    DType dtype = DType::kUnknown;
    Shape shape = Shape::Unknown();
    size_t offset = 0;  // in the arena
    size_t bytes = 0;
    int base = -1;  // of a view: the slot whose memory it is
  };
  struct Instruction {
    std::string op;
    std::string mode;  // static, pooled, dynamic, share or wide
    // How its kernel computes, as in "winograd 4x4, avx2"; empty where there is one way only, or
    // where shapes are known only at run time.
    std::string implementation;
    int block = 0;                     // of the optimised program
    int position = 0;                  // in the block's operators
    std::vector<int> inputs, outputs;  // slots; -1 for none
    // Positions in `inputs` and `outputs`: the operator may compute the latter in the former's
    // memory, if nobody needs that any more.
    std::vector<std::pair<int, int>> in_place;
    std::vector<int> blocks;  // that it runs
    double cost_ns = 0;       // expected, on one thread
    bool once = false;        // of a loop's body: in the first iteration only
    int task = -1;            // of a queue
    int lane = -1;
  };
  struct Port {
    std::string name;
    int slot = -1;
  };
  std::string program, dispatch;  // serial, lanes, queue or device
  int lanes = 1, tasks = 0;
  size_t arena_bytes = 0, arena_bound_bytes = 0;
  std::vector<Slot> slots;
  std::vector<Instruction> instructions;  // block after block, each in an order that can be run
  std::vector<Port> feeds, fetches;
  // Pairs of instructions of block 0: the second waits for the first. Pairs that others imply are
  // left out. With lanes: only pairs between lanes; a lane executes its instructions in order.
  std::vector<std::pair<int, int>> dependencies;

  // For Graphviz: instructions by task or lane, edges by what is waited for.
  std::string ToDot() const;
};

}  // namespace heddle
