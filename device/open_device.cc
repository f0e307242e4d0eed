// Devices by their names.
#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "device/kinds.h"
#include "device/open_cuda.h"

namespace heddle {
namespace {

Result<std::shared_ptr<Device>> OpenEmulated(int number, const CudaOptions&) {
  constexpr int kMost = 16;
  if (number >= kMost)
    return InvalidArgument("there is no device 'emulated:", number,
                           "'; there are emulated:0 to emulated:", kMost - 1);
  return NewEmulatedDevice({.number = number});
}

Result<std::shared_ptr<Device>> OpenCuda(int number, const CudaOptions& options) {
  if (number != 0)
    return Unimplemented("'cuda:", number, "': of CUDA cards, heddle opens the first one, cuda:0");
  return OpenCudaDevice(options);
}

constexpr DeviceKind kKinds[] = {
    {"emulated", OpenEmulated},
    {"cuda", OpenCuda},
};

// "emulated and cuda"
std::string NamesOfKinds() {
  std::string names;
  for (const DeviceKind& kind : kKinds) {
    const bool last = &kind == &*std::prev(std::end(kKinds));
    names += StrCat(&kind == kKinds ? "" : last ? " and " : ", ", kind.name);
  }
  return names;
}

}  // namespace

std::span<const DeviceKind> DeviceKinds() { return kKinds; }

Result<std::shared_ptr<Device>> OpenDevice(const std::string& name, const CudaOptions& cuda) {
  const size_t colon = std::min(name.find(':'), name.size());
  const std::string kind = name.substr(0, colon);
  int number = 0;
  if (colon < name.size()) {
    const char *begin = name.data() + colon + 1, *end = name.data() + name.size();
    const auto [at, error] = std::from_chars(begin, end, number);
    if (error != std::errc() || at != end || number < 0)
      return InvalidArgument("'", name, "': ", kind, ":NUMBER is expected");
  }
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const DeviceKind& k) { return k.name == kind; });
  if (found == std::end(kKinds))
    return InvalidArgument("there is no device '", name, "'; there are ", NamesOfKinds());
  return found->open(number, cuda);
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
