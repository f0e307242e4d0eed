// What a process holds once a lean plan is made.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <vector>

#include "core/file.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// A convolution with a batch norm, which is folded into its filter.
ProgramBuilder ConvNet() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1, 8, 8, 8}).Param("w", DType::kF32, {8, 8, 1, 1});
  for (const char* name : {"scale", "bias", "mean", "variance"}) b.Param(name, DType::kF32, {8});
  b.Op("conv2d", {{"Input", {"x"}}, {"Filter", {"w"}}}, {{"Output", {"c"}}}, {});
  b.Op("batch_norm",
       {{"X", {"c"}},
        {"Scale", {"scale"}},
        {"Bias", {"bias"}},
        {"Mean", {"mean"}},
        {"Variance", {"variance"}}},
       {{"Y", {"y"}}}, {{"is_test", true}});
  b.Fetch("y");
  return b;
}

// Once the passes have made a program of their own, the one that was given is not held any more,
// and parsed again when a parameter that went into it is replaced.
TEST(LeanMemory, TheParsedProgramIsLetGo) {
  for (const bool lean : {true, false}) {
    const auto scope = std::make_shared<Scope>();
    scope->Set("w", RandomF32({8, 8, 1, 1}, 1));
    for (const char* name : {"scale", "bias", "mean", "variance"})
      scope->Set(name, F32({8}, std::vector<float>(8, 1)));
    Executor executor({.threads = 1});
    Program program = ConvNet().Build();
    const std::weak_ptr<const ir::Program> held = program.impl();
    const auto compiled = MustCompile(executor, program, scope, {.lean = lean});
    program = Program();
    EXPECT_EQ(held.expired(), lean);
    const std::vector<Feed> feeds = {{"x", RandomF32({1, 8, 8, 8}, 2)}};
    const Tensor before = MustRun(executor, compiled, feeds)[0];
    scope->Set("scale", RandomF32({8}, 3));
    const Tensor after = MustRun(executor, compiled, feeds)[0];
    EXPECT_FALSE(SameBits(before, after));
    const auto anew = MustCompile(executor, ConvNet().Build(), scope, {.lean = lean});
    EXPECT_TRUE(SameBits(after, MustRun(executor, anew, feeds)[0]));
  }
}

// A program of a file is parsed from there again: it may lose its name, but not be written to.
TEST(LeanMemory, TheProgramIsReadFromItsFileAgain) {
  const TempDir dir;
  const std::string path = dir / "model.pdmodel";
  ProgramBuilder b = ConvNet();
  for (int k = 0; k < 400; ++k)  // large enough to be left there
    b.Scale(k == 0 ? "y" : "z" + std::to_string(k - 1), "z" + std::to_string(k), 1);
  const std::string bytes = b.Fetch("z399").Bytes();
  ASSERT_GT(bytes.size(), size_t{16} << 10);
  const std::vector<Feed> feeds = {{"x", RandomF32({1, 8, 8, 8}, 2)}};
  for (const bool written : {false, true}) {
    ASSERT_TRUE(ReplaceFile(path, bytes).ok());
    const auto scope = std::make_shared<Scope>();
    scope->Set("w", RandomF32({8, 8, 1, 1}, 1));
    for (const char* name : {"scale", "bias", "mean", "variance"})
      scope->Set(name, F32({8}, std::vector<float>(8, 1)));
    Executor executor({.threads = 1});
    const auto compiled = MustCompile(executor, *Program::Load(path), scope, {.lean = true});
    if (written)
      std::ofstream(path, std::ios::in | std::ios::out) << "something else";
    else
      std::filesystem::remove(path);
    scope->Set("scale", RandomF32({8}, 3));
    const auto out = executor.Run(compiled, feeds);
    if (written) {
      EXPECT_EQ(out.status().code(), StatusCode::kDataLoss) << out.status().ToString();
      continue;
    }
    ASSERT_TRUE(out.ok()) << out.status().ToString();
    const auto anew = MustCompile(executor, b.Build(), scope, {.lean = true});
    EXPECT_TRUE(SameBits((*out)[1], MustRun(executor, anew, feeds)[1]));
  }
}

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

constexpr size_t kPiece = 64 << 10, kPieces = 64, kPage = 4096;

size_t PagesThere(void* piece) {
  auto* const first = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(piece) & ~(kPage - 1));
  unsigned char there[kPiece / kPage];
  EXPECT_EQ(mincore(first, kPiece, there), 0);
  return static_cast<size_t>(std::count(there, there + kPiece / kPage, 1));
}

// Memory that loading would have used for a moment does not stay.
TEST(LeanMemory, WhatThePlanDoesNotUseGoesBackToTheSystem) {
  ProgramBuilder builder;
  builder.Feed("x", DType::kF32, {4, 4}).Unary("relu", "x", "y").Fetch("y");
  const Program program = builder.Build();
  Executor executor({.threads = 1});
  auto compiled = MustCompile(executor, program, std::make_shared<Scope>(), {.lean = true});
  std::vector<void*> pieces;
  for (size_t i = 0; i < kPieces; ++i) {
    pieces.push_back(std::malloc(kPiece));
    std::memset(pieces.back(), 1, kPiece);
  }
  // Every other one, so that these are holes in the heap and not its end.
  for (size_t i = 0; i < kPieces; i += 2) std::free(pieces[i]);
  size_t before = 0, after = 0;
  for (size_t i = 0; i < kPieces; i += 2) before += PagesThere(pieces[i]);
  ASSERT_TRUE(executor.Prepare(compiled, {{"x", RandomF32({4, 4}, 1)}}).ok());
  for (size_t i = 0; i < kPieces; i += 2) after += PagesThere(pieces[i]);
  EXPECT_LE(after, before / 4);
  for (size_t i = 1; i < kPieces; i += 2) std::free(pieces[i]);
}

#endif

}  // namespace
}  // namespace heddle::testing
