// Shapes, tensors, values, scopes, half types, statuses.
#include "heddle/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "core/half.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

TEST(ShapeTest, RanksAndElements) {
  EXPECT_EQ(Shape().rank(), 0);
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ(Shape({2, 0, 3}).numel(), 0);
  EXPECT_EQ(Shape({2, 3, 4}).numel(), 24);
  EXPECT_EQ(Shape({2, 3, 4}).Product(1, 3), 12);
  EXPECT_EQ(Shape({2, 3, 4}).dim(-1), 4);
  EXPECT_TRUE(Shape({2, 3}).is_static());
  EXPECT_FALSE(Shape({2, -1}).is_static());
  EXPECT_FALSE(Shape::Unknown().known_rank());
  EXPECT_FALSE(Shape::Unknown().is_static());
  EXPECT_EQ(Shape::Unknown().dims().size(), 0u);
  EXPECT_NE(Shape({1}), Shape());
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_EQ(Shape({2, -1}).ToString(), "[2, ?]");
  EXPECT_EQ(Shape().ToString(), "[]");
}

TEST(ShapeTest, InsertAndErase) {
  Shape s = {2, 3};
  s.insert(0, 1);
  s.insert(3, 4);
  EXPECT_EQ(s, (Shape{1, 2, 3, 4}));
  s.erase(1);
  EXPECT_EQ(s, (Shape{1, 3, 4}));
  s.erase(2);
  EXPECT_EQ(s, (Shape{1, 3}));
  Shape full;
  for (int k = 0; k < Shape::kMaxRank + 3; ++k) full.push_back(1);
  EXPECT_EQ(full.rank(), Shape::kMaxRank);
  full.insert(0, 5);
  EXPECT_EQ(full.rank(), Shape::kMaxRank);
}

TEST(DTypeTest, SizesAndNames) {
  EXPECT_EQ(SizeOf(DType::kBF16), 2u);
  EXPECT_EQ(SizeOf(DType::kC128), 16u);
  EXPECT_EQ(SizeOf(DType::kUnknown), 0u);
  EXPECT_EQ(Name(DType::kF16), "float16");
  EXPECT_TRUE(IsInteger(DType::kBool));
  EXPECT_TRUE(IsFloat(DType::kBF16));
  EXPECT_FALSE(IsFloat(DType::kC64));
}

