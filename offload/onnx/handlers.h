// Which function writes which operator. Each family has a file with a table at its end.
#pragma once

#include <span>
#include <string_view>

#include "offload/onnx/node.h"

namespace heddle::offload::to_onnx {

struct Handler {
  std::string_view type;  // of heddle's operator
  void (*write)(NodeWriter&);
};

std::span<const Handler> ActivationHandlers();
std::span<const Handler> ElementwiseHandlers();
std::span<const Handler> ReduceHandlers();
std::span<const Handler> ShapeHandlers();
std::span<const Handler> IndexHandlers();
std::span<const Handler> NetworkHandlers();
std::span<const Handler> NormalizeHandlers();
std::span<const Handler> TensorFlowHandlers();

// heddle's operators of ONNX's names. False: it is none of them.
bool WriteDirect(NodeWriter& n);

}  // namespace heddle::offload::to_onnx
