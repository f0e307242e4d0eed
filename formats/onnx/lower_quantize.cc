#include "formats/onnx/handlers.h"

namespace heddle::onnx {

std::span<const HandlerEntry> QuantizeHandlers() { return {}; }

}  // namespace heddle::onnx
