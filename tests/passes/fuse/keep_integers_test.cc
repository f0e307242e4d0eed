// Products with constants that a program holds as integers, and rows of such, drawn with a seed:
// the optimised program multiplies the integers, and its results are those of the program as it is.
// HEDDLE_QUANTIZED_PROGRAMS=<n> draws n instead of 60.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

class StoredProgram {
 public:
  explicit StoredProgram(uint32_t seed) : random_(seed) {
    rows_ = Int(1, 20);
    b_.Feed("x", DType::kF32, {rows_, kTerms});
    feeds_.push_back({"x", RandomF32({rows_, kTerms}, seed)});
    const std::string table = Int(0, 2) == 0 ? "" : Stored(kWords, kTerms, true);
    std::string x = "x";
    if (!table.empty()) {
      // Rows of a table, which may be a factor, too.
      Tensor ids = Tensor::Empty(DType::kI64, {rows_});
      for (int64_t i = 0; i < rows_; ++i) ids.mutable_data<int64_t>()[i] = Int(0, kWords - 1);
      b_.Feed("ids", DType::kI64, {rows_});
      feeds_.push_back({"ids", ids});
      const std::string picked = Name();
      b_.Op("gather", {{"X", {table}}, {"Index", {"ids"}}}, {{"Out", {picked}}},
            {{"axis", int64_t{0}}});
      x = Binary("elementwise_add", "x", picked);
    }
    const bool tied = !table.empty() && Coin();
    bool turned = tied;
    std::string w;
    if (tied) {
      w = table;
    } else {
      turned = Coin();
      w = turned ? Stored(kColumns, kTerms, false) : Stored(kTerms, kColumns, false);
    }
    if (Coin()) {
      const std::string other = Name();
      b_.Op("transpose2", {{"X", {w}}}, {{"Out", {other}}}, {{"axis", Ints{1, 0}}});
      w = other;
      turned = !turned;
    }
    std::string y = Name();
    b_.Op("matmul_v2", {{"X", {x}}, {"Y", {w}}}, {{"Out", {y}}}, {{"trans_y", turned}});
    if (Coin())
      y = Binary("elementwise_add", y, Constant(RandomF32({tied ? kWords : kColumns}, random_())));
    b_.Fetch(y);
    b_.Fetch(x);
  }

  void Check(std::set<std::string>* seen, bool* dequantised) {
    Executor executor({.threads = 2});
    const Program program = b_.Build();
    const auto plain = MustCompile(executor, program, scope_, {.opt_level = 0});
    const auto kept = MustCompile(executor, program, scope_, {.opt_level = 2});
    const auto want = MustRun(executor, plain, feeds_), got = MustRun(executor, kept, feeds_);
    const auto plan = executor.DescribePlan(kept, feeds_);
    ASSERT_TRUE(plan.ok());
    for (const auto& i : plan->instructions) {
      seen->insert(i.op);
      *dequantised = *dequantised || i.op == "matmul_v2" || i.op == "fused_matmul";
    }
    for (size_t k = 0; k < want.size(); ++k) {
      ASSERT_EQ(want[k].shape(), got[k].shape());
      for (int64_t i = 0; i < want[k].numel(); ++i)
        // Sums of 96 terms in another order.
        ASSERT_NEAR(want[k].data<float>()[i], got[k].data<float>()[i],
                    3e-5 + 2e-6 * std::abs(want[k].data<float>()[i]))
            << "output " << k << ", element " << i;
    }
  }

 private:
  static constexpr int64_t kTerms = 96, kColumns = 70, kWords = 50;

