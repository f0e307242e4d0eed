// Every example of every operator: what is written of it as ONNX gives the same numbers.
#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <map>

#include "core/op_registry.h"
#include "core/op_traits.h"
#include "core/programs/ir.h"
#include "tests/offload/onnx_round_trip.h"
#include "tests/ops/example_files.h"
#include "tests/ops/example_program.h"

namespace heddle::testing {
namespace {

template <typename T>
bool HasNan(const Tensor& t) {
  for (int64_t i = 0; i < t.numel(); ++i)
    if (std::isnan(t.data<T>()[i])) return true;
  return false;
}

// ONNX does not say what becomes of NaN.
bool IsForOnnx(const Example& example) {
  if (example.is_program() || example.random) return false;
  for (const ExampleInput& in : example.inputs) {
    if (!in.value.is_tensor() || !in.value.initialized()) return false;
    const Tensor& t = in.value.tensor();
    if ((t.dtype() == DType::kF32 && HasNan<float>(t)) ||
        (t.dtype() == DType::kF64 && HasNan<double>(t)))
      return false;
  }
  const OpDef* def = FindOp(example.op);
  return def != nullptr && (def->traits() & (kRandom | kSideEffect | kControlFlow)) == 0;
}

// What else may be true of an operand.
enum class Variant { kFed, kConstants, kOpen, kHalfOpen };
constexpr std::pair<Variant, const char*> kVariants[] = {
    {Variant::kFed, "fed"},
    {Variant::kConstants, "constants"},
    {Variant::kOpen, "open dimensions"},
    {Variant::kHalfOpen, "some open dimensions"}};

// With ports, as groups have them.
Program WithPorts(const ExampleProgram& built) {
  auto program = std::make_shared<ir::Program>(built.program.ir());
  program->feeds.clear();
  program->fetches.clear();
  for (const heddle::Feed& feed : built.feeds)
    program->feeds.push_back(
        {program->Find(0, feed.name), static_cast<int>(program->feeds.size())});
  for (const std::string& name : built.fetches)
    program->fetches.push_back({program->Find(0, name), static_cast<int>(program->fetches.size())});
  return Program(std::move(program));
}

class Examples {
 public:
  void Try(Example example, Variant variant, const char* name) {
    if (variant != Variant::kFed) {
      bool first = true;
      for (ExampleInput& in : example.inputs) in.param = !std::exchange(first, false);
    }
    const auto built = BuildProgram(example, Operands::kFed);
    if (!built.ok()) return;
    const bool open = variant == Variant::kOpen || variant == Variant::kHalfOpen;
    const Program whole = WithPorts(*built);
    const Program program = open ? Opened(whole, variant == Variant::kOpen) : whole;
    const RoundTrip trip = TryRoundTrip(executor_, program, built->NewScope(), built->feeds);
    if (!trip.ran) return;
    if (!trip.refused.empty()) {
      ++refused_[trip.refused.substr(0, 90)];
      return;
    }
    ++written_[example.op];
    EXPECT_EQ(trip.wrong, "") << NameOf(example) << ", " << name << " (" << example.file << ":"
                              << example.line << ")";
  }

  void Tell() const {
    int all = 0;
    for (const auto& [op, count] : written_) all += count;
    std::cout << all << " models of " << written_.size() << " operators\n";
    std::map<int, std::string> most;
    for (const auto& [why, count] : refused_) most[-count] = why;
    int told = 0;
    for (const auto& [count, why] : most)
      if (++told < 12) std::cout << -count << " are not written: " << why << "\n";
    EXPECT_GT(all, 1500);
    EXPECT_GT(written_.size(), 150u);
  }

 private:
  Executor executor_{{.threads = 1, .poison = true}};
  std::map<std::string, int> written_, refused_;
};

TEST(OnnxExamples, GiveTheSameNumbers) {
  Examples examples;
  for (const auto& [name, file] : ReadExampleFiles())
    for (const Example& example : file.examples)
      if (IsForOnnx(example))
        for (const auto& [variant, said] : kVariants) examples.Try(example, variant, said);
  examples.Tell();
}

}  // namespace
}  // namespace heddle::testing
