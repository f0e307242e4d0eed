// The reader of indices of variables under libFuzzer (HEDDLE_FUZZ):
//   build/release/fuzz/bundle -max_len=65536 -rss_limit_mb=4096 corpus tests/fuzz/bundle
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/tensorflow_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const heddle::Status status =
      heddle::testing::ReadBundleIndex({reinterpret_cast<const char*>(data), size});
  // An error has something to say.
  if (!status.ok() && status.message().empty()) __builtin_trap();
  return 0;
}
