// One operator while it is written as nodes of an ONNX model: what its handler may ask of it and
// make for it. A handler says nothing wrong: what ONNX has no exact words for it refuses, and then
// what it makes is dropped.
//
// Threads: one at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "offload/onnx/known.h"
#include "offload/onnx/model.h"

namespace heddle::offload::to_onnx {

using Names = std::vector<std::string>;

// Of each variable the ONNX value that holds what it holds now; empty: none does.
struct Places {
  std::vector<std::string> now;
  // For the last operator that writes an output of the group: the name that output has.
  std::vector<std::string> final_name;
  std::vector<int> last_writer;  // index of that operator; -1: no output, or none
};

class NodeWriter {
 public:
  NodeWriter(const ir::Program& program, const ir::Op& op, int index, KnownFacts* facts,
             Places* places, ModelBuilder* model);

  const std::string& type() const { return op_.type(); }
  template <typename... Parts>
  void Refuse(const Parts&... parts) {
    if (why_.empty()) why_ = StrCat(parts...);
  }
  const std::string& why() const { return why_; }  // empty: it is not refused

  // --- operands
  size_t Count(std::string_view slot) const;
  bool Has(std::string_view slot, size_t k = 0) const;
  // The ONNX value; refuses where the operand is left out.
  std::string In(std::string_view slot, size_t k = 0);
  // Empty where it is left out.
  std::string InOr(std::string_view slot) { return Has(slot) ? In(slot) : std::string(); }
  DType dtype(std::string_view slot, size_t k = 0) const;
  const Shape& shape(std::string_view slot, size_t k = 0) const;
  // Refuses where it is not known, and gives 0.
  int Rank(std::string_view slot, size_t k = 0);
  // Refuses a rank that is not known, and an axis that is not one of it. From the front.
  int64_t Axis(int64_t axis, std::string_view slot, int more = 0);
  // Contents of a parameter; null: the operand is none.
  const Tensor* Constant(std::string_view slot, size_t k = 0) const;
  std::optional<Ints> ConstantInts(std::string_view slot, size_t k = 0) const;
  // As a constant of the operator, or refuses.
  Ints RequiredInts(std::string_view slot);
  // Refuses any other element type.
  bool IsOneOf(std::string_view slot, std::initializer_list<DType> dtypes);
  bool IsFloat(std::string_view slot) { return IsOneOf(slot, {DType::kF32, DType::kF64}); }

  // --- results
  size_t Outputs(std::string_view slot) const;
  bool Wants(std::string_view slot, size_t k = 0) const;
  DType out_dtype(std::string_view slot, size_t k = 0) const;
  const Shape& out_shape(std::string_view slot, size_t k = 0) const;
  // The output is this value.
  void Out(std::string_view slot, const std::string& name, size_t k = 0);
  // ... with its elements in the shape that the operator gives the output.
  void OutReshaped(std::string_view slot, const std::string& name);
  // At the end: outputs that were not given hold nothing any more, but for those that the operator
  // leaves as it read them.
  void Finish();

  // --- attributes
  bool Bool(std::string_view name) const { return Attr<bool>(name); }
  int64_t Int(std::string_view name) const { return Attr<int64_t>(name); }
  double Real(std::string_view name) const { return Attr<double>(name); }
  const std::string& Text(std::string_view name) const { return Attr<std::string>(name); }
  const Ints& IntList(std::string_view name) const { return Attr<Ints>(name); }
  const Floats& RealList(std::string_view name) const { return Attr<Floats>(name); }
  const OpDef& definition() const { return *op_.def; }
  // Variables hold some of them when it runs.
  bool holds_attributes() const { return !op_.var_attrs.empty(); }
  // Null: the operator has no such attribute.
  const AttrValue* Find(std::string_view name) const;
  // An attribute of ONNX, which is a float; refuses what needs more where `of` is float64.
  double Float(double value, DType of);

  // --- what is made
  std::string Make(std::string_view type, Names inputs, Attributes attributes = {});
  Names MakeMany(std::string_view type, Names inputs, size_t outputs, Attributes attributes = {});
  std::string Hold(Tensor value);
  std::string Vector(const Ints& values);
  std::string Whole(int64_t value);               // a scalar, int64
  std::string Scalar(double value, DType dtype);  // a scalar; refuses what the type does not hold
  std::string Filled(double value, DType dtype, const Shape& shape);
  std::string CastTo(const std::string& x, DType to);
  std::string Reshape(const std::string& x, const Ints& dims);
  // Into a known shape with at most one open dimension; refuses others.
  std::string ReshapeTo(const std::string& x, const Shape& shape);
  std::string Transpose(const std::string& x, const Ints& perm);
  std::string Squeeze(const std::string& x, const Ints& axes);
  std::string Unsqueeze(const std::string& x, const Ints& axes);
  // Dimensions of an operand, int64, from `begin` up to `end`.
  std::string DimsOf(const std::string& x, int64_t begin, int64_t end);
  // The operand as a vector of int64, or as a scalar.
  std::string AsLongs(std::string_view slot, size_t k = 0);
  std::string AsScalar(std::string_view slot);

 private:
  template <typename T>
  const T& Attr(std::string_view name) const {
    return op_.Attr<T>(name);
  }
  ir::VarId Var(std::string_view slot, size_t k) const;
  ir::VarId OutVar(std::string_view slot, size_t k) const;
  const Facts* OutFacts(std::string_view slot, size_t k) const;

  const ir::Program& program_;
  const ir::Op& op_;
  const int index_;
  KnownFacts& facts_;
  Places& places_;
  ModelBuilder& model_;
  const size_t first_;  // node of this operator
  std::vector<Facts> made_;
  Names given_;  // to outputs of this operator
  std::vector<ir::VarId> given_to_;
  std::string why_;
};

// False: there is no handler for an operator of this type. Says what ONNX has no words for by
// n.Refuse.
bool WriteOperator(NodeWriter& n);

}  // namespace heddle::offload::to_onnx
