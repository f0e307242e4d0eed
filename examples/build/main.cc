// Makes a program by hand and runs it: a small classifier, and a loop around it.
#include <heddle/heddle.h>

#include <iostream>
#include <string>
#include <vector>

using heddle::DType;
using heddle::Variable;

// y = softmax(x · w), `rounds` times, each round with the result of the one before.
heddle::Result<heddle::Model> Make(const heddle::Tensor& weights, int64_t rounds) {
  heddle::ProgramBuilder b("rounds");
  HEDDLE_ASSIGN_OR_RETURN(const Variable x, b.Feed("x", DType::kF32, {-1, 3}));
  HEDDLE_ASSIGN_OR_RETURN(const Variable w, b.Parameter("w", weights));
  HEDDLE_ASSIGN_OR_RETURN(
      const Variable n, b.Parameter("n", heddle::Tensor::Of<int64_t>(DType::kI64, {1}, {rounds})));
  HEDDLE_ASSIGN_OR_RETURN(
      const Variable round,
      b.Apply("fill_constant", {},
              {{"shape", std::vector<int64_t>{1}}, {"dtype", DType::kI64}, {"value", 0.0}}));
  HEDDLE_ASSIGN_OR_RETURN(const Variable y, b.Apply("assign", {{"X", {x}}}));
  HEDDLE_ASSIGN_OR_RETURN(const Variable more, b.Apply("less_than", {{"X", {round}}, {"Y", {n}}}));

  HEDDLE_RETURN_IF_ERROR(b.BeginWhile(more));
  HEDDLE_ASSIGN_OR_RETURN(const Variable scores, b.Apply("matmul_v2", {{"X", {y}}, {"Y", {w}}}));
  HEDDLE_ASSIGN_OR_RETURN(const Variable next, b.Apply("softmax", {{"X", {scores}}}));
  HEDDLE_RETURN_IF_ERROR(b.Assign(next, y));
  HEDDLE_ASSIGN_OR_RETURN(const Variable after,
                          b.Apply("scale", {{"X", {round}}}, {{"bias", 1.0}}));
  HEDDLE_RETURN_IF_ERROR(b.Assign(after, round));
  HEDDLE_ASSIGN_OR_RETURN(const Variable again, b.Apply("less_than", {{"X", {after}}, {"Y", {n}}}));
  HEDDLE_RETURN_IF_ERROR(b.Assign(again, more));
  HEDDLE_RETURN_IF_ERROR(b.EndBlock());

  HEDDLE_RETURN_IF_ERROR(b.Fetch(y));
  return std::move(b).Finish();
}

int Fail(const std::string& what) {
  std::cerr << what << "\n";
  return 1;
}

int main() {
  // Weights that turn three classes round.
  const auto weights = heddle::Tensor::Of<float>(DType::kF32, {3, 3}, {0, 9, 0, 0, 0, 9, 9, 0, 0});
  const auto model = Make(weights, 4);
  if (!model.ok()) return Fail(model.status().ToString());
  heddle::Executor executor({.threads = 1});
  const auto compiled = executor.Compile(*model);
  if (!compiled.ok()) return Fail(compiled.status().ToString());
  const auto x = heddle::Tensor::Of<float>(DType::kF32, {1, 3}, {1, 0, 0});
  const auto outputs = executor.Run(*compiled, {{"x", x}});
  if (!outputs.ok()) return Fail(outputs.status().ToString());
  const float* p = (*outputs)[0].data<float>();
  std::cout << "after 4 rounds: " << p[0] << " " << p[1] << " " << p[2] << "\n";

  // A mistake is said where it is made.
  const auto wrong = Make(heddle::Tensor::Zeros(DType::kF32, {5, 3}), 1);
  std::cout << wrong.status().ToString() << "\n";
  return p[1] > 0.9f && !wrong.ok() ? 0 : 1;
}
