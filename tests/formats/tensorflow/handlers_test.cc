#include "formats/tensorflow/handlers.h"

#include <gtest/gtest.h>

#include <set>

namespace heddle::tensorflow {
namespace {

TEST(TensorflowHandlers, AnOperatorHasOneEntry) {
  std::set<std::string_view> seen;
  for (const HandlerEntry& entry : AllHandlers()) {
    EXPECT_TRUE(seen.insert(entry.op).second) << entry.op;
    EXPECT_EQ(FindHandler(entry.op), entry.handler) << entry.op;
  }
  EXPECT_GT(seen.size(), 400u);
  EXPECT_EQ(FindHandler("Frobnicate"), nullptr);
}

}  // namespace
}  // namespace heddle::tensorflow
