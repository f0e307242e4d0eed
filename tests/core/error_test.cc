// Messages are composed as a stream would print them.
#include "core/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <string_view>

namespace heddle {
namespace {

template <typename... Parts>
std::string Streamed(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

TEST(StrCat, IsWhatAStreamPrints) {
  const std::string text = "a text";
  const std::string_view view = std::string_view(text).substr(2);
  const char* const chars = "chars";
  const char array[8] = "arr";
  EXPECT_EQ(StrCat(text, '/', view, ' ', chars, array, "literal"),
            Streamed(text, '/', view, ' ', chars, array, "literal"));
  EXPECT_EQ(StrCat(0, ' ', -1, ' ', std::numeric_limits<int>::min(), ' ',
                   std::numeric_limits<int64_t>::min(), ' ', std::numeric_limits<size_t>::max()),
            "0 -1 -2147483648 -9223372036854775808 18446744073709551615");
  EXPECT_EQ(StrCat(1.5, ' ', 1e30, ' ', 0.1f, ' ', true, ' ', uint8_t{65}, ' ', uint16_t{7}, ' ',
                   static_cast<short>(-3), ' ', 5u, ' ', 6ll),
            Streamed(1.5, ' ', 1e30, ' ', 0.1f, ' ', true, ' ', uint8_t{65}, ' ', uint16_t{7}, ' ',
                     static_cast<short>(-3), ' ', 5u, ' ', 6ll));
  EXPECT_EQ(StrCat(), "");
  EXPECT_EQ(InvalidArgument("x ", 3).message(), "x 3");
}

}  // namespace
}  // namespace heddle
