// Links beside models, as downloads and caches of model hubs lay them: which may be followed.
// HEDDLE_LINK_LAYOUTS=<n> tries n layouts instead of 600, HEDDLE_TEST_SEED=<n> others than usual.
#include "formats/model_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>

#include "formats/tensorflow/tables/table_contents.h"
#include "heddle/heddle.h"
#include "tests/formats/onnx/onnx_runs.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

enum class Data {
  kHere,
  kBlob,
  kBlobTwice,
  kBelowBlobs,
  kFolderOfBlobs,
  kNear,
  kOutside,
  kBlobThenOut,
  kFolderOutside,
  kLikeBlobs,
  kSecondName,
  kBlobOfTwoNames,
  kNothing,
  kPipe,
  kCount,
};

// A folder of a hub: blobs/ holds files, snapshots/main/ what users open, there or in a folder
// below. Holds many models, each with names of its own.
class Hub {
 public:
  explicit Hub(uint32_t seed) : rng_(seed) {
    for (const char* d : {"hub/blobs/sub", "hub/blobs2", "hub/snapshots/main/onnx", "outside"})
      fs::create_directories(dir_ / d);
    for (const char* f : {"hub/blobs/data", "hub/blobs/sub/data", "hub/blobs2/data", "outside/data",
                          "hub/snapshots/main/other"})
      WriteAll(dir_ / f, "12345678");
    folder_ = dir_ / (OneIn(2) ? "hub/snapshots/main/onnx" : "hub/snapshots/main");
  }

  // Lays the data of another model; the result is its name in the model.
  std::string Lay(Data data) {
    ++models_;
    const std::string d = Numbered("d"), f = Numbered("f");
    switch (data) {
      case Data::kHere:
        WriteAll(folder_ + "/" + d, "12345678");
        break;
      case Data::kBlob:
        Link("hub/blobs/data", d);
        break;
      case Data::kBlobTwice:
        Link("hub/blobs/data", Numbered("e"));
        fs::create_symlink(Numbered("e"), folder_ + "/" + d);
        break;
      case Data::kBelowBlobs:
        Link("hub/blobs/sub/data", d);
        break;
      case Data::kFolderOfBlobs:
        Link("hub/blobs", f);
        return f + "/data";
      case Data::kNear:
        Link("hub/snapshots/main/other", d);
        break;
      case Data::kOutside:
        Link("outside/data", d);
        break;
      case Data::kBlobThenOut:
        fs::create_symlink(dir_ / "outside/data", dir_ / ("hub/blobs/" + Numbered("out")));
        Link("hub/blobs/" + Numbered("out"), d);
        break;
      case Data::kFolderOutside:
        Link("outside", f);
        return f + "/data";
      case Data::kLikeBlobs:
        Link("hub/blobs2/data", d);
        break;
      case Data::kSecondName:
        fs::create_hard_link(dir_ / "outside/data", folder_ + "/" + d);
        break;
      case Data::kBlobOfTwoNames:
        fs::create_hard_link(dir_ / "outside/data", dir_ / ("hub/blobs/" + Numbered("two")));
        Link("hub/blobs/" + Numbered("two"), d);
        break;
      case Data::kNothing:
        Link("hub/blobs/nothing", d);
        break;
      case Data::kPipe:
        EXPECT_EQ(::mkfifo((dir_ / ("hub/blobs/" + Numbered("pipe"))).c_str(), 0600), 0);
        Link("hub/blobs/" + Numbered("pipe"), d);
        break;
      case Data::kCount:
        break;
    }
    return OneIn(3) ? "./" + d : d;
  }

