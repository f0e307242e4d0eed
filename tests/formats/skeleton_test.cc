// A program that was let go is made again of its file's skeleton, which lacks large tensors: the
// same program comes of it, whatever constants it was lowered by.
#include <gtest/gtest.h>

#include <random>

#include "formats/program_source.h"
#include "tests/formats/onnx/onnx_runs.h"
#include "tests/formats/tensorflow/graph_bytes.h"

namespace heddle::testing {
namespace {

// A constant's elements and the way in which a file has them.
struct Contents {
  int onnx_type, tensorflow_type;
  size_t width;         // of an element, in bytes
  uint32_t wide_field;  // of TensorFlow's message, for values on their own; 0: only raw
};
constexpr Contents kContents[] = {{1, 1, 4, 0},  {6, 3, 4, 7},  {7, 9, 8, 10},
                                  {11, 2, 8, 0}, {14, 8, 8, 0}, {15, 18, 16, 0}};

std::string RandomBytes(size_t count, std::mt19937* random) {
  std::string bytes(count, '\0');
  for (char& b : bytes) b = static_cast<char>((*random)() % 2);  // no NaN, and not all the same
  return bytes;
}

// One raw element after the other as varints, each behind its own tag.
void AddVarints(uint32_t field, const std::string& raw, size_t width, Message* tensor) {
  for (size_t i = 0; i < raw.size(); i += width) {
    uint64_t bits = 0;
    std::memcpy(&bits, raw.data() + i, width);
    if (i + width == raw.size()) bits |= uint64_t{1} << 63;  // the longest form
    tensor->Int(field, static_cast<int64_t>(bits));
  }
}

void ExpectTheSameAgain(const Model& model, const std::vector<Feed>& feeds) {
  ASSERT_TRUE(model.program);
  const auto again = formats::Pack(model.program.ir())->Unpack();
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  const Program unpacked(*again);
  ASSERT_EQ(unpacked.outputs().size(), model.program.outputs().size());
  const auto want = RunValuesOf(model, feeds);
  const auto got = RunValuesOf(Model{unpacked, model.scope}, feeds);
  for (size_t k = 0; k < want.size(); ++k) {
    const Tensor &a = want[k].tensor(), &b = got[k].tensor();
    ASSERT_EQ(a.shape(), b.shape());
    ASSERT_EQ(a.dtype(), b.dtype());
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0);
  }
}

// Constants around the number of elements that readers look into, two of which are equal but for
// their last byte or altogether.
class Skeletons : public ::testing::TestWithParam<int> {
 protected:
  std::mt19937 random_{static_cast<unsigned>(GetParam())};
  const Contents& contents_ = kContents[random_() % std::size(kContents)];
  const int64_t count_ = std::array{1, 3, 1023, 1024, 1025, 2048}[random_() % 6];
  const bool equal_ = random_() % 4 == 0;
  const std::string text_ = std::string(random_() % 2 == 0 ? 20000 : 3, 'd');
};

TEST_P(Skeletons, OfOnnxMakeTheSameProgram) {
  OnnxGraph g;
  std::string raw = RandomBytes(static_cast<size_t>(count_) * contents_.width, &random_);
  for (const char* name : {"a", "b"}) {
    Message t = TensorHead(name, contents_.onnx_type, {count_}).Bytes(9, raw).Bytes(12, text_);
    if (random_() % 2 == 0)
      g.Weight(t);
    else
      g.Add(Node("Constant", {}, {name}, {TensorAttr("value", t)}));
    if (!equal_) raw.back() = static_cast<char>(raw.back() ^ 1);
  }
  g.Weight(Tensor64("to", {2}, {2, count_}).Bytes(12, text_));  // decides the shape of y
  g.In("x", 1, {-1}).Add(Node("Reshape", {"x", "to"}, {"y"})).Out("y");
  g.Add(Node("Concat", {"a", "b"}, {"z"}, {IntAttr("axis", 0)})).Out("z", contents_.onnx_type);
  ExpectTheSameAgain(
      ModelOf(g.Model()),
      {{"x", F32({2 * count_}, std::vector<float>(static_cast<size_t>(2 * count_)))}});
}

TEST_P(Skeletons, OfTensorflowMakeTheSameProgram) {
  using namespace tf;
  Graph g;
  std::string raw = RandomBytes(static_cast<size_t>(count_) * contents_.width, &random_);
  const auto constant = [&](const char* name, int type, Message tensor) {
    tensor.Bytes(100, text_);
    g.Add("Const", name, {}, {{"dtype", TypeValue(type)}, {"value", TensorValue(tensor)}});
  };
  const bool is_raw = contents_.wide_field == 0 || random_() % 2 == 0;
  for (const char* name : {"a", "b"}) {
    Message t = TensorHeadOf(contents_.tensorflow_type, {count_});
    if (is_raw)
      t.Bytes(4, raw);
    else
      AddVarints(contents_.wide_field, raw, contents_.width, &t);
    constant(name, contents_.tensorflow_type, t);
    if (!equal_) raw[raw.size() - contents_.width] ^= 1;
  }
  g.Add(IntsNode("zero", {}, {0}));
  constant("to", kI, TensorHeadOf(kI, {2}).Int(7, 2).Int(7, count_));
  g.Add("ConcatV2", "z", {"a", "b", "zero"}, {{"T", TypeValue(contents_.tensorflow_type)}});
  g.Add(PlaceholderNode("x")).Add("Reshape", "y", {"x", "to"}, {{"T", TypeValue(kF)}});
  const auto model = LoadBytes(g.bytes(), {.feeds = {"x"}, .fetches = {"y", "z"}});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  ExpectTheSameAgain(
      *model, {{"x", F32({2 * count_}, std::vector<float>(static_cast<size_t>(2 * count_)))}});
}

INSTANTIATE_TEST_SUITE_P(Seeds, Skeletons, ::testing::Range(0, 60));

}  // namespace
}  // namespace heddle::testing
