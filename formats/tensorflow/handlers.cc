#include "formats/tensorflow/handlers.h"

#include <unordered_map>

namespace heddle::tensorflow {

std::vector<HandlerEntry> AllHandlers() {
  std::vector<HandlerEntry> all;
  for (const auto table : {&ElementwiseHandlers, &ReduceHandlers, &ShapeHandlers, &IndexHandlers,
                           &NetworkHandlers, &ProductHandlers, &SignalHandlers, &TrainHandlers,
                           &DirectHandlers, &BasicHandlers, &VariableHandlers, &ControlHandlers,
                           &ListHandlers, &TableHandlers, &StringHandlers, &SparseHandlers})
    all.insert(all.end(), table().begin(), table().end());
  return all;
}

Handler FindHandler(std::string_view op) {
  static const auto* const kHandlers = [] {
    auto* handlers = new std::unordered_map<std::string_view, Handler>;
    for (const HandlerEntry& entry : AllHandlers()) handlers->emplace(entry.op, entry.handler);
    return handlers;
  }();
  const auto found = kHandlers->find(op);
  return found == kHandlers->end() ? nullptr : found->second;
}

}  // namespace heddle::tensorflow
