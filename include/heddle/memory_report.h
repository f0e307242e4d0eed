// MemoryReport: where a plan keeps its temporaries, and how good that is. A plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace heddle {

struct MemoryReport {
  std::string schedule;  // "serial", "lanes", "queue" or "device"
  // Places are decided ahead of time; from a queue, and where a device has a part (whose memory is
  // counted with the host's), memory is taken while the program runs.
  bool decided = true;
  size_t buffers = 0;        // values that share memory by being views or in place count once
  size_t naive_bytes = 0;    // every buffer with memory of its own
  size_t bound_bytes = 0;    // peak of live bytes, one instruction after another
  size_t planned_bytes = 0;  // of the arena; 0 when nothing is decided
  // Planned over bound; 1 when there is nothing to plan.
  double ratio() const;

  // With CompileOptions::max_shapes: the block that the arena lies in, for all shapes up to those;
  // 0 where the run has memory of its own.
  size_t block_bytes = 0;

  // With several threads, where places are decided: what the same program would need one
  // instruction after another ("serial"), in lanes ("lanes"), and in lanes that also wait for each
  // other's memory
  // ("edges", see Reuse), all by estimated costs.
  struct Way {
    std::string name;
    size_t planned_bytes = 0;
    double ratio = 1;        // over the peak of live bytes, one instruction after another
    int edges = 0;           // waits that were added
    double makespan_us = 0;  // predicted
  };
  std::vector<Way> ways;

  // A temporary of known size. Instructions are counted in an order that one thread could follow.
  struct Value {
    std::string name;  // of the variable
    uint32_t slot = 0;
    uint32_t buffer = 0;  // the same for values of one buffer
    size_t offset = 0;
    size_t bytes = 0;
    uint32_t first = 0, last = 0;  // instructions that use it
  };
  std::vector<Value> values;
  // Values whose memory is taken one by one, since their sizes or their order are found while
  // running. Those of one kind take blocks in turns (docs/memory.md, Tokens): a kind is a place,
  // and on devices a dtype besides.
  struct Tokens {
    std::string place;  // "cpu", "device 0", …
    std::string dtype;  // as the program declares it; empty: any, or it does not
    size_t values = 0;
  };
  std::vector<Tokens> tokens;
  // A summary, and one line for each value.
  std::string ToString() const;
};

}  // namespace heddle
