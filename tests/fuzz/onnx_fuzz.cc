// The ONNX reader under libFuzzer (HEDDLE_FUZZ):
//   build/release/fuzz/onnx -max_len=65536 -rss_limit_mb=2048 corpus tests/fuzz/onnx
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/onnx_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const heddle::Status status =
      heddle::testing::ReadOnnx({reinterpret_cast<const char*>(data), size});
  // An error has something to say.
  if (!status.ok() && status.message().empty()) __builtin_trap();
  return 0;
}
