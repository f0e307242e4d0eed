// Programs of loops and branches with a plain evaluation beside them.
//
//   PlainProgram p;
//   p.builder().Feed("x", DType::kF32, {4});
//   p.Var("h", {4}).Unary("assign", "x", "h");
//   p.Loop("i", "n", [&] { p.Unary("tanh", "h", "h"); });
//   p.builder().Fetch("h");
//   p.Evaluate({{"x", …}}).at("h")
//
// Each call adds an operator to a Paddle program and a C++ function that computes the same, number
// by number, from and to variables of std::vector<float>. Evaluate() calls these functions in the
// program's order. No part of heddle has to do with it: no pass, plan or kernel.
//
// All elements are floats there; integers and bools are those that a float holds.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/program_builder.h"

namespace heddle::testing {

class PlainProgram {
 public:
  using Numbers = std::vector<float>;             // elements in row-major order
  using Values = std::map<std::string, Numbers>;  // by variable
  using Step = std::function<void(Values&)>;

  ProgramBuilder& builder() { return b_; }
  Program Build() const { return b_.Build(); }
  // The values of all variables after the program has run on `values`.
  Values Evaluate(Values values) const;

  PlainProgram& Var(const std::string& name, const Shape& shape, DType dtype = DType::kF32);
  // assign, relu, tanh, sigmoid, logical_not.
  PlainProgram& Unary(const std::string& type, const std::string& x, const std::string& out);
  // elementwise_add, elementwise_sub, elementwise_mul, less_than, equal; operands of equal sizes,
  // or a second one of one element.
  PlainProgram& Binary(const std::string& type, const std::string& x, const std::string& y,
                       const std::string& out);
  PlainProgram& Scale(const std::string& x, const std::string& out, float scale, float bias = 0);
  PlainProgram& Fill(const std::string& out, const Ints& shape, float value,
                     DType dtype = DType::kF32);
  PlainProgram& Increment(const std::string& x, float step = 1);
  // The numbers must be ones that both types hold.
  PlainProgram& Cast(const std::string& x, const std::string& out, DType from, DType to);
  // Adds what the operators compute that were added to builder() last.
  void Then(Step step) { now_->push_back(std::move(step)); }

  // while (condition) { … } with the operators that `fn` adds, which must change the condition.
  template <typename Fn>
  void While(const std::string& condition, Fn&& fn) {
    EndWhile(condition, Inside(fn));
  }
  // for (i = first; i < limit; i += step) { … }, with variables that it declares: `i` and a
  // condition. `limit` is a variable.
  template <typename Fn>
  void Loop(const std::string& i, const std::string& limit, Fn&& fn, float first = 0,
            float step = 1) {
    const std::string go = "go_" + i;
    Var(i, {1}, DType::kI64).Fill(i, {1}, first, DType::kI64);
    Var(go, {1}, DType::kBool).Binary("less_than", i, limit, go);
    While(go, [&] {
      fn();
      Increment(i, step).Binary("less_than", i, limit, go);
    });
  }
  // if (condition) { … }
  template <typename Fn>
  void Branch(const std::string& condition, Fn&& fn) {
    EndBranch(condition, Inside(fn));
  }

 private:
  // A block and what it does.
  struct Inner {
    int block;
    std::vector<Step> steps;
  };
  template <typename Fn>
  Inner Inside(Fn&& fn) {
    Inner inner;
    std::vector<Step>* const outer = std::exchange(now_, &inner.steps);
    const int outside = b_.current();
    inner.block = b_.Block(outside);
    b_.In(inner.block);
    fn();
    b_.In(outside);
    now_ = outer;
    return inner;
  }
  void EndWhile(const std::string& condition, Inner inner);
  void EndBranch(const std::string& condition, Inner inner);
  // The variables of outer blocks that the block writes, and those that it reads.
  void ListOuter(int block, std::vector<std::string>* written,
                 std::vector<std::string>* read) const;

  ProgramBuilder b_;
  std::vector<Step> steps_;
  std::vector<Step>* now_ = &steps_;  // of the current block
};

// The elements of a tensor of float32 or int64, and those of feeds by their names.
PlainProgram::Numbers NumbersOf(const Tensor& t);
PlainProgram::Values ValuesOf(const std::vector<heddle::Feed>& feeds);
// `got` is `expected` but for rounding: within 1e-5 of each number's size, or of 1.
void ExpectPlain(const Tensor& got, const PlainProgram::Numbers& expected,
                 const std::string& what = "");

}  // namespace heddle::testing
