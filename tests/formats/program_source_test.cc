// The seam: what a second format has to bring along is enough, and nothing else knows of it.
#include "formats/program_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "core/error.h"
#include "formats/bytes_source.h"
#include "formats/registry.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using formats::Format;
using ::testing::HasSubstr;

// Programs as lines of text: "in x", then "relu x y" (operator, operand, result), then "out y".
class Lines : public Format {
 public:
  std::string_view name() const override { return "lines"; }
  bool Recognises(std::string_view bytes) const override { return bytes.starts_with("in "); }
  Result<std::shared_ptr<const formats::ProgramSource>> Parse(
      const formats::ParseRequest& request) const override {
    ir::ProgramBuilder& builder = request.builder;
    builder.ReserveBlocks(1);
    builder.AddBlock(-1, -1);
    std::istringstream lines{std::string(request.bytes)};
    std::string word, x, y;
    for (int i = 0; lines >> word >> x; ++i) {
      if (word == "in") {
        builder.AddFeed(builder.AddVar({.name = x, .dtype = DType::kF32}), i);
      } else if (word == "out") {
        builder.AddFetch(builder.Resolve(0, x), i);
      } else {
        lines >> y;
        ir::OpBuilder op(builder, 0, i, word);
        if (!op) continue;
        if (auto* in = op.Input("X", 1)) in->push_back(builder.Resolve(0, x));
        if (auto* out = op.Output("Out", 1)) out->push_back(builder.Resolve(0, y));
        builder.Add(std::move(op));
      }
    }
    return std::shared_ptr<const formats::ProgramSource>(
        std::make_shared<formats::BytesSource>(*this, request.bytes));
  }
  Result<std::string> Write(const ir::Program& p) const override {
    std::string text;
    for (const ir::Port& f : p.feeds) text += "in " + p.vars[f.var].name + "\n";
    for (const ir::Op& op : p.blocks[0].ops)
      text +=
          op.type() + " " + p.vars[op.In("X")[0]].name + " " + p.vars[op.Out("Out")[0]].name + "\n";
    for (const ir::Port& f : p.fetches) text += "out " + p.vars[f.var].name + "\n";
    return text;
  }
  std::vector<std::string> FileNames() const override { return {"model.lines"}; }
  std::string Extension() const override { return ".lines"; }
  std::string DefaultParameters(const std::string& file) const override { return file + ".params"; }
  Status LoadParameters(const Program&, const std::string& path, Scope&,
                        ParameterReading) const override {
    return NotFound(path, ": lines have no parameters");
  }

  Result<std::shared_ptr<ir::Program>> Read(const std::string& text) const {
    ir::ProgramBuilder builder("lines");
    HEDDLE_ASSIGN_OR_RETURN(std::shared_ptr<const formats::ProgramSource> source,
                            Parse({.bytes = text, .builder = builder}));
    return std::move(builder).Finish(std::move(source));
  }
};

const std::string kText = "in x\nrelu x y\nsqrt y z\nout z\n";

TEST(ProgramSource, AnotherFormatRunsAndIsWrittenInItsOwnForm) {
  const Lines format;
  auto made = format.Read(kText);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  const Program program(*made);
  EXPECT_EQ(&formats::FormatOf(program.ir()), &format);
  EXPECT_EQ(*program.Serialize(), kText);
  Scope scope;
  EXPECT_THAT(LoadParameters(program, "there", scope).message(), HasSubstr("lines have no"));
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, program);
  EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", F32({2}, {-1, 9})}})[0]),
            (std::vector<float>{0, 3}));
}

// A program that was let go is made again; lean plans do so.
TEST(ProgramSource, AnotherFormatIsLetGoAndMadeAgain) {
  const Lines format;
  auto made = format.Read(kText);
  ASSERT_TRUE(made.ok());
  const Program program(*made);
  const auto again = formats::Pack(program.ir())->Unpack();
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_TRUE((*again)->as_parsed());
  EXPECT_EQ(*Program(*again).Serialize(), kText);
  Executor executor({.threads = 1});
  const auto compiled = MustCompile(executor, program, std::make_shared<Scope>(), {.lean = true});
  for (int64_t n : {1, 2, 3}) {
    const auto out = MustRun(executor, compiled,
                             {{"x", F32({n}, std::vector<float>(static_cast<size_t>(n), 4))}});
    EXPECT_EQ(Floats(out[0]), std::vector<float>(static_cast<size_t>(n), 2));
  }
}

TEST(ProgramSource, PackedProgramsAreTheSame) {
  TempDir dir;
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  for (int i = 0; i < 400; ++i)  // a file that is worth being read again
    b.Scale(i == 0 ? "x" : "y" + std::to_string(i - 1), "y" + std::to_string(i), 1);
  b.Fetch("y399");
  const std::string path = dir / "model.pdmodel", bytes = b.Bytes();
  ASSERT_GT(bytes.size(), size_t{16} << 10);
  WriteAll(path, bytes);
  const auto program = Program::Load(path);
  ASSERT_TRUE(program.ok());
  const auto from_file = formats::Pack(program->ir());
  const auto from_memory = program->ir().source->Pack(program->ir());
  for (const auto* packed : {from_file.get(), from_memory.get()}) {
    const auto again = packed->Unpack();
    ASSERT_TRUE(again.ok()) << again.status().ToString();
    EXPECT_TRUE((*again)->as_parsed());
    EXPECT_EQ((*again)->hash, program->hash());
    EXPECT_EQ(*Program(*again).Serialize(), *program->Serialize());
  }
  // The file that is read again is the one that was opened, or none.
  std::string changed = bytes;
  changed.back() ^= 1;
  WriteAll(path, changed);
  EXPECT_TRUE(from_memory->Unpack().ok());
  const auto again = from_file->Unpack();
  ASSERT_FALSE(again.ok());
  EXPECT_EQ(again.status().code(), StatusCode::kDataLoss);
  EXPECT_THAT(again.status().message(), HasSubstr(path + " was written to"));
}

TEST(Registry, EachFormatHasANameAndFiles) {
  std::set<std::string_view> names;
  for (const Format* format : formats::Formats()) {
    EXPECT_TRUE(names.insert(format->name()).second) << format->name();
    EXPECT_FALSE(format->FileNames().empty());
    EXPECT_TRUE(format->Extension().starts_with("."));
    EXPECT_FALSE(format->Recognises(""));
    EXPECT_FALSE(
        format->Recognises("\x7f"
                           "ELF"));
  }
}

// Written by a program that came of no file, or of another format's: Paddle's form.
TEST(Registry, ProgramsOfOtherFormatsAreWrittenByPaddles) {
  const Lines lines;
  auto made = lines.Read(kText);
  ASSERT_TRUE(made.ok());
  const auto bytes = formats::Formats()[0]->Write(**made);
  ASSERT_TRUE(bytes.ok());
  const auto again = Program::Parse(*bytes, "converted");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(again->num_ops(), 2);
  EXPECT_EQ(again->inputs()[0].name, "x");
  EXPECT_EQ(again->outputs()[0].name, "z");
}

}  // namespace
}  // namespace heddle::testing
