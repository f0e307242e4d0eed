// Operators that write variables to files and read them, as programs of their own.
#include <gtest/gtest.h>

#include "heddle/params.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Values = std::vector<float>;

TEST(SaveOps, WhatOneProgramSavesAnotherLoads) {
  TempDir dir;
  const std::string path = dir / "made/on/the/way/all";
  Executor executor({.threads = 2});
  ProgramBuilder save;
  save.Feed("x", DType::kF32, {2}).Feed("y", DType::kI64, {3});
  save.Op("save_combine", {{"X", {"x", "y"}}}, {}, {{"file_path", path}});
  MustRun(executor, MustCompile(executor, save.Build()),
          {{"x", F32({2}, {1, 2})}, {"y", I64({3}, {4, 5, 6})}});
  ProgramBuilder load;
  load.Op("load_combine", {}, {{"Out", {"a", "b"}}}, {{"file_path", path}});
  load.Scale("a", "c", 10).Fetch("c").Fetch("b");
  const auto out = MustRun(executor, MustCompile(executor, load.Build()), {});
  EXPECT_EQ(Floats(out[0]), (Values{10, 20}));
  EXPECT_TRUE(SameBits(out[1], I64({3}, {4, 5, 6})));
}

TEST(SaveOps, ALoadReadsTheFileInEachRun) {
  TempDir dir;
  Executor executor({.threads = 1});
  ProgramBuilder load;
  load.Op("load", {}, {{"Out", {"a"}}}, {{"file_path", dir / "a"}});
  load.Fetch("a");
  const CompiledProgram compiled = MustCompile(executor, load.Build());
  for (float value : {1.0f, 2.0f}) {
    ASSERT_TRUE(WriteTensors(dir / "a", {{"a", F32({1}, {value})}}).ok());
    EXPECT_EQ(Floats(MustRun(executor, compiled, {})[0]), (Values{value}));
  }
  std::filesystem::remove(dir / "a");
  const auto missing = executor.Run(compiled, {});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().ToString().find(dir / "a"), std::string::npos);
}

TEST(SaveOps, HalvesAndFilesThatMustStay) {
  TempDir dir;
  Executor executor({.threads = 1});
  const auto save = [&](bool overwrite, double value) {
    ProgramBuilder b;
    b.Fill("x", {2}, value);
    b.Op("save", {{"X", {"x"}}}, {},
         {{"file_path", dir / "x"}, {"save_as_fp16", true}, {"overwrite", overwrite}});
    return executor.Run(MustCompile(executor, b.Build()), {});
  };
  ASSERT_TRUE(save(true, 0.5).ok());
  const auto kept = ReadTensors(dir / "x");
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ((*kept)[0].dtype(), DType::kF16);
  EXPECT_FALSE(save(false, 1.5).ok());
  EXPECT_TRUE(SameBits((*ReadTensors(dir / "x"))[0], (*kept)[0]));
  ASSERT_TRUE(save(true, 1.5).ok());
  EXPECT_FALSE(SameBits((*ReadTensors(dir / "x"))[0], (*kept)[0]));
}

TEST(SaveOps, AFileOfAnotherNumberOfTensorsIsRefused) {
  TempDir dir;
  Executor executor({.threads = 1});
  ASSERT_TRUE(WriteTensors(dir / "x", {{"a", F32({1}, {1})}, {"b", F32({1}, {2})}}).ok());
  ProgramBuilder load;
  load.Op("load", {}, {{"Out", {"a"}}}, {{"file_path", dir / "x"}});
  load.Fetch("a");
  EXPECT_FALSE(executor.Run(MustCompile(executor, load.Build()), {}).ok());
}

}  // namespace
}  // namespace heddle::testing
