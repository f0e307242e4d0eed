// Tables of some gigabytes in sparse files, which take no disk: of a table from which rows are
// gathered, no more is read or brought into memory than these rows, whatever the format, dtype and
// place in the file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "core/memory/bytes.h"
#include "formats/leveldb_table.h"
#include "heddle/model_files.h"
#include "tests/formats/onnx/onnx_bytes.h"
#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

namespace fs = std::filesystem;

// A file that is written in few places.
class SparseFile {
 public:
  SparseFile(const std::string& path, uint64_t bytes) : path_(path) {
    std::ofstream(path, std::ios::binary);
    fs::resize_file(path, bytes);
  }
  void Write(uint64_t at, std::string_view bytes) {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file << bytes;
  }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

uint64_t NumberAfter(const std::string& path, const std::string& word) {
  std::ifstream file(path);
  for (std::string w; file >> w;)
    if (w == word) {
      uint64_t number = 0;
      file >> number;
      return number;
    }
  return 0;
}
uint64_t BytesRead() { return NumberAfter("/proc/self/io", "rchar:"); }
uint64_t BytesResident() { return NumberAfter("/proc/self/status", "VmRSS:") << 10; }

// A table of which a few rows are not zero.
struct Table {
  DType dtype = DType::kF32;
  int64_t rows = 0, columns = 0;
  std::vector<int64_t> marked;
  std::vector<std::string> contents;

  size_t row_bytes() const { return static_cast<size_t>(columns) * SizeOf(dtype); }
  uint64_t bytes() const { return static_cast<uint64_t>(rows) * row_bytes(); }
  void WriteTo(SparseFile* file, uint64_t begin) const {
    for (size_t i = 0; i < marked.size(); ++i)
      file->Write(begin + static_cast<uint64_t>(marked[i]) * row_bytes(), contents[i]);
  }
};

Table RandomTable(std::mt19937* random, uint64_t bytes) {
  constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kI8, DType::kI64,
                               DType::kF64, DType::kU8,  DType::kI32};
  Table t;
  t.dtype = kDTypes[(*random)() % std::size(kDTypes)];
  t.columns = 1 + static_cast<int64_t>((*random)() % 700);
  t.rows = static_cast<int64_t>(bytes / t.row_bytes());
  // The last row, and one behind each multiple of 2^31 bytes.
  t.marked = {t.rows - 1, 0};
  for (uint64_t at = uint64_t{1} << 31; at < bytes; at += uint64_t{1} << 31)
    t.marked.push_back(static_cast<int64_t>(at / t.row_bytes()));
  for (int64_t& row : t.marked) row = std::min(row, t.rows - 1);
  for (size_t i = 0; i < t.marked.size(); ++i) {
    std::string row(t.row_bytes(), '\0');
    for (char& c : row) c = static_cast<char>(1 + (*random)() % 60);  // no NaN, in no dtype
    t.contents.push_back(t.marked[i] == t.marked[0] && i > 0 ? t.contents[0] : row);
  }
  return t;
}

// Runs the model, which gathers rows of the table by input 'i', in each way.
void ExpectRows(const std::string& path, const std::string& params, const Table& t,
                const std::string& what) {
  Tensor index = Tensor::Empty(DType::kI64, {static_cast<int64_t>(t.marked.size()) + 1});
  std::copy(t.marked.begin(), t.marked.end(), index.mutable_data<int64_t>());
  index.mutable_data<int64_t>()[t.marked.size()] = t.rows / 2 + 1;  // zeros
  constexpr uint64_t kMost = 16 << 20;
  for (const int level : {0, 2}) {
    for (const int threads : {1, 2}) {
      SCOPED_TRACE(what + ", level " + std::to_string(level));
      Executor executor({.threads = threads});
      const uint64_t read = BytesRead(), resident = BytesResident();
      auto model = LoadModel(path, params);
      ASSERT_TRUE(model.ok()) << model.status().ToString();
      CompileOptions options{.opt_level = level};
      for (const TensorInfo& o : model->program.outputs()) options.fetches.push_back(o.name);
      const auto compiled = MustCompile(executor, model->program, model->scope, options);
      const std::string input = model->program.inputs()[0].name;
      const std::vector<Tensor> rows = MustRun(executor, compiled, {{input, index}});
      EXPECT_LT(BytesRead() - read, kMost);
      EXPECT_LT(BytesResident(), resident + kMost);
      std::string expected;
      for (const std::string& row : t.contents) expected += row;
      expected.append(t.row_bytes(), '\0');
      EXPECT_EQ(rows[0].dtype(), t.dtype);
      EXPECT_TRUE(Bits(rows[0]) == expected);
    }
  }
}

