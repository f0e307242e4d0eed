#include "formats/paddle_words.h"

#include <limits>

#include "core/op_registry.h"

namespace heddle::formats {

std::optional<ir::Op> InPaddlesWords(const ir::Op& op) {
  if (op.type() != "relu" || !op.Attr<bool>("keep_nan")) return std::nullopt;
  // clip without an upper limit keeps NaN, as this relu does.
  ir::Op clip = ir::MakeOp(*FindOp("clip"));
  clip.index = op.index;
  clip.call_stack = op.call_stack;
  clip.device = op.device;
  clip.hints = op.hints;
  clip.inputs[static_cast<size_t>(clip.def->FindInput("X"))] = op.In("X");
  clip.outputs[static_cast<size_t>(clip.def->FindOutput("Out"))] = op.Out("Out");
  clip.attrs[static_cast<size_t>(clip.def->FindAttr("max"))] =
      std::numeric_limits<double>::infinity();
  return clip;
}

}  // namespace heddle::formats
