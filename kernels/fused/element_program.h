// The program of fused_elementwise and fused_rows: steps over values, in the order in which they
// are computed.
// Values 0 … inputs-1 are the operands X, value inputs + k is what step k computes.
//
// In the attributes: `ops` names the operator of each kind of step, `values` holds the numbers
// among its attributes (core/tile_ops.h), one kind after another; `code` has the kind and the
// operands of each step; `outs` says which values Out are. Out[0] is the last step's, so that it
// may lie in X[0]'s memory. In a program of fused_rows, `axes` dimensions at the end make a row,
// and a kind may be a reduction of rows. A kind may be `reshape2`, which computes nothing; `values`
// then has the number of its dimensions, and these, of which 0 and -1 mean what they do in `shape`.
#pragma once

#include <array>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "core/shape_context.h"
#include "core/tile_ops.h"

namespace heddle {

struct ElementProgram {
  struct Kind {
    const OpDef* def = nullptr;
    const TileOp* tile = nullptr;
    uint32_t operands = 0;
    size_t first_number = 0;  // in `values`
    bool broadcasts = false;
    int64_t axis = -1;
    bool reduces = false;  // rows, whose dimensions become ones with keep_dim, else none
    bool keep_dim = false;
    bool reshapes = false;  // to `dims`
    std::span<const double> dims;
  };
  struct Step {
    uint32_t kind = 0;
    std::array<uint32_t, TileStep::kMaxIn> in{};
  };
  explicit ElementProgram(std::pmr::memory_resource* memory)
      : kinds(memory), steps(memory), outs(memory) {}
  uint32_t inputs = 0;
  std::pmr::vector<Kind> kinds;
  std::pmr::vector<Step> steps;
  std::pmr::vector<uint32_t> outs;
  const Floats* numbers = nullptr;  // attribute `values`
  int axes = 0;                     // of a row; 0: the operator has no rows

  uint32_t values() const { return inputs + static_cast<uint32_t>(steps.size()); }
};

// Memory for what is read of an operator: on the stack, unless it has very many steps.
struct FusedMemory {
  std::array<std::byte, 8 << 10> bytes;
  std::pmr::monotonic_buffer_resource resource{bytes.data(), bytes.size()};
};

// Reads and checks the attributes, which must outlive the result, as `memory` must. Loops whose
// shapes change do it in every iteration.
Result<ElementProgram> ReadElementProgram(const OpContext& ctx, std::pmr::memory_resource* memory);

// The shape rule of operators whose only slots are the lists X and Out: Out's shapes, dtypes and
// sequence offsets.
Status InferElementProgram(ShapeContext& ctx);

// The shape of every value, as an index into the different ones.
struct ElementShapes {
  explicit ElementShapes(std::pmr::memory_resource* memory) : distinct(memory), of(memory) {}
  std::pmr::vector<Shape> distinct;
  std::pmr::vector<uint32_t> of;
  const Shape& Of(uint32_t value) const { return distinct[of[value]]; }
};

// `inputs` may have unknown dimensions; then other values may have such too.
Result<ElementShapes> InferElementShapes(const ElementProgram& program,
                                         std::span<const Shape* const> inputs,
                                         std::pmr::memory_resource* memory);

}  // namespace heddle
