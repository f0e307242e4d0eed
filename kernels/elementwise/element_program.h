// The program of fused_elementwise: steps over values, in the order in which they are computed.
// Values 0 … inputs-1 are the operands X, value inputs + k is what step k computes.
//
// In the attributes: `ops` names the operator of each kind of step, `values` holds the numbers
// among its attributes (core/tile_ops.h), one kind after another; `code` has the kind and the
// operands of each step; `outs` says which values Out are. Out[0] is the last step's, so that it
// may lie in X[0]'s memory.
#pragma once

#include <array>
#include <vector>

#include "core/op_context.h"
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
  };
  struct Step {
    uint32_t kind = 0;
    std::array<uint32_t, TileStep::kMaxIn> in{};
  };
  uint32_t inputs = 0;
  std::vector<Kind> kinds;
  std::vector<Step> steps;
  std::vector<uint32_t> outs;
  const Floats* numbers = nullptr;  // attribute `values`

  uint32_t values() const { return inputs + static_cast<uint32_t>(steps.size()); }
};

// Reads and checks the attributes, which must outlive the result.
Result<ElementProgram> ReadElementProgram(const OpContext& ctx);

// The shape of every value, as an index into the different ones.
struct ElementShapes {
  std::vector<Shape> distinct;
  std::vector<uint32_t> of;
  const Shape& Of(uint32_t value) const { return distinct[of[value]]; }
};

// `inputs` may have unknown dimensions; then others have, too.
Result<ElementShapes> InferElementShapes(const ElementProgram& program,
                                         const std::vector<const Shape*>& inputs);

}  // namespace heddle
