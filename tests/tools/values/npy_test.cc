// The .npy and .npz readers, good files and bad ones. The tool is a program, not a library, hence
// its sources.
#include "tools/values/npy.cc"  // NOLINT(bugprone-suspicious-include)

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tools/training/durable.cc"  // NOLINT(bugprone-suspicious-include)
#include "tools/values/npy.h"
#include "tools/values/npz.cc"  // NOLINT(bugprone-suspicious-include)

namespace heddle::tools {
namespace {

using testing::HasSubstr;

std::string TempPath(const std::string& name) { return testing::TempDir() + "npy_test_" + name; }

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A .npy file of format `major` with the given header text.
std::string Npy(const std::string& header, const std::string& data, int major = 1) {
  std::string file = "\x93NUMPY";
  file += {static_cast<char>(major), '\0'};
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i)
    file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return file + header + data;
}

std::string HeaderOf(const std::string& descr, const std::string& order, const std::string& shape) {
  return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n";
}

TEST(NpyTest, EveryTypeSurvivesWritingAndReading) {
  for (int i = 0; i + 1 < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{2, 3}, Shape{2, 0, 3}}) {
      Tensor written = Tensor::Zeros(dtype, shape);
      for (size_t b = 0; b < written.bytes(); ++b)
        written.mutable_data<uint8_t>()[b] = dtype == DType::kBool ? b % 2 : 37 * b + 11;
      const std::string path = TempPath("type.npy");
      ASSERT_TRUE(WriteNpy(path, written).ok());
      const auto read = ReadNpy(path);
      ASSERT_TRUE(read.ok()) << Name(dtype) << ": " << read.status().ToString();
      EXPECT_EQ(read->dtype(), dtype);
      EXPECT_EQ(read->shape(), shape);
      EXPECT_EQ(std::memcmp(read->raw(), written.raw(), written.bytes()), 0) << Name(dtype);
    }
  }
}

TEST(NpyTest, WritesWhatNumPyWrites) {
  const Tensor t = Tensor::Of<float>(DType::kF32, {2, 3}, {0, 1, 2, 3, 4, 5});
  ASSERT_TRUE(WriteNpy(TempPath("numpy.npy"), t).ok());
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  header += std::string(128 - 10 - header.size() - 1, ' ') + "\n";
  EXPECT_EQ(ReadFile(TempPath("numpy.npy")), Npy(header, BytesOf<float>({0, 1, 2, 3, 4, 5})));
}

TEST(NpyTest, WritesAStridedTensorRowMajor) {
  std::vector<float> memory = {0, 1, 2, 3, 4, 5};
  const Tensor t = Tensor::WrapStrided(memory.data(), DType::kF32, {3, 2}, {1, 3});
  ASSERT_TRUE(WriteNpy(TempPath("strided.npy"), t).ok());
  const auto read = ReadNpy(TempPath("strided.npy"));
  ASSERT_TRUE(read.ok());
  const std::vector<float> expected = {0, 3, 1, 4, 2, 5};
  EXPECT_EQ(std::memcmp(read->raw(), expected.data(), read->bytes()), 0);
}

TEST(NpyTest, TransposesFortranOrder) {
  std::vector<int16_t> columns(24);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) columns[i + 2 * j + 6 * k] = int16_t(100 * i + 10 * j + k);
  const auto read = ParseNpy(Npy(HeaderOf("<i2", "True", "(2, 3, 4)"), BytesOf(columns)), "f");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k)
        EXPECT_EQ(read->data<int16_t>()[12 * i + 4 * j + k], 100 * i + 10 * j + k);
}

TEST(NpyTest, ReadsAllFormatsAndHeaderStyles) {
  const std::string data = BytesOf<int64_t>({7});
  for (int major : {1, 2, 3}) {
    EXPECT_TRUE(ParseNpy(Npy(HeaderOf("<i8", "False", "(1,)"), data, major), "x").ok()) << major;
  }
  EXPECT_TRUE(ParseNpy(Npy(HeaderOf("<i8", "False", "()"), data), "x").ok());
  EXPECT_TRUE(ParseNpy(Npy(HeaderOf("<i8", "False", "(1L, 1L)"), data), "x").ok());
  EXPECT_TRUE(
      ParseNpy(Npy("{\"shape\":(1,1),\"fortran_order\":False,\"descr\":\"<i8\"}", data), "x").ok());
}

