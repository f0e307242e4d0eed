// ProgramBuilder: makes a program by hand, operator by operator. docs/building.md is a guide.
//
//   heddle::ProgramBuilder b("classifier");
//   HEDDLE_ASSIGN_OR_RETURN(heddle::Variable x, b.Feed("x", heddle::DType::kF32, {-1, 64}));
//   HEDDLE_ASSIGN_OR_RETURN(heddle::Variable w, b.Parameter("w", weights));
//   HEDDLE_ASSIGN_OR_RETURN(heddle::Variable y, b.Apply("matmul_v2", {{"X", {x}}, {"Y", {w}}}));
//   HEDDLE_RETURN_IF_ERROR(b.Fetch(y));
//   HEDDLE_ASSIGN_OR_RETURN(heddle::Model model, std::move(b).Finish());
//
// Operators are those of `heddle ops`. Each call checks the operator, its slots, attributes, dtypes
// and shapes.
//
// Errors: a call that fails says which operator, which slot and what was expected, and changes
// nothing. kUnimplemented: heddle has no such operator, or no kernel for the dtype;
// kInvalidArgument: anything else. Ownership: a Variable is a number that stands for a variable of
// its builder. Threads: one at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "heddle/program.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

// A variable of a program that is being built.
class Variable {
 public:
  Variable() = default;  // none: an optional operand that is left out
  explicit operator bool() const { return builder_ != 0; }
  friend bool operator==(const Variable&, const Variable&) = default;

 private:
  friend class ProgramBuilder;
  Variable(uint64_t builder, uint32_t id) : builder_(builder), id_(id) {}

  uint64_t builder_ = 0;  // number of the builder
  uint32_t id_ = 0;
};

// The value of an attribute. A DType, or its name, stands for the number that attributes like
// "dtype" hold. A Variable (several: a list's elements) holds the value at run time.
using AttributeArgument =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, DType, Variable, std::vector<Variable>>;

// The variables that an output slot writes: that many new ones, new ones of these names, or ones
// that are there already and get another value.
using Target = std::variant<int, std::vector<std::string>, std::vector<Variable>>;

using Operands = std::vector<std::pair<std::string, std::vector<Variable>>>;  // by input slot
using Attributes = std::vector<std::pair<std::string, AttributeArgument>>;    // by name
using Targets = std::vector<std::pair<std::string, Target>>;                  // by output slot
using OperatorResults = std::vector<std::pair<std::string, std::vector<Variable>>>;

class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name = "program");
  ProgramBuilder(ProgramBuilder&&) noexcept;
  ProgramBuilder& operator=(ProgramBuilder&&) noexcept;
  ~ProgramBuilder();

  // An input of the program; -1 is a dimension that may be anything. `lod_level`: levels of
  // sequence offsets that feeds carry. Nothing is inferred from an input that has them.
  Result<Variable> Feed(const std::string& name, DType dtype, const Shape& shape,
                        int lod_level = 0);
  // A persistable variable and its value, which the model's scope will share.
  Result<Variable> Parameter(const std::string& name, Tensor value);
  // A parameter whose value comes later: from LoadParameters, or from a startup program.
  Result<Variable> Parameter(const std::string& name, DType dtype, const Shape& shape);
  // An empty tensor array in the present block; its items are of `dtype`.
  Result<Variable> Array(const std::string& name, DType dtype);
  // An output of the program, after those before.
  Status Fetch(Variable variable);

  // Adds an operator to the present block. Required output slots that `targets` leaves out get a
  // new variable each, optional ones are not computed. A slot that takes a list has to be there,
  // since the number of its variables is not known. Returns what was written, slot by slot.
  Result<OperatorResults> Add(std::string_view type, const Operands& inputs,
                              const Attributes& attributes = {}, const Targets& targets = {});
  // Add() for operators with one result; returns the first variable of the first output slot.
  Result<Variable> Apply(std::string_view type, const Operands& inputs,
                         const Attributes& attributes = {}, const Targets& targets = {});
  // `to`, a variable that is there already, gets the value of `from`.
  Status Assign(Variable from, Variable to);

  // Operators go to a new block from here to EndBlock(). The block runs again and again while
  // `condition`, one bool that the block assigns to, is true.
  Status BeginWhile(Variable condition);
  // The block runs if `condition`, one bool, is true.
  Status BeginIf(Variable condition);
  // Variables that were made in the block are gone; what it assigned to outer ones stays. Where a
  // step of a loop gives a variable another shape than it had before, the dimensions that differ
  // are open from there on, for the operators of the block too; if those do not take that, this
  // call fails, and so does Finish().
  Status EndBlock();

  // Gives a variable the dtype and shape that no rule of shapes knows, such as those of an array's
  // item.
  Status Declare(Variable variable, DType dtype, const Shape& shape);
  // Returns the variable's name, dtype and shape as far as they are known; else kUnknown and
  // Shape::Unknown().
  Result<TensorInfo> Info(Variable variable) const;
  // The next operator bears a mark, and can be waited for.
  int64_t MarkNext();
  // The next operator starts when those that bear these marks, earlier ones of its block, have
  // ended, also where they exchange no data. Passes and schedules keep that.
  void NextAfter(const std::vector<int64_t>& marks);
  // Names the place that the next operators come from, as in "net.py:12"; errors of runs show it.
  void SetPlace(std::string place);

  // Returns the program and the values of its parameters. The builder begins anew, and refuses the
  // variables of the finished program.
  Result<Model> Finish() &&;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
