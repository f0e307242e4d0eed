// Damaged and foreign files: one error that says what is wrong, never a crash.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two parameters, a loop, a branch: some of everything, in few bytes.
ProgramBuilder Small() {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {2}).Param("b", DType::kF32, {1}).Feed("x", DType::kF32, {-1, 2});
  b.Binary("elementwise_mul", "x", "w", "t").Binary("elementwise_add", "t", "b", "u");
  b.Reshape("u", "v", {-1});
  b.Fill("i", {1}, 0).Fill("n", {1}, 2).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body).Scale("v", "v", 2).Increment("i").Binary("less_than", "i", "n", "go").In(0);
  b.Op("while", {{"X", {"v", "i", "n"}}, {"Condition", {"go"}}},
       {{"Out", {"v", "i", "go"}}, {"StepScopes", {}}}, {{"sub_block", BlockRef{body}}});
  b.Fetch("v");
  return b;
}
std::shared_ptr<Scope> SmallScope() {
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {2, 3}));
  scope->Set("b", F32({1}, {1}));
  return scope;
}
// What is left to run of a program that the parser took; only that it does not crash counts.
void TryToRun(const Program& program, const std::shared_ptr<Scope>& scope) {
  static Executor executor({.threads = 1, .memory_limit = 64 << 20});
  auto compiled = executor.Compile(program, scope);
  if (!compiled.ok()) return;
  (void)executor.Prepare(*compiled, {{"x", F32({1, 2}, {1, 2})}});
}
void ExpectTheGoodProgramRuns() {
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, Small().Build(), SmallScope());
  EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", F32({1, 2}, {1, 2})}})[0]),
            (std::vector<float>{12, 28}));
}

// --- programs ---
TEST(BadProgram, CutAtEveryByte) {
  const std::string bytes = Small().Bytes();
  int taken = 0;
  for (size_t n = 0; n < bytes.size(); ++n) {
    auto program = Program::Parse(bytes.substr(0, n), "cut.pdmodel");
    if (!program.ok()) {
      EXPECT_THAT(program.status().message(), HasSubstr("cut.pdmodel")) << n;
      continue;
    }
    ++taken;  // cut between two blocks or fields
    TryToRun(*program, SmallScope());
  }
  EXPECT_LT(taken, 10);
  ExpectTheGoodProgramRuns();
}

TEST(BadProgram, BitFlips) {
  const std::string good = Small().Bytes();
  std::mt19937 rng(3);
  for (int k = 0; k < 1000; ++k) {
    std::string bytes = good;
    for (unsigned flips = 1 + rng() % 3; flips > 0; --flips)
      bytes[rng() % bytes.size()] ^= static_cast<char>(1u << rng() % 8);
    auto program = Program::Parse(bytes, "flipped.pdmodel");
    if (program.ok()) TryToRun(*program, SmallScope());
  }
  ExpectTheGoodProgramRuns();
}

TEST(BadProgram, GarbageAndEmpty) {
  std::mt19937 rng(5);
  for (int k = 0; k < 200; ++k) {
    std::string bytes(rng() % 300, '\0');
    for (char& c : bytes) c = static_cast<char>(rng());
    auto program = Program::Parse(bytes, "garbage.pdmodel");
    if (program.ok()) TryToRun(*program, SmallScope());
  }
  auto empty = Program::Parse("", "empty.pdmodel");
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(empty.status().message(), AllOf(HasSubstr("empty.pdmodel"), HasSubstr("empty")));
  auto text = Program::Parse("this is no program", "text.pdmodel");
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.status().message(), HasSubstr("text.pdmodel"));
}

