// Files that are damaged, or that lie: one error each, which says where.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/formats/pir/pir_text.h"

namespace heddle::testing {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const std::string& text) {
  const auto program = Program::Parse(text, "bad.json");
  return program.ok() ? "" : program.status().ToString();
}
std::string ErrorOf(const PirText& p) { return ErrorOf(p.File()); }

TEST(BadPir, UnknownOperatorsAreAllListed) {
  PirText p;
  p.Data(1, "x").Op("1.frobnicate", {1}, {2}).Op("1.frobnicate", {2}, {3});
  p.Op("7.strange", {3}, {4}).Fetch(4, "y");
  const std::string error = ErrorOf(p);
  EXPECT_THAT(error, HasSubstr("2 operators that heddle does not have"));
  EXPECT_THAT(error, HasSubstr("pd_op.frobnicate (2 times, first: block 0, op 1)"));
  EXPECT_THAT(error, HasSubstr("7.strange (1 time, first: block 0, op 3)"));
}

TEST(BadPir, ValuesAreDefinedBeforeAndOnce) {
  PirText later, twice, cycle;
  later.Data(1, "x").Op("1.relu", {3}, {2}).Op("1.relu", {1}, {3}).Fetch(2, "y");
  EXPECT_THAT(ErrorOf(later), HasSubstr("block 0, op 1 (pd_op.relu): operand 0 is %3, which no"));
  twice.Data(1, "x").Op("1.relu", {1}, {2}).Op("1.relu", {1}, {2});
  EXPECT_THAT(ErrorOf(twice), HasSubstr("op 2 (pd_op.relu): defines value %2 again"));
  cycle.Data(1, "x").Op("1.relu_", {3}, {2}).Op("1.relu_", {2}, {3}).Fetch(3, "y");
  EXPECT_THAT(ErrorOf(cycle), HasSubstr("operand 0 is %3"));
}

TEST(BadPir, BlocksSeeNothingThatEnded) {
  PirText yes, no, p;
  yes.Op("1.relu", {1}, {10}).Op("2.yield", {10}, {});
  no.Op("1.relu", {10}, {11}).Op("2.yield", {11}, {});
  p.Data(1, "x", "bool")
      .Op("1.if", {1}, {5}, "", PirText::Type("f32", "[-1]"), {yes.Block(), no.Block()});
  EXPECT_THAT(ErrorOf(p), HasSubstr("block 2, op 0 (pd_op.relu): operand 0 is %10"));
}

TEST(BadPir, YieldsFitResults) {
  PirText body, p;
  body.Op("2.yield", {-1}, {});
  p.Data(1, "x")
      .Data(2, "c", "bool")
      .Op("1.while", {2, 1}, {3}, "", PirText::Type("f32", "[-1]"), {body.Block({-1})});
  EXPECT_THAT(ErrorOf(p), HasSubstr("(pd_op.while): carries 1 values; its block yields 1"));
}

TEST(BadPir, ConstantsFitTheirOperator) {
  PirText p;
  p.Data(1, "x").Full(2, 0.5).Op("1.sum", {1, 2}, {3}).Fetch(3, "y");
  EXPECT_THAT(ErrorOf(p), HasSubstr("(pd_op.sum): operand 1 ('axis', %2) is no integer"));
}

TEST(BadPir, WhatIsNoProgramIsSaidSo) {
  PirText p;
  p.Data(1, "x").Op("1.relu", {1}, {2}).Fetch(2, "y");
  EXPECT_THAT(ErrorOf(p.File(99)), HasSubstr("is of version 99"));
  EXPECT_THAT(ErrorOf("{\"name\": 1}"), HasSubstr("no PIR program"));
  EXPECT_THAT(ErrorOf("{\"base_code\": 1}"), HasSubstr("base_code.magic"));
  EXPECT_THAT(ErrorOf("{\"base_code\":" + std::string(1000000, '[')),
              HasSubstr("nested more than"));
}

// Wherever a file ends, and whichever byte of it is another, it is read or refused.
TEST(BadPir, DamagedFilesAreReadOrRefused) {
  PirText body, p;
  body.Op("1.relu", {-1}, {20}).Op("2.yield", {2, 20}, {});
  p.Data(1, "x")
      .Data(2, "c", "bool")
      .Op("1.while", {2, 1}, {3}, "", PirText::Type("f32", "[-1]"), {body.Block({-1})});
  const std::string file = p.Fetch(3, "y").File();
  ASSERT_EQ(ErrorOf(file), "");
  for (size_t n = 0; n < file.size(); ++n) EXPECT_NE(ErrorOf(file.substr(0, n)), "") << n;
  for (size_t n = 0; n < file.size(); ++n) {
    for (const char c : {'0', '9', '"', ']', '-', '\xff'}) {
      std::string bad = file;
      bad[n] = c;
      ErrorOf(bad);
    }
  }
}

}  // namespace
}  // namespace heddle::testing
