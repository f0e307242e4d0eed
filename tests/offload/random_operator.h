// Random programs of one operator, over what ONNX has words for: ranks, element types, attributes,
// negative axes, broadcasts, dimensions of 0, operands that are fed or constant. Many are wrong,
// and heddle refuses to run them.
#pragma once

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {

class RandomOperator {
 public:
  explicit RandomOperator(uint32_t seed);

  const std::string& type() const { return type_; }
  Result<Program> Build() const { return builder_.TryBuild(); }
  const std::vector<heddle::Feed>& feeds() const { return feeds_; }
  std::shared_ptr<Scope> NewScope() const;
  // No operand that is fed is empty. Runs with others do not come to engines.
  bool HasElements() const;

 private:
  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  bool OneIn(int n) { return Pick(n) == 0; }
  template <typename T>
  const T& AnyOf(const std::vector<T>& list) {
    return list[static_cast<size_t>(Pick(static_cast<int>(list.size())))];
  }
  Shape AnyShape(int least, int most);
  DType FloatType() { return OneIn(4) ? DType::kF64 : DType::kF32; }
  DType AnyType();
  // An axis of `rank`, counted from either end.
  int64_t Axis(int rank);
  Ints Axes(int rank);
  Tensor Numbers(DType dtype, const Shape& shape, double low, double high);
  // An operand with these numbers; in one of `of` cases (0: never) a constant.
  std::string Operand(Tensor value, int of = 4);
  std::string Any(DType dtype, const Shape& shape, double low = -2, double high = 2) {
    return Operand(Numbers(dtype, shape, low, high));
  }
  void Add(const std::string& type, const Slots& inputs, const std::vector<std::string>& outputs,
           const Attrs& attrs = {}, int count = 1);

  void OfOneElement();
  void Broadcasting();
  void Reducing();
  void Shaping();
  void Cutting();
  void Joining();
  void Picking();
  void Filling();
  void Convolving();
  void Pooling();
  void Normalising();
  void Multiplying();
  void Resizing();

  std::mt19937 rng_;
  ProgramBuilder builder_;
  std::string type_;
  std::vector<heddle::Feed> feeds_, constants_;
  int names_ = 0;
};

}  // namespace heddle::testing