TEST(TensorTest, ScalarAndEmpty) {
  Tensor nothing;
  EXPECT_FALSE(nothing.initialized());
  EXPECT_FALSE(nothing.Clone().initialized());
  Tensor scalar = F32({}, {3});
  EXPECT_EQ(scalar.numel(), 1);
  EXPECT_EQ(scalar.bytes(), 4u);
  EXPECT_EQ(Floats(scalar.Clone()), (std::vector<float>{3}));
  Tensor empty = Tensor::Empty(DType::kF32, {0, 3});
  EXPECT_TRUE(empty.initialized());
  EXPECT_EQ(empty.bytes(), 0u);
  EXPECT_TRUE(empty.Clone().initialized());
  EXPECT_EQ(empty.Clone().shape(), (Shape{0, 3}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(scalar.raw()) % 64, 0u);
}

TEST(TensorTest, CopiesShareAndClonesDoNot) {
  Tensor a = F32({2}, {1, 2});
  Tensor shared = a, clone = a.Clone(), view = a.Reshaped({2, 1});
  a.mutable_data<float>()[0] = 7;
  EXPECT_EQ(Floats(shared), (std::vector<float>{7, 2}));
  EXPECT_EQ(Floats(view), (std::vector<float>{7, 2}));
  EXPECT_EQ(view.shape(), (Shape{2, 1}));
  EXPECT_EQ(a.shape(), (Shape{2}));
  EXPECT_EQ(Floats(clone), (std::vector<float>{1, 2}));
  EXPECT_FALSE(a.buffer()->unique());
  EXPECT_TRUE(clone.buffer()->unique());
}

TEST(TensorTest, WrappedMemoryIsReleasedOnceByTheLastOwner) {
  std::vector<float> data = {1, 2};
  int released = 0;
  {
    Tensor a = Tensor::Wrap(data.data(), DType::kF32, {2}, [&] { ++released; });
    EXPECT_EQ(a.raw(), data.data());
    Tensor b = a, c = a.Reshaped({1, 2});
    a = Tensor();
    Value v(b);
    b = Tensor();
    c = Tensor();
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  Tensor::Wrap(data.data(), DType::kF32, {2});  // without a function
}

TEST(TensorTest, StridesBecomeContiguous) {
  std::vector<float> data = {0, 1, 2, 3, 4, 5};
  Tensor t = Tensor::WrapStrided(data.data(), DType::kF32, {3, 2}, {1, 3});
  EXPECT_FALSE(t.is_contiguous());
  EXPECT_EQ(t.strides(), (std::vector<int64_t>{1, 3}));
  EXPECT_EQ(Floats(t.Contiguous()), (std::vector<float>{0, 3, 1, 4, 2, 5}));
  EXPECT_TRUE(t.Contiguous().is_contiguous());
  Tensor rows = Tensor::WrapStrided(data.data(), DType::kF32, {3, 2}, {2, 1});
  EXPECT_TRUE(rows.is_contiguous());
  EXPECT_EQ(rows.Contiguous().raw(), data.data());
  // A stride of a dimension of one says nothing.
  EXPECT_TRUE(Tensor::WrapStrided(data.data(), DType::kF32, {1, 6}, {99, 1}).is_contiguous());
  Tensor repeated = Tensor::WrapStrided(data.data() + 4, DType::kF32, {2, 2}, {0, 1});
  EXPECT_EQ(Floats(repeated.Contiguous()), (std::vector<float>{4, 5, 4, 5}));
  Tensor backwards = Tensor::WrapStrided(data.data() + 5, DType::kF32, {3}, {-2});
  EXPECT_EQ(Floats(backwards.Contiguous()), (std::vector<float>{5, 3, 1}));
  Tensor empty = Tensor::WrapStrided(data.data(), DType::kF32, {0, 2}, {7, 3});
  EXPECT_EQ(empty.Contiguous().numel(), 0);
}

TEST(TensorTest, SequenceOffsetsTravelWithTheTensor) {
  Tensor t = F32({3}, {1, 2, 3});
  EXPECT_FALSE(t.has_lod());
  t.set_lod({{0, 1, 3}});
  Tensor copy = t, clone = t.Clone();
  EXPECT_TRUE(copy.has_lod());
  EXPECT_EQ(clone.lod(), (LoD{{0, 1, 3}}));
  copy.ClearLod();
  EXPECT_FALSE(copy.has_lod());
  EXPECT_TRUE(t.has_lod());
  std::vector<float> data = {0, 1, 2, 3};
  Tensor strided = Tensor::WrapStrided(data.data(), DType::kF32, {2, 2}, {1, 2});
  strided.set_lod({{0, 2}});
  EXPECT_EQ(strided.Contiguous().lod(), (LoD{{0, 2}}));
  strided.ClearLod();
  EXPECT_FALSE(strided.is_contiguous());
}

TEST(TensorTest, AbsurdSizesGiveNoTensor) {
  EXPECT_FALSE(Tensor::Empty(DType::kF32, {int64_t{1} << 61}).initialized());
  EXPECT_FALSE(BufferRef::Allocate(SIZE_MAX - 10));
}

TEST(ValueTest, Kinds) {
  Value v;
  EXPECT_TRUE(v.is_tensor());
  EXPECT_FALSE(v.initialized());
  v = F32({1}, {1});
  EXPECT_TRUE(v.initialized());
  v.mutable_array().push_back(F32({1}, {2}));
  EXPECT_TRUE(v.is_array());
  Value copy = v;
  copy.mutable_array().push_back(F32({1}, {3}));
  EXPECT_EQ(v.array().size(), 1u);  // a copy's array is its own
  EXPECT_EQ(copy.array().size(), 2u);
  copy.mutable_rows().height = 4;
  EXPECT_TRUE(copy.is_rows());
  copy.MutableTensor() = F32({1}, {9});
  EXPECT_TRUE(copy.is_tensor());
  EXPECT_EQ(Floats(copy.tensor()), (std::vector<float>{9}));
  v.Clear();
  EXPECT_FALSE(v.initialized());
}

TEST(ScopeTest, FindsInTheTree) {
  auto parent = std::make_shared<Scope>();
  Scope child(parent);
  parent->Set("w", F32({1}, {1}));
  ASSERT_NE(child.Find("w"), nullptr);
  EXPECT_EQ(child.Find("w"), parent->Find("w"));
  child.Set("w", F32({1}, {2}));
  EXPECT_EQ(Floats(child.Find("w")->tensor()), (std::vector<float>{2}));
  EXPECT_EQ(Floats(parent->Find("w")->tensor()), (std::vector<float>{1}));
  EXPECT_EQ(child.Find("v"), nullptr);
  Value* v = parent->Ensure("v");
  EXPECT_EQ(child.Find("v"), v);
  EXPECT_EQ(parent->Names(), (std::vector<std::string>{"v", "w"}));
  child.Erase("w");
  EXPECT_EQ(child.Find("w"), parent->Find("w"));
}

TEST(ScopeTest, AddressesStayAndTheVersionGrows) {
  Scope scope;
  Value* w = scope.Ensure("w");
  const uint64_t before = scope.version();
  for (int k = 0; k < 1000; ++k) scope.Set("v" + std::to_string(k), F32({1}, {1}));
  EXPECT_EQ(scope.Find("w"), w);
  scope.Set("w", F32({1}, {1}));
  EXPECT_EQ(scope.Find("w"), w);
  EXPECT_GT(scope.version(), before);
  const uint64_t now = scope.version();
  scope.Erase("w");
  EXPECT_GT(scope.version(), now);
}

TEST(ScopeTest, ThreadsMayUseItTogether) {
  Scope scope;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int k = 0; k < 200; ++k) {
        scope.Set(std::to_string(t) + "_" + std::to_string(k), F32({1}, {1}));
        (void)scope.Find(std::to_string((t + 1) % 4) + "_" + std::to_string(k));
        (void)scope.version();
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(scope.Names().size(), 800u);
}

// --- half types ---
TEST(Half, Float16KnownBits) {
  const std::pair<float, uint16_t> known[] = {{0.f, 0x0000},
                                              {-0.f, 0x8000},
                                              {1.f, 0x3c00},
                                              {-2.f, 0xc000},
                                              {65504.f, 0x7bff},
                                              {65519.996f, 0x7bff},
                                              {65520.f, 0x7c00},
                                              {1e10f, 0x7c00},
                                              {0.1f, 0x2e66},
                                              {6.1035156e-5f, 0x0400},  // the smallest normal
                                              {5.9604645e-8f, 0x0001},  // the smallest subnormal
                                              {2.9802322e-8f, 0x0000},  // half of it: to even
                                              {2.9802326e-8f, 0x0001},
                                              {6.097555e-5f, 0x03ff},
                                              {1.f + 1.f / 2048, 0x3c00},  // ties to even
                                              {1.f + 3.f / 2048, 0x3c02},
                                              {std::numeric_limits<float>::infinity(), 0x7c00},
                                              {-std::numeric_limits<float>::infinity(), 0xfc00}};
  for (const auto& [f, bits] : known) EXPECT_EQ(float16(f).bits, bits) << f;
  EXPECT_TRUE(std::isnan(static_cast<float>(float16(std::nanf("")))));
}

TEST(Half, EveryFloat16SurvivesTheWayToFloatAndBack) {
  for (uint32_t b = 0; b < 65536; ++b) {
    float16 h;
    h.bits = static_cast<uint16_t>(b);
    const float f = h;
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(float16(f))));
    } else {
      ASSERT_EQ(float16(f).bits, b);
    }
  }
}

