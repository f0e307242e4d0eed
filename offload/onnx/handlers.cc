#include "offload/onnx/handlers.h"

#include <unordered_map>

namespace heddle::offload::to_onnx {
namespace {

using Table = std::unordered_map<std::string_view, void (*)(NodeWriter&)>;

const Table& AllHandlers() {
  static const Table* const table = [] {
    auto* made = new Table;
    for (const auto& family :
         {ActivationHandlers(), ElementwiseHandlers(), ReduceHandlers(), ShapeHandlers(),
          IndexHandlers(), NetworkHandlers(), NormalizeHandlers(), TensorFlowHandlers()})
      for (const Handler& h : family) made->emplace(h.type, h.write);
    return made;
  }();
  return *table;
}

}  // namespace

bool WriteOperator(NodeWriter& n) {
  const auto found = AllHandlers().find(n.type());
  if (found == AllHandlers().end()) return WriteDirect(n);
  found->second(n);
  return true;
}

}  // namespace heddle::offload::to_onnx
