// Bundles of variables, written here piece by piece: whole tensors, slices, and files that lie.
#include "formats/tensorflow/bundle/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "core/memory/crc32c.h"
#include "core/memory/lazy_buffer.h"
#include "formats/leveldb_table.h"
#include "formats/tensorflow/tensor_data.h"
#include "heddle/variables_bundle.h"
#include "tests/formats/tensorflow/graph_bytes.h"
#include "tests/support/files.h"

namespace heddle::tensorflow {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Message;
using testing::RawOf;
using testing::tf::ShapeMessage;

const std::string kMagic(formats::kTableMagic);

std::string IndexOf(std::map<std::string, std::string> entries, int64_t shards = 1) {
  if (!entries.contains("")) entries[""] = Message().Int(1, shards).bytes();
  std::string handle, footer;
  const std::string block = formats::TableBlock(entries), file = formats::SealedBlock(block);
  wire::AppendVarint(0, &handle);
  wire::AppendVarint(block.size(), &handle);
  const std::string index = formats::TableBlock({{"zzz", handle}});
  wire::AppendVarint(0, &footer);
  wire::AppendVarint(0, &footer);
  wire::AppendVarint(file.size(), &footer);
  wire::AppendVarint(index.size(), &footer);
  footer.resize(40, '\0');
  return file + formats::SealedBlock(index) + footer + kMagic;
}

// The same for entries that get the checksums of their bytes in the shards.
std::string IndexOf(std::map<std::string, std::string> entries,
                    const std::vector<std::string>& shards) {
  for (auto& [name, entry] : entries) {
    std::map<uint32_t, uint64_t> numbers;
    wire::Fields fields(entry);
    wire::Field f;
    while (!fields.done() && fields.Next(&f)) numbers[f.number] = f.varint;
    if (numbers.contains(7)) continue;  // in slices
    const std::string_view bytes = shards[numbers[3]];
    wire::AppendVarint(6 << 3 | wire::Field::kFixed32, &entry);
    formats::AppendFixed32(MaskedCrc32c(Crc32c(bytes.substr(numbers[4], numbers[5]))), &entry);
  }
  return IndexOf(std::move(entries), static_cast<int64_t>(shards.size()));
}

std::string EntryOf(int type, const std::vector<int64_t>& dims, int64_t offset, int64_t size,
                    int64_t shard = 0) {
  return Message()
      .Int(1, type)
      .Add(2, ShapeMessage(dims))
      .Int(3, shard)
      .Int(4, offset)
      .Int(5, size)
      .bytes();
}

class BundleFiles {
 public:
  BundleFiles(const std::map<std::string, std::string>& entries,
              const std::vector<std::string>& shards)
      : BundleFiles(IndexOf(entries, shards), shards) {}
  BundleFiles(const std::string& index, const std::vector<std::string>& shards) {
    Write(prefix() + ".index", index);
    for (size_t k = 0; k < shards.size(); ++k)
      Write(
          prefix() + ".data-0000" + std::to_string(k) + "-of-0000" + std::to_string(shards.size()),
          shards[k]);
  }
  std::string prefix() const { return dir_ / "variables"; }
  std::string Error() const {
    const auto bundle = Bundle::Open(prefix());
    return bundle.ok() ? "" : bundle.status().ToString();
  }

 private:
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream file(path, std::ios::binary);
    file << bytes;
  }
  testing::TempDir dir_;
};

std::vector<float> FloatsOf(const Result<Value>& value) {
  EXPECT_TRUE(value.ok()) << value.status().ToString();
  if (!value.ok()) return {};
  const Tensor& t = value->tensor();
  return {t.data<float>(), t.data<float>() + t.numel()};
}

TEST(Bundle, TensorsLieInShards) {
  const std::vector<float> a = {1, 2}, b = {3, 4, 5};
  const BundleFiles files({{"a", EntryOf(kFloat, {2}, 4, 8)},
                           {"a/b", EntryOf(kFloat, {3}, 0, 12, 1)},
                           {"n", EntryOf(kInt64, {}, 12, 8, 1)}},
                          {"xxxx" + RawOf(a), RawOf(b) + RawOf(std::vector<int64_t>{-7})});
  const auto bundle = Bundle::Open(files.prefix());
  ASSERT_TRUE(bundle.ok()) << bundle.status().ToString();
  EXPECT_THAT((*bundle)->keys(), ElementsAre("a", "a/b", "n"));
  EXPECT_THAT(FloatsOf((*bundle)->Read("a", ParameterReading::kNow)), ElementsAre(1, 2));
  EXPECT_THAT(FloatsOf((*bundle)->Read("a/b", ParameterReading::kNow)), ElementsAre(3, 4, 5));
  const auto n = (*bundle)->Read("n", ParameterReading::kNow);
  ASSERT_TRUE(n.ok());
  EXPECT_EQ(*n->tensor().data<int64_t>(), -7);
  EXPECT_THAT((*bundle)->Read("c", ParameterReading::kNow).status().message(), HasSubstr("no 'c'"));
  // A part, as RestoreV2 names it.
  EXPECT_THAT(FloatsOf((*bundle)->Read("a/b\n3 1,2", ParameterReading::kNow)), ElementsAre(4, 5));
  EXPECT_FALSE((*bundle)->Read("a/b\n3 1,3", ParameterReading::kNow).ok());
}

