// The .npy and .npz readers, good files and bad ones. The tool is a program, not a library, hence
// its sources.
#include "tools/values/npy.cc"  // NOLINT(bugprone-suspicious-include)

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "tools/values/durable.cc"        // NOLINT(bugprone-suspicious-include)
#include "tools/values/element_types.cc"  // NOLINT(bugprone-suspicious-include)
#include "tools/values/npy.h"
#include "tools/values/npz.cc"              // NOLINT(bugprone-suspicious-include)
#include "tools/values/pickled_strings.cc"  // NOLINT(bugprone-suspicious-include)
#include "tools/values/values.cc"           // NOLINT(bugprone-suspicious-include)

namespace heddle::tools {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

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
      {Npy(HeaderOf("|O", "False", "(1,)"), four), "Python objects"},
      {Npy(HeaderOf("<U1", "False", "(1,)"), BytesOf<uint32_t>({65})), "texts, not numbers"},
      {Npy(HeaderOf("<U0", "False", "(1,)"), ""), "unsupported data type"},
      {Npy(HeaderOf("<U99999999999", "False", "(1,)"), ""), "unsupported data type"},
      {Npy(HeaderOf("<U1", "False", "(4611686018427387904, 8)"), ""), "too large"},
      {Npy(HeaderOf("<U1", "False", "(1,)"), BytesOf<uint32_t>({0x110000})), "no Unicode"},
      {Npy(HeaderOf("<f16", "False", "(1,)"), four), "unsupported data type"},
      {Npy(HeaderOf("<M8[s]", "False", "(1,)"), four + four), "unsupported data type"},
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

// Bytes of any length that begin as another kind of file does: they are named for what they are.
TEST(NpyTest, FilesOfOtherKindsAreNamed) {
  const std::pair<std::string, std::string> kinds[] = {
      {"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12\n",
       "a Git LFS pointer"},
      {"<!DOCTYPE html>\n<html><head><title>Sign in</title>", "an HTML page"},
      {"\x1f\x8b\x08", "a gzip archive"},
      {"\x89PNG\r\n\x1a\n", "an image (PNG)"},
      {"\xff\xd8\xff\xe0", "an image (JPEG)"},
      {"BZh9", "a bzip2 archive"},
      {"\x28\xb5\x2f\xfd", "a Zstandard archive"},
      {"\x89HDF\r\n\x1a\n", "an HDF5 file"},
      {"PAR1", "a Parquet table"},
      {"%PDF-1.4\n", "a PDF document"},
      {"RIFF", "a RIFF file"},
  };
  std::mt19937 random(1128);
  for (const auto& [begin, kind] : kinds) {
    for (int round = 0; round < 20; ++round) {
      std::string bytes = begin;
      for (size_t n = round == 0 ? 0 : random() % 6000; n > 0; --n)
        bytes += static_cast<char>(random());
      const Status npy = ParseNpyArray(bytes, "x.npy").status();
      EXPECT_EQ(npy.code(), StatusCode::kDataLoss);
      EXPECT_THAT(npy.message(), StartsWith("x.npy: not a .npy file, but " + kind));
      EXPECT_THAT(ParseNpzArrays(bytes, "x.npz").status().message(),
                  StartsWith("x.npz: not an .npz file, but " + kind));
    }
  }
  EXPECT_EQ(ParseNpyArray("", "x.npy").status().message(),
            "x.npy: not a .npy file, but an empty file");
  EXPECT_EQ(ParseNpyArray(std::string(30, '\3'), "x.npy").status().message(),
            "x.npy: not a .npy file");
  // An array where an archive is expected, and an archive where an array is.
  const std::string npy = Npy(HeaderOf("<f4", "False", "(1,)"), std::string(4, '\0'));
  EXPECT_THAT(ParseNpzArrays(npy, "x").status().message(), HasSubstr("but a NumPy array (.npy)"));
  const auto npz = PackNpz({{"x", Tensor::Zeros(DType::kF32, {1})}});
  ASSERT_TRUE(npz.ok());
  EXPECT_THAT(ParseNpyArray(*npz, "x").status().message(), HasSubstr("but a NumPy archive (.npz)"));
}

TEST(NpyTest, EitherByteOrderIsRead) {
  const std::pair<const char*, size_t> types[] = {{"i2", 2}, {"i4", 4}, {"i8", 8},  {"u2", 2},
                                                  {"u4", 4}, {"u8", 8}, {"f2", 2},  {"f4", 4},
                                                  {"f8", 8}, {"c8", 4}, {"c16", 8}, {"V2", 2}};
  std::mt19937 random(7);
  for (const auto& [code, number] : types) {
    const size_t bytes = 6 * number * (code[0] == 'c' ? 2 : 1);
    std::string little;
    for (size_t i = 0; i < bytes; ++i) little += static_cast<char>(random() & 0x3f);
    std::string big = little;
    for (size_t at = 0; at < bytes; at += number)
      std::reverse(big.begin() + static_cast<std::ptrdiff_t>(at),
                   big.begin() + static_cast<std::ptrdiff_t>(at + number));
    for (const char* order : {"False", "True"}) {
      const std::string shape = "(2, 3)";
      const auto a =
          ParseNpyArray(Npy(HeaderOf(std::string("<") + code, order, shape), little), "a");
      const auto b = ParseNpyArray(Npy(HeaderOf(std::string(">") + code, order, shape), big), "b");
      ASSERT_TRUE(a.ok() && b.ok()) << code;
      EXPECT_EQ(a->type, b->type);
      EXPECT_EQ(Difference(a->value, b->value), "") << code << " " << order;
    }
  }
}

// ---- arrays of objects ----

// numpy.array([["a", b"\xffx"], ["\u00fc", numpy.str_("q")]], dtype=object), pickled.
const std::string kPickles[] = {
    std::string(
        "\200\002\143\156\165\155\160\171\056\137\143\157\162\145\056\155\165\154\164\151\141"
        "\162\162\141\171\012\137\162\145\143\157\156\163\164\162\165\143\164\012\161\000\143"
        "\156\165\155\160\171\012\156\144\141\162\162\141\171\012\161\001\113\000\205\161\002"
        "\143\137\143\157\144\145\143\163\012\145\156\143\157\144\145\012\161\003\130\001\000"
        "\000\000\142\161\004\130\006\000\000\000\154\141\164\151\156\061\161\005\206\161\006"
        "\122\161\007\207\161\010\122\161\011\050\113\001\113\002\113\002\206\161\012\143\156"
        "\165\155\160\171\012\144\164\171\160\145\012\161\013\130\002\000\000\000\117\070\161"
        "\014\211\210\207\161\015\122\161\016\050\113\003\130\001\000\000\000\174\161\017\116"
        "\116\116\112\377\377\377\377\112\377\377\377\377\113\077\164\161\020\142\211\135\161"
        "\021\050\130\001\000\000\000\141\161\022\150\003\130\003\000\000\000\303\277\170\161"
        "\023\150\005\206\161\024\122\161\025\130\002\000\000\000\303\274\161\026\143\156\165"
        "\155\160\171\056\137\143\157\162\145\056\155\165\154\164\151\141\162\162\141\171\012"
        "\163\143\141\154\141\162\012\161\027\150\013\130\002\000\000\000\125\061\161\030\211"
        "\210\207\161\031\122\161\032\050\113\003\130\001\000\000\000\074\161\033\116\116\116"
        "\113\004\113\004\113\010\164\161\034\142\150\003\130\004\000\000\000\161\000\000\000"
        "\161\035\150\005\206\161\036\122\161\037\206\161\040\122\161\041\145\164\161\042\142"
        "\056",
        337),
    std::string(
        "\200\003\143\156\165\155\160\171\056\137\143\157\162\145\056\155\165\154\164\151\141"
        "\162\162\141\171\012\137\162\145\143\157\156\163\164\162\165\143\164\012\161\000\143"
        "\156\165\155\160\171\012\156\144\141\162\162\141\171\012\161\001\113\000\205\161\002"
        "\103\001\142\161\003\207\161\004\122\161\005\050\113\001\113\002\113\002\206\161\006"
        "\143\156\165\155\160\171\012\144\164\171\160\145\012\161\007\130\002\000\000\000\117"
        "\070\161\010\211\210\207\161\011\122\161\012\050\113\003\130\001\000\000\000\174\161"
        "\013\116\116\116\112\377\377\377\377\112\377\377\377\377\113\077\164\161\014\142\211"
        "\135\161\015\050\130\001\000\000\000\141\161\016\103\002\377\170\161\017\130\002\000"
        "\000\000\303\274\161\020\143\156\165\155\160\171\056\137\143\157\162\145\056\155\165"
        "\154\164\151\141\162\162\141\171\012\163\143\141\154\141\162\012\161\021\150\007\130"
        "\002\000\000\000\125\061\161\022\211\210\207\161\023\122\161\024\050\113\003\130\001"
        "\000\000\000\074\161\025\116\116\116\113\004\113\004\113\010\164\161\026\142\103\004"
        "\161\000\000\000\161\027\206\161\030\122\161\031\145\164\161\032\142\056",
        270),
    std::string(
        "\200\004\225\322\000\000\000\000\000\000\000\214\026\156\165\155\160\171\056\137\143"
        "\157\162\145\056\155\165\154\164\151\141\162\162\141\171\224\214\014\137\162\145\143"
        "\157\156\163\164\162\165\143\164\224\223\224\214\005\156\165\155\160\171\224\214\007"
        "\156\144\141\162\162\141\171\224\223\224\113\000\205\224\103\001\142\224\207\224\122"
        "\224\050\113\001\113\002\113\002\206\224\150\003\214\005\144\164\171\160\145\224\223"
        "\224\214\002\117\070\224\211\210\207\224\122\224\050\113\003\214\001\174\224\116\116"
        "\116\112\377\377\377\377\112\377\377\377\377\113\077\164\224\142\211\135\224\050\214"
        "\001\141\224\103\002\377\170\224\214\002\303\274\224\150\000\214\006\163\143\141\154"
        "\141\162\224\223\224\150\014\214\002\125\061\224\211\210\207\224\122\224\050\113\003"
        "\214\001\074\224\116\116\116\113\004\113\004\113\010\164\224\142\103\004\161\000\000"
        "\000\224\206\224\122\224\145\164\224\142\056",
        221),
};

TEST(NpyTest, ReadsObjectsThatAreTexts) {
  const std::vector<std::string> want = {"a", "\xffx", "\xc3\xbc", "q"};
  for (const std::string& pickle : kPickles) {
    const auto read = ParseNpyArray(Npy(HeaderOf("|O", "False", "(2, 2)"), pickle), "x");
    ASSERT_TRUE(read.ok()) << read.status().ToString();
    EXPECT_EQ(read->type, "string");
    const auto strings = StringsIn(read->value);
    ASSERT_NE(strings, nullptr);
    EXPECT_EQ(strings->shape, (Shape{2, 2}));
    EXPECT_EQ(strings->elements, want);
    EXPECT_FALSE(ParseNpyArray(Npy(HeaderOf("|O", "False", "(4,)"), pickle), "x").ok());
  }
}

TEST(NpyTest, NothingInAPickleIsExecuted) {
  const std::string path = TempPath("executed");
  const std::string words[] = {
      "cos\nsystem\n(S'touch " + path + "'\ntR.",
      "cposix\nsystem\nX\x05\0\0\0touch\x85R.",
      "\x80\x04\x8c\x08"
      "builtins\x8c\x04"
      "eval\x93\x8c\x01"
      "1\x85R.",
      "cnumpy\nload\nX\x01\0\0\0a\x85R.",
      std::string(2000000, ')') + ".",           // a stack of two million
      ")" + std::string(2000000, '\x85') + ".",  // tuples in tuples
      "]q\0h\0a.",                               // a list in itself
      "h\xff.",
      "R.",
      "b.",
      "t.",
      "e.",
      "a.",
      "\x93.",
      "\x86.",
      ".",
      "",
      "(",
      "\x8e\xff\xff\xff\xff",
  };
  for (const std::string& pickle : words) {
    const auto read = ParseNpyArray(Npy(HeaderOf("|O", "False", "(1,)"), pickle), "x");
    EXPECT_FALSE(read.ok()) << pickle.substr(0, 20);
  }
  EXPECT_FALSE(std::ifstream(path).good());
}

TEST(NpyTest, DamagedPicklesAreErrors) {
  std::mt19937 random(11);
  for (const std::string& pickle : kPickles) {
    for (size_t n = 0; n < pickle.size(); ++n)
      EXPECT_FALSE(
          ParseNpyArray(Npy(HeaderOf("|O", "False", "(2, 2)"), pickle.substr(0, n)), "x").ok());
    for (int round = 0; round < 4000; ++round) {
      std::string damaged = pickle;
      for (int i = 0, n = 1 + static_cast<int>(random() % 4); i < n; ++i)
        damaged[random() % damaged.size()] = static_cast<char>(random());
      const auto read = ParseNpyArray(Npy(HeaderOf("|O", "False", "(2, 2)"), damaged), "x");
      if (read.ok()) {
        EXPECT_EQ(StringsIn(read->value)->elements.size(), 4u);
      }
    }
  }
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

// Members of any sizes, some at the same place of the archive, under any bound.
TEST(NpzTest, WhatIsUnpackedIsBounded) {
  std::mt19937 random(5);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<ZipMember> members;
    uint64_t bytes = 0;
    for (size_t k = 0, n = 1 + random() % 6; k < n; ++k) {
      const size_t count = random() % 200;
      const std::string npy = Npy(HeaderOf("|u1", "False", "(" + std::to_string(count) + ",)"),
                                  std::string(count, 'x'));
      members.push_back(Stored("a" + std::to_string(k) + ".npy", npy));
      bytes += npy.size();
    }
    const uint64_t most = 1 + random() % (2 * bytes);
    const auto read = ParseNpzArrays(Zip(members), "x.npz", most);
    EXPECT_EQ(read.ok(), bytes <= most) << read.status().ToString();
    if (read.ok()) continue;
    ++refused;
    EXPECT_EQ(read.status().code(), StatusCode::kResourceExhausted);
    EXPECT_NE(read.status().message().find(std::to_string(most) + " in all (--unpack-limit)"),
              std::string::npos);
  }
  EXPECT_GT(refused, 50);
  // A promise of more than the usual bound takes no memory.
  ZipMember bomb = Stored("x.npy", "1234");
  bomb.method = 8;
  bomb.unpacked = 3u << 30;
  const auto read = ParseNpzArrays(Zip({bomb}), "x.npz");
  EXPECT_EQ(read.status().code(), StatusCode::kResourceExhausted) << read.status().ToString();
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
  liar.unpacked = uint64_t{1} << 27;
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
