// Which function lowers which operator. Each family of operators has a file lower_<family>.cc with
// a table at its end.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/onnx/node_lowering.h"

namespace heddle::onnx {

// False: this form of the operator is not for it, and nothing was made.
using Handler = bool (*)(NodeLowering&);

struct HandlerEntry {
  std::string_view domain, op_type;
  Handler handler;
};

std::span<const HandlerEntry> AttentionHandlers();
std::span<const HandlerEntry> ElementwiseHandlers();
std::span<const HandlerEntry> ShapeHandlers();
std::span<const HandlerEntry> IndexHandlers();
std::span<const HandlerEntry> ReduceHandlers();
std::span<const HandlerEntry> NetworkHandlers();
std::span<const HandlerEntry> NormalizeHandlers();
std::span<const HandlerEntry> ControlHandlers();
std::span<const HandlerEntry> SequenceHandlers();
std::span<const HandlerEntry> QuantizeHandlers();
std::span<const HandlerEntry> StringHandlers();

// A node with strings among its inputs that does with them what it does with numbers.
bool LowerStringMover(NodeLowering& n);

// Whether some version of the node's operator, which has a handler, has each of its attributes.
// Those that it does not have are told as mistakes.
bool CheckAttributes(NodeLowering& n);

// Whether the node has no more inputs and outputs than some version of its operator. That it has is
// told as a mistake.
bool CheckArity(NodeLowering& n);

// Null: none.
Handler FindHandler(std::string_view domain, std::string_view op_type);

}  // namespace heddle::onnx
