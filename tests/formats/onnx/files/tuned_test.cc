// Models written again with other values: what changes, what stays, and which files beside a model
// are copied. HEDDLE_TEST_SEED=<n> draws others than usual.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "heddle/heddle.h"
#include "heddle/model_files.h"
#include "tests/formats/onnx/onnx_bytes.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// y = x * w; `beside` lies in a file, and no node reads it.
std::string ModelWith(const std::string& location) {
  OnnxGraph graph;
  graph.In("x", 1, {2}).Out("y", 1, {2}).Weight(Tensor32("w", {2}, {3, 4}));
  graph.Weight(TensorHead("beside", 1, {2})
                   .Int(14, 1)
                   .Add(13, Message().Bytes(1, "location").Bytes(2, location)));
  graph.Add(Node("Mul", {"x", "w"}, {"y"}));
  return graph.Model();
}

struct Place {
  TempDir dir;
  std::string in = dir.path() + "/a/in", out = dir.path() + "/b/out";
  Place() {
    fs::create_directories(in + "/sub");
    fs::create_directories(out);
    for (const char* name : {"/data", "/sub/data", "/../data"}) WriteAll(in + name, "12345678");
    fs::create_symlink("data", in + "/link");
    WriteAll(in + "/twice", "12345678");
    fs::create_hard_link(in + "/twice", in + "/again");
  }
  // Files below the whole folder.
  size_t files() const {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(dir.path()))
      count += entry.is_regular_file() ? 1 : 0;
    return count;
  }
  Status Write(const std::string& location) const {
    WriteAll(in + "/model.onnx", ModelWith(location));
    auto model = LoadModel(in + "/model.onnx");
    if (!model.ok()) return model.status();
    model->scope->Set("w", Tensor::Of(DType::kF32, Shape{2}, std::vector<float>{5, 6}));
    return SaveTunedModel(*model, in + "/model.onnx", {"w"}, out);
  }
};

TEST(TunedOnnx, ChangesWhatIsNamedAndCopiesWhatLiesBeside) {
  const Place place;
  for (const std::string name : {"data", "sub/data", "sub/../data", "./data"}) {
    ASSERT_TRUE(place.Write(name).ok()) << name;
    EXPECT_EQ(ReadAll(place.out + "/" + name), "12345678");
    auto tuned = LoadModel(place.out + "/model.onnx");
    ASSERT_TRUE(tuned.ok()) << tuned.status().ToString();
    EXPECT_EQ(tuned->scope->Find("w")->tensor().data<float>()[1], 6);
  }
}

TEST(TunedOnnx, MayBeWrittenOverItself) {
  Place place;
  place.out = place.in;
  for (int round = 0; round < 2; ++round) ASSERT_TRUE(place.Write("sub/data").ok());
  EXPECT_EQ(ReadAll(place.in + "/sub/data"), "12345678");
  auto tuned = LoadModel(place.in + "/model.onnx");
  ASSERT_TRUE(tuned.ok());
  EXPECT_EQ(tuned->scope->Find("w")->tensor().data<float>()[0], 5);
}

// Names of parts that lead out of the folder in some order, or do not.
TEST(TunedOnnx, NothingIsWrittenWhereAModelWants) {
  const char* const seed = std::getenv("HEDDLE_TEST_SEED");
  std::mt19937 random(seed != nullptr ? static_cast<uint32_t>(std::atoi(seed)) : 5);
  const std::string parts[] = {"..",   ".",     "sub", "data",
                               "link", "twice", "",    std::string("d\0a", 3)};
  int written = 0;
  for (int round = 0; round < 600; ++round) {
    const Place place;
    std::string name = random() % 8 == 0 ? place.dir.path() + "/" : "";
    for (uint32_t k = 1 + random() % 4; k > 0; --k)
      name += parts[random() % std::size(parts)] + (k > 1 ? "/" : "");
    if (name.empty()) continue;  // no external data
    WriteAll(place.in + "/model.onnx", "");
    const size_t before = place.files();
    const Status status = place.Write(name);
    const fs::path inside = fs::path(name).lexically_normal();
    const bool may = inside == "data" || inside == "sub/data";
    EXPECT_TRUE(may || !status.ok()) << name;
    if (status.ok()) {
      ++written;
      EXPECT_EQ(place.files(), before + 2) << name;  // the model and the data, both in `out`
    } else {
      EXPECT_EQ(place.files(), before) << name << ": " << status.ToString();
    }
  }
  EXPECT_GT(written, 10);
}

TEST(TunedOnnx, ValuesOfAnotherTypeAndNamesThatAreNoInitializersAreRefused) {
  const Place place;
  WriteAll(place.in + "/model.onnx", ModelWith("data"));
  auto model = LoadModel(place.in + "/model.onnx");
  ASSERT_TRUE(model.ok());
  const auto write = [&](const std::string& name) {
    return SaveTunedModel(*model, place.in + "/model.onnx", {name}, place.out).ToString();
  };
  EXPECT_THAT(write("x"), HasSubstr("'x' is no initializer"));
  model->scope->Set("w", Tensor::Of(DType::kI64, Shape{2}, std::vector<int64_t>{5, 6}));
  EXPECT_THAT(write("w"),
              HasSubstr("initializer 'w' is of another type than its new value, int64"));
}

}  // namespace
}  // namespace heddle::testing
