#include "core/memory/lazy_buffer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/error.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

// A tensor of these sizes whose elements are 1 once they are there; counts how often they are made.
Tensor Ones(int64_t n, std::atomic<int>* made) {
  return Tensor(DType::kF32, {n},
                MakeLazyBuffer(static_cast<size_t>(n) * sizeof(float),
                               [made](void* to, size_t begin, size_t end) {
                                 ++*made;
                                 std::fill_n(static_cast<float*>(to), (end - begin) / sizeof(float),
                                             1.f);
                                 return Status::Ok();
                               }));
}

TEST(LazyBuffer, IsThereWhenBroughtIn) {
  for (const int64_t n : {int64_t{10}, int64_t{5000}, int64_t{3} << 20}) {
    std::atomic<int> made{0};
    const Tensor t = Ones(n, &made);
    EXPECT_TRUE(IsAbsent(t));
    EXPECT_EQ(made, 0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&] {
        EXPECT_TRUE(MakeResident(t).ok());
        EXPECT_EQ(t.data<float>()[n - 1], 1.f);
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_FALSE(IsAbsent(t));
    EXPECT_EQ(ContentsToCome(t), nullptr);
    EXPECT_EQ(made, 1);
  }
}

TEST(LazyBuffer, BorrowingLeavesItAway) {
  std::atomic<int> made{0};
  const Tensor t = Ones(1000, &made);
  {
    const BorrowedContents borrowed(t);
    EXPECT_EQ(Floats(borrowed.tensor()), std::vector<float>(1000, 1.f));
    EXPECT_NE(borrowed.tensor().raw(), t.raw());
  }
  EXPECT_TRUE(IsAbsent(t));
  ASSERT_TRUE(MakeResident(t).ok());
  EXPECT_EQ(BorrowedContents(t).tensor().raw(), t.raw());
  EXPECT_EQ(made, 2);
}

TEST(LazyBuffer, StretchesShareTheirMemory) {
  std::atomic<int> made{0};
  const Tensor t = Ones(100000, &made);
  BorrowedStretches stretches(t);
  const void* const first = stretches.Read(0, 30000).raw();
  EXPECT_EQ(stretches.Read(30000, 30000).raw(), first);
  EXPECT_EQ(stretches.Read(90000, 10000).raw(), first);
  EXPECT_EQ(Floats(stretches.Read(20000, 80000)), std::vector<float>(80000, 1.f));
  EXPECT_TRUE(IsAbsent(t));
}

TEST(LazyBuffer, BorrowsStretches) {
  const auto numbers = [](float* to, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) *to++ = static_cast<float>(i);
  };
  const Tensor t(DType::kF32, {10, 10},
                 MakeLazyBuffer(400, [&](void* to, size_t begin, size_t end) {
                   numbers(static_cast<float*>(to), begin / sizeof(float), end / sizeof(float));
                   return Status::Ok();
                 }));
  const std::vector<float> want{37, 38, 39};
  {
    BorrowedStretches stretches(t);
    EXPECT_EQ(Floats(stretches.Read(37, 3)), want);
    EXPECT_EQ(stretches.Read(100, 0).numel(), 0);
  }
  EXPECT_TRUE(IsAbsent(t));
  ASSERT_TRUE(MakeResident(t).ok());
  BorrowedStretches there(t);
  EXPECT_EQ(Floats(there.Read(37, 3)), want);
  EXPECT_EQ(there.Read(37, 3).raw(), t.data<float>() + 37);
  // A part of memory that is not there brings all of it in.
  const Tensor again(DType::kF32, {100},
                     MakeLazyBuffer(400, [&](void* to, size_t begin, size_t end) {
                       numbers(static_cast<float*>(to), begin / 4, end / 4);
                       return Status::Ok();
                     }));
  const Tensor part(DType::kF32, {50}, again.buffer(), 200);
  EXPECT_EQ(Floats(BorrowedStretches(part).Read(7, 2)), (std::vector<float>{57, 58}));
  EXPECT_FALSE(IsAbsent(again));
}

TEST(LazyBuffer, APartBringsInTheWhole) {
  std::atomic<int> made{0};
  const Tensor t = Ones(1000, &made);
  const Tensor part(DType::kF32, {10}, t.buffer(), 40);
  EXPECT_EQ(Floats(BorrowedContents(part).tensor()), std::vector<float>(10, 1.f));
  EXPECT_FALSE(IsAbsent(t));
}

