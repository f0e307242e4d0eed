#include "formats/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace heddle {
namespace {

using ::testing::HasSubstr;

std::string Message(const std::string& text) {
  const auto document = JsonDocument::Parse(text);
  return document.ok() ? "" : document.status().message();
}

TEST(Json, ReadsValuesOfEveryKind) {
  const std::string text =
      R"( {"a": [1, -2.5, 3e2, true, null, "x"], "b": {"c": 9223372036854775807}, "d": []} )";
  const auto document = JsonDocument::Parse(text);
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  const Json root = document->root();
  ASSERT_TRUE(root.is_object());
  EXPECT_EQ(root.size(), 3u);
  EXPECT_EQ(root["a"].size(), 6u);
  std::vector<double> numbers;
  for (const Json v : root["a"]) {
    double number = 0;
    if (v.Get(&number)) numbers.push_back(number);
  }
  EXPECT_EQ(numbers, (std::vector<double>{1, -2.5, 300}));
  int64_t integer = 0;
  EXPECT_TRUE(root["b"]["c"].Get(&integer));
  EXPECT_EQ(integer, INT64_MAX);  // not by way of a double
  EXPECT_EQ(root["d"].size(), 0u);
  EXPECT_FALSE(root["e"]);
  EXPECT_FALSE(root["a"]["c"]);
}

TEST(Json, TextsAreUnescaped) {
  const std::string text = R"(["a\"\\\/\b\f\n\r\t", "\u00e9\u20ac\ud83d\ude00", "plain é"])";
  const auto document = JsonDocument::Parse(text);
  ASSERT_TRUE(document.ok()) << document.status().ToString();
  std::vector<std::string> texts;
  for (const Json v : document->root()) {
    std::string_view t;
    ASSERT_TRUE(v.Get(&t));
    texts.emplace_back(t);
  }
  EXPECT_EQ(texts[0], "a\"\\/\b\f\n\r\t");
  EXPECT_EQ(texts[1], "é€😀");
  EXPECT_EQ(texts[2], "plain é");
}

TEST(Json, IsStrict) {
  for (const char* bad : {"",
                          " ",
                          "{",
                          "[1,]",
                          "[1 2]",
                          "{\"a\":1,}",
                          "{a:1}",
                          "[01]",
                          "[1.]",
                          "[.5]",
                          "[+1]",
                          "[1e]",
                          "nul",
                          "[\"\t\"]",
                          "[\"\\x\"]",
                          "[\"\\u12\"]",
                          "[\"\\ud800\"]",
                          "[\"\xff\"]",
                          "[\"\xc0\x80\"]",
                          "[\"\xed\xa0\x80\"]",
                          "\"open",
                          "[1]]",
                          "[1] x",
                          "[1e999]"})
    EXPECT_NE(Message(bad), "") << bad;
  EXPECT_THAT(Message("[1, 2"), HasSubstr("cut short at byte 5"));
  EXPECT_THAT(Message("{\"a\":1,\"a\":2}"), HasSubstr("the key 'a' twice"));
}

// Nothing recurses, and what is nested deeper than programs are is refused at once.
TEST(Json, DepthAndWidthAreBounded) {
  EXPECT_THAT(Message(std::string(1000000, '[')), HasSubstr("nested more than"));
  EXPECT_EQ(Message(std::string(1000, '[') + std::string(1000, ']')), "");
  std::string wide = "{";
  for (int i = 0; i < 100; ++i) wide += (i > 0 ? ",\"k" : "\"k") + std::to_string(i) + "\":1";
  EXPECT_THAT(Message(wide + "}"), HasSubstr("members"));
}

}  // namespace
}  // namespace heddle
