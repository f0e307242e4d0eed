#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {

std::span<const HandlerEntry> ListHandlers() { return {}; }

}  // namespace heddle::tensorflow