TEST(Half, BFloat16KnownBits) {
  const std::pair<float, uint16_t> known[] = {{0.f, 0x0000},
                                              {-0.f, 0x8000},
                                              {1.f, 0x3f80},
                                              {-2.f, 0xc000},
                                              {0.1f, 0x3dcd},
                                              {1.00390625f, 0x3f80},  // ties to even
                                              {1.01171875f, 0x3f82},
                                              {3.4028235e38f, 0x7f80},  // rounds to infinity
                                              {std::numeric_limits<float>::infinity(), 0x7f80}};
  for (const auto& [f, bits] : known) EXPECT_EQ(bfloat16(f).bits, bits) << f;
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::nanf("")))));
  bfloat16 quiet;
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(0x7f800001u)))));
  for (uint32_t b = 0; b < 0x7f80; ++b) {
    quiet.bits = static_cast<uint16_t>(b);
    ASSERT_EQ(bfloat16(static_cast<float>(quiet)).bits, b);
  }
}

// --- statuses ---
TEST(StatusTest, CodeMessageAndPlace) {
  EXPECT_TRUE(Status::Ok().ok());
  EXPECT_EQ(Status::Ok().ToString(), "OK");
  const Status s(StatusCode::kOutOfRange, "too far");
  const Status at =
      s.At({.block = 0, .op = 17, .op_type = "gather", .output = "y", .call_stack = ""});
  EXPECT_EQ(at.ToString(), "OUT_OF_RANGE: block 0, op 17 (gather -> y): too far");
  EXPECT_EQ(at.At({.block = 5, .op = 1, .op_type = "while", .output = "", .call_stack = ""})
                .location()
                ->op_type,
            "gather");
  EXPECT_FALSE(s.location().has_value());
  Result<int> good = 3, bad = s;
  EXPECT_EQ(*good, 3);
  EXPECT_EQ(bad.status().code(), StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace heddle::testing
