// Descriptions of machines and lists of forced implementations, as text.
#include "core/machine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Message(const Status& status) { return status.ok() ? "no error" : status.message(); }

TEST(Machine, ADescriptionIsReadAndWritten) {
  const auto m = Machine::Parse(
      "{ \"name\": \"m\", \"instructions\": \"avx2 fma avx512\",\n"
      "  \"l2_bytes\": 2097152, \"cycles_per_ns\": 2.5 }\n");
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_EQ(m->name, "m");
  EXPECT_EQ(m->instructions, unsigned{kAvx2} | kFma | kAvx512);
  EXPECT_EQ(m->l2_bytes, 2 << 20);
  EXPECT_EQ(m->l1_bytes, Machine().l1_bytes);
  EXPECT_EQ(m->cycles_per_ns, 2.5);
  const auto again = Machine::Parse(m->ToJson());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->ToJson(), m->ToJson());
  EXPECT_EQ(again->instructions, m->instructions);
}

TEST(Machine, WhatIsNoDescriptionIsRefused) {
  const auto refuses = [](const char* text) { return Message(Machine::Parse(text).status()); };
  EXPECT_EQ(refuses("{}"), "no error");
  EXPECT_THAT(refuses("{\"l4_bytes\": 1}"), HasSubstr("there is no key \"l4_bytes\""));
  EXPECT_THAT(refuses("{\"l2_bytes\": -1}"), HasSubstr("expected a number above 0"));
  EXPECT_THAT(refuses("{\"l2_bytes\": \"large\"}"), HasSubstr("expected a number above 0"));
  EXPECT_THAT(refuses("{\"instructions\": \"avx2 sse9\"}"),
              HasSubstr("\"sse9\" is no instruction set; known are avx2, fma, avx512"));
  for (const char* text : {"", "x", "{", "{\"name\"", "{\"name\": }", "{\"name\": \"a\"",
                           "{\"name\": \"a\"} x", "{\"name\": \"a\" \"l1_bytes\": 1}", "[1]"})
    EXPECT_THAT(refuses(text), HasSubstr("no JSON object")) << text;
}

TEST(Machine, ThisOneIsFoundOutOnce) {
  EXPECT_EQ(&ThisMachine(), &ThisMachine());
  EXPECT_GT(ThisMachine().l1_bytes, 0);
  EXPECT_GE(ThisMachine().l2_bytes, ThisMachine().l1_bytes);
}

TEST(Forced, FamiliesAndTheirImplementations) {
  const auto forced = ForcedImplementations::Parse("conv=winograd:direct,gemm=panels");
  ASSERT_TRUE(forced.ok()) << forced.status().message();
  EXPECT_THAT(*forced->Find("conv"), ElementsAre("winograd", "direct"));
  EXPECT_THAT(*forced->Find("gemm"), ElementsAre("panels"));
  EXPECT_EQ(forced->Find("conv_chain"), nullptr);
}

TEST(Forced, WhatIsNoListIsRefused) {
  const auto refuses = [](const char* text) {
    return Message(ForcedImplementations::Parse(text).status());
  };
  EXPECT_EQ(refuses(""), "no error");
  EXPECT_THAT(refuses("convolution=direct"),
              HasSubstr("there is no family \"convolution\"; there are conv, "));
  EXPECT_THAT(refuses("conv=a,conv=b"), HasSubstr("named twice"));
  for (const char* text : {"conv", "conv=", "=direct", "conv=direct,", ","})
    EXPECT_THAT(refuses(text), HasSubstr("family=implementation")) << text;
}

}  // namespace
}  // namespace heddle::testing
