// Parameters: Paddle's files are read and rewritten byte for byte.
#include <gtest/gtest.h>

#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// The program beside a parameter file: `model.pdmodel`, or a training folder's main program.
std::string ProgramOf(const fs::path& params) {
  fs::path beside = params;
  beside.replace_extension(".pdmodel");
  if (fs::exists(beside)) return beside.string();
  const fs::path main = params.parent_path() / "main.pdmodel";
  return fs::exists(main) ? main.string() : "";
}

TEST(Parameters, EveryRecordedFileIsRewrittenByteForByte) {
  TempDir dir;
  int files = 0;
  for (const std::string& path : ModelFiles(".pdiparams")) {
    const std::string program_file = ProgramOf(path);
    if (program_file.empty()) continue;
    auto program = Program::Load(program_file);
    if (!program.ok() && program.status().code() == StatusCode::kUnimplemented) continue;
    ASSERT_TRUE(program.ok()) << program.status().ToString();
    Scope scope;
    Status s = LoadParameters(*program, path, scope);
    ASSERT_TRUE(s.ok()) << s.ToString();
    s = SaveParameters(*program, scope, dir / "again");
    ASSERT_TRUE(s.ok()) << s.ToString();
    ASSERT_EQ(ReadAll(dir / "again") == ReadAll(path), true) << path;
    ++files;
  }
  std::printf("%d files; the shared folder is %s\n", files,
              SharedDir().empty() ? "absent" : "there");
  EXPECT_GT(files, 0);
}

// Any byte but 0 is true.
TEST(Parameters, BytesOfBoolsAreTruths) {
  TempDir dir;
  ProgramBuilder b;
  b.Param("b", DType::kBool, {5});
  const Program program = b.Build();
  Scope scope;
  scope.Set("b", Tensor::Of(DType::kBool, {5}, std::vector<uint8_t>{0, 1, 2, 128, 255}));
  ASSERT_TRUE(SaveParameters(program, scope, dir / "params").ok());
  ASSERT_TRUE(ReadAll(dir / "params").ends_with(std::string("\0\1\2\x80\xff", 5)));
  for (const auto reading : {ParameterReading::kNow, ParameterReading::kWhenNeeded}) {
    Scope read;
    ASSERT_TRUE(LoadParameters(program, dir / "params", read, reading).ok());
    const Tensor& t = read.Find("b")->tensor();
    EXPECT_EQ(std::vector<uint8_t>(static_cast<const uint8_t*>(t.raw()),
                                   static_cast<const uint8_t*>(t.raw()) + 5),
              (std::vector<uint8_t>{0, 1, 1, 1, 1}));
  }
}

struct Everything {
  Everything() {
    builder.Param("f", DType::kF32, {2, 3}).Param("empty", DType::kF32, {0, 4});
    builder.Param("i", DType::kI64, {2}).Param("scalar", DType::kF32, {});
    builder.Param("half", DType::kF16, {3}).Param("b", DType::kBool, {1});
    builder.Param("sequence", DType::kF32, {4, 1}).Param("folder_name", DType::kF64, {1});
    scope.Set("f", F32({2, 3}, {1, 2, 3, 4, 5, 6}));
    scope.Set("empty", Tensor::Empty(DType::kF32, {0, 4}));
    scope.Set("i", I64({2}, {-1, int64_t{1} << 50}));
    scope.Set("scalar", F32({}, {3.5f}));
    scope.Set("half", Tensor::Of(DType::kF16, {3}, std::vector<uint16_t>{0x3c00, 0x0001, 0x7c00}));
    scope.Set("b", Bool(true));
    Tensor sequence = F32({4, 1}, {1, 2, 3, 4});
    sequence.set_lod({{0, 1, 2}, {0, 3, 4}});
    scope.Set("sequence", sequence);
    scope.Set("folder_name", Tensor::Of(DType::kF64, {1}, std::vector<double>{0.1}));
  }
  ProgramBuilder builder;
  Scope scope;
};

TEST(Parameters, EveryKindComesBack) {
  Everything all;
  const Program program = all.builder.Build();
  TempDir dir;
  for (const bool apart : {false, true}) {
    const std::string path = apart ? dir.path() : dir / "params";
    const Status saved = apart ? SaveParametersSeparately(program, all.scope, path)
                               : SaveParameters(program, all.scope, path);
    ASSERT_TRUE(saved.ok()) << saved.ToString();
    Scope scope;
    const Status loaded = LoadParameters(program, path, scope);
    ASSERT_TRUE(loaded.ok()) << loaded.ToString();
    EXPECT_EQ(scope.Names(), all.scope.Names());
    for (const std::string& name : scope.Names())
      EXPECT_TRUE(SameBits(*scope.Find(name), *all.scope.Find(name))) << name;
  }
}

TEST(Parameters, OneFileIsTheSeparateOnesInSortedOrder) {
  Everything all;
  const Program program = all.builder.Build();
  TempDir dir;
  ASSERT_TRUE(SaveParametersSeparately(program, all.scope, dir.path()).ok());
  std::string joined;
  for (const TensorInfo& info : program.persistables()) joined += ReadAll(dir / info.name);
  ASSERT_TRUE(SaveParameters(program, all.scope, dir / "combined").ok());
  EXPECT_EQ(ReadAll(dir / "combined"), joined);
}