  int Int(int least, int most) {
    return least + static_cast<int>(random_() % static_cast<uint32_t>(most - least + 1));
  }
  bool Coin() { return Int(0, 1) == 1; }
  std::string Name() { return "v" + std::to_string(names_++); }
  std::string Constant(Tensor t) {
    const std::string name = "c" + std::to_string(names_++);
    b_.Param(name, t.dtype(), t.shape());
    scope_->Set(name, Value(std::move(t)));
    return name;
  }
  std::string Bytes(DType dtype, const Shape& shape, int least, int most) {
    Tensor t = Tensor::Empty(dtype, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      static_cast<uint8_t*>(t.mutable_raw())[i] = static_cast<uint8_t>(Int(least, most));
    return Constant(std::move(t));
  }
  std::string Scales(const Shape& shape, int range) {
    Tensor t = Tensor::Empty(DType::kF32, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      t.mutable_data<float>()[i] =
          static_cast<float>(Int(500, 1500)) / 1000 / static_cast<float>(range);
    return Constant(std::move(t));
  }
  std::string Binary(const std::string& type, const std::string& a, const std::string& b) {
    const std::string out = Name();
    b_.Op(type, {{"X", {a}}, {"Y", {b}}}, {{"Out", {out}}}, {{"axis", int64_t{-1}}});
    return out;
  }

  // A matrix of integers as floats, which a product sums along its longer dimension, kTerms.
  std::string Stored(int64_t rows, int64_t columns, bool is_table) {
    const bool is_signed = Coin(), four = Coin();
    const DType dtype = is_signed ? DType::kI8 : DType::kU8;
    const int range = four ? 16 : 256, least = is_signed ? -range / 2 : 0;
    const std::string w = Bytes(dtype, {rows, columns}, least, least + range - 1);
    const int terms = rows == kTerms ? 0 : 1;  // the dimension that is summed over
    const std::string out = Name();
    if (!four && Int(0, 2) == 0) {  // a cast and a product
      const std::string floats = Name();
      b_.Op("cast", {{"X", {w}}}, {{"Out", {floats}}},
            {{"in_dtype", int64_t{is_signed ? 21 : 20}}, {"out_dtype", int64_t{5}}});
      const Shape shape = Coin() && !is_table ? Shape{}
                          : terms == 0        ? Shape{columns}
                                              : Shape{rows, 1};
      b_.Op("elementwise_mul", {{"X", {floats}}, {"Y", {Scales(shape, range)}}}, {{"Out", {out}}},
            {{"axis", int64_t{-1}}});
      return out;
    }
    Shape shape;
    int64_t axis = 1 - terms, block = 0;
    switch (Int(0, 2)) {
      case 0:
        break;
      case 1:
        shape = {terms == 0 ? columns : rows};
        break;
      default:
        block = 8 << Int(0, 3);
        axis = terms;
        shape = {rows, columns};
        shape[terms] = (shape[terms] + block - 1) / block;
    }
    Slots in{{"x", {w}}, {"x_scale", {Scales(shape, range)}}};
    if (Coin()) in.push_back({"x_zero_point", {Bytes(dtype, shape, least + 4, least + 12)}});
    b_.Op("affine_dequantize", in, {{"y", {out}}},
          {{"axis", axis},
           {"block_size", block},
           {"elem_type", int64_t{four        ? (is_signed ? 22 : 21)
                                 : is_signed ? 3
                                             : 2}}});
    return out;
  }

  std::mt19937 random_;
  ProgramBuilder b_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::vector<heddle::Feed> feeds_;
  int64_t rows_;
  int names_ = 0;
};

TEST(KeepIntegers, ProgramsKeepTheirResults) {
  const char* const said = std::getenv("HEDDLE_QUANTIZED_PROGRAMS");
  const int count = said != nullptr ? std::atoi(said) : 60;
  std::set<std::string> seen;
  bool floats = false;
  for (int seed = 1; seed <= count; ++seed) {
    SCOPED_TRACE(seed);
    StoredProgram(static_cast<uint32_t>(seed)).Check(&seen, &floats);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(seen.count("nbit_matmul"), 1u);
  EXPECT_EQ(seen.count("affine_dequantize"), 1u);  // of rows that were picked
  EXPECT_FALSE(floats) << "a matrix of floats was multiplied";
}

}  // namespace
}  // namespace heddle::testing
