// Programs for tests of gradients: made with the builder, run in float64.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/executor.h"
#include "heddle/program_builder.h"

namespace heddle::gradient {

inline Tensor Doubles(const Shape& shape, const std::vector<double>& values) {
  Tensor made = Tensor::Empty(DType::kF64, shape);
  for (int64_t i = 0; i < made.numel(); ++i)
    made.mutable_data<double>()[i] = values[static_cast<size_t>(i)];
  return made;
}

inline std::vector<double> ValuesOf(const Tensor& tensor) {
  std::vector<double> values;
  for (int64_t i = 0; i < tensor.numel(); ++i)
    values.push_back(tensor.dtype() == DType::kF32 ? static_cast<double>(tensor.data<float>()[i])
                                                   : tensor.data<double>()[i]);
  return values;
}

// A builder whose calls must succeed.
class TestProgram {
 public:
  Variable Feed(const std::string& name, const Shape& shape) {
    return Must(b_.Feed(name, DType::kF64, shape), name);
  }
  Variable Parameter(const std::string& name, Tensor value) {
    return Must(b_.Parameter(name, std::move(value)), name);
  }
  // Applies an operator; its first result is called `name`.
  Variable Apply(const std::string& type, const Operands& inputs, const Attributes& attributes,
                 const std::string& slot, const std::string& name) {
    return Must(b_.Apply(type, inputs, attributes, {{slot, std::vector<std::string>{name}}}), type);
  }
  Model Finish() {
    auto model = std::move(b_).Finish();
    EXPECT_TRUE(model.ok()) << model.status().ToString();
    return model.ok() ? *std::move(model) : Model();
  }
  Shape ShapeOf(Variable v) const {
    const auto info = b_.Info(v);
    EXPECT_TRUE(info.ok()) << info.status().ToString();
    return info.ok() ? info->shape : Shape();
  }

 private:
  static Variable Must(Result<Variable> made, const std::string& what) {
    EXPECT_TRUE(made.ok()) << what << ": " << made.status().ToString();
    return made.ok() ? *made : Variable();
  }

  ProgramBuilder b_;
};

// Runs a program once and returns what was fetched.
inline std::vector<Tensor> RunOnce(const Program& program, const std::shared_ptr<Scope>& scope,
                                   const std::vector<Feed>& feeds,
                                   const std::vector<std::string>& fetches) {
  Executor executor({.threads = 1});
  CompileOptions options;
  options.fetches = fetches;
  const auto compiled = executor.Compile(program, scope, options);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  if (!compiled.ok()) return {};
  auto values = executor.RunValues(*compiled, feeds);
  EXPECT_TRUE(values.ok()) << values.status().ToString();
  std::vector<Tensor> tensors;
  if (values.ok())
    for (Value& value : *values) tensors.push_back(value.tensor());
  return tensors;
}

}  // namespace heddle::gradient