// ONNX's and TensorFlow's element types, which are Paddle's for none.
int OnnxType(DType dtype) {
  return dtype == DType::kF32   ? 1
         : dtype == DType::kF16 ? 10
         : dtype == DType::kI8  ? 3
         : dtype == DType::kI64 ? 7
         : dtype == DType::kF64 ? 11
         : dtype == DType::kU8  ? 2
                                : 6;
}
int TensorflowType(DType dtype) {
  return dtype == DType::kF32   ? 1
         : dtype == DType::kF16 ? 19
         : dtype == DType::kI8  ? 6
         : dtype == DType::kI64 ? 9
         : dtype == DType::kF64 ? 2
         : dtype == DType::kU8  ? 4
                                : 3;
}

Message Entry(std::string_view key, std::string_view value) {
  return Message().Bytes(1, key).Bytes(2, value);
}

void TestExternalData(std::mt19937* random, const Table& t) {
  const TempDir dir;
  // Any element size may lie at any byte.
  const uint64_t offset = std::array<uint64_t, 6>{0, 4096, 64, 4, 1, 12345}[(*random)() % 6];
  SparseFile data(dir / "table.bin", offset + t.bytes());
  t.WriteTo(&data, offset);
  Message w = TensorHead("w", OnnxType(t.dtype), {t.rows, t.columns});
  w.Add(13, Entry("location", "table.bin")).Add(13, Entry("offset", std::to_string(offset)));
  w.Add(13, Entry("length", std::to_string(t.bytes()))).Int(14, 1);
  OnnxGraph g;
  g.Weight(w).In("i", 7, {-1}).Out("y", OnnxType(t.dtype), {-1, t.columns});
  WriteAll(dir / "m.onnx", g.Add(Node("Gather", {"w", "i"}, {"y"})).Model());
  ExpectRows(dir / "m.onnx", "", t, "external data at " + std::to_string(offset));
}

// The bytes of a message before and after contents that are too many to be built in memory.
struct Around {
  std::string before, after;
};

// A field of `length` bytes of which only the tag and the length are there.
std::string HeadOf(uint32_t field, uint64_t length) {
  std::string head;
  wire::AppendVarint(field << 3 | 2, &head);
  wire::AppendVarint(length, &head);
  return head;
}

// Wraps it in a message's field, behind `first`, which belongs to the same message as the field
// that was made before.
void Wrap(uint32_t field, const std::string& first, uint64_t bytes, const std::string& last,
          Around* a) {
  a->before = first + a->before;
  a->after += last;
  a->before = HeadOf(field, a->before.size() + bytes + a->after.size()) + a->before;
}

void WriteAround(const Around& a, const Table& t, const std::string& path) {
  SparseFile file(path, a.before.size() + t.bytes() + a.after.size());
  file.Write(0, a.before);
  file.Write(a.before.size() + t.bytes(), a.after);
  t.WriteTo(&file, a.before.size());
}

void TestInitializer(std::mt19937* random, const Table& t) {
  const TempDir dir;
  Around a{HeadOf(9, t.bytes()), ""};
  const std::string name(1 + (*random)() % 8, 'w');  // moves the contents
  Wrap(5, TensorHead(name, OnnxType(t.dtype), {t.rows, t.columns}).bytes(), t.bytes(), "", &a);
  OnnxGraph g;
  g.In("i", 7, {-1}).Out("y", OnnxType(t.dtype), {-1, t.columns});
  g.Add(Node("Gather", {name, "i"}, {"y"}));
  Wrap(7, g.message().bytes(), t.bytes(), "", &a);
  a.before = Message().Int(1, 8).Add(8, Message().Int(2, 17)).bytes() + a.before;
  WriteAround(a, t, dir / "m.onnx");
  ExpectRows(dir / "m.onnx", "", t, "initializer");
}

