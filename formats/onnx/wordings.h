// Operators of ONNX that heddle says with an operator of another name.
#pragma once

#include <string_view>

#include "formats/onnx/node_lowering.h"

namespace heddle::onnx {

// How a node is said: `ins` and `outs` are slots in the order of the node's inputs and outputs,
// `attributes` the node's attributes, as "theirs>ours" where the name differs. An attribute of the
// node that is an input here becomes a constant. Words are separated by spaces. Without `ins` all
// of them have ONNX's names.
struct Wording {
  std::string_view domain, op_type;
  std::string_view type, ins = {}, outs = {}, attributes = {};
  // What ONNX means where the node says nothing.
  Attrs said = {};
};

// Null: the node is said with an operator of its own name, or there is none.
const Wording* FindWording(const Node& node);

}  // namespace heddle::onnx
