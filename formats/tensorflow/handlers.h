// The handlers: which function lowers which operator. Each family of operators has a file
// ops_<family>.cc with a table at its end, and a line in handlers.cc.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "formats/lowering/unsigned_use.h"
#include "formats/tensorflow/node_lowering.h"

namespace heddle::tensorflow {

// Lowers a node. False: it does not handle this form of the operator, and has made nothing.
using Handler = bool (*)(NodeLowering&);

struct HandlerEntry {
  std::string_view op;
  Handler handler;
};

std::span<const HandlerEntry> ElementwiseHandlers();
std::span<const HandlerEntry> ReduceHandlers();
std::span<const HandlerEntry> ShapeHandlers();
std::span<const HandlerEntry> IndexHandlers();
std::span<const HandlerEntry> NetworkHandlers();
std::span<const HandlerEntry> ProductHandlers();
std::span<const HandlerEntry> SignalHandlers();
std::span<const HandlerEntry> TrainHandlers();
std::span<const HandlerEntry> DirectHandlers();
std::span<const HandlerEntry> BasicHandlers();
std::span<const HandlerEntry> VariableHandlers();
std::span<const HandlerEntry> ControlHandlers();
std::span<const HandlerEntry> ListHandlers();
std::span<const HandlerEntry> TableHandlers();
std::span<const HandlerEntry> StringHandlers();
std::span<const HandlerEntry> SparseHandlers();

// The entries of all tables. No operator has two.
std::vector<HandlerEntry> AllHandlers();
// The handler of an operator; null: none.
Handler FindHandler(std::string_view op);

// Whether the operator moves elements and does not look at them, so that numbers can stand for
// strings: ops_string.cc.
bool MovesElements(std::string_view op);

// --- operands of uint16, uint32 or uint64 (formats/lowering/unsigned_use.h): unsigned.cc
//
// The table of all operators that may have such an operand, in alphabetical order.
std::span<const formats::UnsignedEntry> UnsignedOperators();

// The use of operands of this type; nothing: the operator does not allow them.
std::optional<formats::UnsignedUse> UnsignedUseOf(std::string_view op, int type);

// Lowers a node of UnsignedUse::kOwn with operands of `type`. False: its handler has to.
bool LowerUnsigned(NodeLowering& n, int type);

}  // namespace heddle::tensorflow
