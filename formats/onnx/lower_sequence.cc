#include "formats/onnx/handlers.h"

namespace heddle::onnx {

std::span<const HandlerEntry> SequenceHandlers() { return {}; }

}  // namespace heddle::onnx
