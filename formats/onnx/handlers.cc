#include "formats/onnx/handlers.h"

#include <string>
#include <unordered_map>

#include "core/error.h"

namespace heddle::onnx {
namespace {

std::unordered_map<std::string, Handler> AllHandlers() {
  std::unordered_map<std::string, Handler> all;
  for (const auto entries :
       {AttentionHandlers(), ElementwiseHandlers(), ShapeHandlers(), IndexHandlers(),
        ReduceHandlers(), NetworkHandlers(), NormalizeHandlers(), ControlHandlers(),
        SequenceHandlers(), QuantizeHandlers(), StringHandlers(), TrainHandlers(),
        MicrosoftHandlers(), MicrosoftAttentionHandlers()})
    for (const HandlerEntry& e : entries) all.emplace(StrCat(e.domain, ":", e.op_type), e.handler);
  return all;
}

}  // namespace

Handler FindHandler(std::string_view domain, std::string_view op_type) {
  static const std::unordered_map<std::string, Handler> all = AllHandlers();
  const auto found = all.find(StrCat(domain, ":", op_type));
  return found == all.end() ? nullptr : found->second;
}

}  // namespace heddle::onnx