TEST(LazyBuffer, AFailureIsToldAndTriedAgain) {
  int calls = 0;
  const Tensor t(DType::kF32, {100}, MakeLazyBuffer(400, [&](void* to, size_t, size_t) {
                   if (++calls < 3) return DataLoss("not now");
                   std::fill_n(static_cast<float*>(to), 100, 2.f);
                   return Status::Ok();
                 }));
  EXPECT_EQ(MakeResident(t).message(), "not now");
  EXPECT_THROW(BorrowedContents{t}, std::runtime_error);
  EXPECT_TRUE(MakeResident(t).ok());
  EXPECT_EQ(t.data<float>()[99], 2.f);
}

// A file that says it can be mapped, of a file system that cannot.
class UnmappableFile final : public SourceFile {
 public:
  Stamp stamp() const override { return {}; }
  Result<uint64_t> Hash() const override { return uint64_t{0}; }
  bool CanMap() const override { return true; }
  Status Map(void*, size_t, size_t) const override { return ResourceExhausted("cannot map"); }
};

TEST(LazyBuffer, ContentsThatCannotBeMappedAreCopied) {
  constexpr size_t kFloats = kLeastMapped / sizeof(float);
  const Tensor t(DType::kF32, {int64_t{kFloats}},
                 MakeLazyBuffer(kLeastMapped,
                                [](void* to, size_t begin, size_t end) {
                                  std::fill_n(static_cast<float*>(to),
                                              (end - begin) / sizeof(float), 3.f);
                                  return Status::Ok();
                                },
                                {}, {std::make_shared<UnmappableFile>(), 32}));
  EXPECT_FALSE(ContentsInFile(t).initialized());
  ASSERT_TRUE(MakeResident(t).ok());
  EXPECT_EQ(t.data<float>()[0], 3.f);
  EXPECT_EQ(t.data<float>()[kFloats - 1], 3.f);
}

TEST(LazyBuffer, OtherTensorsAreThere) {
  for (const Tensor& t : {Tensor(), F32({2}, {1, 2})}) {
    EXPECT_FALSE(IsAbsent(t));
    EXPECT_TRUE(MakeResident(t).ok());
    EXPECT_EQ(BorrowedContents(t).tensor().raw(), t.raw());
  }
}

TEST(LazyShelf, WhatHasNotComeByThenIsDropped) {
  constexpr size_t kFloats = 2048, kBytes = kFloats * sizeof(float);
  int read = 0;
  LazyShelf shelf(3 * kBytes, [&](void* to, size_t place, size_t bytes) {
    ++read;
    for (size_t i = 0; i < bytes / sizeof(float); ++i)
      static_cast<float*>(to)[i] = static_cast<float>(place / sizeof(float) + i);
    return Status::Ok();
  });
  std::vector<Tensor> t;
  for (size_t k = 0; k < 3; ++k) {
    t.emplace_back(DType::kF32, Shape{kFloats}, shelf.Add(kBytes, 100 * k * sizeof(float)));
    for (size_t i = 0; i < kFloats; ++i)
      static_cast<float*>(t[k].buffer()->data())[i] = static_cast<float>(100 * k + i);
  }
  EXPECT_FALSE(shelf.Add(4, 0));  // it is full
  const auto want = [&](size_t k, size_t i) { return static_cast<float>(100 * k + i); };

  for (const Tensor& one : t) EXPECT_TRUE(IsAbsent(one) && LazyShelf::IsWaiting(one));
  EXPECT_EQ(BorrowedContents(t[1]).tensor().data<float>()[7], want(1, 7));
  ASSERT_TRUE(MakeResident(t[0]).ok());
  EXPECT_EQ(read, 0);  // all were there
  EXPECT_FALSE(LazyShelf::IsWaiting(t[0]));
  t[0].mutable_data<float>()[3] = -1;

  LazyShelf::DropWaiting(t[0]);
  EXPECT_EQ(t[0].data<float>()[3], -1);  // it stays as it is
  EXPECT_EQ(t[0].data<float>()[kFloats - 1], want(0, kFloats - 1));
  EXPECT_EQ(Floats(BorrowedStretches(t[2]).Read(5, 2)),
            (std::vector<float>{want(2, 5), want(2, 6)}));
  EXPECT_EQ(read, 1);
  EXPECT_TRUE(IsAbsent(t[2]));
  ASSERT_TRUE(MakeResident(t[2]).ok());
  ASSERT_TRUE(MakeResident(t[2]).ok());
  EXPECT_EQ(read, 2);
  for (size_t i = 0; i < kFloats; ++i) ASSERT_EQ(t[2].data<float>()[i], want(2, i));
  LazyShelf::DropWaiting(t[1]);
  EXPECT_EQ(t[2].data<float>()[kFloats - 1], want(2, kFloats - 1));
  EXPECT_EQ(BorrowedContents(t[1]).tensor().data<float>()[7], want(1, 7));
  EXPECT_EQ(read, 3);
}

