// An activation that is fused is the operator that it was, for every number: random products,
// convolutions, norms and chains with NaN of both signs, infinities, zeros, subnormals, the
// greatest numbers and those beside the places where a function's branches meet, and with
// attributes of the same kinds, give one result at every level, with every implementation, on one
// thread and on two.
// HEDDLE_LAW_PROGRAMS=<n> checks n programs instead of 600, HEDDLE_TEST_SEED=<n> others than usual.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>

#include "core/error.h"
#include "passes/ir_text.h"
#include "passes/pass_manager.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr float kMost = std::numeric_limits<float>::max();

struct Function {
  std::string type;
  Attrs attrs;
  std::vector<double> meets;  // where its branches meet
  bool steep = false;         // what is rounded of its operand makes another result
};

// A program with one fused place, or more.
class Edges {
 public:
  explicit Edges(uint32_t seed) : rng_(seed) {
    function_ = Draw();
    switch (Pick(8)) {
      case 0:
      case 1:
        Convolution();
        break;
      case 2:
        TransposedConvolution();
        break;
      case 3:
      case 4:
        Product();
        break;
      case 5:
        Norm();
        break;
      case 6:
        Pointwise();
        break;
      default:
        Chain();
    }
    builder_.Fetch(at_);
  }

  const ProgramBuilder& builder() const { return builder_; }
  const std::vector<heddle::Feed>& feeds() const { return feeds_; }
  std::shared_ptr<Scope> NewScope() const {
    auto scope = std::make_shared<Scope>();
    for (const auto& [name, value] : params_) scope->Set(name, Value(value.Clone()));
    return scope;
  }
  double tolerance() const { return dtype_ == DType::kF32 ? 1e-4 : 6e-2; }

  // Implementations in some order; the last ones cover every case.
  std::string Force() {
    std::vector<std::string> conv = {"direct",  "depthwise",    "planes",
                                     "patches", "onednn_parts", "onednn"};
    if (!function_.steep) conv.push_back("winograd");  // which rounds
    std::vector<std::string> gemm = {"onednn", "panels"};
    std::shuffle(conv.begin(), conv.end(), rng_);
    std::shuffle(gemm.begin(), gemm.end(), rng_);
    std::string force = "conv=";
    for (const std::string& name : conv) force += name + ":";
    force += "im2col,gemm=";
    for (const std::string& name : gemm) force += name + ":";
    return force + "panels_variable:plain";
  }

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  bool OneIn(int n) { return Pick(n) == 0; }
  double Of(std::initializer_list<double> values) {
    return values.begin()[Pick(static_cast<int>(values.size()))];
  }

  Function Draw() {
    static constexpr const char* kPlain[] = {"sigmoid", "tanh", "silu"};
    switch (Pick(12)) {
      case 0:
        return {"relu", {{"keep_nan", OneIn(2)}}, {0}};
      case 1: {
        const double threshold = Of({6, 6, 0, 1, -1, 1e30, kInf, kNan, 1e-45});
        return {"relu6", {{"threshold", threshold}}, {0, threshold}};
      }
      case 2: {
        double low = Of({-1, 0, 0.5, -kInf, -1e30, kNan}), high = Of({1, 0.5, 6, kInf, 1e30, kNan});
        return {"clip", {{"min", low}, {"max", high}}, {low, high}};
      }
      case 3: {
        const double alpha = Of({0.02, 0.3, 0, -0.5, 1, 2, kInf, -kInf, kNan, 1e-45, 1e38});
        return {
            "leaky_relu", {{"alpha", alpha}, {"op_version", Pick(2)}}, {0}, !(std::abs(alpha) < 9)};
      }
      case 4: {
        const double beta = Of({1, 1, 2, 0, -1, 1e-3, kInf, -kInf, kNan, 1e38});
        return {"swish", {{"beta", beta}}, {0}, !(std::abs(beta) < 9)};
      }
      case 5: {
        const double slope = Of({0.2, 1.0 / 6, 0, -0.2, 1e30, kInf, kNan});
        const double offset = Of({0.5, 0, 1, -2, kInf, -kInf, kNan});
        return {"hard_sigmoid",
                {{"slope", slope}, {"offset", offset}},
                {-offset / slope, (1 - offset) / slope},
                !(std::abs(slope) < 9)};
      }
      case 6:
      case 7: {
        Attrs attrs = {{"divide_first", OneIn(3)}};
        if (OneIn(3)) attrs.insert(attrs.end(), {{"threshold", 5.0}, {"scale", 7.0}});
        return {"hard_swish", attrs, {-3, 3, kMost / 6}};
      }
      case 8:
        return {"gelu", {{"approximate", OneIn(2)}}, {-5, 5}};
      case 9:
        return {"mish", {{"threshold", Of({20, 20, 25, 1, -1, kInf, kNan})}}, {20}};
      default:
        return {kPlain[Pick(3)], {}, {0}};
    }
  }

