// Meta graphs with their checkpoints, which scripts/check_meta_graphs.py has recorded: named by
// their files and by their folder. And meta graphs that lack something.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "heddle/variables_bundle.h"
#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAreArray;

const std::string kRecorded = HEDDLE_SOURCE_DIR "/tests/formats/tensorflow/checkpoints";

// The elements of a small .npy file, behind its header.
std::string ElementsOf(const std::string& path) { return ReadAll(path).substr(128); }

class Checkpoints : public ::testing::TestWithParam<const char*> {
 protected:
  void ExpectRecorded(const std::string& path, const std::string& params = "") {
    const std::string folder = kRecorded + "/" + GetParam() + "/";
    ProgramPart part;
    part.feeds = {"x", "training"};
    part.fetches = {"net/y", "net/read0", "net/read1", "net/read2"};
    const auto model = LoadModel(path, params, part);
    ASSERT_TRUE(model.ok()) << params << ": " << model.status().ToString();
    Tensor x = Tensor::Empty(DType::kF32, {4, 6});
    const std::string fed = ElementsOf(folder + "x.npy");
    ASSERT_EQ(fed.size(), x.bytes());
    std::memcpy(x.mutable_raw(), fed.data(), fed.size());
    for (const int level : {0, 2}) {
      Executor executor({.threads = 1});
      const auto compiled = MustCompile(executor, model->program, model->scope,
                                        {.fetches = part.fetches, .opt_level = level});
      const auto made = MustRun(executor, compiled,
                                {{"x", x}, {"training", Tensor::Zeros(DType::kBool, Shape())}});
      for (size_t k = 0; k < made.size(); ++k) {
        const std::string want = ElementsOf(folder + "want_" + std::to_string(k) + ".npy");
        ASSERT_EQ(made[k].bytes(), want.size());
        if (k > 0) {
          EXPECT_TRUE(Bits(made[k]) == want) << k;
          continue;
        }
        const auto got = Floats(made[k]);
        for (size_t i = 0; i < got.size(); ++i) {
          float expected = 0;
          std::memcpy(&expected, want.data() + i * sizeof(float), sizeof(float));
          EXPECT_NEAR(got[i], expected, 1e-4f * (1 + std::abs(expected)));
        }
      }
    }
  }
};

TEST_P(Checkpoints, AreReadWithTheirMetaGraphs) {
  const std::string folder = kRecorded + "/" + GetParam();
  ExpectRecorded(folder + "/m.meta");
  ExpectRecorded(folder + "/m");
  ExpectRecorded(folder);
  // Moved elsewhere, with another one beside it: the list says which one is meant.
  const TempDir dir;
  fs::copy(folder, dir.path(), fs::copy_options::recursive);
  fs::copy(dir / "m.meta", dir / "other.meta");
  ExpectRecorded(dir.path());
}

// The user names one elsewhere by what its files' names have in common, a file of it or its folder.
TEST_P(Checkpoints, OfAnotherPlaceAreNamed) {
  const std::string folder = kRecorded + "/" + GetParam();
  const TempDir dir;
  fs::copy(folder + "/m.meta", dir / "other.meta");
  ProgramPart part;
  part.fetches = {"net/y"};
  EXPECT_FALSE(LoadModel(dir / "other.meta", "", part).ok());
  const auto none = LoadModel(dir / "other.meta", dir / "m", part);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.status().ToString(), HasSubstr(dir / "m"));
  std::vector<std::string> named = {folder + "/m", folder, folder + "/m.meta"};
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("m.") && name != "m.meta") named.push_back(entry.path().string());
  }
  for (const std::string& params : named) ExpectRecorded(dir / "other.meta", params);
  // It goes before the one beside the graph.
  const TempDir beside;
  fs::copy(folder, beside.path(), fs::copy_options::recursive);
  for (const auto& entry : fs::directory_iterator(beside.path()))
    if (const std::string name = entry.path().filename().string();
        name.starts_with("m") && name != "m.meta")
      WriteAll(entry.path().string(), "damaged");
  EXPECT_FALSE(LoadModel(beside / "m.meta", "", part).ok());
  ExpectRecorded(beside / "m.meta", folder + "/m");
}

