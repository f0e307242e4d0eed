// Variables whose values are 8-bit integers times constant scales, and constants among them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "heddle/value.h"
#include "passes/graph_view.h"
#include "passes/pass.h"

namespace heddle::passes {

// How an affine_quantize rounds: one scale and one zero point for all.
struct Quantized8 {
  float scale;
  int32_t zero;
  DType dtype;  // kU8 or kI8
};

// A float variable that is (integers - zero) * scale.
struct Dequantized {
  ir::VarId integers = ir::kNoVar;  // kNoVar: a constant that is no parameter of the program yet
  std::vector<float> scale;         // one, or one for each index of `axis`
  std::vector<int32_t> zero;        // as many
  int axis = 0;
  DType dtype = DType::kU8;
  bool constant = false;
  Tensor value = {};               // of a constant; its contents need not be in memory
  const ir::Op* writer = nullptr;  // the affine_dequantize

  bool whole() const { return scale.size() == 1; }
  // The number that a byte stands for, with one scale for all.
  float RealOf(uint8_t byte) const {
    const int32_t v = dtype == DType::kI8 ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
    return static_cast<float>(v - zero[0]) * scale[0];
  }
  bool Like(const Quantized8& q) const {
    return whole() && scale[0] == q.scale && zero[0] == q.zero && dtype == q.dtype;
  }
};

// What each byte becomes.
using ByteTable = std::array<uint8_t, 256>;

// Of the operators of one block, which the caller visits in order. They must stay where they are
// while this is in use.
class QuantizedValues {
 public:
  QuantizedValues(ir::Program& program, PassContext& context, const GraphView& view)
      : p_(program), context_(context), view_(view) {}

  // Looks at the affine_dequantize at position `at`.
  void Note(const ir::Op& op, int at);
  // Looks at an affine_quantize; false: what it rounds is no parameter.
  bool NoteConstant(const ir::Op& op);
  const Dequantized* Find(ir::VarId v) const;
  void Set(ir::VarId v, Dequantized d) { known_[v] = std::move(d); }
  // The operator moves the elements of a constant: notes its result where that is known.
  void MoveConstant(const ir::Op& op, const Dequantized& x);

  // The variable that holds the integers, and that of zero points other than 0.
  ir::VarId Operand(const Dequantized& d, const std::string& stem);
  std::optional<ir::VarId> ZeroOperand(const Dequantized& d, const std::string& stem);

  // nullopt: the affine_quantize has other scales or types.
  std::optional<Quantized8> QuantisationBy(const ir::Op& op);
  // A constant as float32: a parameter, or a dequantised one.
  std::optional<Tensor> Floats(ir::VarId v);
  // What the operators of `chain`, the last one first, make of the bytes of x. nullopt: it cannot
  // be computed.
  std::optional<ByteTable> TableOf(const std::vector<const ir::Op*>& chain, const Dequantized& x,
                                   const Quantized8& q);
  // What the sum or the product with one number, between bounds, makes of them.
  static ByteTable TableOfPair(bool sum, const Dequantized& x, const Dequantized& number,
                               double least, double most, const Quantized8& q);
  // The first output of a pure operator for this value of its first operand.
  std::optional<Value> Apply(const ir::Op& op, const Value& x);

 private:
  // A parameter that no operator writes.
  const Tensor* Parameter(ir::VarId v, bool contents = true);
  // All elements of a parameter as T; empty: it is none of this type.
  template <typename T>
  std::vector<T> Elements(ir::VarId v);
  // The parameter, or what an affine_quantize of constants gives.
  std::optional<Tensor> Bytes(ir::VarId v);

  ir::Program& p_;
  PassContext& context_;
  const GraphView& view_;
  std::map<ir::VarId, Dequantized> known_;
  std::map<ir::VarId, Tensor> quantized_;  // parameters, rounded
};

}  // namespace heddle::passes
