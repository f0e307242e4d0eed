// Tensors in every encoding of a format, with what the format's own package reads from them
// (scripts/record_tensors.py).
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>

#include "formats/lowering/tensor_bytes.h"
#include "tests/support/files.h"

namespace heddle::testing {

inline std::string FromHex(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(
        static_cast<char>(std::stoi(std::string(text.substr(i, 2)), nullptr, /*base=*/16)));
  return bytes;
}

// `read` makes TensorBytes of a message. `least`: so many tensors are expected in the file.
template <typename Read>
void ExpectAsRecorded(const std::string& file, Read read, int least) {
  std::istringstream lines(ReadAll(HEDDLE_SOURCE_DIR "/tests/formats/" + file));
  std::string line, type, form, message, elements;
  int tensors = 0;
  while (std::getline(lines, line)) {
    std::istringstream parts(line);
    if (line.starts_with('#') || !(parts >> type >> form >> message >> elements)) continue;
    ++tensors;
    const std::string bytes = FromHex(message);
    const auto data = read(std::string_view(bytes));
    ASSERT_TRUE(data.ok()) << line;
    const auto made = formats::MakeTensor(*data);
    ASSERT_TRUE(made.ok()) << line << ": " << made.status().ToString();
    const std::string_view got(static_cast<const char*>(made->raw()), made->bytes());
    EXPECT_EQ(got, FromHex(elements)) << line;
  }
  EXPECT_GE(tensors, least);
}

}  // namespace heddle::testing