void TestGraphConstant(std::mt19937* random, const Table& t) {
  const TempDir dir;
  Around a{HeadOf(4, t.bytes()), ""};
  const std::string name(1 + (*random)() % 8, 'w');
  const int type = TensorflowType(t.dtype);
  Wrap(8, tf::TensorHeadOf(type, {t.rows, t.columns}).bytes(), t.bytes(), "", &a);
  Wrap(2, "", t.bytes(), "", &a);
  const Message dtype = Message().Bytes(1, "dtype").Add(2, tf::TypeValue(type));
  Wrap(5, Message().Bytes(1, "value").bytes(), t.bytes(), "", &a);
  Wrap(1, Message().Bytes(1, name).Bytes(2, "Const").Add(5, dtype).bytes(), t.bytes(), "", &a);
  tf::Graph g;
  g.Add(tf::PlaceholderNode("i", 9)).Add(tf::IntsNode("axis", {}, {0}));
  g.Add("GatherV2", "y", {name, "i", "axis"},
        {{"Tparams", tf::TypeValue(type)}, {"Tindices", tf::TypeValue(9)}});
  a.before = g.bytes() + a.before;
  WriteAround(a, t, dir / "g.pb");
  ExpectRows(dir / "g.pb", "", t, "constant of a graph");
}

// An index of one entry, whose checksum is wrong, which only reading all of it would tell, and one
// shard, behind whose first `offset` bytes the table lies.
std::string IndexOf(const Table& t, uint64_t offset) {
  const std::string entry = Message()
                                .Int(1, TensorflowType(t.dtype))
                                .Add(2, tf::ShapeMessage({t.rows, t.columns}))
                                .Int(4, static_cast<int64_t>(offset))
                                .Int(5, static_cast<int64_t>(t.bytes()))
                                .bytes();
  const std::string block = formats::TableBlock({{"", Message().Int(1, 1).bytes()}, {"w", entry}});
  const std::string file = formats::SealedBlock(block);
  std::string handle, footer;
  wire::AppendVarint(0, &handle);
  wire::AppendVarint(block.size(), &handle);
  const std::string index = formats::TableBlock({{"zzz", handle}});
  wire::AppendVarint(0, &footer);
  wire::AppendVarint(0, &footer);
  wire::AppendVarint(file.size(), &footer);
  wire::AppendVarint(index.size(), &footer);
  footer.resize(formats::kTableFooter - formats::kTableMagic.size(), '\0');
  return file + formats::SealedBlock(index) + footer + std::string(formats::kTableMagic);
}

void TestCheckpoint(std::mt19937* random, const Table& t) {
  const TempDir dir;
  const uint64_t offset = std::array<uint64_t, 4>{0, 16, 4, 77}[(*random)() % 4];
  const int type = TensorflowType(t.dtype);
  tf::Graph g;
  g.Add(tf::PlaceholderNode("i", 9)).Add(tf::IntsNode("axis", {}, {0}));
  g.Add("VariableV2", "w", {},
        {{"dtype", tf::TypeValue(type)}, {"shape", tf::ShapeValue({t.rows, t.columns})}});
  g.Add("Identity", "read", {"w"}, {{"T", tf::TypeValue(type)}});
  g.Add("GatherV2", "y", {"read", "i", "axis"},
        {{"Tparams", tf::TypeValue(type)}, {"Tindices", tf::TypeValue(9)}});
  const Message info = Message().Bytes(4, "train").Bytes(5, "1.15");
  WriteAll(dir / "m.meta", Message().Add(1, info).Add(2, g.message()).bytes());
  WriteAll(dir / "m.index", IndexOf(t, offset));
  SparseFile data(dir / "m.data-00000-of-00001", offset + t.bytes());
  t.WriteTo(&data, offset);
  ExpectRows(dir / "m.meta", "", t, "checkpoint");
}

