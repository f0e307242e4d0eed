// The reader of TensorFlow's text form under libFuzzer (HEDDLE_FUZZ):
//   build/release/fuzz/text -max_len=8192 corpus tests/fuzz/text
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/tensorflow_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const heddle::Status status =
      heddle::testing::ReadText({reinterpret_cast<const char*>(data), size});
  // An error has something to say, and is none of the binary form.
  if (!status.ok() && !status.message().starts_with("line ")) __builtin_trap();
  return 0;
}