  // A number at an edge. `calm`: sums and products of some of them are finite.
  float Edge(bool calm) {
    double x = 0;
    switch (Pick(8)) {
      case 0:
        return OneIn(2) ? std::numeric_limits<float>::quiet_NaN()
                        : -std::numeric_limits<float>::quiet_NaN();
      case 1:
        return static_cast<float>(OneIn(2) ? kInf : -kInf);
      case 2:
        return OneIn(2) ? 0.f : -0.f;
      case 3:
        if (function_.steep) return 1;
        x = Of({1e-45, 3e-39, 1.1754943508222875e-38, 1e-30});
        break;
      case 4:
        x = dtype_ != DType::kF32 ? Of({4, 8})  // sums are rounded between the operators
            : calm                ? Of({20, 90, 105, 700})
                                  : Of({1e10, 1e20, 1e37, 1e38, kMost / 6, kMost});
        break;
      case 5:
      case 6:
        x = function_.meets[static_cast<size_t>(Pick(static_cast<int>(function_.meets.size())))];
        if (std::isnan(x) || (calm && std::abs(x) > (dtype_ == DType::kF32 ? 1000 : 8)) ||
            function_.steep)
          x = 1;
        break;
      default:
        return static_cast<float>(Pick(65) - 32) / 4;
    }
    if (OneIn(4)) x = -x;
    const auto f = static_cast<float>(x);
    const int beside = Pick(4);
    if (beside > 1 || function_.steep || dtype_ != DType::kF32) return f;
    const float next = std::nextafterf(f, beside == 0 ? kMost : -kMost);
    return std::isfinite(next) ? next : f;
  }
  Tensor Of(const Shape& shape, bool edges, bool calm) {
    Tensor t = Tensor::Empty(DType::kF32, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      t.mutable_data<float>()[i] = edges ? Edge(calm) : static_cast<float>(Pick(9) - 4) / 4;
    if (dtype_ == DType::kF32) return t;
    Tensor half = Tensor::Empty(dtype_, shape);
    for (int64_t i = 0; i < t.numel(); ++i)
      if (dtype_ == DType::kF16)
        half.mutable_data<float16>()[i] = float16(t.data<float>()[i]);
      else
        half.mutable_data<bfloat16>()[i] = bfloat16(t.data<float>()[i]);
    return half;
  }

  std::string Name(const char* stem) { return stem + std::to_string(names_++); }
  std::string Feed(const Tensor& t) {
    const std::string name = Name("x");
    builder_.Feed(name, dtype_, t.shape());
    feeds_.push_back({name, t});
    return name;
  }
  std::string Param(const Tensor& t) {
    const std::string name = Name("w");
    builder_.Param(name, dtype_, t.shape());
    params_.emplace_back(name, t);
    return name;
  }
  // The operator's result, of this shape, is what the next one reads.
  void Op(const std::string& type, const Slots& in, const char* out, const Attrs& attrs,
          const Shape& shape) {
    at_ = Name("v");
    builder_.Var(at_, dtype_, shape);
    builder_.Op(type, in, {{out, {at_}}}, attrs);
    shape_ = shape;
  }
  void Scale(bool before) {
    const double by = before ? Of({0.5, 2, -1, 1}) : Of({0.5, 2, -1, 1e-30, 0});
    const double plus = before || OneIn(2) ? 0 : Of({0.25, -1, 1e30});
    Op("scale", {{"X", {at_}}}, "Out", {{"scale", by}, {"bias", plus}}, shape_);
  }

  // What stands before the activation: a bias for each channel, a residual, a factor. `edges`: the
  // result so far has numbers at the edges already.
  void Sums(int channel, bool edges) {
    std::vector<int> steps;
    for (int k = 0; k < 3; ++k)
      if (OneIn(2)) steps.push_back(k);
    std::shuffle(steps.begin(), steps.end(), rng_);
    const bool calm = dtype_ != DType::kF32 || steps.size() + (edges ? 1 : 0) > 1;
    for (const int step : steps) {
      if (step == 0) {
        const Tensor b = Of({shape_[channel]}, true, calm);
        const bool last = channel == shape_.rank() - 1;
        Op("elementwise_add", {{"X", {at_}}, {"Y", {Param(b)}}}, "Out",
           {{"axis", last && OneIn(2) ? -1 : channel}}, shape_);
      } else if (step == 1) {
        const std::string r = Feed(Of(shape_, true, calm));
        const bool first = OneIn(2);
        Op("elementwise_add", {{"X", {first ? r : at_}}, {"Y", {first ? at_ : r}}}, "Out",
           {{"axis", -1}}, shape_);
      } else {
        Scale(true);
      }
    }
  }
  void Activate() {
    Op(function_.type, {{"X", {at_}}}, "Out", function_.attrs, shape_);
    if (OneIn(4) && dtype_ == DType::kF32) Scale(false);
  }

  // Each sum is of one term, an element of the image at an edge.
  void Pointwise() {
    const bool last = OneIn(2);
    const int64_t size = 3 + Pick(10), channels = 1 + Pick(40);
    const Shape image = last ? Shape{1, size, size, 1} : Shape{1, 1, size, size};
    Tensor ones = Tensor::Empty(DType::kF32, {channels, 1, 1, 1});
    std::fill_n(ones.mutable_data<float>(), channels, 1.f);
    const bool calm = OneIn(2);
    Op("conv2d", {{"Input", {Feed(Of(image, true, calm))}}, {"Filter", {Param(ones)}}}, "Output",
       {{"strides", Ints{1, 1}},
        {"paddings", Ints{0, 0}},
        {"data_format", std::string(last ? "NHWC" : "NCHW")}},
       last ? Shape{1, size, size, channels} : Shape{1, channels, size, size});
    if (calm) Sums(last ? 3 : 1, true);
    Activate();
  }
  void Convolution() {
    const bool last = OneIn(2), depthwise = OneIn(3);
    const int64_t groups = OneIn(3) ? 2 : 1, in_c = groups * (1 + Pick(20));
    const int64_t kernel = std::initializer_list<int>{1, 3, 3, 5}.begin()[Pick(4)];
    const int64_t size = kernel + Pick(12), stride = 1 + Pick(2), pad = Pick(2) * (kernel / 2);
    const int64_t out_c = depthwise ? in_c : groups * (1 + Pick(20));
    const int64_t to = (size + 2 * pad - kernel) / stride + 1;
    const Shape image = last ? Shape{1, size, size, in_c} : Shape{1, in_c, size, size};
    const Tensor w = Of({out_c, depthwise ? 1 : in_c / groups, kernel, kernel}, false, true);
    Op(depthwise ? "depthwise_conv2d" : "conv2d",
       {{"Input", {Feed(Of(image, false, true))}}, {"Filter", {Param(w)}}}, "Output",
       {{"strides", Ints{stride, stride}},
        {"paddings", Ints{pad, pad}},
        {"groups", depthwise ? in_c : groups},
        {"data_format", std::string(last ? "NHWC" : "NCHW")}},
       last ? Shape{1, to, to, out_c} : Shape{1, out_c, to, to});
    Sums(last ? 3 : 1, false);
    Activate();
  }
  void TransposedConvolution() {
    const int64_t in_c = 1 + Pick(12), out_c = 1 + Pick(12), size = 2 + Pick(6);
    const int64_t kernel = 1 + Pick(4), stride = 1 + Pick(2), to = (size - 1) * stride + kernel;
    const Tensor x = Of({1, in_c, size, size}, false, true);
    const Tensor w = Of({in_c, out_c, kernel, kernel}, false, true);
    Op("conv2d_transpose", {{"Input", {Feed(x)}}, {"Filter", {Param(w)}}}, "Output",
       {{"strides", Ints{stride, stride}}, {"paddings", Ints{0, 0}}}, {1, out_c, to, to});
    Sums(1, false);
    Activate();
  }
  // Of one term an element at an edge, or sums of small numbers.
  void Product() {
    if (OneIn(4) && !function_.steep) dtype_ = OneIn(2) ? DType::kF16 : DType::kBF16;
    const bool edges = OneIn(3), calm = dtype_ != DType::kF32 || OneIn(2);
    const int64_t m = 1 + Pick(40), k = edges ? 1 : 1 + Pick(60), n = 1 + Pick(50);
    const std::string x = Feed(Of({m, k}, edges, calm));
    Tensor w = Of({k, n}, false, true);
    if (edges && dtype_ == DType::kF32) std::fill_n(w.mutable_data<float>(), n, 1.f);
    const std::string y = OneIn(3) ? Feed(w) : Param(w);
    static constexpr const char* kTypes[] = {"matmul_v2", "matmul", "mul"};
    const char* const type = kTypes[Pick(3)];
    Attrs attrs;
    if (type == kTypes[1]) attrs = {{"alpha", Of({1, 1, 0.5, 2, 0})}};
    Op(type, {{"X", {x}}, {"Y", {y}}}, "Out", attrs, {m, n});
    if (!edges || calm) Sums(1, edges);
    Activate();
  }
  void Norm() {
    const bool last = OneIn(2);
    const int64_t channels = 1 + Pick(10), size = 2 + Pick(6);
    const Shape image = last ? Shape{2, size, size, channels} : Shape{2, channels, size, size};
    const std::string x = Feed(Of(image, true, function_.steep));
    Tensor ones = Tensor::Empty(DType::kF32, {channels}), zeros = ones.Clone();
    std::fill_n(ones.mutable_data<float>(), channels, 1.f);
    std::fill_n(zeros.mutable_data<float>(), channels, 0.f);
    Op("batch_norm",
       {{"X", {x}},
        {"Scale", {Param(ones)}},
        {"Bias", {Param(OneIn(2) ? zeros : ones)}},
        {"Mean", {Param(zeros)}},
        {"Variance", {Param(ones)}}},
       "Y",
       {{"is_test", true}, {"epsilon", 0.0}, {"data_layout", std::string(last ? "NHWC" : "NCHW")}},
       image);
    Activate();
  }
  void Chain() {
    const Shape shape{1 + Pick(5), 1 + Pick(70)};
    at_ = Feed(Of(shape, true, false));
    shape_ = shape;
    if (OneIn(2))
      Op("elementwise_add", {{"X", {at_}}, {"Y", {Feed(Of(shape, false, true))}}}, "Out",
         {{"axis", -1}}, shape);
    Activate();
    if (function_.steep) return;
    function_ = Draw();
    Activate();
  }

  std::mt19937 rng_;
  ProgramBuilder builder_;
  std::vector<heddle::Feed> feeds_;
  std::vector<std::pair<std::string, Tensor>> params_;
  Function function_;
  DType dtype_ = DType::kF32;
  std::string at_;
  Shape shape_;
  int names_ = 0;
};

double At(const Tensor& t, int64_t i) {
  if (t.dtype() == DType::kF16) return static_cast<float>(t.data<float16>()[i]);
  if (t.dtype() == DType::kBF16) return static_cast<float>(t.data<bfloat16>()[i]);
  return t.data<float>()[i];
}

bool Same(double a, double b, double tolerance) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= tolerance * (1 + std::abs(b));
}