TEST(NpyTest, MakesProperBools) {
  const auto read =
      ParseNpy(Npy(HeaderOf("|b1", "False", "(3,)"), std::string("\0\2\xff", 3)), "x");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(BytesOf<char>({0, 1, 1}), std::string(read->data<char>(), 3));
}

TEST(NpyTest, RefusesDamagedFiles) {
  const std::string four = BytesOf<float>({1});
  const std::pair<std::string, const char*> bad[] = {
      {"", "not a .npy file"},
      {"PK\3\4 something else", "not a .npy file"},
      {Npy(HeaderOf("<f4", "False", "(1,)"), four, 9), "format 9"},
      {Npy(HeaderOf("<f4", "False", "(1,)"), four.substr(1)), "holds 3 bytes"},
      {Npy(HeaderOf("<f4", "False", "(1,)"), four + "x"), "holds 5 bytes"},
      {Npy(HeaderOf("<f4", "False", "(1, 0)"), four), "holds 4 bytes"},
      {Npy(HeaderOf("<f4", "False", "(4611686018427387904, 8)"), four), "too large"},
      {Npy(HeaderOf("<f4", "False", "(99999999999999999999,)"), four), "not understood"},
      {Npy(HeaderOf("<f4", "False", "(-1,)"), four), "not understood"},
      {Npy(HeaderOf("<f4", "Maybe", "(1,)"), four), "not understood"},
      {Npy("{'descr': '<f4'}", four), "not understood"},
      {Npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", four),
       "not understood"},
      {Npy("garbage", four), "not understood"},
      {Npy(HeaderOf("<f4", "False", "(1,1,1,1,1,1,1,1,1,1,1)"), four), "dimensions"},
      {Npy(HeaderOf(">f4", "False", "(1,)"), four), "big-endian"},
      {Npy(HeaderOf("|O", "False", "(1,)"), four), "Python objects"},
      {Npy(HeaderOf("<U1", "False", "(1,)"), four), "unsupported data type"},
  };
  for (const auto& [bytes, why] : bad) {
    const auto read = ParseNpy(bytes, "bad.npy");
    ASSERT_FALSE(read.ok()) << why;
    EXPECT_THAT(read.status().ToString(), HasSubstr(why));
    EXPECT_THAT(read.status().ToString(), HasSubstr("bad.npy"));
  }
}

TEST(NpyTest, RefusesEveryTruncation) {
  const std::string whole =
      Npy(HeaderOf("<f4", "False", "(2, 2)"), BytesOf<float>({1, 2, 3, 4}), 2);
  ASSERT_TRUE(ParseNpy(whole, "x").ok());
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_FALSE(ParseNpy(std::string_view(whole).substr(0, n), "x").ok()) << n;
    WriteFile(TempPath("cut.npy"), whole.substr(0, n));
    EXPECT_FALSE(ReadNpy(TempPath("cut.npy")).ok()) << n;
  }
}

