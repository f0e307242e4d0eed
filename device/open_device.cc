// Devices by their names.
#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "device/open_cuda.h"
#include "heddle/device.h"

namespace heddle {

Result<std::shared_ptr<Device>> OpenDevice(const std::string& name, const CudaOptions& cuda) {
  constexpr int kMostEmulated = 16;
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string kind = name.substr(0, colon);
  int number = 0;
  if (colon < name.size()) {
    const char *begin = name.data() + colon + 1, *end = name.data() + name.size();
    const auto [at, error] = std::from_chars(begin, end, number);
    if (error != std::errc() || at != end || number < 0)
      return InvalidArgument("'", name, "': ", kind, ":NUMBER is expected");
  }
  if (kind == "emulated") {
    if (number >= kMostEmulated)
      return InvalidArgument("there is no device '", name,
                             "'; there are emulated:0 to emulated:", kMostEmulated - 1);
    return NewEmulatedDevice({.number = number});
  }
  if (kind != "cuda")
    return InvalidArgument("there is no device '", name, "'; there are emulated and cuda");
  if (number != 0)
    return Unimplemented("'", name, "': of CUDA cards, heddle opens the first one, cuda:0");
  return OpenCudaDevice(cuda);
}

Result<std::vector<std::shared_ptr<Device>>> OpenDevices(const std::string& places,
                                                         const CudaOptions& cuda) {
  std::vector<std::shared_ptr<Device>> devices;
  for (size_t at = 0; places != "cpu" && at <= places.size();) {
    const size_t comma = std::min(places.find(',', at), places.size());
    HEDDLE_ASSIGN_OR_RETURN(auto device, OpenDevice(places.substr(at, comma - at), cuda));
    devices.push_back(std::move(device));
    at = comma + 1;
  }
  return devices;
}

}  // namespace heddle
