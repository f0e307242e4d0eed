// Tables of files of text; expected values are those of TensorFlow 2.21's
// InitializeTableFromTextFileV2.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "core/operands/lookup_table.h"
#include "formats/tensorflow/tables/table_contents.h"
#include "tests/support/files.h"

namespace heddle::tensorflow {
namespace {

using ::testing::HasSubstr;

class Folder {
 public:
  explicit Folder(const std::string& text) {
    std::filesystem::create_directory(dir_ / "assets");
    testing::WriteAll(dir_ / "assets/v.txt", text);
    testing::WriteAll(dir_ / "secret.txt", text);
  }
  Result<Value> Make(TableFile file) const {
    TableContents contents;
    contents.file = std::move(file);
    return MakeTable(contents, dir_ / "assets");
  }
  std::string Error(TableFile file) const {
    const auto made = Make(std::move(file));
    return made.ok() ? "" : made.status().ToString();
  }
  std::string path(const std::string& name) const { return dir_ / name; }

 private:
  testing::TempDir dir_;
};

int64_t ValueAt(const Result<Value>& table, const std::string& key) {
  EXPECT_TRUE(table.ok()) << table.status().ToString();
  const SharedTable t = table.ok() ? TableIn(*table) : nullptr;
  const int64_t row = t == nullptr ? -1 : t->Find(key);
  return row < 0 ? -1 : t->values().data<int64_t>()[row];
}

TEST(MakeTable, LinesAreKeys) {
  const Folder folder("aa\r\nbb\ncc\n");
  const auto table = folder.Make({.name = "v.txt"});
  EXPECT_EQ(ValueAt(table, "aa"), 0);
  EXPECT_EQ(ValueAt(table, "cc"), 2);
  EXPECT_EQ(ValueAt(table, "aa\r"), -1);
}

TEST(MakeTable, ColumnsAreKeysAndValues) {
  const Folder folder("aa\t5\nbb\t6\ncc\t7");
  EXPECT_EQ(ValueAt(folder.Make({.name = "v.txt", .key = 0, .value = 1}), "bb"), 6);
  const auto numbered =
      folder.Make({.name = "v.txt", .key = 0, .value = -1, .count = 2, .first = 10});
  EXPECT_EQ(ValueAt(numbered, "aa"), 10);
  EXPECT_EQ(ValueAt(numbered, "bb"), 11);
  EXPECT_EQ(ValueAt(numbered, "cc"), -1);
  EXPECT_EQ(ValueAt(folder.Make({.name = "v.txt"}), "aa\t5"), 0);
  const auto turned = folder.Make(
      {.name = "v.txt", .key = 1, .value = 0, .key_type = kInt64, .value_type = kString});
  ASSERT_TRUE(turned.ok()) << turned.status().ToString();
  const SharedTable t = TableIn(*turned);
  EXPECT_EQ(t->value_texts()[static_cast<size_t>(t->Find(7))], "cc");
}

TEST(MakeTable, WhatDoesNotFitIsAnError) {
  EXPECT_THAT(Folder("aa\nbb\n").Error({.name = "v.txt", .count = 5}),
              HasSubstr("has 2 lines; the table has 5"));
  EXPECT_THAT(Folder("aa\n\nbb\n").Error({.name = "v.txt"}), HasSubstr("line 2: it is empty"));
  EXPECT_THAT(Folder("aa\nbb\naa\n").Error({.name = "v.txt"}), HasSubstr("two values for one key"));
  EXPECT_THAT(Folder("aa\tx\n").Error({.name = "v.txt", .key = 0, .value = 1}),
              HasSubstr("'x' is no int64"));
  EXPECT_THAT(
      Folder("5\t2147483648\n")
          .Error({.name = "v.txt", .key = 0, .value = 1, .key_type = kInt64, .value_type = kInt32}),
      HasSubstr("'2147483648' is no int32"));
  EXPECT_THAT(Folder("aa\n").Error({.name = "v.txt", .value_type = kInt32}),
              HasSubstr("the number of a line is no int32"));
  EXPECT_THAT(
      Folder("aa\nbb\n").Error({.name = "v.txt", .first = std::numeric_limits<int64_t>::max()}),
      HasSubstr("none that an int64 can hold"));
  EXPECT_THAT(Folder("aa\n").Error({.name = "v.txt", .key = 0, .value = 3}),
              HasSubstr("it has 1 columns; column 3 is expected"));
}

// A model may name any file; those of its assets are read.
TEST(MakeTable, FilesLieInTheAssets) {
  const Folder folder("aa\n");
  for (const std::string& name : {std::string("../secret.txt"), folder.path("secret.txt"),
                                  std::string("x/../../secret.txt"), std::string()})
    EXPECT_THAT(folder.Error({.name = name}), HasSubstr("does not lie in the model's assets"))
        << name;
  std::filesystem::create_symlink(folder.path("secret.txt"), folder.path("assets/link.txt"));
  EXPECT_THAT(folder.Error({.name = "link.txt"}), HasSubstr("does not lie in the model's assets"));
  TableContents contents;
  contents.file = TableFile{.name = "v.txt"};
  EXPECT_THAT(MakeTable(contents, "").status().message(), HasSubstr("not read from a file"));
}

TEST(MakeTable, AssetsThatAreALinkAreNotFollowed) {
  const Folder folder("aa\n");
  std::filesystem::create_directory_symlink(folder.path("assets"), folder.path("linked"));
  TableContents contents;
  contents.file = TableFile{.name = "v.txt"};
  for (const std::string& behind : {std::string(), folder.path("assets")}) {
    const auto table = MakeTable(contents, folder.path("linked"), behind);
    EXPECT_THAT(table.status().message(), HasSubstr("does not lie in the model's assets"));
  }
  // The model's folder may be one.
  std::filesystem::create_directory_symlink(folder.path(""), folder.path("assets/model"));
  EXPECT_TRUE(MakeTable(contents, folder.path("assets/model/assets")).ok());
}

}  // namespace
}  // namespace heddle::tensorflow
