// Runs small ONNX models in tests.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/model_files.h"
#include "tests/formats/onnx/onnx_bytes.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {

inline std::vector<Value> RunValuesOf(const Model& model, const std::vector<Feed>& feeds) {
  Executor executor({.threads = 1});
  CompileOptions options;
  for (const TensorInfo& output : model.program.outputs()) options.fetches.push_back(output.name);
  const auto compiled = MustCompile(executor, model.program, model.scope, options);
  auto made = executor.RunValues(compiled, feeds);
  EXPECT_TRUE(made.ok()) << made.status().ToString();
  return made.ok() ? *std::move(made) : std::vector<Value>(options.fetches.size());
}

inline Model ModelOf(const std::string& bytes) {
  auto model = ParseModel(bytes, "", "test.onnx");
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? *std::move(model) : Model{Program(), std::make_shared<Scope>()};
}

}  // namespace heddle::testing
