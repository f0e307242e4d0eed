// ProgramBuilder: makes a program, operator by operator. docs/building.md is a guide.
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
// Errors: a call that fails names the operator and the slot, says what was expected, and changes
// nothing. kUnimplemented: heddle has no such operator, or no kernel for the dtype;
// kInvalidArgument: anything else. Ownership: a Variable is a number that identifies a variable of
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

// A variable of a program under construction.
class Variable {
 public:
  Variable() = default;  // none: for an optional operand that is left out
  explicit operator bool() const { return builder_ != 0; }
  friend bool operator==(const Variable&, const Variable&) = default;

 private:
  friend class ProgramBuilder;
  Variable(uint64_t builder, uint32_t id) : builder_(builder), id_(id) {}

  uint64_t builder_ = 0;  // number of the builder
  uint32_t id_ = 0;
};

// The value of an attribute. For attributes such as "dtype", a DType or its name. A Variable (or
// several, for the elements of a list) gives the value at run time.
using AttributeArgument =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                 std::vector<std::string>, DType, Variable, std::vector<Variable>>;

// The variables that an output slot writes: a number of new ones, new ones with these names, or
// existing ones, which get another value.
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

  // Adds an input; -1: an open dimension. `lod_level`: levels of sequence offsets that feeds have;
  // no shape is inferred from an input that has them.
  Result<Variable> Feed(const std::string& name, DType dtype, const Shape& shape,
                        int lod_level = 0);
  // Adds a persistable variable with its value, which the model's scope will share.
  Result<Variable> Parameter(const std::string& name, Tensor value);
  // Adds a parameter whose value comes later: from LoadParameters, or from a startup program.
  Result<Variable> Parameter(const std::string& name, DType dtype, const Shape& shape);
  // Adds an empty tensor array to the present block; `dtype`: that of its items.
  Result<Variable> Array(const std::string& name, DType dtype);
  // Adds an output of the program, after the earlier ones.
  Status Fetch(Variable variable);

  // Adds an operator to the present block. Required output slots that `targets` leaves out get one
  // new variable each, optional ones are not computed. A slot for a list must be given, since the
  // number of its variables is unknown. Returns the written variables, slot by slot.
  Result<OperatorResults> Add(std::string_view type, const Operands& inputs,
                              const Attributes& attributes = {}, const Targets& targets = {});
  // Add() for operators with one result; returns the first variable of the first output slot.
  Result<Variable> Apply(std::string_view type, const Operands& inputs,
                         const Attributes& attributes = {}, const Targets& targets = {});
  // Copies the value of `from` to `to`, an existing variable.
  Status Assign(Variable from, Variable to);

  // Begins a block, to which operators are added until EndBlock(). It runs repeatedly while
  // `condition`, one bool that the block assigns, is true.
  Status BeginWhile(Variable condition);
  // Begins a block that runs once if `condition`, one bool, is true.
  Status BeginIf(Variable condition);
  // Ends the block. Its own variables can no longer be used; what it assigned to outer ones stays.
  // If an iteration of a loop changes the shape of a variable, the dimensions that differ become
  // open, also for the operators of the block; if one of those rejects that, this call fails, and
  // so will Finish().
  Status EndBlock();

  // Gives a variable the dtype and shape that cannot be inferred, such as those of an array's item.
  Status Declare(Variable variable, DType dtype, const Shape& shape);
  // The variable's name, dtype and shape, as far as known; else kUnknown and Shape::Unknown().
  Result<TensorInfo> Info(Variable variable) const;
  // Marks the next operator, so that others can wait for it; returns the mark.
  int64_t MarkNext();
  // Lets the next operator start only when those with these marks, earlier ones of its block, have
  // ended, even if they exchange no data. Passes and schedules respect that.
  void NextAfter(const std::vector<int64_t>& marks);
  // Sets the source position of the next operators, such as "net.py:12", which errors of runs show.
  void SetPlace(std::string place);

  // Returns the program and the values of its parameters. The builder is then empty, and rejects
  // variables of the finished program.
  Result<Model> Finish() &&;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace heddle
