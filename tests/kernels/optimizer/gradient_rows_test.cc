// Every optimizer that takes the rows of a sparse gradient as two tensors (GradRows): it makes the
// bits that it makes of the same rows as one value. The pass gradient_rows relies on that.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "core/op_registry.h"
#include "tests/support/program_builder.h"

namespace heddle {
namespace {

using testing::F32;
using testing::I64;
using testing::ProgramBuilder;
using testing::Slots;

const std::set<std::string> kScalars = {"LearningRate", "Beta1Pow", "Beta2Pow"};

struct Drawn {
  int64_t height, width;
  std::vector<int64_t> rows;
  std::vector<float> grad;
};

Drawn Draw(uint32_t seed) {
  std::mt19937 random(seed);
  Drawn d{1 + static_cast<int64_t>(random() % 5), 1 + static_cast<int64_t>(random() % 9), {}, {}};
  const auto count = 1 + random() % 6;
  for (size_t k = 0; k < count; ++k)
    d.rows.push_back(static_cast<int64_t>(random() % static_cast<uint32_t>(d.height)));
  for (size_t k = 0; k < count * static_cast<size_t>(d.width); ++k)
    d.grad.push_back(static_cast<float>(static_cast<int>(random() % 17) - 8) / 8);
  return d;
}

// The states after one step, by name.
std::map<std::string, std::vector<float>> After(const OpDef& def, const Drawn& d, bool as_tensors,
                                                uint32_t seed) {
  std::mt19937 random(seed);
  ProgramBuilder b;
  const auto scope = std::make_shared<Scope>();
  const auto set = [&](const std::string& name, const Shape& shape) {
    std::vector<float> values(static_cast<size_t>(shape.numel()));
    for (float& v : values) v = static_cast<float>(1 + random() % 16) / 16;
    b.Param(name, DType::kF32, shape);
    scope->Set(name, F32(shape, values));
  };
  const auto n = static_cast<int64_t>(d.rows.size());
  b.Feed("ids", DType::kI64, {n}).Feed("dout", DType::kF32, {n, d.width});
  Slots ins, outs;
  for (const SlotDef& in : def.inputs()) {
    if (in.name == "Grad" || in.name == "GradRows") continue;
    if ((in.flags & kOptional) != 0 && in.name != "MeanGrad") continue;
    set(in.name, kScalars.contains(in.name) ? Shape{1} : Shape{d.height, d.width});
    ins.push_back({in.name, {in.name}});
  }
  if (as_tensors) {
    ins.push_back({"Grad", {"dout"}});
    ins.push_back({"GradRows", {"ids"}});
  } else {
    b.Op("lookup_table_v2_grad", {{"W", {"Param"}}, {"Ids", {"ids"}}, {"Out@GRAD", {"dout"}}},
         {{"W@GRAD", {"rows"}}}, {{"is_sparse", true}});
    ins.push_back({"Grad", {"rows"}});
  }
  std::vector<std::string> states;
  for (const OpDef::SlotPair& pair : def.inplace()) {
    const std::string& name = def.inputs()[static_cast<size_t>(pair.in)].name;
    if (scope->Find(name) == nullptr) continue;
    outs.push_back({def.outputs()[static_cast<size_t>(pair.out)].name, {name}});
    states.push_back(name);
  }
  testing::Attrs attrs;
  if (def.FindAttr("mu") >= 0) attrs.push_back({"mu", 0.75});
  b.Op(def.name(), ins, outs, attrs);
  Executor executor({.threads = 1});
  const auto compiled = testing::MustCompile(executor, b.Build(), scope, {.opt_level = 0});
  testing::MustRun(executor, compiled,
                   {{"ids", I64({n}, d.rows)}, {"dout", F32({n, d.width}, d.grad)}});
  std::map<std::string, std::vector<float>> after;
  for (const std::string& name : states) after[name] = testing::Floats(scope->Find(name)->tensor());
  return after;
}

TEST(GradientsAsRows, AreOneMeaningInTwoForms) {
  int optimizers = 0;
  for (const OpDef* def : AllOps()) {
    if (def->FindInput("GradRows") < 0) continue;
    SCOPED_TRACE(def->name());
    ++optimizers;
    for (uint32_t seed = 0; seed < 40; ++seed) {
      SCOPED_TRACE(seed);
      const Drawn d = Draw(seed);
      const auto one = After(*def, d, false, seed), two = After(*def, d, true, seed);
      ASSERT_TRUE(one.contains("Param"));
      for (const auto& [name, values] : one) {
        ASSERT_EQ(values.size(), two.at(name).size());
        EXPECT_EQ(std::memcmp(values.data(), two.at(name).data(), 4 * values.size()), 0) << name;
      }
    }
  }
  EXPECT_GE(optimizers, 9);
}

}  // namespace
}  // namespace heddle