TEST(BadProgram, OtherKindsOfFilesAreRecognised) {
  const std::pair<std::string, const char*> kinds[] = {
      {"{\"name\": \"no program\"}", "PIR"},
      {std::string("PK\x03\x04rest", 8), "zip"},
      {std::string("\x80\x04\x95\x00", 4), "pickle"},
  };
  for (const auto& [bytes, word] : kinds) {
    auto program = Program::Parse(bytes, "model");
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(program.status().code(), StatusCode::kUnimplemented);
    EXPECT_THAT(program.status().message(), HasSubstr(word));
  }
  TempDir dir;
  WriteAll(dir / "inference.json", "{}");
  auto model = LoadModel(dir.path());
  ASSERT_FALSE(model.ok());
  EXPECT_THAT(model.status().message(), AllOf(HasSubstr("inference.json"), HasSubstr("PIR")));
}

std::string ParseError(const ProgramBuilder& b, StatusCode code) {
  auto program = b.TryBuild();
  EXPECT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), code) << program.status().ToString();
  return program.status().message();
}

TEST(BadProgram, AllUnknownOperatorsAreListedAtOnce) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  b.Unary("warp", "x", "y").Unary("relu", "y", "z").Unary("weft", "z", "u").Unary("warp", "u", "v");
  EXPECT_THAT(ParseError(b, StatusCode::kUnimplemented),
              AllOf(HasSubstr("2 operators"), HasSubstr("warp (first: block 0, op 1)"),
                    HasSubstr("weft (first: block 0, op 3)")));
}

TEST(BadProgram, ABlockThatIsItsOwnParent) {
  ProgramBuilder b;
  b.desc().mutable_blocks(b.Block(0))->set_parent_idx(1);
  EXPECT_THAT(ParseError(b, StatusCode::kInvalidArgument), HasSubstr("block 1"));
}

TEST(BadProgram, BlocksWithWrongParentsOrNumbers) {
  for (int parent : {-1, 5, 2}) {
    ProgramBuilder b;
    b.Block(0);
    b.Block(0);
    b.desc().mutable_blocks(1)->set_parent_idx(parent);
    EXPECT_THAT(ParseError(b, StatusCode::kInvalidArgument), HasSubstr("block 1"));
  }
  ProgramBuilder b;
  b.desc().mutable_blocks(b.Block(0))->set_idx(7);
  EXPECT_THAT(ParseError(b, StatusCode::kInvalidArgument), HasSubstr("block 1"));
}

ProgramBuilder WithLoop(int block_of_loop, int runs) {
  ProgramBuilder b;
  b.Feed("go", DType::kBool, {1});
  b.Block(0);
  b.Block(1);
  b.In(block_of_loop);
  b.Op("while", {{"X", {}}, {"Condition", {"go"}}}, {{"Out", {}}, {"StepScopes", {}}},
       {{"sub_block", BlockRef{runs}}});
  return b.In(0);
}

TEST(BadProgram, AnOperatorWhoseBlockContainsItself) {
  EXPECT_THAT(ParseError(WithLoop(1, 1), StatusCode::kInvalidArgument),
              AllOf(HasSubstr("block 1, op 0"), HasSubstr("while")));
  ProgramBuilder b = WithLoop(2, 1);
  b.In(1).Op("while", {{"X", {}}, {"Condition", {"go"}}}, {{"Out", {}}, {"StepScopes", {}}},
             {{"sub_block", BlockRef{2}}});
  EXPECT_THAT(ParseError(b, StatusCode::kInvalidArgument), HasSubstr("while"));
}

// `levels` loops, each in the block of the one before.
ProgramBuilder Nested(int levels) {
  ProgramBuilder b;
  b.Feed("go", DType::kBool, {1});
  for (int at = 0; at < levels; ++at) {
    b.Block(at);
    b.In(at).Op("while", {{"X", {}}, {"Condition", {"go"}}}, {{"Out", {}}, {"StepScopes", {}}},
                {{"sub_block", BlockRef{at + 1}}});
  }
  return b.In(0);
}

TEST(BadProgram, BlocksNestedTooDeep) {
  EXPECT_TRUE(Program::Parse(Nested(200).Bytes()).ok());
  for (int levels : {201, 5000})
    EXPECT_THAT(ParseError(Nested(levels), StatusCode::kInvalidArgument),
                HasSubstr("levels of blocks"))
        << levels;
}

