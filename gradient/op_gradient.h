// OpGradient: what a rule sees of one operator, and the operators that it emits.
//
// Ownership: refers to the pass, which outlives it. Threads: one at a time.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "gradient/rule.h"

namespace heddle::gradient {

class BlockGradient;

// An attribute's value; numbers of any type.
struct Setting {
  Setting(std::string_view n, bool v) : name(n), value(v) {}
  Setting(std::string_view n, int v) : name(n), value(int64_t{v}) {}
  Setting(std::string_view n, int64_t v) : name(n), value(v) {}
  Setting(std::string_view n, double v) : name(n), value(v) {}
  Setting(std::string_view n, const char* v) : name(n), value(std::string(v)) {}
  Setting(std::string_view n, std::string v) : name(n), value(std::move(v)) {}
  Setting(std::string_view n, Ints v) : name(n), value(std::move(v)) {}
  Setting(std::string_view n, Floats v) : name(n), value(std::move(v)) {}
  Setting(std::string_view n, AttrValue v) : name(n), value(std::move(v)) {}
  std::string_view name;
  AttrValue value;
};
using Settings = std::vector<Setting>;

// A slot and its variables.
struct Given {
  Given(std::string_view s, ir::VarId v) : slot(s), vars({v}) {}
  Given(std::string_view s, std::vector<ir::VarId> v) : slot(s), vars(std::move(v)) {}
  std::string_view slot;
  std::vector<ir::VarId> vars;
};
using Givens = std::vector<Given>;

class OpGradient {
 public:
  using VarId = ir::VarId;
  // `at`: the operator's position in the block.
  OpGradient(BlockGradient& pass, size_t at);

  const ir::Op& op() const;
  // The forward operator, to be changed where a file for inference lost something.
  ir::Op& Forward();
  // A variable that the rule made, to set what is known of it.
  ir::Var& Made(VarId v);
  const ir::Var& Info(VarId v) const;
  bool HasAttr(std::string_view name) const;
  template <typename T>
  const T& Attr(std::string_view name) const {
    return op().Attr<T>(name);
  }

  size_t Ins(std::string_view slot) const;
  size_t Outs(std::string_view slot) const;
  bool HasIn(std::string_view slot) const { return Ins(slot) > 0 && InVar(slot) != ir::kNoVar; }
  // The operand as it was when the operator ran. kNoVar: it has none.
  VarId In(std::string_view slot, size_t i = 0);
  VarId Out(std::string_view slot, size_t i = 0);
  // The operand's variable, for its dtype and shape alone.
  VarId InVar(std::string_view slot, size_t i = 0) const;
  VarId OutVar(std::string_view slot, size_t i = 0) const;
  std::vector<VarId> AllIn(std::string_view slot);
  // The output's gradient; kNoVar: nothing flows through it.
  VarId OutGrad(std::string_view slot = "Out", size_t i = 0) const;
  // The same, zeros if nothing flows.
  VarId OutGradOrZeros(std::string_view slot = "Out", size_t i = 0);
  bool Wants(std::string_view slot, size_t i = 0) const;
  void SetInGrad(std::string_view slot, VarId gradient) { SetInGrad(slot, 0, gradient); }
  void SetInGrad(std::string_view slot, size_t i, VarId gradient);

  // --- operators of the gradient
  ir::Op Make(std::string_view type, const Givens& in, const Settings& settings = {}) const;
  // Emits the operator; returns the variable that it writes to its first output slot.
  VarId Emit(std::string_view type, const Givens& in, const Settings& settings = {},
             std::string_view out = {});
  std::vector<VarId> EmitMany(std::string_view type, const Givens& in, const Settings& settings,
                              std::string_view out, size_t count);
  // Emits an operator with all of its outputs set.
  void Add(ir::Op op);
  // A new variable with dtype and shape of `like`, or of neither.
  VarId New(VarId like, std::string_view stem);
  VarId NewOf(std::string_view stem, DType dtype, Shape shape = Shape::Unknown());

  // The gradient of what `meaning` says the operator computes, in terms of other operators: those
  // that it emits, and a variable for each output, are differentiated in their turn. They run again
  // where their results are needed.
  using Outputs = std::vector<std::pair<std::pair<std::string_view, size_t>, VarId>>;
  template <typename Fn>
  Status Through(Fn&& meaning) {
    const size_t begin = BeginMeaning();
    Outputs outputs;
    const Status status = meaning(&outputs);
    return EndMeaning(begin, status, outputs);
  }

  // --- common compositions
  VarId Mul(VarId x, VarId y, int axis = -1) { return Binary("elementwise_mul", x, y, axis); }
  VarId Sub(VarId x, VarId y, int axis = -1) { return Binary("elementwise_sub", x, y, axis); }
  VarId Plus(VarId x, VarId y, int axis = -1) { return Binary("elementwise_add", x, y, axis); }
  VarId Div(VarId x, VarId y, int axis = -1) { return Binary("elementwise_div", x, y, axis); }
  VarId Binary(std::string_view type, VarId x, VarId y, int axis = -1);
  VarId Unary(std::string_view type, VarId x) { return Emit(type, {{"X", x}}); }
  // x · scale + bias
  VarId Scale(VarId x, double scale, double bias = 0);
  VarId Reduce(std::string_view type, VarId x, Ints axes, bool keep);
  VarId Reshape(VarId x, Ints shape) { return Emit("reshape2", {{"X", x}}, {{"shape", shape}}); }
  VarId Unsqueeze(VarId x, int64_t axis) {
    return Emit("unsqueeze2", {{"X", x}}, {{"axes", Ints{axis}}});
  }
  VarId Squeeze(VarId x, int64_t axis) {
    return Emit("squeeze2", {{"X", x}}, {{"axes", Ints{axis}}});
  }
  VarId Transpose(VarId x, Ints axes) {
    return Emit("transpose2", {{"X", x}}, {{"axis", std::move(axes)}});
  }
  VarId Slice(VarId x, Ints axes, Ints starts, Ints ends) {
    return Emit("slice", {{"Input", x}}, {{"axes", axes}, {"starts", starts}, {"ends", ends}});
  }
  VarId Concat(std::vector<VarId> x, int64_t axis) {
    return x.size() == 1 ? x[0] : Emit("concat", {{"X", std::move(x)}}, {{"axis", axis}});
  }
  VarId Constant(DType dtype, Ints shape, double value);
  VarId Cast(VarId x, DType dtype);
  VarId ZerosLike(VarId x) { return Filled(x, 0); }
  VarId Filled(VarId like, double value);
  VarId Compare(std::string_view type, VarId x, VarId y) { return Binary(type, x, y); }
  VarId Where(VarId condition, VarId x, VarId y);
  // `g`, which broadcasting made from a value of the shape of `like`, summed to that shape.
  VarId SumLike(VarId g, VarId like);
  VarId ReshapeLike(VarId g, VarId like);
  // The rank, if it is known; else an error that names the operator.
  Result<int64_t> RankOf(VarId v) const;

  BlockGradient& pass() { return pass_; }
  size_t at() const { return at_; }

 private:
  size_t BeginMeaning();
  Status EndMeaning(size_t begin, const Status& status, const Outputs& outputs);

  BlockGradient& pass_;
  const size_t at_;
};

// Emits the gradient operator of that name, for rules that serve only some forms of an operator.
Status EmitOperator(OpGradient& g, std::string_view gradient, std::string_view slots = {});

}  // namespace heddle::gradient
