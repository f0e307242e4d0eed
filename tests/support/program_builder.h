// Makes the bytes of Paddle programs in a test.
//
//   ProgramBuilder b;
//   b.Feed("x", DType::kF32, {-1, 4});
//   b.Op("relu", {{"X", {"x"}}}, {{"Out", {"y"}}});
//   b.Fetch("y");
//   Program program = b.Build();
//
// Operators go to the current block, 0 at first. Outputs that no block declares are declared where
// the operator stands, with nothing known about them.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/attr.h"
#include "heddle/heddle.h"
#include "proto/framework.pb.h"

namespace heddle::testing {

inline std::string ScheduleName(Schedule schedule) {
  constexpr const char* kNames[] = {"Auto", "Serial", "Parallel", "Lanes"};
  return kNames[static_cast<int>(schedule)];
}

using Slots = std::vector<std::pair<std::string, std::vector<std::string>>>;
using Attrs = std::vector<std::pair<std::string, AttrValue>>;

class ProgramBuilder {
 public:
  ProgramBuilder();

  // A new block; does not become the current one.
  int Block(int parent);
  ProgramBuilder& In(int block);
  int current() const { return block_; }

  ProgramBuilder& Var(const std::string& name, DType dtype, const Shape& shape);
  ProgramBuilder& Param(const std::string& name, DType dtype, const Shape& shape);
  ProgramBuilder& Array(const std::string& name);
  ProgramBuilder& Feed(const std::string& name, DType dtype, const Shape& shape);
  ProgramBuilder& Fetch(const std::string& name);
  ProgramBuilder& Op(const std::string& type, const Slots& inputs, const Slots& outputs,
                     const Attrs& attrs = {});

  // Short forms of what most tests need.
  ProgramBuilder& Unary(const std::string& type, const std::string& x, const std::string& out);
  ProgramBuilder& Binary(const std::string& type, const std::string& x, const std::string& y,
                         const std::string& out);
  ProgramBuilder& Scale(const std::string& x, const std::string& out, double scale,
                        double bias = 0);
  ProgramBuilder& Reshape(const std::string& x, const std::string& out, Ints shape);
  ProgramBuilder& Fill(const std::string& out, Ints shape, double value, DType dtype = DType::kF32);
  ProgramBuilder& Increment(const std::string& x, double step = 1);  // in place

  std::string Bytes() const { return desc_.SerializeAsString(); }
  Result<Program> TryBuild() const { return Program::Parse(Bytes(), "test"); }
  // Aborts, with the message, when heddle refuses the program.
  Program Build() const;
  proto::ProgramDesc& desc() { return desc_; }
  const proto::ProgramDesc& desc() const { return desc_; }

 private:
  proto::VarDesc* Declare(const std::string& name, proto::VarType::Type type);
  bool Declared(const std::string& name) const;

  proto::ProgramDesc desc_;
  int block_ = 0;
  int feeds_ = 0, fetches_ = 0;
};

// Values.
Tensor F32(const Shape& shape, const std::vector<float>& values);
// Values between -bound and bound.
Tensor RandomF32(const Shape& shape, uint32_t seed, float bound = 1);
Tensor I64(const Shape& shape, const std::vector<int64_t>& values);
Tensor Bool(bool value);
std::vector<float> Floats(const Tensor& t);
// The bytes of a tensor's elements.
std::string Bits(const Tensor& t);
// Equal dtype, shape, LoD and bits, for tensors and arrays of tensors.
bool SameBits(const Value& a, const Value& b);

// Runs and aborts, with the message, when that fails.
std::vector<Tensor> MustRun(Executor& executor, const CompiledProgram& compiled,
                            const std::vector<heddle::Feed>& feeds);
CompiledProgram MustCompile(Executor& executor, const Program& program,
                            std::shared_ptr<Scope> scope = nullptr,
                            const CompileOptions& options = {});

}  // namespace heddle::testing
