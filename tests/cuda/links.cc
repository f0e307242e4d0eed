// The CUDA device is in this program: it opens, or says why not.
#include <cstdio>

#include "device/cuda/grid/kernel_table.h"
#include "device/open_cuda.h"

int main() {
  const auto device = heddle::OpenCudaDevice({});
  std::printf("%zu operators have CUDA kernels; %s\n", heddle::card::CountGridKernels(),
              device.ok() ? "there is a card" : device.status().ToString().c_str());
  const bool said = device.ok() || device.status().message().find("card") != std::string::npos;
  return said ? 0 : 1;
}
