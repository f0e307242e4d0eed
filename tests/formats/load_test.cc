// Finding and reading program files: places that cannot be looked at give an error, never an
// exception.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "heddle/model_files.h"
#include "heddle/string_tensor.h"
#include "tests/formats/onnx/onnx_runs.h"
#include "tests/support/files.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

// A user without rights of his own while it lives; nothing where the tests do not run as root.
class AsNobody {
 public:
  AsNobody() { active_ = ::geteuid() == 0 && ::seteuid(65534) == 0; }
  ~AsNobody() {
    const int left = active_ ? ::seteuid(0) : 0;
    EXPECT_EQ(left, 0);
  }

 private:
  bool active_ = false;
};

// What can be wrong with a place, by what looking at it gives.
struct Place {
  std::string name, path;
};

std::vector<Place> BadPlaces(const TempDir& temp) {
  std::vector<Place> places;
  const auto add = [&](const std::string& name) {
    places.push_back({name, temp / name});
    return places.back().path;
  };
  fs::create_directory(add("closed"));
  fs::permissions(places.back().path, fs::perms::none);
  fs::create_directory(add("listed"));  // its names can be read, and nothing else
  WriteAll(temp / "listed/some.onnx", "x");
  fs::permissions(places.back().path, fs::perms::owner_read | fs::perms::others_read);
  add("closed/inside");
  fs::create_directory(add("loops"));  // every usual name leads to itself
  for (const char* name : {"model.pdmodel", "__model__", "model.onnx", "inference.json",
                           "saved_model.pb", "__params__", "model.pdiparams"})
    fs::create_symlink(name, places.back().path + "/" + name);
  add("loops/model.onnx");
  add("loops/__model__");
  add(std::string(300, 'n'));
  std::string deep = "deep";
  while (deep.size() < 5000) deep += "/" + std::string(200, 'd');
  add(deep);
  // A directory whose own name is short enough, and those of files in it are not.
  std::string path = temp.path();
  while (path.size() < 4080) {
    path += "/" + std::string(std::min<size_t>(200, 4090 - path.size()), 'd');
    if (::mkdir(path.c_str(), 0755) != 0) break;
  }
  places.push_back({"long", path});
  add("file/inside");
  WriteAll(temp / "file", "no directory");
  return places;
}

TEST(Load, PlacesThatCannotBeLookedAtAreErrors) {
  TempDir temp;
  fs::permissions(temp.path(), fs::perms::all);
  for (const Place& place : BadPlaces(temp)) {
    const AsNobody nobody;
    const auto check = [&](const auto& call, const char* what) {
      EXPECT_NO_THROW({
        const auto made = call();
        EXPECT_FALSE(made.ok()) << place.name << ": " << what;
        EXPECT_THAT(made.status().message(), Not(::testing::IsEmpty()));
      }) << place.name
         << ": " << what;
    };
    check([&] { return LoadModel(place.path); }, "LoadModel");
    check([&] { return LoadModel(place.path, place.path); }, "LoadModel with parameters");
    check([&] { return Program::Load(place.path); }, "Load");
    check([&] { return SignaturesOf(place.path); }, "SignaturesOf");
    EXPECT_NO_THROW(DefaultParameters(place.path + "/__model__")) << place.name;
    EXPECT_NO_THROW((void)FindProgramFile(place.path)) << place.name;
  }
  fs::permissions(temp / "closed", fs::perms::owner_all);
}

TEST(Load, APipeInADirectoryIsFoundByItsName) {
  const TempDir dir;
  ASSERT_EQ(::mkfifo((dir / "m.onnx").c_str(), 0600), 0);
  const auto file = FindProgramFile(dir.path());  // nobody writes to it, and it is not waited for
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  EXPECT_EQ(*file, dir / "m.onnx");
}

TEST(Load, ADirectoryThatIsClosedSaysSo) {
  TempDir temp;
  fs::permissions(temp.path(), fs::perms::all);
  fs::create_directory(temp / "closed");
  fs::permissions(temp / "closed", fs::perms::none);
  {
    const AsNobody nobody;
    EXPECT_THAT(LoadModel(temp / "closed").status().message(),
                HasSubstr("cannot read the directory"));
  }
  fs::permissions(temp / "closed", fs::perms::owner_all);
}