  // Lays the model's file, as a link where `is_link`; the result is the path to open.
  std::string LayModel(const std::string& bytes, bool is_link) {
    const std::string m = Numbered("m") + ".onnx", n = Numbered("n") + ".onnx";
    const std::string blob = "hub/blobs/" + m;
    WriteAll(is_link ? dir_ / blob : folder_ + "/" + m, bytes);
    if (is_link && OneIn(3)) {
      Link(blob, n);
      fs::create_symlink(n, folder_ + "/" + m);
    } else if (is_link) {
      Link(blob, m);
    }
    if (!OneIn(4)) return folder_ + "/" + m;
    fs::create_symlink(folder_, dir_ / m);  // to the folder, which is no part of a name
    return dir_ / (m + "/" + m);
  }

  const std::string& folder() const { return folder_; }
  bool OneIn(size_t n) { return rng_() % n == 0; }

 private:
  void Link(const std::string& to, const std::string& name) {
    const fs::path target = dir_ / to;
    fs::create_symlink(OneIn(3) ? target : fs::relative(target, folder_), folder_ + "/" + name);
  }

  std::string Numbered(const std::string& name) const { return name + std::to_string(models_); }

  TempDir dir_;
  std::mt19937 rng_;
  std::string folder_;
  int models_ = 0;
};

bool MayBeRead(Data data, bool model_is_link) {
  const bool in_blobs = data == Data::kBlob || data == Data::kBlobTwice;
  return data == Data::kHere || (in_blobs && model_is_link);
}

TEST(ModelFolder, LinksLeadToTheFolderBehindALinkedModelAlone) {
  const char* given = std::getenv("HEDDLE_LINK_LAYOUTS");
  const char* first = std::getenv("HEDDLE_TEST_SEED");
  const int layouts = given != nullptr ? std::atoi(given) : 600;
  const auto seed = static_cast<uint32_t>(first != nullptr ? std::atoi(first) : 9);
  constexpr int kModels = 60;  // in one folder
  std::optional<Hub> place;
  for (int k = 0; k < layouts; ++k) {
    if (k % kModels == 0) place.emplace(seed * 1000003u + static_cast<uint32_t>(k));
    Hub& hub = *place;
    const auto data = static_cast<Data>(k % static_cast<int>(Data::kCount));
    const bool is_link = hub.OneIn(2);
    const std::string name = hub.Lay(data);
    OnnxGraph g;
    const Message w =
        TensorHead("w", 1, {2}).Int(14, 1).Add(13, Message().Bytes(1, "location").Bytes(2, name));
    g.In("x").Weight(w).Add(Node("Add", {"x", "w"}, {"y"})).Out("y");
    const auto program = Program::Load(hub.LayModel(g.Model(), is_link));
    EXPECT_EQ(program.ok(), MayBeRead(data, is_link))
        << "layout " << k << ", data " << static_cast<int>(data) << (is_link ? ", a link: " : ": ")
        << program.status().ToString();
  }
}

// Tables of a SavedModel's assets go by the same rule.
TEST(ModelFolder, FilesOfALinkedModelsAssetsMayBeLinks) {
  for (int k = 0; k < static_cast<int>(Data::kCount); ++k) {
    for (const bool is_link : {false, true}) {
      const auto data = static_cast<Data>(k);
      if (data == Data::kNear) continue;  // links within the assets are followed
      Hub hub(static_cast<uint32_t>(k));
      tensorflow::TableContents contents;
      contents.file = tensorflow::TableFile{.name = hub.Lay(data)};
      const std::string behind = formats::FolderBehindLink(hub.LayModel("model", is_link));
      EXPECT_EQ(behind.empty(), !is_link);
      const auto table = tensorflow::MakeTable(contents, hub.folder(), behind);
      EXPECT_EQ(table.ok(), MayBeRead(data, is_link))
          << k << (is_link ? ", a link: " : ": ") << table.status().ToString();
    }
  }
  tensorflow::TableContents cut;
  Hub hub(1);
  cut.file = tensorflow::TableFile{.name = hub.Lay(Data::kHere) + std::string("\0x", 2)};
  EXPECT_FALSE(tensorflow::MakeTable(cut, hub.folder()).ok());
}

}  // namespace
}  // namespace heddle::testing
