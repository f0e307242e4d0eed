// A plan as data for tools: instructions, the slots they read and write, tasks, lanes.
//
// A plain value; nothing in it refers to the plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "heddle/dtype.h"
#include "heddle/implementation_choice.h"
#include "heddle/pass.h"
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
    int base = -1;              // of a view: the slot whose memory it is
    std::string place = "cpu";  // or a device's, as "emulated:0"
    // The same for slots that lie at the same place, together or one after another.
    int storage_id = -1;
  };
  struct Instruction {
    std::string op;
    // static, pooled, dynamic, share, replace or wide; scalar: static, of one element, which a run
    // that nobody watches computes without a call of the kernel.
    std::string mode;
    // Its kernel's implementation, as in "winograd 4x4, avx2"; "peer": a copy from device to
    // device; empty where there is one only, or where shapes are known only at run time.
    std::string implementation;
    // Why it computes so: what there was to choose from, in the order in which it was chosen. None
    // where there is one way only, or where shapes are known only at run time.
    std::vector<ImplementationChoice> choices;
    std::string why;  // the same in words
    // As the operator has them: those that the file does not say have their defaults.
    std::vector<std::pair<std::string, AttributeValue>> attributes;
    std::string place = "cpu";         // or a device's; a copy's is where it goes to
    std::string stream;                // of the device; empty: the host executes it
    std::vector<int> waits;            // events that are reached before it starts
    int event = -1;                    // that is recorded behind it
    int block = 0;                     // of the optimised program
    int position = 0;                  // in the block's operators
    std::vector<int> inputs, outputs;  // slots; -1 for none
    // Positions in `inputs` and `outputs`: the operator may compute the latter in the former's
    // memory, if nobody needs that any more.
    std::vector<std::pair<int, int>> in_place;
    std::vector<int> blocks;  // that it runs
    double cost_ns = 0;       // expected, on one thread
    bool measured = false;    // ... or what its device took, by which its stream was chosen
    bool once = false;        // of a loop's body: in the first iteration only
    // Of a queue, or among the tasks of a device's plan; of lanes: the segment, a part of the lane
    // whose first instruction alone may wait for other lanes.
    int task = -1;
    int lane = -1;
  };
  struct Port {
    std::string name;
    int slot = -1;
  };
  std::string version;               // of heddle
  uint64_t program_hash = 0;         // Program::hash
  std::string machine;               // what decides how kernels compute, in words
  std::string program, dispatch;     // serial, lanes, queue or device
  std::vector<std::string> places;   // with what runs there or lies there, the host first
  std::vector<std::string> streams;  // of devices
  int events = 0, copies = 0;
  int peer_copies = 0;  // of the copies, those from one device to another
  int lanes = 1, tasks = 0;
  size_t arena_bytes = 0, arena_bound_bytes = 0;
  std::vector<Slot> slots;
  std::vector<Instruction> instructions;  // block after block, each in an order that can be run
  std::vector<int> order;  // with lanes: block 0's instructions in an order for one thread
  std::vector<Port> feeds, fetches;
  // Pairs of instructions of block 0: the second waits for the first. Pairs that others imply are
  // left out. With lanes: only pairs between lanes; a lane executes its instructions in order.
  std::vector<std::pair<int, int>> dependencies;

  // For Graphviz: instructions by task or lane, edges by what is waited for.
  std::string ToDot() const;
};

}  // namespace heddle