// Files of more than 2 GiB that take a few pages on the disk.
constexpr int64_t kLargeRows = int64_t{3} << 20, kLargeColumns = 256;
constexpr int64_t kLargeBytes = kLargeRows * kLargeColumns * 4;

TEST(Load, ExternalDataMayBeLargerThanTwoGib) {
  TempDir temp;
  const auto entry = [](std::string_view key, std::string_view value) {
    return Message().Bytes(1, key).Bytes(2, value);
  };
  OnnxGraph graph;
  graph.Weight(TensorHead("table", 1, {kLargeRows, kLargeColumns})
                   .Add(13, entry("location", "table.bin"))
                   .Add(13, entry("length", std::to_string(kLargeBytes)))
                   .Int(14, 1));
  graph.Add(Node("Gather", {"table", "i"}, {"y"})).In("i", 7, {2}).Out("y", 1, {2, -1});
  WriteAll(temp / "model.onnx", graph.Model());
  WriteAll(temp / "table.bin", "");
  fs::resize_file(temp / "table.bin", static_cast<uintmax_t>(kLargeBytes));
  const auto model = LoadModel(temp.path());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ(model->program.persistables()[0].shape, Shape({kLargeRows, kLargeColumns}));
  fs::resize_file(temp / "table.bin", static_cast<uintmax_t>(kLargeBytes - 1));
  EXPECT_THAT(LoadModel(temp.path()).status().message(), HasSubstr("are expected, which has"));
}

TEST(Load, RecordsOfPaddleMayBeLargerThanTwoGib) {
  TempDir temp;
  ProgramBuilder b;
  b.Param("table", DType::kF32, {kLargeRows, kLargeColumns}).Feed("i", DType::kI64, {2, 1});
  b.Op("lookup_table_v2", {{"W", {"table"}}, {"Ids", {"i"}}}, {{"Out", {"y"}}}, {}).Fetch("y");
  const Program program = b.Build();
  const std::string desc =
      Message().Int(1, 5).Int(2, kLargeRows).Int(2, kLargeColumns).bytes();  // of float32
  WriteAll(temp / "params", std::string(16, '\0') +
                                RawOf(std::vector<int32_t>{static_cast<int32_t>(desc.size())}) +
                                desc);
  fs::resize_file(temp / "params",
                  static_cast<uintmax_t>(20 + static_cast<int64_t>(desc.size()) + kLargeBytes));
  Scope scope;
  Status status = LoadParameters(program, temp / "params", scope, ParameterReading::kWhenNeeded);
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(scope.Names().size(), 1U);
}

// protobuf counts bytes in int.
TEST(Load, AProgramOfPaddleIsNoLargerThanTwoGib) {
  constexpr size_t kBytes = (size_t{2} << 30) + 4096;
  void* const room = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(room, MAP_FAILED);
  static_cast<char*>(room)[0] = '\x0a';
  const auto program = Program::Parse({static_cast<const char*>(room), kBytes}, "large");
  EXPECT_THAT(program.status().message(), HasSubstr("2147487744 bytes"));
  EXPECT_THAT(program.status().message(), HasSubstr("at most 2147483647"));
  ::munmap(room, kBytes);
}

// The only constant is one of strings, which is no parameter that a file of parameters could hold.
TEST(Load, ConstantsOfStringsAreRead) {
  OnnxGraph graph;
  graph.Weight(TensorHead("texts", 8, {2}).Bytes(6, "a").Bytes(6, "bc"));
  graph.Add(Node("StringConcat", {"texts", "texts"}, {"y"})).Out("y", 8, {2});
  TempDir temp;
  WriteAll(temp / "model.onnx", graph.Model(20));
  const auto model = LoadModel(temp.path());
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::vector<Value> made = RunValuesOf(*model, {});
  ASSERT_NE(StringsIn(made[0]), nullptr);
  EXPECT_THAT(StringsIn(made[0])->elements, ::testing::ElementsAre("aa", "bcbc"));
}

}  // namespace
}  // namespace heddle::testing
