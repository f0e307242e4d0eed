// Names in targets that there are not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "partition/target.h"

namespace heddle::partition {
namespace {

std::vector<std::string> Unknown(const std::string& ops) {
  const auto target = ParseTarget(R"({"name": "t", "units": [{"name": "u", "ops": )" + ops +
                                      R"(}], "links": [], "start": ["u"]})",
                                  "t");
  EXPECT_TRUE(target.ok()) << target.status().ToString();
  std::vector<std::string> found;
  for (const UnknownName& name : UnknownNames(*target))
    found.push_back(name.what + " " + name.name + " of " +
                    std::to_string(name.known.empty() ? 0 : 1));
  return found;
}

TEST(UnknownNames, AreFoundOnce) {
  using ::testing::ElementsAre;
  EXPECT_THAT(Unknown(R"([{"type": "tanh"}, {"type": "conv2d", "attrs": {"strides": [1, 1]},
                           "slots": {"Filter": {"constant": true}}}])"),
              ElementsAre());
  EXPECT_THAT(Unknown(R"([{"type": "tanhh"}, {"type": "tanhh"}])"),
              ElementsAre("no operator tanhh of 1"));
  EXPECT_THAT(
      Unknown(R"([{"type": "conv2d", "attrs": {"stride": [1, 1]},
                           "slots": {"Filters": {"constant": true}}}])"),
      ElementsAre("no attribute of conv2d stride of 1", "no input slot of conv2d Filters of 1"));
}

TEST(UnknownNames, AreNotInTheExamples) {
  int files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(HEDDLE_SOURCE_DIR "/examples/targets")) {
    const auto target = LoadTarget(entry.path().string());
    ASSERT_TRUE(target.ok()) << target.status().ToString();
    for (const UnknownName& name : UnknownNames(*target))
      ADD_FAILURE() << entry.path() << ": " << name.what << " is called " << name.name;
    ++files;
  }
  EXPECT_GE(files, 3);
}

}  // namespace
}  // namespace heddle::partition
