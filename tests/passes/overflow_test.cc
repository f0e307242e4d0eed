// The passes do not decide which elements of results are infinite or NaN: on random programs
// whose inputs and vectors of parameters hold NaN and infinities, each element is of one kind with
// and without them. (Sums that overflow depend on their order, and folded factors keep some from
// it.) HEDDLE_LAW_PROGRAMS=<n> checks n programs instead of 600, HEDDLE_TEST_SEED=<n>
// others than usual.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "core/error.h"
#include "passes/ir_text.h"
#include "tests/support/net_program.h"

namespace heddle::testing {
namespace {

// A copy of which some elements are extreme.
Tensor Poisoned(const Tensor& t, std::mt19937& rng) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kExtremes[] = {kInf, -kInf, std::nanf(""), 1e-45f, -0.f};
  Tensor copy = Tensor::Empty(t.dtype(), t.shape());
  std::copy_n(t.data<float>(), t.numel(), copy.mutable_data<float>());
  for (int64_t k = 0; k < 1 + t.numel() / 16; ++k)
    copy.mutable_data<float>()[rng() % static_cast<size_t>(t.numel())] =
        kExtremes[rng() % std::size(kExtremes)];
  return copy;
}

struct Outcome {
  Status status;
  std::vector<Tensor> values;
};

Outcome RunAt(int level, const NetProgram& net, const Program& program, uint32_t seed) {
  std::mt19937 rng(seed);
  std::vector<heddle::Feed> feeds = net.feeds();
  for (heddle::Feed& f : feeds)
    if (const Tensor& t = f.value.tensor(); t.dtype() == DType::kF32 && rng() % 2 == 0)
      f.value = Poisoned(t, rng);
  const auto scope = net.NewScope();
  for (const std::string& name : scope->Names())
    if (const Tensor& t = scope->Find(name)->tensor();
        t.dtype() == DType::kF32 && t.rank() == 1 && t.numel() > 0 && rng() % 4 == 0)
      scope->Set(name, Poisoned(t, rng));
  Executor executor({.threads = 1});
  Outcome o;
  CompileOptions options{.opt_level = level};
  options.force = "conv=winograd:direct:depthwise:im2col";
  auto compiled = executor.Compile(program, scope, options);
  o.status = compiled.status();
  if (!o.status.ok()) return o;
  auto out = executor.Run(*compiled, feeds);
  o.status = out.status();
  if (out.ok()) o.values = *std::move(out);
  return o;
}

std::string KindOf(float x) {
  return std::isnan(x) ? "NaN" : std::isinf(x) ? (x > 0 ? "+inf" : "-inf") : "finite";
}

// Whether some result is infinite or NaN.
bool HasExtremes(const Outcome& o) {
  for (const Tensor& t : o.values)
    if (t.dtype() == DType::kF32)
      for (int64_t k = 0; k < t.numel(); ++k)
        if (!std::isfinite(t.data<float>()[k])) return true;
  return false;
}

std::string Difference(const Outcome& plain, const Outcome& other) {
  if (plain.status.ok() != other.status.ok())
    return plain.status.ToString() + " / " + other.status.ToString();
  for (size_t i = 0; i < plain.values.size(); ++i) {
    const Tensor &a = plain.values[i], &b = other.values[i];
    if (a.dtype() != DType::kF32) continue;
    for (int64_t k = 0; k < a.numel(); ++k)
      if (const std::string x = KindOf(a.data<float>()[k]), y = KindOf(b.data<float>()[k]); x != y)
        return StrCat("element ", k, " of output ", i, " is ", x, " / ", y);
  }
  return {};
}

TEST(Overflow, PassesGiveTheSameInfinitiesAndNaNs) {
  const char* given = std::getenv("HEDDLE_LAW_PROGRAMS");
  const char* seed = std::getenv("HEDDLE_TEST_SEED");
  const int programs = given != nullptr ? std::atoi(given) : 600;
  const auto first = static_cast<uint32_t>(seed != nullptr ? std::atoi(seed) : 1);
  int failed = 0, ran = 0, extreme = 0;
  for (int k = 0; k < programs && failed < 5; ++k) {
    const uint32_t s = first * 1000003u + static_cast<uint32_t>(k);
    const NetProgram net(s, 2 + static_cast<int>(s % 12));
    const Program program = net.Build();
    const Outcome plain = RunAt(0, net, program, s);
    ran += plain.status.ok() ? 1 : 0;
    extreme += HasExtremes(plain) ? 1 : 0;
    for (const int level : {1, 2}) {
      const std::string different = Difference(plain, RunAt(level, net, program, s));
      if (different.empty()) continue;
      ++failed;
      ADD_FAILURE() << "program " << k << " (seed " << s << "), level 0 / " << level << ": "
                    << different << "\n"
                    << ir::ToText(program.ir());
      break;
    }
  }
  if (failed > 0) return;
  EXPECT_GE(ran, programs * 9 / 10);
  EXPECT_GE(extreme, programs / 4);
}

}  // namespace
}  // namespace heddle::testing
