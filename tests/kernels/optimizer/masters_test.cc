// Every optimizer that has master copies: one that the update does not use stays as it is, in place
// and in an output of its own, as with Paddle on a CPU.
#include <gtest/gtest.h>

#include <set>

#include "core/op_registry.h"
#include "tests/support/program_builder.h"

namespace heddle {
namespace {

using testing::Attrs;
using testing::F32;
using testing::Floats;
using testing::ProgramBuilder;
using testing::Slots;

const std::set<std::string> kScalars = {"LearningRate", "Beta1Pow", "Beta2Pow"};

// The optimizer with operands for everything that it must have, and with MasterParam.
struct Update {
  ProgramBuilder builder;
  std::shared_ptr<Scope> scope = std::make_shared<Scope>();

  void Set(const std::string& name, const Tensor& value) {
    builder.Param(name, value.dtype(), value.shape());
    scope->Set(name, value);
  }

  Update(const OpDef& def, bool in_place, bool multi_precision) {
    Slots ins, outs;
    for (const SlotDef& in : def.inputs()) {
      if ((in.flags & kOptional) != 0 && in.name != "MasterParam" && in.name != "MeanGrad")
        continue;
      if (in.name == "Index")
        Set(in.name, testing::I64({2}, {0, 1}));
      else if (kScalars.contains(in.name))
        Set(in.name, F32({1}, {0.5f}));
      else if (in.name == "MasterParam")
        Set(in.name, F32({2, 2}, {7, 8, 9, 10}));
      else
        Set(in.name, F32({2, 2}, {0.5f, 0.25f, 0.75f, 1}));
      ins.push_back({in.name, {in.name}});
    }
    for (const SlotDef& out : def.outputs()) {
      const std::string name = out.name.substr(0, out.name.size() - 3);  // ParamOut: Param
      if (scope->Find(name) == nullptr) continue;
      std::string to = name;
      if (name == "MasterParam" && !in_place) Set(to = "apart", F32({2, 2}, {1, 2, 3, 4}));
      outs.push_back({out.name, {to}});
    }
    Attrs attrs;
    if (def.FindAttr("multi_precision") >= 0) attrs.push_back({"multi_precision", multi_precision});
    if (def.FindAttr("mu") >= 0) attrs.push_back({"mu", 0.9});
    if (def.FindAttr("lars_weight_decay") >= 0)
      attrs.push_back({"lars_weight_decay", ::heddle::Floats{0.1}});
    builder.Op(def.name(), ins, outs, attrs);
  }
  std::vector<float> ValueOf(const std::string& name) const {
    return Floats(scope->Find(name)->tensor());
  }
};

std::vector<const OpDef*> Optimizers() {
  std::vector<const OpDef*> found;
  for (const OpDef* def : AllOps())
    if (def->FindInput("MasterParam") >= 0 && def->FindOutput("MasterParamOut") >= 0)
      found.push_back(def);
  return found;
}

TEST(MastersTest, ThoseThatAreNotUsedStay) {
  const std::vector<float> held = {7, 8, 9, 10};
  Executor executor;
  ASSERT_GE(Optimizers().size(), 12u);
  for (const OpDef* def : Optimizers()) {
    for (const bool in_place : {true, false}) {
      for (const int level : {0, 2}) {
        Update update(*def, in_place, false);
        CompileOptions options;
        options.opt_level = level;
        const CompiledProgram compiled =
            testing::MustCompile(executor, update.builder.Build(), update.scope, options);
        for (int run = 0; run < 2; ++run) testing::MustRun(executor, compiled, {});
        EXPECT_EQ(update.ValueOf("MasterParam"), held) << def->name();
        if (!in_place) {
          EXPECT_EQ(update.ValueOf("apart"), held) << def->name();
        }
        EXPECT_NE(update.ValueOf("Param"), (std::vector<float>{0.5f, 0.25f, 0.75f, 1}))
            << def->name() << " has updated nothing";
      }
    }
  }
}

// With multi_precision, two of them step the master copy even where the parameter is as precise.
TEST(MastersTest, ThoseThatAreUsedTakeTheStep) {
  Executor executor;
  for (const char* name : {"merged_momentum", "adadelta"}) {
    Update update(*FindOp(name), true, true);
    const CompiledProgram compiled =
        testing::MustCompile(executor, update.builder.Build(), update.scope);
    testing::MustRun(executor, compiled, {});
    const std::vector<float> master = update.ValueOf("MasterParam");
    EXPECT_LT(master[0], 7);
    EXPECT_GT(master[0], 6);
    if (std::string(name) == "merged_momentum") {
      EXPECT_EQ(update.ValueOf("Param"), master);
    } else {
      EXPECT_LT(update.ValueOf("Param")[0], 0.5f);
    }
  }
}

// As in Paddle, of whose numbers nobody could say what they are.
TEST(MastersTest, ThoseOfAnotherTypeAreRefused) {
  Executor executor;
  for (const Tensor& master : {Tensor::Zeros(DType::kF64, {2, 2}), F32({3}, {7, 8, 9})}) {
    Update update(*FindOp("merged_momentum"), true, true);
    update.scope->Set("MasterParam", master);
    auto compiled = executor.Compile(update.builder.Build(), update.scope);
    Status status = compiled.status();
    if (compiled.ok()) status = executor.Run(*compiled, {}).status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    EXPECT_NE(status.message().find("MasterParam"), std::string::npos) << status.ToString();
  }
}

}  // namespace
}  // namespace heddle