TEST(BadProgram, ASubBlockThatDoesNotExistOrIsNotNamed) {
  for (int runs : {0, 9, -1, -5})
    EXPECT_THAT(ParseError(WithLoop(0, runs), StatusCode::kInvalidArgument),
                AllOf(HasSubstr("block 0, op 1"), HasSubstr("while")))
        << runs;
  ProgramBuilder b;
  b.Feed("go", DType::kBool, {1});
  b.Op("while", {{"X", {}}, {"Condition", {"go"}}}, {{"Out", {}}, {"StepScopes", {}}});
  EXPECT_THAT(ParseError(b, StatusCode::kInvalidArgument), HasSubstr("while"));
}

TEST(BadProgram, SlotsAndAttributes) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  b.Op("relu", {}, {{"Out", {"a"}}});                                   // op 1: misses X
  b.Op("relu", {{"X", {"x", "x"}}}, {{"Out", {"b"}}});                  // op 2: two for one
  b.Op("relu", {{"X", {"x"}}, {"Z", {"x"}}}, {{"Out", {"c"}}});         // op 3: no slot Z
  b.Op("scale", {{"X", {"x"}}}, {{"Out", {"d"}}}, {{"scale", "two"}});  // op 4: a text
  EXPECT_THAT(ParseError(b, StatusCode::kInvalidArgument),
              AllOf(HasSubstr("problems"), HasSubstr("block 0, op 1 (relu)"), HasSubstr("'X'"),
                    HasSubstr("block 0, op 2 (relu)"), HasSubstr("block 0, op 3 (relu)"),
                    HasSubstr("'Z'"), HasSubstr("block 0, op 4 (scale)"), HasSubstr("'scale'")));
}

TEST(BadProgram, ARankAboveTheLimit) {
  ProgramBuilder b;
  b.Var("deep", DType::kF32, {1});
  auto* tensor = b.desc().mutable_blocks(0)->mutable_vars(0)->mutable_type()->mutable_lod_tensor();
  for (int k = 0; k < 20; ++k) tensor->mutable_tensor()->add_dims(1);
  EXPECT_THAT(ParseError(b, StatusCode::kInvalidArgument), HasSubstr("deep"));
}

TEST(BadProgram, FilesThatAreNotThere) {
  TempDir dir;
  for (const std::string& path : {dir / "none.pdmodel", dir.path()}) {
    auto model = LoadModel(path);
    ASSERT_FALSE(model.ok());
    EXPECT_EQ(model.status().code(), StatusCode::kNotFound);
    EXPECT_THAT(model.status().message(), HasSubstr(path));
  }
  WriteAll(dir / "model.pdmodel", Small().Bytes());
  auto model = LoadModel(dir.path());
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(model.status().message(), HasSubstr("model.pdiparams"));
}

// --- parameters ---
class BadParameters : public ::testing::Test {
 protected:
  BadParameters() : program_(Small().Build()), path_(dir_ / "model.pdiparams") {
    EXPECT_TRUE(SaveParameters(program_, *SmallScope(), path_).ok());
    bytes_ = ReadAll(path_);
  }
  Status Load(const std::string& bytes) {
    WriteAll(path_, bytes);
    scope_ = std::make_shared<Scope>();
    return LoadParameters(program_, path_, *scope_);
  }
  // Refused, with the file's name, and nothing half loaded.
  std::string Refused(const std::string& bytes) {
    const Status s = Load(bytes);
    EXPECT_FALSE(s.ok());
    EXPECT_THAT(s.message(), HasSubstr(path_));
    EXPECT_TRUE(scope_->Names().empty());
    return s.message();
  }
  TempDir dir_;
  Program program_;
  std::string path_, bytes_;
  std::shared_ptr<Scope> scope_;
};

