#include "formats/onnx/handlers.h"

namespace heddle::onnx {

std::span<const HandlerEntry> RandomHandlers() { return {}; }

}  // namespace heddle::onnx