// Nobody asks for what the saver reads and writes.
TEST_P(Checkpoints, WithoutFetchesGiveTheResultsAlone) {
  const auto model = LoadModel(kRecorded + "/" + GetParam() + "/m.meta");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  std::vector<std::string> names;
  for (const TensorInfo& output : model->program.outputs()) names.push_back(output.name);
  EXPECT_FALSE(names.empty());
  for (const std::string& name : names) EXPECT_FALSE(name.starts_with("save")) << name;
}

// TensorFlow adds nodes with each variable that only tell of it: they are outputs where there are
// no others.
TEST(MetaGraphs, WithoutFetchesGiveNoVariables) {
  const TempDir dir;
  const Tensor value = F32({2}, {1, 2});
  ASSERT_TRUE(SaveVariablesBundle(dir / "m", {{"u", value}, {"v", value}, {"w", value}}).ok());
  std::mt19937 random(5);
  for (int trial = 0; trial < 60; ++trial) {
    const auto draw = [&](size_t n) { return random() % n; };
    tf::Graph g;
    g.Add(tf::PlaceholderNode("x"));
    std::vector<std::string> results, reads;
    for (const std::string v : {"u", "v", "w"}) {
      const bool is_resource = draw(2) == 0;
      const tf::NamedValues about = {{"dtype", tf::TypeValue(1)}, {"shape", tf::ShapeValue({2})}};
      const std::string read = v + "/read";
      if (is_resource) {
        g.Add("VarHandleOp", v, {}, about);
        g.Add("VarIsInitializedOp", v + "/made", {v});
        g.Add("ReadVariableOp", read, {v}, {{"dtype", tf::TypeValue(1)}});
        g.Add("AssignAddVariableOp", v + "/count", {v, "x"}, {{"dtype", tf::TypeValue(1)}});
      } else {
        g.Add("VariableV2", v, {}, about);
        g.Add("IsVariableInitialized", v + "/made", {v}, {{"dtype", tf::TypeValue(1)}});
        g.Add("Identity", read, {v}, {{"T", tf::TypeValue(1)}});
        g.Add("AssignAdd", v + "/count", {v, "x"}, {{"T", tf::TypeValue(1)}});
      }
      if (draw(3) > 0) {
        reads.push_back(read);
        continue;
      }
      // The value of a variable that the user names is a result.
      const bool is_copy = draw(2) == 0;
      g.Add(is_copy ? "Identity" : "Neg", v + "/y", {read}, {{"T", tf::TypeValue(1)}});
      results.push_back(v + "/y");
    }
    WriteAll(dir / "m.meta",
             Message().Add(1, Message().Bytes(4, "train")).Add(2, g.message()).bytes());
    const auto model = LoadModel(dir / "m.meta");
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    std::vector<std::string> given;
    for (const TensorInfo& output : model->program.outputs()) given.push_back(output.name);
    EXPECT_THAT(given, UnorderedElementsAreArray(results.empty() ? reads : results)) << trial;
  }
}

TEST_P(Checkpoints, CutShortOrDamagedAreErrors) {
  const std::string folder = kRecorded + "/" + GetParam();
  ProgramPart part;
  part.fetches = {"net/y"};
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("m")) continue;
    const std::string bytes = ReadAll(entry.path().string());
    for (size_t length = 0; length < bytes.size(); length += 1 + bytes.size() / 9) {
      const TempDir dir;
      fs::copy(folder, dir.path(), fs::copy_options::recursive);
      WriteAll(dir / name, bytes.substr(0, length));
      const auto model = LoadModel(dir / "m.meta", "", part);
      EXPECT_FALSE(model.ok() && length < bytes.size() / 2) << name << ", " << length;
    }
    for (size_t at = 0; at < bytes.size(); at += 1 + bytes.size() / 99) {
      const TempDir dir;
      fs::copy(folder, dir.path(), fs::copy_options::recursive);
      std::string damaged = bytes;
      damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
      WriteAll(dir / name, damaged);
      // It is read, or refused with the file that is named or one of the checkpoint's.
      const auto model = LoadModel(dir / "m.meta", "", part);
      EXPECT_TRUE(model.ok() || model.status().message().find(dir / "m") != std::string::npos)
          << name << ", " << at << ": " << model.status().ToString();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Checkpoints, ::testing::Values("first_layout", "bundle"),
                         [](const auto& info) { return std::string(info.param); });

