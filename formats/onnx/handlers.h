// The handlers: which function lowers which operator. Each family of operators has a file
// lower_<family>.cc with a table at its end.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "formats/onnx/node_lowering.h"

namespace heddle::onnx {

// Lowers a node. False: it does not handle this form of the operator, and has made nothing.
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
std::span<const HandlerEntry> TrainHandlers();
std::span<const HandlerEntry> MicrosoftHandlers();
std::span<const HandlerEntry> MicrosoftAttentionHandlers();

// Lowers a node that does with strings what it does with numbers (formats/onnx/lower_string.cc).
bool LowerStringMover(NodeLowering& n);

// Lowers a reduction of unsigned integers, told their type.
void LowerUnsignedReduction(NodeLowering& n);

// The handler of an operator; null: none.
Handler FindHandler(std::string_view domain, std::string_view op_type);

}  // namespace heddle::onnx