TEST(NpyTest, NamesMissingFilesAndDirectories) {
  EXPECT_EQ(ReadNpy(TempPath("nowhere.npy")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadNpy(testing::TempDir()).status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(WriteNpy(TempPath("no/such/directory.npy"), Tensor::Zeros(DType::kF32, {1})).ok());
}

// ---- archives ----

std::string Little(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

struct ZipMember {
  std::string name, packed;
  uint32_t crc = 0;
  uint64_t unpacked = 0;
  int method = 0;
};

// A ZIP file as NumPy writes it: with 64-bit sizes in the local headers.
std::string Zip(const std::vector<ZipMember>& members) {
  std::string file, directory;
  for (const ZipMember& m : members) {
    const std::string extra =
        Little(1, 2) + Little(16, 2) + Little(m.unpacked, 8) + Little(m.packed.size(), 8);
    directory += Little(0x02014b50, 4) + Little(45, 2) + Little(45, 2) + Little(0, 2) +
                 Little(m.method, 2) + Little(0, 4) + Little(m.crc, 4) +
                 Little(m.packed.size(), 4) + Little(m.unpacked, 4) + Little(m.name.size(), 2) +
                 std::string(12, '\0') + Little(file.size(), 4) + m.name;
    file += Little(0x04034b50, 4) + Little(45, 2) + Little(0, 2) + Little(m.method, 2) +
            Little(0, 4) + Little(m.crc, 4) + Little(0xffffffff, 4) + Little(0xffffffff, 4) +
            Little(m.name.size(), 2) + Little(extra.size(), 2) + m.name + extra + m.packed;
  }
  return file + directory + Little(0x06054b50, 4) + Little(0, 4) + Little(members.size(), 2) +
         Little(members.size(), 2) + Little(directory.size(), 4) + Little(file.size(), 4) +
         Little(0, 2);
}

ZipMember Stored(const std::string& name, const std::string& bytes) {
  return {name, bytes, Crc32(bytes), bytes.size(), 0};
}

std::string TwoArrays() {
  return Zip({Stored("x.npy", Npy(HeaderOf("<f4", "False", "(2,)"), BytesOf<float>({1, 2}))),
              Stored("y.npy", Npy(HeaderOf("<i8", "False", "()"), BytesOf<int64_t>({3})))});
}

TEST(NpzTest, ReadsStoredMembers) {
  const auto read = ParseNpz(TwoArrays(), "x.npz");
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].first, "x");
  EXPECT_EQ((*read)[0].second.data<float>()[1], 2);
  EXPECT_EQ((*read)[1].first, "y");
  EXPECT_EQ((*read)[1].second.data<int64_t>()[0], 3);
  const auto empty = ParseNpz(Zip({}), "x.npz");
  ASSERT_TRUE(empty.ok());
  EXPECT_TRUE(empty->empty());
}

TEST(NpzTest, InflatesOrSaysThatItCannot) {
  const std::string npy = Npy(HeaderOf("<i8", "False", "(1,)"), BytesOf<int64_t>({5}));
  // A deflate stream of one stored block.
  const std::string packed = "\1" + Little(npy.size(), 2) + Little(~npy.size() & 0xffff, 2) + npy;
  const ZipMember member{"x.npy", packed, Crc32(npy), npy.size(), 8};
  const auto read = ParseNpz(Zip({member}), "x.npz");
#ifdef HEDDLE_WITH_ZLIB
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ((*read)[0].second.data<int64_t>()[0], 5);
  ZipMember liar = member;
  liar.unpacked = uint64_t{1} << 31;
  EXPECT_EQ(ParseNpz(Zip({liar}), "x.npz").status().code(), StatusCode::kDataLoss);
#else
  EXPECT_THAT(read.status().ToString(), HasSubstr("zlib"));
#endif
}

TEST(NpzTest, RefusesEveryTruncation) {
  const std::string whole = TwoArrays();
  for (size_t n = 0; n < whole.size(); ++n)
    EXPECT_FALSE(ParseNpz(whole.substr(0, n), "x.npz").ok());
}

TEST(NpzTest, SurvivesEveryFlippedByte) {
  const std::string whole = TwoArrays();
  for (size_t n = 0; n < whole.size(); ++n) {
    for (int mask : {0x01, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[n] = static_cast<char>(damaged[n] ^ mask);
      const auto read = ParseNpz(damaged, "x.npz");  // an error, or a change of no consequence
      EXPECT_TRUE(read.ok() || !read.status().message().empty());
    }
  }
}

TEST(NpzTest, ReadsFiles) {
  WriteFile(TempPath("two.npz"), TwoArrays());
  const auto read = ReadNpz(TempPath("two.npz"));
  ASSERT_TRUE(read.ok()) << read.status().ToString();
  EXPECT_EQ(read->size(), 2u);
  EXPECT_EQ(ReadNpz(TempPath("nowhere.npz")).status().code(), StatusCode::kNotFound);
  EXPECT_FALSE(ReadNpz(testing::TempDir()).ok());
}

TEST(NpzTest, ChecksTheChecksum) {
  ZipMember member = Stored("x.npy", Npy(HeaderOf("<i8", "False", "()"), BytesOf<int64_t>({5})));
  member.packed.back() = 1;
  const auto read = ParseNpz(Zip({member}), "x.npz");
  EXPECT_THAT(read.status().ToString(), HasSubstr("checksum"));
}

}  // namespace
}  // namespace heddle::tools