// Parts of tensors that are large enough to stay in their file.
TEST(Bundle, PartsAreReadWhenNeeded) {
  constexpr int64_t kRows = 96, kColumns = 64;
  std::vector<float> values(kRows * kColumns);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  std::vector<uint16_t> narrow(values.begin(), values.end());
  const BundleFiles files(
      {{"v", EntryOf(kFloat, {kRows, kColumns}, 3, kRows * kColumns * 4)},
       {"n", EntryOf(kUint16, {kRows, kColumns}, 3 + kRows * kColumns * 4, kRows * kColumns * 2)}},
      {"xxx" + RawOf(values) + RawOf(narrow)});
  const auto bundle = Bundle::Open(files.prefix());
  ASSERT_TRUE(bundle.ok()) << bundle.status().ToString();
  std::mt19937 random(1);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  for (int i = 0; i < 60; ++i) {
    const bool all_columns = i % 2 == 0, is_narrow = i % 3 == 0;
    const int64_t row = below(kRows), rows = below(kRows - row + 1);
    const int64_t column = all_columns ? 0 : below(kColumns);
    const int64_t columns = all_columns ? kColumns : below(kColumns - column + 1);
    const std::string slice =
        "96 64 " + std::to_string(row) + "," + std::to_string(rows) + ":" +
        (all_columns ? "-" : std::to_string(column) + "," + std::to_string(columns));
    const auto reading = i % 5 == 0 ? ParameterReading::kNow : ParameterReading::kWhenNeeded;
    const auto value = (*bundle)->Read((is_narrow ? "n\n" : "v\n") + slice, reading);
    ASSERT_TRUE(value.ok()) << slice << ": " << value.status().ToString();
    const Tensor& t = value->tensor();
    ASSERT_TRUE(MakeResident(t).ok());
    ASSERT_EQ(t.shape(), Shape({rows, columns})) << slice;
    for (int64_t k = 0; k < t.numel(); ++k) {
      const int64_t want = (row + k / columns) * kColumns + column + k % columns;
      const int64_t got =
          is_narrow ? t.data<int32_t>()[k] : static_cast<int64_t>(t.data<float>()[k]);
      ASSERT_EQ(got, want) << slice << " at " << k;
    }
  }
}

// Tables of more than 2 GiB, in files of no more bytes on the disk than a few pages.
TEST(Bundle, TensorsMayBeLargerThanTwoGib) {
  constexpr int64_t kRows = int64_t{3} << 20, kColumns = 256;  // 3 GiB
  const BundleFiles files(
      IndexOf({{"table", EntryOf(kFloat, {kRows, kColumns}, 0, kRows * kColumns * 4)}}), {""});
  const std::string shard = files.prefix() + ".data-00000-of-00001";
  std::filesystem::resize_file(shard, static_cast<uintmax_t>(kRows * kColumns * 4));
  const std::vector<float> last = {1, 2, 3};
  {
    std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(kRows * kColumns * 4 - 12);
    file << RawOf(last);
  }
  const auto bundle = Bundle::Open(files.prefix());
  ASSERT_TRUE(bundle.ok()) << bundle.status().ToString();
  const auto table = (*bundle)->Read("table", ParameterReading::kWhenNeeded);
  ASSERT_TRUE(table.ok()) << table.status().ToString();
  EXPECT_EQ(table->tensor().numel(), kRows * kColumns);
  const Tensor end = BorrowedStretches(table->tensor()).Read(kRows * kColumns - 3, 3);
  EXPECT_THAT(std::vector<float>(end.data<float>(), end.data<float>() + 3), ElementsAre(1, 2, 3));
  const auto row =
      (*bundle)->Read("table\n3145728 256 3145727,1:253,3", ParameterReading::kWhenNeeded);
  EXPECT_THAT(FloatsOf(row), ElementsAre(1, 2, 3));
}

