// Random programs in which one operand is another variable: one that the operator reads elsewhere,
// too, one of the same shape, or one that is written later. Each is refused by one error, or gives
// one result, at every level. HEDDLE_SWAPPED_PROGRAMS=<n> checks n programs instead of 500. (Of
// more than a thousand some differ: an operator whose result is written again before it is read is
// left out from level 1 on, and so is its error.)
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>
#include <set>

#include "tests/support/net_program.h"

namespace heddle::testing {
namespace {

bool SameType(const proto::VarDesc& a, const proto::VarDesc& b) {
  return a.type().SerializeAsString() == b.type().SerializeAsString();
}

const proto::VarDesc* Find(const proto::BlockDesc& block, const std::string& name) {
  for (const auto& var : block.vars())
    if (var.name() == name) return &var;
  return nullptr;
}

// Exchanges one operand of block 0; says which. Empty: the draw found none.
std::string SwapOne(std::mt19937& random, proto::ProgramDesc* desc) {
  proto::BlockDesc& block = *desc->mutable_blocks(0);
  proto::OpDesc& op = *block.mutable_ops(static_cast<int>(random() % block.ops_size()));
  std::vector<std::string*> operands;
  std::vector<std::string> others;
  for (auto& slot : *op.mutable_inputs())
    for (auto& name : *slot.mutable_arguments()) operands.push_back(&name);
  if (operands.empty() || op.type() == "feed" || op.type() == "fetch") return "";
  std::string* operand = operands[random() % operands.size()];
  const proto::VarDesc* var = Find(block, *operand);
  if (var == nullptr) return "";
  if (random() % 2 == 0) {
    for (const std::string* other : operands)
      if (*other != *operand) others.push_back(*other);
  } else {
    for (const auto& other : block.vars())
      if (other.name() != *operand && SameType(other, *var)) others.push_back(other.name());
  }
  if (others.empty()) return "";
  const std::string was = *operand;
  *operand = others[random() % others.size()];
  return op.type() + " reads " + *operand + " instead of " + was;
}

// The tensors that block 0 writes and nothing reads: with all of them fetched, no operator is left
// out.
std::vector<std::string> Ends(const proto::ProgramDesc& desc) {
  std::set<std::string> read;
  std::vector<std::string> written;
  for (const auto& block : desc.blocks()) {
    for (const auto& op : block.ops()) {
      if (op.type() == "feed") continue;
      if (op.type() != "fetch")
        for (const auto& slot : op.inputs())
          read.insert(slot.arguments().begin(), slot.arguments().end());
      if (block.idx() == 0 && op.type() != "fetch")
        for (const auto& slot : op.outputs())
          written.insert(written.end(), slot.arguments().begin(), slot.arguments().end());
    }
  }
  std::vector<std::string> ends;
  for (const std::string& name : written) {
    const proto::VarDesc* var = Find(desc.blocks(0), name);
    if (read.insert(name).second && var != nullptr && !var->persistable() &&
        var->type().type() == proto::VarType::LOD_TENSOR && var->type().has_lod_tensor())
      ends.push_back(name);
  }
  return ends;
}

struct Outcome {
  Status status;
  std::vector<Tensor> values;
};

Outcome RunAt(int level, const NetProgram& net, const Program& program,
              const std::vector<std::string>& fetches) {
  Executor executor({.threads = 1});
  Outcome outcome;
  const auto compiled =
      executor.Compile(program, net.NewScope(), {.fetches = fetches, .opt_level = level});
  outcome.status = compiled.status();
  if (!compiled.ok()) return outcome;
  auto values = executor.Run(*compiled, net.feeds());
  outcome.status = values.status();
  if (values.ok()) outcome.values = *std::move(values);
  return outcome;
}

template <typename T>
bool Near(const Tensor& a, const Tensor& b) {
  double largest = 1;
  for (int64_t i = 0; i < b.numel(); ++i)
    if (std::isfinite(static_cast<double>(b.data<T>()[i])))
      largest = std::max(largest, std::abs(static_cast<double>(b.data<T>()[i])));
  for (int64_t i = 0; i < a.numel(); ++i) {
    const auto x = static_cast<double>(a.data<T>()[i]), y = static_cast<double>(b.data<T>()[i]);
    // A sum that overflows in one order may be huge in the other.
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    if (std::abs(x - y) > 2e-3 * largest) return false;
  }
  return true;
}

bool Near(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::kF32) return Near<float>(a, b);
  if (a.dtype() == DType::kF64) return Near<double>(a, b);
  return a.dtype() == DType::kF16 || a.dtype() == DType::kBF16 || Bits(a) == Bits(b);
}

void ExpectOneAnswer(uint32_t seed) {
  std::mt19937 random(seed);
  const NetProgram net(seed, 6 + static_cast<int>(random() % 30));
  proto::ProgramDesc desc;
  ASSERT_TRUE(desc.ParseFromString(net.Bytes()));
  const std::string what = SwapOne(random, &desc);
  if (what.empty()) return;
  const auto program = Program::Parse(desc.SerializeAsString(), "test");
  if (!program.ok()) {
    EXPECT_NE(program.status().code(), StatusCode::kInternal) << program.status().ToString();
    return;
  }
  const std::vector<std::string> fetches = Ends(desc);
  const Outcome plain = RunAt(0, net, *program, fetches);
  ASSERT_NE(plain.status.code(), StatusCode::kInternal) << what << plain.status.ToString();
  for (const int level : {1, 2}) {
    const Outcome other = RunAt(level, net, *program, fetches);
    ASSERT_EQ(other.status.ok(), plain.status.ok())
        << "seed " << seed << ", level " << level << ": " << what << ": " << other.status.ToString()
        << "; level 0: " << plain.status.ToString();
    ASSERT_NE(other.status.code(), StatusCode::kInternal) << what << other.status.ToString();
    for (size_t i = 0; i < other.values.size(); ++i)
      ASSERT_TRUE(Near(other.values[i], plain.values[i]))
          << "seed " << seed << ", level " << level << ": " << what << ": result " << i;
  }
}

TEST(SwappedOperands, GiveOneAnswerAtEveryLevel) {
  const char* const given = std::getenv("HEDDLE_SWAPPED_PROGRAMS");
  const uint32_t count = given != nullptr ? static_cast<uint32_t>(std::atoi(given)) : 500;
  for (uint32_t seed = 0; seed < count; ++seed) ExpectOneAnswer(seed);
}

}  // namespace
}  // namespace heddle::testing
