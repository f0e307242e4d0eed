#include "core/guard.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace heddle {
namespace {

TEST(Guard, SizesThatNoMemoryHoldsAreALackOfMemory) {
  const Status list = Guard([] {
    std::vector<int64_t>().resize(std::numeric_limits<size_t>::max());
    return Status::Ok();
  });
  EXPECT_EQ(list.code(), StatusCode::kResourceExhausted) << list.ToString();
  const Status text = Guard([] {
    std::string().resize(std::numeric_limits<size_t>::max());
    return Status::Ok();
  });
  EXPECT_EQ(text.code(), StatusCode::kResourceExhausted) << text.ToString();
}

}  // namespace
}  // namespace heddle
