// Operators on texts; expected values are those of TensorFlow 2.21.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heddle/string_tensor.h"
#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing::tf {
namespace {

constexpr int kTextType = 7;

Value TextsOf(std::vector<std::string> texts, const Shape& shape) {
  return ValueOf(StringTensor{shape, std::move(texts)});
}

Value OutputOf(const Graph& g, const std::vector<std::string>& names,
               const std::vector<Feed>& feeds) {
  const auto model = LoadBytes(g.bytes(), {.feeds = names, .fetches = {"y"}});
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  if (!model.ok()) return {};
  const auto made = TryRun(*model, feeds);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return made.ok() ? (*made)[0] : Value();
}

// The fingerprint takes texts of up to 16, 32 and 64 bytes and longer ones in ways of their own.
TEST(TextOperators, FingerprintsOfEveryLength) {
  std::string text;
  for (int i = 0; i < 6; ++i) text += "abcdefghijklmnopqrstuvwxyz0123456789";
  std::vector<std::string> texts;
  for (size_t n : {0, 3, 8, 16, 17, 32, 33, 64, 65, 127, 128, 129, 200})
    texts.push_back(text.substr(0, n));
  Graph g;
  g.Add(PlaceholderNode("t", kTextType));
  g.Add("StringToHashBucketFast", "y", {"t"}, {{"num_buckets", IntValue(1000003)}});
  const Value made = OutputOf(g, {"t"}, {{"t", TextsOf(texts, Shape{13})}});
  ASSERT_TRUE(made.is_tensor() && made.tensor().numel() == 13);
  const int64_t* buckets = made.tensor().data<int64_t>();
  EXPECT_THAT(std::vector<int64_t>(buckets, buckets + 13),
              ::testing::ElementsAre(377723, 152962, 229479, 860307, 730393, 269554, 62586, 809380,
                                     120715, 779043, 684492, 672395, 38487));
}

TEST(TextOperators, ComparedTextsAreBroadcast) {
  Graph g;
  g.Add(PlaceholderNode("a", kTextType)).Add(PlaceholderNode("b", kTextType));
  g.Add("NotEqual", "y", {"a", "b"}, {{"T", TypeValue(kTextType)}});
  const Value made = OutputOf(
      g, {"a", "b"},
      {{"a", TextsOf({"p", "q", "r"}, Shape{1, 3})}, {"b", TextsOf({"q", "p"}, Shape{2, 1})}});
  ASSERT_TRUE(made.is_tensor());
  EXPECT_EQ(made.tensor().shape(), (Shape{2, 3}));
  const bool* differ = made.tensor().data<bool>();
  EXPECT_THAT(std::vector<bool>(differ, differ + 6),
              ::testing::ElementsAre(true, false, true, false, true, true));
}

}  // namespace
}  // namespace heddle::testing::tf
