// Fused loops over rows: the steps of an ElementProgram, some of which reduce rows, run for one
// block of rows after another while it is in the cache. Results have the bits of the operators
// alone.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "core/kernel_context.h"
#include "kernels/folds/reduce.h"
#include "kernels/fused/element_program.h"

namespace heddle {

// The loops of a reduction of rows that have `elements` together, as the operator itself chooses
// them; nullptr when `op` is none for this dtype.
const ReduceLoops* FindRowReduction(std::string_view op, DType dtype, int64_t elements);

// The loop for one set of shapes. All operands of a block are addresses in a table: of
// registers, one block each, of tensors, and of values that serve all blocks.
struct RowLoop {
  // A value has one element for each of these.
  enum Extent : uint8_t { kFull, kRow, kColumn, kOne };  // each element, row, column; or one alone
  enum Where : uint8_t {
    kRegister,
    kInput,   // a tensor, read in place
    kOutput,  // a tensor, written in place
    kTaken,   // a register that a block begins with, taken from a tensor
    kFilled,  // a register that all blocks begin with, filled once
    kGiven,   // a register that goes to a tensor when the block ends
  };
  struct Place {
    Where where = kRegister;
    Extent extent = kFull;  // of the place
    Extent tensor = kFull;  // of the tensor, which is smaller when the place is filled with it
    uint32_t slot = 0;      // of X or Out
    size_t offset = 0;      // of a register in the work space, in bytes
  };
  struct Action {
    enum What : uint8_t { kStep, kEachRow, kReduce, kSpread } what = kStep;
    uint8_t operands = 0;
    Extent extent = kFull;  // of the result of a step
    TileStep step;          // its operands are 0, 1, …, its result comes after them
    const ReduceLoops* reduce = nullptr;
    std::array<uint32_t, TileStep::kMaxIn + 1> at{};  // places: operands, then the result
  };
  std::vector<Place> places;
  std::vector<uint32_t> taken, filled, given, moving;  // places; the last ones are tensors
  std::vector<uint32_t> padded;  // registers that steps read beyond what is written to them
  std::vector<Action> actions;
  DType dtype = DType::kUnknown;
  int64_t rows = 0, cols = 0;
  int64_t block = 1;  // rows
  int64_t grain = 1;  // blocks worth a thread of their own
  // Blocks are not whole groups of elements, so they are computed in registers, which have room for
  // the rest of a group. If false, only the last block may be like that.
  bool apart = false;
  size_t work_bytes = 0;  // registers
};

// An error when the shapes are not such that each value has one element for each element, row or
// column of the shape that is reduced.
Result<std::unique_ptr<RowLoop>> MakeRowLoop(const ElementProgram& program,
                                             const ElementShapes& shapes, DType dtype);

// The operator's only slots are the lists of operands and outputs.
void RunRowLoop(const KernelContext& ctx, const RowLoop& loop);

}  // namespace heddle
