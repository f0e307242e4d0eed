// Fused element-wise loops: the steps of an ElementProgram, run tile by tile, each tile through all
// steps while it is in the first-level cache.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/kernel_context.h"
#include "kernels/base/broadcast.h"
#include "kernels/folds/reduce.h"
#include "kernels/fused/element_program.h"

namespace heddle {

// Location of a value in memory: an operand, an output, or a tensor between two loops.
struct ElementPlace {
  enum Kind : uint8_t { kInput, kOutput, kBetween } kind = kInput;
  uint32_t index = 0;
};

// Steps whose results have one shape. A step's operands are indices into a table of addresses:
// first the registers, of one tile each, then the spreads (operands that are repeated: a value, a
// piece of a row, or a tile filled from it), then the streams (tensors of the results' shape, of
// which each tile is a stretch).
struct ElementLoop {
  struct Spread {
    ElementPlace from;
    BroadcastPlan plan;        // y is the operand
    bool filled_once = false;  // every tile is the same
    bool one = false;          // the same value for all of a tile: steps are given just that
  };
  struct Stream {
    ElementPlace place;
    bool read = false, written = false;
  };
  std::vector<TileStep> steps;
  std::vector<Spread> spreads;
  std::vector<Stream> streams;
  uint32_t registers = 0;
  int64_t numel = 0;
  int64_t tile = 0;   // elements, a multiple of TileStep::kGroup
  int64_t grain = 1;  // tiles worth a thread of their own
  // Few elements, in whole tiles that need no filling: a run is little more than the steps.
  bool small = false;
  // For each step of a small loop of several tiles: whether it reads a row that is the same for all
  // tiles. Such a step computes tile by tile, all others compute all elements at once. Empty: there
  // is no such step.
  std::vector<bool> reads_row;
  // No loop over elements, but a reduction of one value in memory to another.
  const ReduceLoops* reduce = nullptr;
  ReducePlan reduce_plan;
  ElementPlace from, to;
};

// State of the operator for one set of shapes.
struct ElementLoops : KernelState {
  std::vector<ElementLoop> loops;  // one after another
  std::vector<Shape> between;      // tensors that one loop writes and later ones read
  DType dtype = DType::kUnknown;
};

Result<std::unique_ptr<ElementLoops>> MakeElementLoops(const ElementProgram& program,
                                                       const ElementShapes& shapes, DType dtype);

void FindSmall(ElementLoop* loop);  // sets ElementLoop::small and what goes with it

// The operator's only slots are the lists of operands and outputs.
void RunElementLoops(const KernelContext& ctx, const ElementLoops& loops);

}  // namespace heddle
