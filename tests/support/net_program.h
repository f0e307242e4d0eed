// Random programs of the kind that networks are: products, convolutions, norms, element-wise
// operators, reductions and layout changes in several shapes and dtypes, on variables that are
// written again and in place, with sub-blocks, parameters that the program updates, and results
// taken from the middle. Values stay small, so that rounding does.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {

class NetProgram {
 public:
  NetProgram(uint32_t seed, int ops);
  // Adds operators whose results' shapes nobody knows before a run.
  void FollowValues();

  Program Build() const { return builder_.Build(); }
  std::string Bytes() const { return builder_.Bytes(); }
  const std::vector<heddle::Feed>& feeds() const { return feeds_; }
  // Parameters as they are at first, in memory of their own.
  std::shared_ptr<Scope> NewScope() const;
  // Those that the program writes.
  const std::vector<std::string>& updated() const { return updated_; }

 private:
  struct Var {
    std::string name;
    Shape shape;
    DType dtype;
    double bound;  // no element is larger
    bool writable;
  };

  int Pick(int n) { return static_cast<int>(rng_() % static_cast<unsigned>(n)); }
  bool OneIn(int n) { return Pick(n) == 0; }
  Tensor RandomTensor(DType dtype, const Shape& shape, double bound);
  std::string Feed(DType dtype, const Shape& shape, double bound);
  std::string Param(const Shape& shape, double bound, bool positive = false);
  // A variable that exists, with this property; nullptr when there is none. By value: the list
  // grows.
  template <typename Test>
  bool Choose(Test&& test, Var* found);
  // The variable that an operator writes: a new one, or one of this shape that exists.
  std::string Out(const Shape& shape, DType dtype, double bound);
  std::string NewVar(const Shape& shape, DType dtype, double bound, bool writable = true);

  void Step();
  void Unary(const Var& x);
  void Binary(const Var& x);
  void Product(const Var& x);
  void Attention(const Var& x);
  void ConvolutionChain();
  void Quantized();
  void JoinedProduct();
  void Convolution(const Var& x);
  void Norm(const Var& x);
  void Reduce(const Var& x);
  void Layout(const Var& x);
  void Shuffle(const Var& x);
  void Nothing(const Var& x);
  void Parameters();
  void Again();
  void Update();
  void SubBlock();
  void Cast(const Var& x);
  void Arrays(const Var& x);
  void Projections();
  void ProductsOfOne();
  void SummedGradients();
  void SparseUpdate(const std::string& param);
  void ReshapedElements();
  void Calls();
  void CarriedTransposed(size_t outside);
  void Recurrence();
  void Selected();
  void Places();
  void Sequences();
  void ReadItem();
  void ReshapedAsFed(const Shape& from, const Shape& to);
  void Follow(std::string x, Shape shape, double bound);
  void Op(const std::string& type, const Slots& in, const Slots& out, const Attrs& attrs = {});
  void Activation(const std::string& x, const Shape& shape);

  std::mt19937 rng_;
  ProgramBuilder builder_;
  std::vector<Var> vars_;
  std::vector<heddle::Feed> feeds_;
  std::vector<std::pair<std::string, Tensor>> params_;
  std::vector<std::string> updated_;
  struct Emitted {
    std::string type;
    Slots in, out;
    Attrs attrs;
  };
  std::vector<Emitted> emitted_;  // in block 0, that may be emitted again
  int names_ = 0, count_ = 0;
  bool nested_ = false;
};

template <typename Test>
bool NetProgram::Choose(Test&& test, Var* found) {
  const size_t first = static_cast<size_t>(Pick(static_cast<int>(vars_.size())));
  for (size_t i = 0; i < vars_.size(); ++i) {
    const Var& v = vars_[(first + i) % vars_.size()];
    if (!test(v)) continue;
    *found = v;
    return true;
  }
  return false;
}

}  // namespace heddle::testing
