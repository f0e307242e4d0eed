// Networks of convolutions whose images are quantised on the way, drawn with a seed: the optimised
// program has one operator for each convolution with what follows it, and the bits of the program
// as it is. HEDDLE_QUANTIZED_PROGRAMS=<n> draws n instead of 60.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

class DynamicNet {
 public:
  explicit DynamicNet(uint32_t seed) : random_(seed), spatial_(Int(1, 3)) {
    Shape shape{2, channels_};
    for (int i = 0; i < spatial_; ++i) shape.push_back(Int(5, 7));
    b_.Feed("x", DType::kF32, shape);
    feeds_.push_back({"x", RandomF32(shape, seed, 2)});
    std::string v = "x";
    const int steps = Int(2, 4);
    for (int i = 0; i < steps; ++i) v = Convolution(v);
    b_.Fetch(v);
    if (Coin()) b_.Fetch(bytes_);
  }

  Tensor* feed() { return &feeds_[0].value.tensor(); }

  void Check(const std::string& force, std::set<std::string>* seen) {
    SCOPED_TRACE(said_);
    Executor executor({.threads = 2});
    const Program program = b_.Build();
    CompileOptions options{.opt_level = 2};
    options.force = force;
    const auto plain = MustCompile(executor, program, scope_, {.opt_level = 0});
    const auto fused = MustCompile(executor, program, scope_, options);
    const auto want = MustRun(executor, plain, feeds_), got = MustRun(executor, fused, feeds_);
    const auto plan = executor.DescribePlan(fused, feeds_);
    ASSERT_TRUE(plan.ok());
    for (const auto& i : plan->instructions) seen->insert(i.op);
    for (size_t k = 0; k < want.size(); ++k) {
      ASSERT_EQ(want[k].shape(), got[k].shape());
      if (want[k].dtype() != DType::kF32) {
        ASSERT_EQ(Bits(want[k]), Bits(got[k]));
        continue;
      }
      for (int64_t i = 0; i < want[k].numel(); ++i) {
        const float a = want[k].data<float>()[i], b = got[k].data<float>()[i];
        ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
            << "output " << k << ", element " << i << ": " << a << " became " << b;
      }
    }
  }

