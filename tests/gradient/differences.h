// Runs programs with gradients, and compares the gradients with central differences.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "gradient/gradient.h"
#include "heddle/executor.h"
#include "heddle/program_builder.h"

namespace heddle::gradient {

using Feeds = std::map<std::string, Tensor>;

// The fetched tensors; empty after a failure, which is reported.
inline std::vector<Tensor> RunProgram(const Program& program, const std::shared_ptr<Scope>& scope,
                                      const Feeds& feeds, const std::vector<std::string>& fetches) {
  Executor executor;
  CompileOptions options;
  options.fetches = fetches;
  const auto compiled = executor.Compile(program, std::make_shared<Scope>(scope), options);
  EXPECT_TRUE(compiled.ok()) << compiled.status().ToString();
  if (!compiled.ok()) return {};
  std::vector<Feed> given;
  for (const auto& [name, tensor] : feeds) given.push_back({name, tensor});
  const auto values = executor.Run(*compiled, given);
  EXPECT_TRUE(values.ok()) << values.status().ToString();
  if (!values.ok()) return {};
  return *values;
}

inline double ElementOf(const Tensor& tensor, int64_t i) {
  return static_cast<const double*>(tensor.raw())[i];
}
inline double SumOf(const Tensor& tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.numel(); ++i) sum += ElementOf(tensor, i);
  return sum;
}

inline Tensor Doubles(const Shape& shape, const std::vector<double>& values) {
  return Tensor::Of<double>(DType::kF64, shape, values);
}

// Every element of the gradients of `wrt`, which are fed, against (f(x+h) - f(x-h)) / 2h.
inline void ExpectDifferences(const Program& program, const std::shared_ptr<Scope>& scope,
                              const Feeds& feeds, const std::string& loss,
                              const std::vector<std::string>& wrt, double tolerance = 1e-5) {
  GradientRequest request;
  request.losses = {loss};
  request.wrt = wrt;
  const auto made = AppendBackward(program, request);
  ASSERT_TRUE(made.ok()) << made.status().ToString();
  std::vector<std::string> fetches{loss};
  for (const GradientName& name : made->gradients) fetches.push_back(name.gradient);
  const std::vector<Tensor> got = RunProgram(made->program, scope, feeds, fetches);
  ASSERT_EQ(got.size(), fetches.size());
  for (size_t k = 0; k < made->gradients.size(); ++k) {
    const std::string& name = made->gradients[k].variable;
    const Tensor& gradient = got[k + 1];
    ASSERT_EQ(gradient.shape(), feeds.at(name).shape()) << name;
    double largest = 1;
    for (int64_t i = 0; i < gradient.numel(); ++i)
      largest = std::max(largest, std::abs(ElementOf(gradient, i)));
    for (int64_t i = 0; i < gradient.numel(); ++i) {
      const double x = ElementOf(feeds.at(name), i);
      const double h = 1e-5 * std::max(1.0, std::abs(x));
      double sums[2];
      for (const int side : {0, 1}) {
        Feeds moved = feeds;
        Tensor copy = Tensor::Zeros(DType::kF64, feeds.at(name).shape());
        std::copy_n(static_cast<const double*>(feeds.at(name).raw()), copy.numel(),
                    copy.mutable_data<double>());
        copy.mutable_data<double>()[i] = side == 0 ? x - h : x + h;
        moved[name] = copy;
        const std::vector<Tensor> at = RunProgram(program, scope, moved, {loss});
        ASSERT_EQ(at.size(), 1u);
        sums[side] = SumOf(at[0]);
      }
      const double difference = (sums[1] - sums[0]) / (2 * h);
      EXPECT_NEAR(ElementOf(gradient, i), difference, tolerance * largest)
          << name << " element " << i;
    }
  }
}

}  // namespace heddle::gradient