TEST(Parameters, ARecordsBytes) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {2});
  Scope scope;
  scope.Set("w", F32({2}, {1, -2}));
  TempDir dir;
  ASSERT_TRUE(SaveParameters(b.Build(), scope, dir / "w").ok());
  const char expected[] =
      "\0\0\0\0"
      "\0\0\0\0\0\0\0\0"
      "\0\0\0\0"
      "\4\0\0\0"
      "\x08\x05\x10\x02"
      "\0\0\x80\x3f"
      "\0\0\0\xc0";
  EXPECT_EQ(ReadAll(dir / "w"), std::string(expected, sizeof(expected) - 1));
}

TEST(Parameters, TensorsAreWrittenInTheGivenOrder) {
  TempDir dir;
  const NamedTensors tensors = {{"z", F32({2}, {1, 2})}, {"a", I64({1}, {7})}};
  ASSERT_TRUE(WriteTensors(dir / "t", tensors).ok());
  auto read = ReadTensors(dir / "t");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_EQ(read->size(), 2u);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(SameBits(Value((*read)[i]), Value(tensors[i].second))) << i;
  const std::string whole = ReadAll(dir / "t");
  WriteAll(dir / "t", whole.substr(0, whole.size() - 1));
  read = ReadTensors(dir / "t");
  EXPECT_EQ(read.status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(WriteTensors(dir / "u", {{"nothing", Tensor()}}).code(), StatusCode::kNotFound);
  EXPECT_FALSE(fs::exists(dir / "u"));
}

TEST(Parameters, AStridedOneIsSavedInRowMajorOrder) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {2, 2});
  std::vector<float> columns = {1, 2, 3, 4};
  Scope scope;
  scope.Set("w", Tensor::WrapStrided(columns.data(), DType::kF32, {2, 2}, {1, 2}));
  TempDir dir;
  ASSERT_TRUE(SaveParameters(b.Build(), scope, dir / "w").ok());
  EXPECT_EQ(Floats((*ReadTensors(dir / "w"))[0]), (std::vector<float>{1, 3, 2, 4}));
}

TEST(Parameters, AFailedLoadOrSaveChangesNothing) {
  Everything all;
  const Program program = all.builder.Build();
  TempDir dir;
  ASSERT_TRUE(SaveParameters(program, all.scope, dir / "p").ok());
  const std::string whole = ReadAll(dir / "p");
  Scope scope;
  scope.Set("f", F32({2, 3}, {9, 9, 9, 9, 9, 9}));
  WriteAll(dir / "cut", whole.substr(0, whole.size() - 3));
  const Status s = LoadParameters(program, dir / "cut", scope);
  EXPECT_EQ(s.code(), StatusCode::kDataLoss);
  EXPECT_NE(s.message().find("'sequence'"), std::string::npos) << s.message();
  EXPECT_EQ(scope.Names(), std::vector<std::string>{"f"});
  EXPECT_EQ(Floats(scope.Find("f")->tensor())[0], 9);
  all.scope.Erase("i");
  const Status saved = SaveParameters(program, all.scope, dir / "p");
  EXPECT_EQ(saved.code(), StatusCode::kNotFound);
  EXPECT_NE(saved.message().find("'i'"), std::string::npos) << saved.message();
  EXPECT_EQ(ReadAll(dir / "p"), whole);
}

TEST(Models, AreFoundByFileOrFolder) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {1}).Feed("x", DType::kF32, {1});
  b.Binary("elementwise_add", "x", "w", "y").Fetch("y");
  Scope scope;
  scope.Set("w", F32({1}, {4}));
  const Program program = b.Build();
  auto expect = [](const Result<Model>& model) {
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    ASSERT_NE(model->scope->Find("w"), nullptr);
    EXPECT_EQ(Floats(model->scope->Find("w")->tensor()), (std::vector<float>{4}));
    EXPECT_EQ(model->program.inputs().size(), 1u);
  };
  for (const char* name : {"model", "inference", "mobile"}) {
    TempDir dir;
    WriteAll(dir / (std::string(name) + ".pdmodel"), b.Bytes());
    ASSERT_TRUE(SaveParameters(program, scope, dir / (std::string(name) + ".pdiparams")).ok());
    expect(LoadModel(dir.path()));
    expect(LoadModel(dir / (std::string(name) + ".pdmodel")));
    fs::rename(dir / (std::string(name) + ".pdiparams"), dir / "elsewhere");
    EXPECT_FALSE(LoadModel(dir.path()).ok());
    expect(LoadModel(dir.path(), dir / "elsewhere"));
  }
  TempDir old;  // one file per parameter beside __model__
  WriteAll(old / "__model__", b.Bytes());
  ASSERT_TRUE(SaveParametersSeparately(program, scope, old.path()).ok());
  expect(LoadModel(old.path()));
  expect(LoadModel(old / "__model__"));
  TempDir combined;
  WriteAll(combined / "__model__", b.Bytes());
  ASSERT_TRUE(SaveParameters(program, scope, combined / "__params__").ok());
  expect(LoadModel(combined.path()));
  TempDir two;
  WriteAll(two / "a.pdmodel", b.Bytes());
  WriteAll(two / "b.pdmodel", b.Bytes());
  EXPECT_FALSE(LoadModel(two.path()).ok());
}

TEST(Models, WithoutParametersNeedNoFile) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1}).Scale("x", "y", 2).Fetch("y");
  TempDir dir;
  WriteAll(dir / "model.pdmodel", b.Bytes());
  EXPECT_TRUE(LoadModel(dir.path()).ok());
  EXPECT_FALSE(LoadModel(dir.path(), dir / "none").ok());
}

}  // namespace
}  // namespace heddle::testing