 private:
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
  std::string Bytes(DType dtype, const Shape& shape) {
    Tensor t = Tensor::Empty(dtype, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      static_cast<uint8_t*>(t.mutable_raw())[i] = static_cast<uint8_t>(Int(0, 255));
    return Constant(std::move(t));
  }
  // [channels, 1, …], or with a 1 before.
  Shape PerChannel(int64_t channels) {
    Shape s;
    if (Coin()) s.push_back(1);
    s.push_back(channels);
    for (int i = 0; i < spatial_; ++i) s.push_back(1);
    return s;
  }
  std::string Binary(const std::string& type, const std::string& a, const std::string& b,
                     int64_t axis = -1) {
    const std::string out = Name();
    const bool turn = axis == -1 && Coin();
    b_.Op(type, {{"X", {turn ? b : a}}, {"Y", {turn ? a : b}}}, {{"Out", {out}}}, {{"axis", axis}});
    return out;
  }

  std::string Convolution(const std::string& v) {
    std::string x = bytes_, scale = scale_, zero = zero_;
    if (v != quantised_) {
      quantised_ = v;
      x = bytes_ = Name(), scale = scale_ = Name(), zero = zero_ = Name();
      b_.Op("dynamic_quantize", {{"x", {v}}},
            {{"y", {x}}, {"y_scale", {scale}}, {"y_zero_point", {zero}}});
    }
    const int kind = Int(0, 2);  // plain, grouped, depthwise
    const int64_t groups = kind == 0 ? 1 : kind == 1 && channels_ % 2 == 0 ? 2 : channels_;
    const int64_t to = groups * (groups == channels_ ? 1 : Int(1, 9));
    Shape filter{to, channels_ / groups};
    Ints strides, dilations, lo, hi;
    for (int i = 0; i < spatial_; ++i) {
      filter.push_back(Int(1, 3));
      strides.push_back(1);
      dilations.push_back(Int(1, 2));
      const int64_t reach = dilations.back() * (filter[filter.rank() - 1] - 1);
      lo.push_back(Int(0, static_cast<int>(reach)));
      hi.push_back(reach - lo.back());  // as large as before
    }
    Attrs attrs{{"strides", strides}, {"dilations", dilations}, {"group", groups}};
    if (Int(0, 4) == 0) {
      attrs.push_back({"auto_pad", std::string("SAME_UPPER")});
    } else {
      lo.insert(lo.end(), hi.begin(), hi.end());
      attrs.push_back({"pads", lo});
    }
    const DType type = Coin() ? DType::kU8 : DType::kI8;
    said_ += filter.ToString() + " in " + std::to_string(groups) + " groups of " + x + "; ";
    Slots slots{{"x", {x}}, {"w", {Bytes(type, filter)}}, {"x_zero_point", {zero}}};
    if (Coin()) slots.push_back({"w_zero_point", {Bytes(type, Coin() ? Shape{} : Shape{to})}});
    const std::string sums = Name(), reals = Name();
    b_.Op("onnx_conv_integer", slots, {{"y", {sums}}}, attrs);
    b_.Op("cast", {{"X", {sums}}}, {{"Out", {reals}}},
          {{"in_dtype", int64_t{2}}, {"out_dtype", int64_t{5}}});
    const Shape scales = Coin() ? Shape{1} : PerChannel(to);
    const std::string factor =
        Binary("elementwise_mul", scale, Constant(RandomF32(scales, random_(), 0.01f)));
    std::string out = Binary("elementwise_mul", reals, factor);
    if (Coin()) {
      const bool vector = Coin();
      const std::string bias = Constant(RandomF32(vector ? Shape{to} : PerChannel(to), random_()));
      out = Binary("elementwise_add", out, bias, vector ? 1 : -1);
    }
    if (Coin()) {
      const std::string bounded = Name();
      if (Coin())
        b_.Op("relu", {{"X", {out}}}, {{"Out", {bounded}}}, {{"keep_nan", true}});
      else
        b_.Op("clip", {{"X", {out}}}, {{"Out", {bounded}}}, {{"min", -0.5}, {"max", 0.75}});
      out = bounded;
    }
    channels_ = to;
    // Two convolutions of one quantised image are joined by a sum.
    if (Int(0, 3) > 0 || depth_ > 0) return out;
    ++depth_;
    const int64_t before = filter[1] * groups;
    channels_ = before;
    const std::string other = Convolution(v);
    --depth_;
    const std::string joined = Name();
    b_.Op("concat", {{"X", {out, other}}}, {{"Out", {joined}}}, {{"axis", int64_t{1}}});
    channels_ += to;
    return joined;
  }

  std::mt19937 random_;
  ProgramBuilder b_;
  std::shared_ptr<Scope> scope_ = std::make_shared<Scope>();
  std::vector<heddle::Feed> feeds_;
  int64_t channels_ = 4;
  const int spatial_;
  int names_ = 0, depth_ = 0;
  std::string quantised_, bytes_, scale_, zero_;
  std::string said_;  // of the convolutions
};

int Programs() {
  const char* const said = std::getenv("HEDDLE_QUANTIZED_PROGRAMS");
  return said != nullptr ? std::atoi(said) : 60;
}

TEST(FuseIntegerConv, ProgramsKeepTheirBits) {
  std::set<std::string> seen;
  for (int seed = 1; seed <= Programs(); ++seed) {
    SCOPED_TRACE(seed);
    for (const char* force : {"", "integer_conv=words"}) {
      SCOPED_TRACE(force);
      DynamicNet(static_cast<uint32_t>(seed)).Check(force, &seen);
    }
    if (HasFatalFailure()) return;
  }
  for (const char* op : {"quantized_conv2d", "quantized_conv3d"}) EXPECT_EQ(seen.count(op), 1u);
  for (const char* op : {"onnx_conv_integer", "cast", "clip", "relu"})
    EXPECT_EQ(seen.count(op), 0u) << op;
}

// A range that is infinite makes factors of which bounds must not make numbers.
TEST(FuseIntegerConv, NanStaysNan) {
  for (uint32_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    DynamicNet net(seed);
    net.feed()->mutable_data<float>()[seed] = std::numeric_limits<float>::infinity();
    std::set<std::string> seen;
    net.Check("", &seen);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace heddle::testing