struct Outcome {
  Status status;
  Tensor value;
};

Outcome RunAt(const Edges& edges, const Program& program, const CompileOptions& options,
              int threads) {
  Executor executor({.threads = threads});
  const auto compiled = executor.Compile(program, edges.NewScope(), options);
  if (!compiled.ok()) return {compiled.status(), {}};
  auto out = executor.Run(*compiled, edges.feeds());
  if (!out.ok()) return {out.status(), {}};
  return {Status::Ok(), (*out)[0]};
}

std::string Difference(const Outcome& plain, const Outcome& other, double tolerance) {
  if (plain.status.ok() != other.status.ok())
    return plain.status.ToString() + " / " + other.status.ToString();
  if (!plain.status.ok()) return {};
  const Tensor &a = plain.value, &b = other.value;
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return "another tensor";
  for (int64_t i = 0; i < a.numel(); ++i)
    if (!Same(At(b, i), At(a, i), tolerance))
      return StrCat("element ", i, " is ", At(a, i), " / ", At(b, i));
  return {};
}

TEST(ActivationEdges, FusedFunctionsAreTheOperators) {
  const char* given = std::getenv("HEDDLE_LAW_PROGRAMS");
  const char* seed = std::getenv("HEDDLE_TEST_SEED");
  const int programs = given != nullptr ? std::atoi(given) : 600;
  const auto first = static_cast<uint32_t>(seed != nullptr ? std::atoi(seed) : 1);
  int failed = 0, ran = 0;
  std::map<std::string, int> fused;
  for (int k = 0; k < programs && failed < 20; ++k) {
    const uint32_t s = first * 1000003u + static_cast<uint32_t>(k);
    Edges edges(s);
    const auto program = edges.builder().TryBuild();
    if (!program.ok()) {
      EXPECT_NE(program.status().code(), StatusCode::kInternal) << program.status().ToString();
      continue;
    }
    CompileOptions options{.opt_level = 0};
    options.force = "conv=im2col,gemm=plain";
    const Outcome plain = RunAt(edges, *program, options, 1);
    ran += plain.status.ok();
    options.force = edges.Force();
    for (const auto& [level, threads] :
         {std::pair{0, 2}, std::pair{1, 1}, std::pair{2, 1}, std::pair{2, 2}}) {
      options.opt_level = level;
      const Outcome other = RunAt(edges, *program, options, threads);
      const std::string different = Difference(plain, other, edges.tolerance());
      if (different.empty()) continue;
      ++failed;
      ADD_FAILURE() << "program " << k << " (seed " << s << "), level 0 / " << level << ", "
                    << threads << " threads, " << options.force << ": " << different << "\n"
                    << ir::ToText(program->ir());
      break;
    }
    const auto optimized = passes::Optimize(program->impl(), edges.NewScope(), {2, {}, {}});
    if (!optimized.ok()) continue;
    for (const ir::Op& op : optimized->program->blocks[0].ops) ++fused[op.type()];
  }
  EXPECT_GT(ran, programs * 3 / 4);
  for (const char* type : {"fused_conv2d", "fused_conv2d_transpose", "fused_matmul",
                           "fused_batch_norm", "fused_elementwise"})
    EXPECT_GT(fused[type], programs / 100) << type;
}

}  // namespace
}  // namespace heddle::testing