TEST_F(BadParameters, CutAtEveryByte) {
  for (size_t n = 0; n < bytes_.size(); ++n) Refused(bytes_.substr(0, n));
  EXPECT_THAT(Refused(bytes_.substr(0, bytes_.size() - 5)),
              AllOf(HasSubstr("cut short"), HasSubstr("'w'")));
  EXPECT_THAT(Refused(""), HasSubstr("'b'"));
  EXPECT_TRUE(Load(bytes_).ok());
}

TEST_F(BadParameters, BytesTooMany) {
  EXPECT_THAT(Refused(bytes_ + "more!"), HasSubstr("5 bytes"));
  EXPECT_THAT(Refused(bytes_ + bytes_), HasSubstr("follow"));
}

TEST_F(BadParameters, BitFlips) {
  std::mt19937 rng(9);
  for (int k = 0; k < 1000; ++k) {
    std::string bytes = bytes_;
    bytes[rng() % bytes.size()] ^= static_cast<char>(1u << rng() % 8);
    const Status s = Load(bytes);
    if (s.ok()) TryToRun(program_, scope_);
  }
  ExpectTheGoodProgramRuns();
}

TEST_F(BadParameters, WrongOrderShapeAndType) {
  auto other = [&](std::pair<const char*, Tensor> first, std::pair<const char*, Tensor> second) {
    ProgramBuilder b;
    Scope scope;
    for (auto& [name, value] : {first, second}) {
      b.Param(name, value.dtype(), value.shape());
      scope.Set(name, value);
    }
    EXPECT_TRUE(SaveParameters(b.Build(), scope, path_).ok());
    return ReadAll(path_);
  };
  const Tensor one = F32({1}, {1}), two = F32({2}, {1, 2});
  EXPECT_TRUE(Load(other({"b", one}, {"w", two})).ok());
  EXPECT_THAT(Refused(other({"b", two}, {"w", one})),
              AllOf(HasSubstr("'b'"), HasSubstr("[1]"), HasSubstr("[2]"), HasSubstr("sorted")));
  EXPECT_THAT(Refused(other({"b", one}, {"w", F32({3}, {1, 2, 3})})),
              AllOf(HasSubstr("'w'"), HasSubstr("[2]"), HasSubstr("[3]")));
  EXPECT_THAT(Refused(other({"b", one}, {"w", I64({2}, {1, 2})})),
              AllOf(HasSubstr("'w'"), HasSubstr("float32"), HasSubstr("int64")));
}

TEST_F(BadParameters, ADirectoryWithoutOne) {
  const std::string apart = dir_ / "apart";
  std::filesystem::create_directory(apart);
  ASSERT_TRUE(SaveParametersSeparately(program_, *SmallScope(), apart).ok());
  Scope scope;
  ASSERT_TRUE(LoadParameters(program_, apart, scope).ok());
  WriteAll(apart + "/w", ReadAll(apart + "/w") + "x");
  Status s = LoadParameters(program_, apart, scope);
  EXPECT_THAT(s.message(), AllOf(HasSubstr(apart + "/w"), HasSubstr("1 bytes")));
  std::filesystem::remove(apart + "/w");
  s = LoadParameters(program_, apart, scope);
  EXPECT_EQ(s.code(), StatusCode::kNotFound);
  EXPECT_THAT(s.message(), HasSubstr(apart + "/w"));
}

TEST_F(BadParameters, SavingWhatIsNotThere) {
  Scope scope;
  const Status s = SaveParameters(program_, scope, path_);
  EXPECT_EQ(s.code(), StatusCode::kNotFound);
  EXPECT_THAT(s.message(), HasSubstr("'b'"));
  EXPECT_EQ(ReadAll(path_), bytes_);  // the old file stays
  EXPECT_FALSE(SaveParameters(program_, *SmallScope(), dir_ / "no/such/folder/file").ok());
}

}  // namespace
}  // namespace heddle::testing