// A file with a large parameter, a small one, and a large one that holds no weights.
class LaterReading : public ::testing::Test {
 protected:
  static constexpr int64_t kN = 40000;
  LaterReading() {
    builder_.Param("ids", DType::kI64, {kN}).Param("large", DType::kF32, {kN});
    builder_.Param("small", DType::kF32, {3});
    program_ = builder_.Build();
    scope_.Set("ids", I64({kN}, std::vector<int64_t>(kN, 5)));
    scope_.Set("large", RandomF32({kN}, 1));
    scope_.Set("small", F32({3}, {1, 2, 3}));
    EXPECT_TRUE(SaveParameters(program_, scope_, path_).ok());
  }
  void Load(Scope* to) {
    const Status s = LoadParameters(program_, path_, *to, ParameterReading::kWhenNeeded);
    ASSERT_TRUE(s.ok()) << s.ToString();
  }
  static bool Absent(const Scope& scope, const std::string& name) {
    return IsAbsent(scope.StampOf(name).value->tensor());
  }

  TempDir dir_;
  const std::string path_ = dir_ / "params";
  ProgramBuilder builder_;
  Program program_;
  Scope scope_;
};

TEST_F(LaterReading, FindReadsWhatWasLeft) {
  Scope later;
  Load(&later);
  EXPECT_TRUE(Absent(later, "large"));
  EXPECT_TRUE(LazyShelf::IsWaiting(later.StampOf("small").value->tensor()));
  EXPECT_FALSE(Absent(later, "ids"));
  for (const std::string& name : scope_.Names())
    EXPECT_TRUE(SameBits(*later.Find(name), *scope_.Find(name))) << name;
  EXPECT_FALSE(Absent(later, "large"));
  EXPECT_FALSE(Absent(later, "small"));
}

TEST_F(LaterReading, NowReadsAll) {
  Scope now;
  ASSERT_TRUE(LoadParameters(program_, path_, now).ok());
  EXPECT_FALSE(Absent(now, "large"));
}

TEST_F(LaterReading, TheFileMayBeReplacedAndRemoved) {
  Scope later, other;
  Load(&later);
  other.Set("ids", I64({kN}, std::vector<int64_t>(kN, 6)));
  other.Set("large", RandomF32({kN}, 2));
  other.Set("small", F32({3}, {4, 5, 6}));
  ASSERT_TRUE(SaveParameters(program_, other, path_).ok());
  std::filesystem::remove(path_);
  EXPECT_TRUE(SameBits(*later.Find("large"), *scope_.Find("large")));
}

TEST_F(LaterReading, AScopeCanBeSavedToItsOwnFile) {
  const std::string before = ReadAll(path_);
  Scope later;
  Load(&later);
  ASSERT_TRUE(SaveParameters(program_, later, path_).ok());
  EXPECT_EQ(ReadAll(path_) == before, true);
}

TEST_F(LaterReading, WhatWasWrittenToInPlaceIsDataLoss) {
  Scope later;
  Load(&later);
  std::filesystem::resize_file(path_, 100);
  EXPECT_EQ(later.Find("large"), nullptr);
  EXPECT_NE(later.Find("small"), nullptr);
  const Status s = SaveParameters(program_, later, dir_ / "again");
  EXPECT_EQ(s.code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace heddle::testing