// Two columns each of a [2, 4] tensor, under keys that put the numbers into order: a length byte
// for the rank, and numbers whose leading bits say how many bytes they have.
TEST(Bundle, SlicesAreJoined) {
  const auto key = [](char begin) {
    return std::string("\0w\0\1\1\2", 6) + "\x80\x7f" + static_cast<char>(0x80 + begin) + "\x82";
  };
  const auto slice = [](int64_t begin) {
    Message m;
    m.Add(1, Message()).Add(1, Message().Int(1, begin).Int(2, 2));
    return m;
  };
  const std::string whole = Message()
                                .Int(1, kFloat)
                                .Add(2, ShapeMessage({2, 4}))
                                .Add(7, slice(0))
                                .Add(7, slice(2))
                                .bytes();
  const std::vector<float> left = {1, 2, 5, 6}, right = {3, 4, 7, 8};
  const std::map<std::string, std::string> entries = {{"w", whole},
                                                      {key(0), EntryOf(kFloat, {2, 2}, 0, 16)},
                                                      {key(2), EntryOf(kFloat, {2, 2}, 16, 16)}};
  const BundleFiles files(entries, {RawOf(left) + RawOf(right)});
  const auto bundle = Bundle::Open(files.prefix());
  ASSERT_TRUE(bundle.ok()) << bundle.status().ToString();
  EXPECT_THAT(FloatsOf((*bundle)->Read("w", ParameterReading::kNow)),
              ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  // Without the right half, some elements have no value.
  const std::string half =
      Message().Int(1, kFloat).Add(2, ShapeMessage({2, 4})).Add(7, slice(0)).bytes();
  const BundleFiles holes({{"w", half}, {key(0), EntryOf(kFloat, {2, 2}, 0, 16)}}, {RawOf(left)});
  const auto holed = Bundle::Open(holes.prefix());
  ASSERT_TRUE(holed.ok()) << holed.status().ToString();
  EXPECT_THAT((*holed)->Read("w", ParameterReading::kNow).status().message(),
              HasSubstr("no slice of 'w' has its element 2 of 8"));
  // What is in slices is no larger than the shards.
  const std::string huge =
      Message().Int(1, kFloat).Add(2, ShapeMessage({2, int64_t{1} << 39})).Add(7, slice(0)).bytes();
  const BundleFiles claims({{"w", huge}, {key(0), EntryOf(kFloat, {2, 2}, 0, 16)}}, {RawOf(left)});
  const auto claimed = Bundle::Open(claims.prefix());
  ASSERT_TRUE(claimed.ok()) << claimed.status().ToString();
  EXPECT_THAT((*claimed)->Read("w", ParameterReading::kNow).status().message(),
              HasSubstr("larger than all shards"));
}

// A slice that claims to be in slices, too, could have any size for its shape.
TEST(Bundle, SlicesAreWhole) {
  Message slice;
  slice.Add(1, Message().Int(2, 2));
  const auto sliced = [&](int64_t size) {
    return EntryOf(kFloat, {2}, 0, size) + Message().Add(7, slice).bytes();
  };
  const std::string key("\0w\0\1\1\1\x80\x82", 8);
  const std::string data(1 << 20, 'x');
  const BundleFiles files({{"w", sliced(8)}, {key, sliced(1 << 20)}}, {data});
  const auto bundle = Bundle::Open(files.prefix());
  ASSERT_TRUE(bundle.ok()) << bundle.status().ToString();
  EXPECT_THAT((*bundle)->Read("w", ParameterReading::kNow).status().message(),
              HasSubstr("a slice of 'w' is not in the bundle"));
  const BundleFiles whole({{"w", sliced(8)}, {key, EntryOf(kFloat, {2}, 0, 8)}}, {data});
  EXPECT_TRUE((*Bundle::Open(whole.prefix()))->Read("w", ParameterReading::kNow).ok());
}

// Checksums are those of the format: the known one of "123456789" is e3069283, before it is turned.
TEST(Bundle, WrittenOnesAreRead) {
  const testing::TempDir dir;
  const NamedTensors tensors = {
      {"w/m", testing::F32({2}, {1, 2})},
      {"n", Tensor::Of(DType::kI64, Shape(), std::vector<int64_t>{-7})},
      {"text", Tensor::Of(DType::kU8, Shape{9},
                          std::vector<uint8_t>{'1', '2', '3', '4', '5', '6', '7', '8', '9'})}};
  ASSERT_TRUE(SaveVariablesBundle(dir / "v", tensors).ok());
  const auto bundle = Bundle::Open(dir / "v");
  ASSERT_TRUE(bundle.ok()) << bundle.status().ToString();
  EXPECT_THAT((*bundle)->keys(), ElementsAre("n", "text", "w/m"));
  EXPECT_THAT(FloatsOf((*bundle)->Read("w/m", ParameterReading::kNow)), ElementsAre(1, 2));
  const auto n = (*bundle)->Read("n", ParameterReading::kNow);
  ASSERT_TRUE(n.ok());
  EXPECT_EQ(*n->tensor().data<int64_t>(), -7);
  const uint32_t crc = 0xe3069283, turned = (crc >> 15 | crc << 17) + 0xa282ead8;
  std::string field(1, 6 << 3 | 5);
  formats::AppendFixed32(turned, &field);
  EXPECT_THAT(testing::ReadAll(dir / "v.index"), HasSubstr(field));
  EXPECT_FALSE(SaveVariablesBundle(dir / "v", {tensors[0], tensors[0]}).ok());
}

// Values of all keys as bytes; empty: something was refused.
std::string ContentsOf(const std::string& prefix, ParameterReading reading) {
  const auto bundle = Bundle::Open(prefix);
  std::string contents;
  if (!bundle.ok()) return {};
  for (const std::string& key : (*bundle)->keys()) {
    const auto value = (*bundle)->Read(key, reading);
    if (!value.ok() || !MakeResident(value->tensor()).ok()) return {};
    const Tensor& t = value->tensor();
    contents += key + " " + std::string(Name(t.dtype())) + t.shape().ToString();
    contents.append(static_cast<const char*>(t.raw()), t.bytes());
  }
  return contents;
}

// One bit of a bundle is turned: the damage is told, or nothing of it can be seen.
TEST(Bundle, NoTurnedBitIsRead) {
  std::mt19937 random(7);
  const auto below = [&](size_t n) { return static_cast<size_t>(random()) % n; };
  constexpr DType kDTypes[] = {DType::kF32, DType::kF64, DType::kI32,  DType::kU8, DType::kI8,
                               DType::kI64, DType::kF16, DType::kBF16, DType::kC64};
  const int bundles = testing::Repeats("HEDDLE_DAMAGED_BUNDLES", 60);
  for (int i = 0; i < bundles; ++i) {
    const testing::TempDir dir;
    NamedTensors tensors;
    for (size_t k = 0, n = 1 + below(5); k < n; ++k) {
      const auto elements = static_cast<int64_t>(k == 0 ? 5000 + below(20000) : below(40));
      Tensor t = Tensor::Empty(kDTypes[below(std::size(kDTypes))], Shape{elements});
      for (size_t at = 0; at < t.bytes(); ++at)
        static_cast<uint8_t*>(t.mutable_raw())[at] = static_cast<uint8_t>(random());
      tensors.emplace_back("v" + std::string(below(30), 'a') + std::to_string(k), std::move(t));
    }
    ASSERT_TRUE(SaveVariablesBundle(dir / "v", tensors).ok());
    const auto reading = i % 2 == 0 ? ParameterReading::kNow : ParameterReading::kWhenNeeded;
    const std::string right = ContentsOf(dir / "v", reading);
    ASSERT_NE(right, "");
    for (int k = 0; k < 10; ++k) {
      const bool in_index = k % 2 == 0;
      const std::string path = dir / (in_index ? "v.index" : "v.data-00000-of-00001");
      const std::string good = testing::ReadAll(path);
      std::string damaged = good;
      const size_t at = below(good.size());
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << below(8));
      testing::WriteAll(path, damaged);
      const std::string got = ContentsOf(dir / "v", reading);
      if (in_index) {
        EXPECT_TRUE(got.empty() || got == right) << "byte " << at << " of the index";
      } else {
        EXPECT_EQ(got, "") << "byte " << at << " of the data";
        // Nobody reads any: they are compared all the same.
        const auto bundle = Bundle::Open(dir / "v");
        ASSERT_TRUE(bundle.ok());
        EXPECT_EQ((*bundle)->CheckOthers({}).code(), StatusCode::kDataLoss);
      }
      testing::WriteAll(path, good);
    }
  }
}

