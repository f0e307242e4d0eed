#include "formats/onnx/handlers.h"

namespace heddle::onnx {

std::span<const HandlerEntry> ControlHandlers() { return {}; }

}  // namespace heddle::onnx