std::string RecordHead(const Table& t) {
  Tensor empty = Tensor::Empty(t.dtype, {0, t.columns});
  const TempDir dir;
  EXPECT_TRUE(WriteTensors(dir / "p", {{"w", empty}}).ok());
  const std::string head = ReadAll(dir / "p");
  // Ends with the description: its dtype, then the dimensions, of which the first one is 0.
  std::string desc;
  int32_t size = 0;
  std::memcpy(&size, head.data() + 16, sizeof(size));
  desc = head.substr(20, static_cast<size_t>(size));
  const size_t first = desc.find(std::string("\x10\0", 2));
  std::string dims;
  wire::AppendVarint(static_cast<uint64_t>(t.rows), &dims);
  desc = desc.substr(0, first + 1) + dims + desc.substr(first + 2);
  size = static_cast<int32_t>(desc.size());
  return head.substr(0, 16) + std::string(reinterpret_cast<const char*>(&size), 4) + desc;
}

void TestParameters(std::mt19937* random, const Table& t, bool separate) {
  const TempDir dir;
  ProgramBuilder b;
  b.Feed("i", DType::kI64, {-1}).Param("w", t.dtype, {t.rows, t.columns});
  // Its record comes first and moves the table's.
  const int64_t small = 1 + static_cast<int64_t>((*random)() % 8);
  if (!separate) b.Param("a", DType::kI8, {small});
  b.Op("lookup_table_v2", {{"W", {"w"}}, {"Ids", {"i"}}}, {{"Out", {"y"}}}).Fetch("y");
  std::string before;
  if (!separate) {
    EXPECT_TRUE(WriteTensors(dir / "small", {{"a", Tensor::Zeros(DType::kI8, {small})}}).ok());
    before = ReadAll(dir / "small");
  }
  WriteAll(dir / "m.pdmodel", b.Bytes());
  fs::create_directory(dir / "params");
  const std::string path = separate ? dir / "params/w" : dir / "m.pdiparams";
  WriteAround({before + RecordHead(t), ""}, t, path);
  ExpectRows(dir / "m.pdmodel", separate ? dir / "params" : "", t,
             separate ? "parameters in files of their own" : "combined parameters");
}

TEST(LargeFiles, OnlyTheRowsThatAreGatheredAreRead) {
  std::mt19937 random(7);
  const int turns = Repeats("HEDDLE_LARGE_FILES", 3);
  for (int i = 0; i < turns; ++i) {
    const auto table = [&] { return RandomTable(&random, (uint64_t{5} << 30) + random() % 9999); };
    TestExternalData(&random, table());
    TestInitializer(&random, table());
    TestGraphConstant(&random, table());
    TestCheckpoint(&random, table());
    TestParameters(&random, table(), false);
    TestParameters(&random, table(), true);
  }
}

// Sizes that do not fit in 32 bits, of what can only be damaged.
TEST(LargeFiles, OthersAreErrors) {
  const TempDir dir;
  for (const uint64_t bytes : {uint64_t{3} << 30, (uint64_t{4} << 30) + 100}) {
    for (const std::string& begin :
         {std::string("\x0a\xff\xff\xff\xff\x0f\x08", 7), std::string("\x0a\x02\x08\0", 4),
          std::string("\x08\x08\x3a\x10", 4), std::string("\x0a\x05\x0a\x01x\x12\0", 7),
          std::string("{\"base_code\""), std::string()}) {
      SparseFile file(dir / "m", bytes);
      file.Write(0, begin);
      const uint64_t resident = BytesResident();
      const auto model = LoadModel(dir / "m");
      EXPECT_FALSE(model.ok());
      EXPECT_LT(BytesResident(), resident + (64 << 20)) << begin;
    }
  }
}

