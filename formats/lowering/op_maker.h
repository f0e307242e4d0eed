// Makes the operators of a draft, for readers of formats that have operators of their own: with
// attributes in the types that operators declare, with kernels for dtypes that an operator has none
// for, and with what can be known of the results before any run.
//
// Ownership: refers to the draft, which must outlive it. Threads: one at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/op_def.h"
#include "formats/lowering/draft.h"

namespace heddle::formats {

using Ins = std::vector<std::pair<std::string_view, std::vector<int>>>;
using Outs = Ins;
using Attrs = std::vector<std::pair<std::string_view, AttrValue>>;

class OpMaker {
 public:
  virtual ~OpMaker() = default;
  OpMaker(const OpMaker&) = delete;
  OpMaker& operator=(const OpMaker&) = delete;

  // --- variables
  DType dtype(int v) const {
    return v == kNoDraft ? DType::kUnknown : draft_.vars[static_cast<size_t>(v)].dtype;
  }
  virtual const Shape& shape(int v) const = 0;
  int rank(int v) const { return v == kNoDraft ? -1 : shape(v).rank(); }  // -1: not known
  virtual int NewVar(DType dtype, std::string_view stem = "") = 0;
  DraftVar& draft_var(int v) { return draft_.vars[static_cast<size_t>(v)]; }
  // The contents of a constant of at most so many elements; null for anything else.
  virtual const Tensor* Constant(int v, int64_t max_count = 1024) = 0;
  std::optional<Ints> ConstantInts(int v);
  std::optional<Floats> ConstantFloats(int v);

  // --- operators
  // Adds an operator with one output and returns its variable. Where the operator has no kernel for
  // the dtype of its inputs, they are computed in a wider one.
  int Make(std::string_view type, Ins ins, Attrs attrs = {}, std::string_view out = "Out");
  // Outputs of the same name are one slot that takes a list.
  std::vector<int> MakeMany(std::string_view type, Ins ins, Attrs attrs,
                            const std::vector<std::string_view>& outs);
  // As it is, into variables that are there.
  DraftOp& Emit(std::string_view type, Ins ins, Attrs attrs, Outs outs);
  static bool HasOperator(std::string_view type);
  int Cast(int v, DType to);
  int Reshape(int v, Ints shape) {
    return Make("reshape2", {{"X", {v}}}, {{"shape", std::move(shape)}});
  }
  int Unsqueeze(int v, Ints axes) {
    return Make("unsqueeze2", {{"X", {v}}}, {{"axes", std::move(axes)}});
  }
  int Squeeze(int v, Ints axes) {
    return Make("squeeze2", {{"X", {v}}}, {{"axes", std::move(axes)}});
  }
  int Binary(std::string_view type, int x, int y) { return Make(type, {{"X", {x}}, {"Y", {y}}}); }
  int Unary(std::string_view type, int x, Attrs attrs = {}) {
    return Make(type, {{"X", {x}}}, std::move(attrs));
  }
  // The dimensions, int64.
  int ShapeOf(int v) { return Cast(Make("shape", {{"Input", {v}}}), DType::kI64); }

  // --- constants
  virtual int HoldConstant(Tensor value) = 0;
  int IntsConstant(const Ints& values, int rank = 1);
  int IntConstant(int64_t value, DType dtype = DType::kI64);
  int FloatConstant(double value, DType dtype);
  int FloatsConstant(const Floats& values, DType dtype);

 protected:
  // `block`: the number of the block that operators go to, wherever it is kept. `index` and
  // `source` of the file's operator that is being said.
  OpMaker(Draft& draft, const int& block, int index, const void* source)
      : draft_(draft), to_block_(block), index_(index), source_(source) {}

  virtual void SetShape(int v, const Shape& shape) = 0;
  virtual void SayProblem(const std::string& text) = 0;
  // An operator reads the variable, which may be a constant of the file.
  virtual void IsRead(int v) = 0;
  // The operator has just made this variable, whose dtype and shape are known as far as they can
  // be.
  virtual void FollowValues(const DraftOp&, int) {}
  // The storage of an element type of ONNX, which some of heddle's operators name in attributes.
  virtual DType StorageOfOnnxType(int64_t) const { return DType::kUnknown; }

 private:
  void Infer(const DraftOp& op, const OpDef& def);  // op_infer.cc
  int RankOf(const DraftOp& op) const;
  Shape JoinedShape(const DraftOp& op) const;
  Shape ProductShape(const DraftOp& op) const;
  DType GuessedDType(const DraftOp& op) const;
  AttrValue Converted(AttrValue value, const AttrValue& like, std::string_view name);
  DType WiderKernel(const OpDef& def, const Ins& ins) const;

  Draft& draft_;
  const int& to_block_;
  const int index_;
  const void* const source_;
};

}  // namespace heddle::formats
