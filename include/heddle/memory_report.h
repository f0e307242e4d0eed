// MemoryReport: how a plan uses memory for its temporaries. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

struct MemoryReport {
  std::string schedule;  // "serial", "lanes", "queue" or "device"
  // Whether memory is planned ahead. With a queue, and for the host's part beside a device (whose
  // memory is included), it is allocated during the run.
  bool decided = true;
  size_t buffers = 0;        // values that share memory, as views or in place, count once
  size_t naive_bytes = 0;    // if every buffer had its own memory
  size_t bound_bytes = 0;    // peak of live bytes if instructions run one after another
  size_t planned_bytes = 0;  // size of the arena; 0 if nothing is planned ahead
  // planned_bytes over bound_bytes; 1 if there is nothing to plan.
  double ratio() const;

  // With CompileOptions::max_shapes: the size of the block for all shapes up to those, which holds
  // the arena; 0: the run has its own memory.
  size_t block_bytes = 0;

  // With several threads, if memory is planned ahead: what the program would need one instruction
  // after another ("serial"), in lanes ("lanes"), and in lanes that also wait to share memory
  // ("edges", see Reuse), from estimated costs.
  struct Way {
    std::string name;
    size_t planned_bytes = 0;
    double ratio = 1;        // over the peak of live bytes, one instruction after another
    int edges = 0;           // added waits
    double makespan_us = 0;  // predicted
  };
  std::vector<Way> ways;

  // A temporary of known size. Instructions are numbered in an order that one thread could follow.
  struct Value {
    std::string name;  // of the variable
    uint32_t slot = 0;
    uint32_t buffer = 0;  // equal for values in one buffer
    size_t offset = 0;
    size_t bytes = 0;
    uint32_t first = 0, last = 0;  // the first and the last instruction that uses it
  };
  std::vector<Value> values;
  // Values whose memory is allocated one by one, since sizes or order are known only in the run.
  // Values of one kind (a place, on devices also a dtype) take turns with blocks (docs/memory.md,
  // Tokens).
  struct Tokens {
    std::string place;  // "cpu", "device 0", …
    std::string dtype;  // as the program declares it; empty: any, or not declared
    size_t values = 0;
  };
  std::vector<Tokens> tokens;
  // A summary, and one line per value.
  std::string ToString() const;
};

}  // namespace heddle