// Keys that share all of a long one: a file of a megabyte, and more than any memory holds.
TEST(Bundle, KeysAreBounded) {
  std::string block, handle, footer;
  const std::string key(1 << 20, 'k');
  for (const uint64_t v : {uint64_t{0}, uint64_t{key.size()}, uint64_t{0}})
    wire::AppendVarint(v, &block);
  block += key;
  for (int i = 0; i < 100000; ++i)
    for (const uint64_t v : {uint64_t{key.size()}, uint64_t{0}, uint64_t{0}})
      wire::AppendVarint(v, &block);
  formats::AppendFixed32(0, &block);
  formats::AppendFixed32(1, &block);
  wire::AppendVarint(0, &footer);
  wire::AppendVarint(0, &footer);
  wire::AppendVarint(0, &footer);
  wire::AppendVarint(block.size(), &footer);
  footer.resize(40, '\0');
  const auto bundle = Bundle::ParseIndex(block + std::string(5, '\0') + footer + kMagic, "long",
                                         Bundle::Checksums::kIgnored);
  EXPECT_THAT(bundle.status().message(), HasSubstr("a block of the index is damaged"));
}

TEST(Bundle, FilesThatAreCutOrLieAreRefused) {
  const std::string data = RawOf(std::vector<float>{1, 2});
  const std::string good = IndexOf({{"a", EntryOf(kFloat, {2}, 0, 8)}});
  EXPECT_EQ(BundleFiles(good, {data}).Error(), "");
  for (size_t n = 0; n < good.size(); ++n) {
    const auto cut = Bundle::ParseIndex(good.substr(0, n), "cut", Bundle::Checksums::kIgnored);
    EXPECT_EQ(cut.status().code(), StatusCode::kDataLoss) << n;
  }
  EXPECT_THAT(BundleFiles(good, {"1234"}).Error(),
              HasSubstr("8 bytes from byte 0 on are expected"));
  EXPECT_THAT(BundleFiles(good, {}).Error(), HasSubstr("data-00000-of-00001"));
  const auto error = [&](const std::string& entry, int64_t shards = 1) {
    return BundleFiles(IndexOf({{"a", entry}}, shards), {data}).Error();
  };
  EXPECT_THAT(error(EntryOf(kFloat, {3}, 0, 8)), HasSubstr("8 bytes are stored for float32 [3]"));
  EXPECT_THAT(error(EntryOf(kFloat, {int64_t{1} << 60}, 0, 8)), HasSubstr("is larger than"));
  EXPECT_THAT(error(EntryOf(kFloat, {2}, 0, 8, 3)), HasSubstr("of shard 3 of 1"));
  EXPECT_THAT(error(EntryOf(kFloat, {2}, int64_t{1} << 62, 8)), HasSubstr("are expected"));
  EXPECT_THAT(error(EntryOf(kFloat, {2}, 0, 8), 1 << 30), HasSubstr("shards"));
  EXPECT_THAT(error("\xff"), HasSubstr("the entry of 'a' is damaged"));
  std::string compressed = good;
  compressed[good.find(kMagic) - 40 - 5] = 2;
  EXPECT_THAT(BundleFiles(compressed, {data}).Error(), HasSubstr("does not have its checksum"));
  const auto unchecked = [](const std::string& index) {
    return std::string(
        Bundle::ParseIndex(index, "index", Bundle::Checksums::kIgnored).status().message());
  };
  EXPECT_THAT(unchecked(compressed), HasSubstr("compressed in the way 2"));
  compressed[good.find(kMagic) - 40 - 5] = 1;  // which it is not
  EXPECT_THAT(unchecked(compressed), HasSubstr("a compressed block"));
}

// The index of one tensor, its blocks compressed by Google's snappy.
TEST(Bundle, BlocksMayBeCompressed) {
  const std::string index = testing::ReadAll(HEDDLE_SOURCE_DIR "/tests/fuzz/bundle/snappy.index");
  const auto bundle = Bundle::ParseIndex(index, "snappy");
  ASSERT_TRUE(bundle.ok()) << bundle.status().ToString();
  const auto plain =
      Bundle::ParseIndex(testing::ReadAll(HEDDLE_SOURCE_DIR "/tests/fuzz/bundle/two.index"), "two");
  ASSERT_TRUE(plain.ok()) << plain.status().ToString();
  EXPECT_FALSE((*plain)->keys().empty());
  EXPECT_EQ((*bundle)->keys(), (*plain)->keys());
  for (size_t n = 0; n < index.size(); ++n)
    EXPECT_FALSE(Bundle::ParseIndex(index.substr(0, n), "cut").ok()) << n;
}

}  // namespace
}  // namespace heddle::tensorflow
