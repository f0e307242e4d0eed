// SavedModels written again with other values of variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "heddle/model_files.h"
#include "heddle/variables_bundle.h"
#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

Tensor Floats2(float a, float b) {
  return Tensor::Of(DType::kF32, Shape{2}, std::vector<float>{a, b});
}

// y = x * v, with a file beside the graph and the variables.
void WriteModel(const std::string& folder) {
  tf::Graph g;
  const tf::NamedValues about = {{"dtype", tf::TypeValue(1)},
                                 {"shape", tf::ShapeValue({2})},
                                 {"shared_name", tf::TextValue("v")}};
  g.Add(tf::PlaceholderNode("x")).Add("VarHandleOp", "v", {}, about);
  g.Add("ReadVariableOp", "r", {"v"}, {{"dtype", tf::TypeValue(1)}});
  g.Add("Mul", "y", {"x", "r"}, {{"T", tf::TypeValue(1)}});
  const auto texts = [&](const char* name, const char* text) {
    g.Add("Const", name, {},
          {{"dtype", tf::TypeValue(7)},
           {"value", tf::TensorValue(tf::TensorHeadOf(7, {1}).Bytes(8, text))}});
  };
  texts("names", "v");
  texts("slices", "");
  g.Add("Placeholder", "prefix", {}, {{"dtype", tf::TypeValue(7)}});
  g.Add("RestoreV2", "restored", {"prefix", "names", "slices"},
        {{"dtypes", Message().Add(1, Message().Int(6, 1))}});
  g.Add("AssignVariableOp", "assigned", {"v", "restored"}, {{"dtype", tf::TypeValue(1)}});
  g.Add("NoOp", "restore_all", {"^assigned"});
  const auto tensor = [](const char* key, const char* name) {
    return Message().Bytes(1, key).Add(2, Message().Bytes(1, name).Int(2, 1));
  };
  const Message signature = Message().Add(1, tensor("x", "x:0")).Add(2, tensor("y", "y:0"));
  const Message meta = Message()
                           .Add(1, Message().Bytes(4, "serve"))
                           .Add(2, g.message())
                           .Add(3, Message().Bytes(1, "prefix:0").Bytes(3, "restore_all"))
                           .Add(5, Message().Bytes(1, "serving_default").Add(2, signature));
  fs::create_directories(folder + "/variables");
  fs::create_directories(folder + "/assets/deep");
  WriteAll(folder + "/assets/deep/words.txt", "a\nb\n");
  WriteAll(folder + "/saved_model.pb", Message().Int(1, 1).Add(2, meta).bytes());
  ASSERT_TRUE(SaveVariablesBundle(folder + "/variables/variables", {{"v", Floats2(3, 4)}}).ok());
}

size_t FilesBelow(const std::string& folder) {
  size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    count += entry.is_regular_file() ? 1 : 0;
  return count;
}

// Beside the model, below it, twice into one folder, and over itself.
TEST(TunedSavedModel, MayBeWrittenAnywhere) {
  for (const std::string to : {"/b", "/a/tuned", "/a/assets/tuned", "/a"}) {
    SCOPED_TRACE(to);
    const TempDir dir;
    const std::string from = dir.path() + "/a", out = dir.path() + to;
    WriteModel(from);
    for (const float value : {5.f, 6.f}) {
      auto model = LoadModel(from);
      ASSERT_TRUE(model.ok()) << model.status().ToString();
      model->scope->Set("v", Floats2(value, value));
      const Status status = SaveTunedModel(*model, from + "/saved_model.pb", {"v"}, out);
      ASSERT_TRUE(status.ok()) << status.ToString();
      auto tuned = LoadModel(out);
      ASSERT_TRUE(tuned.ok()) << tuned.status().ToString();
      Executor executor;
      auto compiled = executor.Compile(*tuned);
      ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
      const auto y = executor.Run(*compiled, {{"x", Floats2(1, 2)}});
      ASSERT_TRUE(y.ok()) << y.status().ToString();
      EXPECT_EQ((*y)[0].data<float>()[1], 2 * value);
      EXPECT_EQ(ReadAll(out + "/assets/deep/words.txt"), "a\nb\n");
    }
    EXPECT_EQ(FilesBelow(out), 4u);
  }
}

TEST(TunedSavedModel, NamesThatAreNoVariablesAndOtherSizesAreRefused) {
  const TempDir dir;
  WriteModel(dir.path() + "/a");
  auto model = LoadModel(dir.path() + "/a");
  ASSERT_TRUE(model.ok());
  const auto write = [&](const std::string& name) {
    return SaveTunedModel(*model, dir.path() + "/a/saved_model.pb", {name}, dir.path() + "/b")
        .ToString();
  };
  EXPECT_THAT(write("x"), HasSubstr("'x' is no variable of the SavedModel"));
  model->scope->Set("v", Tensor::Of(DType::kF32, Shape{3}, std::vector<float>{1, 2, 3}));
  EXPECT_THAT(write("v"), HasSubstr("of 12 bytes"));
}

}  // namespace
}  // namespace heddle::testing
