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
  // A summary, and one line for each value.
  std::string ToString() const;
};

}  // namespace heddle