TEST(MetaGraphs, WithoutACheckpointRunWhatNeedsNone) {
  tf::Graph g;
  g.Add(tf::PlaceholderNode("x"));
  g.Add("VariableV2", "v", {}, {{"dtype", tf::TypeValue(1)}, {"shape", tf::ShapeValue({2})}});
  g.Add("Add", "sum", {"x", "v"}, {{"T", tf::TypeValue(1)}});
  g.Add("Neg", "y", {"x"}, {{"T", tf::TypeValue(1)}});
  const TempDir dir;
  const Message info = Message().Bytes(4, "train");
  WriteAll(dir / "m.meta", Message().Add(1, info).Add(2, g.message()).bytes());
  ProgramPart part;
  part.fetches = {"y"};
  EXPECT_TRUE(LoadModel(dir / "m.meta", "", part).ok());
  part.fetches = {"sum"};
  const auto without = LoadModel(dir / "m.meta", "", part);
  ASSERT_FALSE(without.ok());
  EXPECT_THAT(without.status().ToString(), HasSubstr("m.index"));
}

// Of several meta graphs, each of which adds a number of its own.
std::string SavedModelOf(const std::vector<std::vector<std::string>>& tags,
                         const std::vector<std::string>& signatures) {
  Message saved;
  saved.Int(1, 1);
  for (size_t k = 0; k < tags.size(); ++k) {
    Message info;
    info.Bytes(5, "1.15");
    for (const std::string& tag : tags[k]) info.Bytes(4, tag);
    tf::Graph g;
    g.Add(tf::PlaceholderNode("x")).Add(tf::FloatsNode("c", {}, {static_cast<float>(k)}));
    g.Add("Add", "y", {"x", "c"}, {{"T", tf::TypeValue(1)}});
    const auto tensor = [](const char* key, const char* name) {
      return Message().Bytes(1, key).Add(2, Message().Bytes(1, name).Int(2, 1));
    };
    const Message signature = Message().Add(1, tensor("x", "x:0")).Add(2, tensor("y", "y:0"));
    saved.Add(2, Message()
                     .Add(1, info)
                     .Add(2, g.message())
                     .Add(5, Message().Bytes(1, signatures[k]).Add(2, signature)));
  }
  return saved.bytes();
}

TEST(MetaGraphs, OfASavedModelTheOneThatServesIsRead) {
  const auto number = [](const std::string& bytes, const std::string& signature) {
    ProgramPart part;
    part.signature = signature;
    const auto model = ParseModel(bytes, "", "m.pb", part);
    if (!model.ok()) return model.status().ToString();
    Executor executor({.threads = 1});
    CompileOptions options;
    for (const TensorInfo& o : model->program.outputs()) options.fetches.push_back(o.name);
    const auto compiled = MustCompile(executor, model->program, model->scope, options);
    const auto made = MustRun(executor, compiled, {{"x", F32({1}, {0})}});
    return std::to_string(static_cast<int>(Floats(made[0])[0]));
  };
  const std::vector<std::string> same = {"serving_default", "serving_default"};
  EXPECT_EQ(number(SavedModelOf({{"train"}, {"serve"}}, same), ""), "1");
  EXPECT_EQ(number(SavedModelOf({{"serve", "tpu"}, {"serve"}}, same), ""), "1");
  EXPECT_EQ(number(SavedModelOf({{"serve", "gpu"}, {"train"}}, same), ""), "0");
  EXPECT_EQ(number(SavedModelOf({{"train"}, {"eval"}}, {"a", "b"}), "b"), "1");
  EXPECT_THAT(number(SavedModelOf({{"train"}, {"eval"}}, {"a", "b"}), ""),
              HasSubstr("tagged 'train'; 'eval'"));
}

}  // namespace
}  // namespace heddle::testing
