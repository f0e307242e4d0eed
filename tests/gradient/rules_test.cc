// What is told of each operator's gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "gradient/gradient.h"
#include "heddle/program.h"

namespace heddle::gradient {
namespace {

using ::testing::HasSubstr;

// Every operator says how gradients flow through it.
TEST(GradientRules, AreKnownForAllOperators) {
  std::string unknown;
  std::map<std::string, int> kinds;
  for (const std::string& name : SupportedOps()) {
    const std::string text = GradientRuleText(name);
    if (text.empty()) unknown += " " + name;
    ++kinds[text.substr(0, text.find(':'))];
  }
  EXPECT_EQ(unknown, "");
  EXPECT_EQ(kinds.size(), 4u) << ::testing::PrintToString(kinds);
  for (const char* const kind : {"derived", "named", "composition", "none"})
    EXPECT_GT(kinds[kind], 5) << kind;
}

TEST(GradientRules, SayWhatIsRead) {
  EXPECT_EQ(GradientRuleText("relu"), "derived: relu_grad reads Out, Out@GRAD; gives X@GRAD");
  EXPECT_THAT(GradientRuleText("arg_max"), HasSubstr("none: "));
  EXPECT_EQ(GradientRuleText("no_such_operator"), "");
}

}  // namespace
}  // namespace heddle::gradient