// A small program over a table of kLeastMapped bytes and more, which is mapped.
class MappedTable : public ::testing::Test {
 protected:
  static constexpr int64_t kRows = 300'000, kColumns = 64;
  void SetUp() override {
    SparseFile file(dir_ / "m.pdiparams", 0);
    Table t{DType::kF32, kRows, kColumns, {3}, {std::string(256, '\x01')}};
    WriteAround({RecordHead(t), ""}, t, file.path());
    bytes_ = ReadAll(file.path());
  }
  const TempDir dir_;
  std::string bytes_;
};

TEST_F(MappedTable, WhatAProgramWritesStaysOutOfTheFile) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {kRows, kColumns}).Feed("i", DType::kI64, {-1});
  b.Op("scale", {{"X", {"w"}}}, {{"Out", {"w"}}}, {{"scale", 1.0}, {"bias", 2.0}});
  b.Op("lookup_table_v2", {{"W", {"w"}}, {"Ids", {"i"}}}, {{"Out", {"y"}}}).Fetch("y");
  WriteAll(dir_ / "m.pdmodel", b.Bytes());
  Executor executor({.threads = 2});
  auto model = LoadModel(dir_ / "m.pdmodel");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const auto compiled = MustCompile(executor, model->program, model->scope);
  for (const float expected : {2.f, 4.f})
    EXPECT_EQ(Floats(MustRun(executor, compiled, {{"i", I64({1}, {5})}})[0])[0], expected);
  EXPECT_TRUE(ReadAll(dir_ / "m.pdiparams") == bytes_);
}

TEST_F(MappedTable, WhatIsWrittenBetweenRunsIsSeen) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {kRows, kColumns}).Feed("i", DType::kI64, {-1});
  b.Op("lookup_table_v2", {{"W", {"w"}}, {"Ids", {"i"}}}, {{"Out", {"y"}}}).Fetch("y");
  WriteAll(dir_ / "m.pdmodel", b.Bytes());
  Executor executor({.threads = 1});
  auto model = LoadModel(dir_ / "m.pdmodel");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const auto compiled = MustCompile(executor, model->program, model->scope);
  const auto first = [&] {
    return Floats(MustRun(executor, compiled, {{"i", I64({1}, {5})}})[0])[0];
  };
  EXPECT_EQ(first(), 0.f);
  model->scope->Find("w")->tensor().mutable_data<float>()[5 * kColumns] = 7.f;
  model->scope->MarkWritten("w");
  EXPECT_EQ(first(), 7.f);
}

TEST_F(MappedTable, AFileThatTakesTheNameDoesNoHarm) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {kRows, kColumns}).Feed("i", DType::kI64, {-1});
  b.Op("lookup_table_v2", {{"W", {"w"}}, {"Ids", {"i"}}}, {{"Out", {"y"}}}).Fetch("y");
  WriteAll(dir_ / "m.pdmodel", b.Bytes());
  Executor executor({.threads = 1});
  auto model = LoadModel(dir_ / "m.pdmodel");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  fs::remove(dir_ / "m.pdiparams");
  WriteAll(dir_ / "m.pdiparams", "another");
  const auto compiled = MustCompile(executor, model->program, model->scope);
  const std::vector<Tensor> rows = MustRun(executor, compiled, {{"i", I64({1}, {3})}});
  EXPECT_TRUE(Bits(rows[0]) == std::string(256, '\x01'));
}

TEST_F(MappedTable, AFileThatWasMadeShorterBeforeItIsNeededIsAnError) {
  ProgramBuilder b;
  b.Param("w", DType::kF32, {kRows, kColumns}).Feed("i", DType::kI64, {-1});
  b.Op("lookup_table_v2", {{"W", {"w"}}, {"Ids", {"i"}}}, {{"Out", {"y"}}}).Fetch("y");
  WriteAll(dir_ / "m.pdmodel", b.Bytes());
  Executor executor({.threads = 1});
  auto model = LoadModel(dir_ / "m.pdmodel");
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  fs::resize_file(dir_ / "m.pdiparams", 1000);
  const auto compiled = executor.Compile(*model);
  const Status status =
      compiled.ok() ? executor.Run(*compiled, {{"i", I64({1}, {3})}}).status() : compiled.status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss) << status.ToString();
}

}  // namespace
}  // namespace heddle::testing
