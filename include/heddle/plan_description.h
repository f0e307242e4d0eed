// A plan as data for tools: instructions, slots, tasks, lanes.
//
// A plain value, which does not refer to the plan.
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
    // none, feed, scope, const, arena, output, view, pool, or shape: without memory, since only
    // dtype and shape are read
    std::string storage;
    int block = 0;           // the block whose work space holds it, if it has an offset
    bool is_static = false;  // dtype, shape and bytes are known before the run
    DType dtype = DType::kUnknown;
    Shape shape = Shape::Unknown();
    size_t offset = 0;  // in the arena, in bytes
    size_t bytes = 0;
    int base = -1;              // of a view: the slot that owns the memory
    std::string place = "cpu";  // or a device's, such as "emulated:0"
    // Equal for slots that share memory, at the same time or one after another.
    int storage_id = -1;
  };
  struct Instruction {
    std::string op;
    // static, pooled, dynamic, share, replace or wide; scalar: static, of one element, which a run
    // computes without a call of the kernel unless it is traced or checked.
    std::string mode;
    // The implementation of its kernel, such as "winograd 4x4, avx2"; "peer": a copy from device to
    // device; empty: there is only one, or shapes are known only in the run.
    std::string implementation;
    // Why it has this implementation: the candidates, in the order of the choices. Empty if there
    // is only one, or shapes are known only in the run.
    std::vector<ImplementationChoice> choices;
    std::string why;  // the same in words
    // All attributes of the operator, with defaults for those that the file lacks.
    std::vector<std::pair<std::string, AttributeValue>> attributes;
    std::string place = "cpu";         // or a device's; of a copy: its destination
    std::string stream;                // of the device; empty: the host executes it
    std::vector<int> waits;            // events that it waits for
    int event = -1;                    // recorded after it; -1: none
    int block = 0;                     // of the optimised program
    int position = 0;                  // in the block's operators
    std::vector<int> inputs, outputs;  // slots; -1 for none
    // Pairs of positions in `inputs` and `outputs`: the output may overwrite the input if that is
    // not needed any more.
    std::vector<std::pair<int, int>> in_place;
    std::vector<int> blocks;  // that it runs
    double cost_ns = 0;       // estimated, on one thread
    bool measured = false;    // cost_ns is the measured time on its device, which chose the stream
    bool once = false;        // in a loop's body: executed in the first iteration only
    // The task of a queue or of a device's plan; with lanes: the segment, a part of a lane in which
    // only the first instruction may wait for other lanes.
    int task = -1;
    int lane = -1;
  };
  struct Port {
    std::string name;
    int slot = -1;
  };
  std::string version;               // of heddle
  uint64_t program_hash = 0;         // Program::hash
  std::string machine;               // what determines the choice of kernels, in words
  std::string program, dispatch;     // serial, lanes, queue or device
  std::vector<std::string> places;   // with what they execute or hold, the host first
  std::vector<std::string> streams;  // of devices
  int events = 0, copies = 0;
  int peer_copies = 0;  // copies from one device to another
  int lanes = 1, tasks = 0;
  size_t arena_bytes = 0, arena_bound_bytes = 0;
  std::vector<Slot> slots;
  std::vector<Instruction> instructions;  // block after block, each in a valid order
  std::vector<int> order;  // with lanes: an order of block 0's instructions for one thread
  std::vector<Port> feeds, fetches;
  // Pairs of instructions of block 0, of which the second waits for the first, without those that
  // others imply. With lanes only pairs between lanes, since a lane executes its instructions in
  // order.
  std::vector<std::pair<int, int>> dependencies;

  // For Graphviz: instructions grouped by task or lane, with an edge per wait.
  std::string ToDot() const;
};

}  // namespace heddle
