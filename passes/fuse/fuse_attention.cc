// Attention (product, factor, mask, softmax, product, and the transposes that split and join the
// heads) becomes one scaled_dot_attention.
#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::VarId;

// The source of an operand; `layout` is numbered as in scaled_dot_attention.
struct Source {
  VarId var = ir::kNoVar;
  int64_t layout = 0, part = 0;
};

class AttentionFuser {
 public:
  // `taken`: operators that belong to another attention already, whose outputs may vanish.
  AttentionFuser(const ir::Program& program, PassContext& context, const GraphView& view,
                 const std::vector<bool>& taken)
      : p_(program),
        context_(context),
        view_(view),
        taken_(taken),
        ops_(program.blocks[static_cast<size_t>(view.block())].ops) {}

  // Whether the softmax at `at` belongs to an attention.
  bool Match(int at) {
    const ir::Op& softmax = Op(at);
    if (softmax.type() != "softmax" || !softmax.var_attrs.empty() || softmax.has_control_edges())
      return false;
    const int64_t axis = softmax.Attr<int64_t>("axis");
    const VarId x = softmax.In("X")[0];
    if (!IsMatrices(x) || (axis != -1 && axis != 3)) return false;
    return MatchScores(x, at) && MatchResult(softmax.Out("Out")[0]);
  }

  // An operator that makes a mask of the condition; nullopt: there is no condition.
  std::optional<ir::Op> MakeMask(ir::Program& program) {
    if (!condition_) return std::nullopt;
    const auto number = [&](const char* stem, float x) {
      return context_.AddConstant(program, stem, Tensor::Of(DType::kF32, Shape(), std::vector{x}));
    };
    ir::Op where = ir::MakeOp(*FindOp("where"));
    where.index = Op(last_).index;
    where.call_stack = Op(last_).call_stack;
    TakePlace(Op(last_), &where);
    const auto set = [&](const char* slot, VarId v) {
      where.inputs[static_cast<size_t>(where.def->FindInput(slot))] = {v};
    };
    set("Condition", *condition_);
    set("X", number("kept", std::numeric_limits<float>::infinity()));
    set("Y", number("left_out", static_cast<float>(otherwise_)));
    ir::Var mask;
    mask.name = program.FreshName(p_.vars[*condition_].name + "@mask");
    mask.block = view_.block();
    mask.dtype = DType::kF32;
    mask.shape = p_.vars[*condition_].shape;
    mask_ = program.AddVar(std::move(mask));
    where.outputs[static_cast<size_t>(where.def->FindOutput("Out"))] = {*mask_};
    return where;
  }

  ir::Op Make() const {
    ir::Op fused = ir::MakeOp(*FindOp("scaled_dot_attention"));
    fused.index = Op(last_).index;
    fused.call_stack = Op(last_).call_stack;
    TakePlace(Op(last_), &fused);
    fused.attrs[fused.def->FindAttr("scale")] = scale_;
    fused.attrs[fused.def->FindAttr("q_factor")] = q_factor_;
    fused.attrs[fused.def->FindAttr("k_factor")] = k_factor_;
    fused.attrs[fused.def->FindAttr("mask_selects")] = condition_.has_value();
    fused.attrs[fused.def->FindAttr("layouts")] =
        Ints{q_.layout, k_.layout, v_.layout, out_layout_};
    fused.attrs[fused.def->FindAttr("parts")] = Ints{q_.part, k_.part, v_.part};
    const auto in = [&](const char* slot) -> auto& {
      return fused.inputs[fused.def->FindInput(slot)];
    };
    in("Q") = {q_.var};
    in("K") = {k_.var};
    in("V") = {v_.var};
    if (mask_) in("Mask") = {*mask_};
    fused.outputs[fused.def->FindOutput("Out")] = {out_};
    return fused;
  }

  int last() const { return last_; }  // the position of the fused operator
  // Operators that become useless unless their outputs have other readers; later ones first.
  std::vector<int> absorbed, spare;

 private:
  const ir::Op& Op(int at) const { return ops_[static_cast<size_t>(at)]; }

  bool IsMatrices(VarId v) const {
    return v != ir::kNoVar && p_.vars[v].dtype == DType::kF32 && p_.vars[v].shape.known_rank() &&
           p_.vars[v].shape.rank() == 4;
  }
  // The position of the only operator that writes `v`, if it has this type and precedes `reader`;
  // else -1.
  int Writer(VarId v, const char* type, int reader) const {
    if (!view_.SingleWriter(v)) return -1;
    const int at = view_.writers(v)[0];
    return at < reader && !taken_[static_cast<size_t>(at)] && Op(at).type() == type &&
                   Op(at).var_attrs.empty()
               ? at
               : -1;
  }
  bool OnlyFor(VarId v, int reader) const { return view_.OnlyReader(v, context_) == reader; }

  // The number in a parameter of one element and few dimensions; nullopt: it is something else.
  std::optional<double> Number(VarId v) {
    if (v == ir::kNoVar || !p_.vars[v].persistable) return std::nullopt;
    const Shape& shape = p_.vars[v].shape;
    if (!shape.is_static() || shape.numel() != 1 || shape.rank() > 4) return std::nullopt;
    const Tensor* t = context_.Constant(p_, view_, v);
    if (t == nullptr || t->dtype() != DType::kF32) return std::nullopt;
    return double{*t->data<float>()};
  }

  // An operator that multiplies `x` by one number.
  struct Scaling {
    int at = -1;
    VarId x = ir::kNoVar;
    double factor = 1;
  };
  std::optional<Scaling> ScalingOf(VarId v, int reader) {
    if (const int at = Writer(v, "scale", reader); at >= 0) {
      if (Op(at).Attr<double>("bias") != 0 || !Op(at).In("ScaleTensor").empty())
        return std::nullopt;
      return Scaling{at, Op(at).In("X")[0], Op(at).Attr<double>("scale")};
    }
    const int at = Writer(v, "elementwise_mul", reader);
    if (at < 0) return std::nullopt;
    const VarId x = Op(at).In("X")[0], y = Op(at).In("Y")[0];
    if (const auto factor = Number(y)) return Scaling{at, x, *factor};
    if (const auto factor = Number(x)) return Scaling{at, y, *factor};
    return std::nullopt;
  }

  // Goes back from the softmax's input to the first product, through a mask and a factor, both
  // optional.
  bool MatchScores(VarId v, int reader) {
    if (!OnlyFor(v, reader)) return false;
    if (const int add = Writer(v, "elementwise_add", reader); add >= 0) {
      if (!MatchMask(Op(add), add, &v)) return false;
      absorbed.push_back(add);
      reader = add;
    } else if (const int where = Writer(v, "where", reader); where >= 0) {
      if (!MatchSelection(Op(where), where, &v)) return false;
      absorbed.push_back(where);
      reader = where;
    }
    if (const auto scaling = ScalingOf(v, reader)) {
      if (!IsScores(v, reader) || !IsMatrices(scaling->x)) return false;
      scale_ *= scaling->factor;
      absorbed.push_back(scaling->at);
      v = scaling->x;
      reader = scaling->at;
    }
    return MatchProduct(v, reader);
  }
  // Whether nothing else needs the scores, except an operator that makes a mask of their shape.
  bool IsScores(VarId v, int reader) const {
    if (!shape_reader_ || v != shape_of_) return OnlyFor(v, reader);
    const auto& readers = view_.readers(v);
    return view_.SingleWriter(v) && context_.fetched.count(v) == 0 && readers.size() == 2 &&
           std::find(readers.begin(), readers.end(), *shape_reader_) != readers.end() &&
           std::find(readers.begin(), readers.end(), reader) != readers.end();
  }

  // Whether the mask broadcasts to the scores, aligned at the last dimensions, and is not larger
  // than they are.
  bool MasksScores(VarId mask, const Shape& scores, int64_t axis) const {
    if (!p_.vars[mask].shape.known_rank()) return false;
    const Shape& s = p_.vars[mask].shape;
    if (s.rank() == 0 || s.rank() > 4 || (axis != -1 && axis != 4 - s.rank())) return false;
    for (int d = 1; d <= std::min(2, s.rank()); ++d)
      if (s.dim(-d) != 1 && scores.dim(-d) == 1) return false;
    return true;
  }

  // Takes the addition of a mask, and sets `v` to its other operand, the scores.
  bool MatchMask(const ir::Op& add, int at, VarId* v) {
    const int64_t axis = add.Attr<int64_t>("axis");
    const VarId x = add.In("X")[0], mask = add.In("Y")[0];
    if (!IsMatrices(x) || p_.vars[mask].dtype != DType::kF32 ||
        !MasksScores(mask, p_.vars[x].shape, axis) || x == mask)
      return false;
    if (!OnlyFor(x, at)) return false;
    mask_ = mask;
    *v = x;
    return true;
  }

  // Takes a selection of the scores where a condition holds, else of a number: a mask that is
  // infinite where the condition does not hold.
  bool MatchSelection(const ir::Op& where, int at, VarId* v) {
    const VarId x = where.In("X")[0];
    VarId condition = where.In("Condition")[0];
    const auto otherwise = Number(where.In("Y")[0]);
    if (!otherwise || *otherwise == std::numeric_limits<double>::infinity() || !IsMatrices(x) ||
        condition == ir::kNoVar || where.Attr<bool>("leading_axes"))
      return false;
    condition = WithoutOnes(condition, x, at);
    if (p_.vars[condition].dtype != DType::kBool || !MasksScores(condition, p_.vars[x].shape, -1) ||
        !IsScores(x, at))
      return false;
    condition_ = condition;
    otherwise_ = *otherwise;
    *v = x;
    return true;
  }

  // The condition without a condition joined to it that is true for all scores, as Keras makes of
  // their shape.
  VarId WithoutOnes(VarId condition, VarId scores, int reader) {
    const int both = Writer(condition, "logical_and", reader);
    if (both < 0 || !OnlyFor(condition, reader)) return condition;
    for (const char* slot : {"X", "Y"}) {
      const VarId ones = Op(both).In(slot)[0];
      const VarId other = Op(both).In(slot[0] == 'X' ? "Y" : "X")[0];
      const int fill = Writer(ones, "fill_constant", both);
      if (fill < 0 || !OnlyFor(ones, both) || Op(fill).In("ValueTensor").empty() ||
          !Holds(Op(fill).In("ValueTensor")[0]) || Op(fill).In("ShapeTensor").empty())
        continue;
      const VarId dims = Op(fill).In("ShapeTensor")[0];
      const int shape = Writer(dims, "shape", fill);
      if (shape < 0 || !OnlyFor(dims, fill) || Op(shape).In("Input")[0] != scores) continue;
      shape_reader_ = shape;
      shape_of_ = scores;
      absorbed.insert(absorbed.end(), {both, fill, shape});
      return other;
    }
    return condition;
  }
  bool Holds(VarId v) {
    if (v == ir::kNoVar || !p_.vars[v].persistable || !view_.NeverWritten(v)) return false;
    const Tensor* t = context_.Parameter(p_, v);
    return t != nullptr && t->dtype() == DType::kBool && t->numel() == 1 && *t->data<bool>();
  }

  bool MatchProduct(VarId v, int reader) {
    if (!IsScores(v, reader)) return false;
    const int at = view_.writers(v)[0];
    const auto product = AsProduct(Op(at));
    if (!product || taken_[static_cast<size_t>(at)]) return false;
    absorbed.push_back(at);
    scale_ *= product->alpha;
    const VarId q = Op(at).In("X")[0], k = Op(at).In("Y")[0];
    if (!IsMatrices(q) || !IsMatrices(k)) return false;
    const double behind = std::exchange(scale_, 1);
    const auto from_q = SourceOf(q, at, true);
    q_factor_ = std::exchange(scale_, 1);
    const auto from_k = product->trans_y ? SourceOf(k, at, true) : Flipped(k, at);
    k_factor_ = scale_;
    scale_ = behind * q_factor_ * k_factor_;
    if (!from_q || !from_k) return false;
    q_ = *from_q, k_ = *from_k;
    return true;
  }

  struct Product {
    bool trans_y = false;
    double alpha = 1;
  };
  // A product whose left operand is not transposed.
  static std::optional<Product> AsProduct(const ir::Op& op) {
    const bool v2 = op.type() == "matmul_v2";
    if ((!v2 && op.type() != "matmul") || !op.var_attrs.empty()) return std::nullopt;
    if (op.Attr<bool>(v2 ? "trans_x" : "transpose_X")) return std::nullopt;
    if (v2) return Product{op.Attr<bool>("trans_y"), 1};
    if (op.Attr<int64_t>("head_number") > 1) return std::nullopt;
    return Product{op.Attr<bool>("transpose_Y"), op.Attr<double>("alpha")};
  }

  bool MatchResult(VarId weights) {
    const int at = view_.OnlyReader(weights, context_);
    if (at < 0) return false;
    const auto product = AsProduct(Op(at));
    if (!product || product->trans_y || product->alpha != 1) return false;
    const VarId v = Op(at).In("Y")[0];
    out_ = Op(at).Out("Out")[0];
    if (Op(at).In("X")[0] != weights || v == weights || !IsMatrices(v) || !IsMatrices(out_))
      return false;
    const auto from = SourceOf(v, at, false);
    if (!from) return false;
    v_ = *from;
    last_ = at;
    MatchJoin();
    return true;
  }

  // Takes the transpose that joins the heads again, if there is one.
  void MatchJoin() {
    const int at = view_.OnlyReader(out_, context_);
    if (at < 0 || !Permutes(Op(at), {0, 2, 1, 3})) return;
    absorbed.push_back(last_);
    out_layout_ = 1;
    out_ = Op(at).Out("Out")[0];
    last_ = at;
  }

  static bool Permutes(const ir::Op& op, const Ints& axes) {
    return (op.type() == "transpose2" || op.type() == "transpose") && op.var_attrs.empty() &&
           op.Attr<Ints>("axis") == axes;
  }
  // The position of the transpose that writes `v`; -1: there is none.
  int TransposeOf(VarId v, int reader, const Ints& axes) const {
    for (const char* type : {"transpose2", "transpose"})
      if (const int at = Writer(v, type, reader); at >= 0) return Permutes(Op(at), axes) ? at : -1;
    return -1;
  }

  // K, if the program swaps its last two dimensions, perhaps in the transpose that splits the
  // heads.
  std::optional<Source> Flipped(VarId k, int reader) {
    if (const int both = TransposeOf(k, reader, {0, 2, 3, 1}); both >= 0) {
      spare.push_back(both);
      return Source{Op(both).In("X")[0], 1, 0};
    }
    const int at = TransposeOf(k, reader, {0, 1, 3, 2});
    if (at < 0) return std::nullopt;
    spare.push_back(at);
    return SourceOf(Op(at).In("X")[0], at, true);
  }

  // The source of operand `v` of the operator at `reader`. `scaled`: a factor may be absorbed.
  std::optional<Source> SourceOf(VarId v, int reader, bool scaled) {
    if (const auto scaling = scaled ? ScalingOf(v, reader) : std::nullopt) {
      const auto& [at, x, factor] = *scaling;
      if (IsMatrices(x) && OnlyFor(v, reader)) {
        scale_ *= factor;
        spare.push_back(at);
        v = x, reader = at;
      }
    }
    if (const int at = TransposeOf(v, reader, {0, 2, 1, 3}); at >= 0) {
      spare.push_back(at);
      return Source{Op(at).In("X")[0], 1, 0};
    }
    if (auto joined = PartOf(v, reader)) return joined;
    return Source{v, 0, 0};
  }

  // One part of a tensor [parts, batch, heads, rows, depth] whose parts a transpose has moved to
  // the front.
  std::optional<Source> PartOf(VarId v, int reader) {
    const int slice = Writer(v, "slice", reader);
    if (slice < 0) return std::nullopt;
    const ir::Op& op = Op(slice);
    for (const char* slot : {"StartsTensor", "EndsTensor", "StartsTensorList", "EndsTensorList"})
      if (!op.In(slot).empty()) return std::nullopt;
    const Ints &starts = op.Attr<Ints>("starts"), &ends = op.Attr<Ints>("ends");
    if (op.Attr<Ints>("axes") != Ints{0} || op.Attr<Ints>("decrease_axis") != Ints{0} ||
        starts.size() != 1 || ends != Ints{starts[0] + 1} || starts[0] < 0)
      return std::nullopt;
    const VarId all = op.In("Input")[0];
    const int transpose = TransposeOf(all, slice, {2, 0, 3, 1, 4});
    if (transpose < 0) return std::nullopt;
    const VarId x = Op(transpose).In("X")[0];
    const Shape& shape = p_.vars[x].shape;
    if (!shape.known_rank() || shape.rank() != 5 || shape[2] <= starts[0]) return std::nullopt;
    spare.push_back(slice);
    spare.push_back(transpose);
    return Source{x, 2, starts[0]};
  }

  const ir::Program& p_;
  PassContext& context_;
  const GraphView& view_;
  const std::vector<bool>& taken_;
  const std::vector<ir::Op>& ops_;
  Source q_, k_, v_;
  std::optional<VarId> mask_;
  std::optional<VarId> condition_;  // instead of a mask
  double otherwise_ = 0;
  // The operator that makes a part of the condition from the shape of these scores.
  std::optional<int> shape_reader_;
  VarId shape_of_ = ir::kNoVar;
  double scale_ = 1;  // of the scores, in all
  double q_factor_ = 1, k_factor_ = 1;
  int64_t out_layout_ = 0;
  VarId out_ = ir::kNoVar;
  int last_ = -1;
};

// Erases the operators of `spare` whose outputs nobody reads or fetches.
void DropUnread(ir::Program& program, const PassContext& context, std::vector<bool> spare) {
  const GraphView view(program, context);
  std::unordered_map<VarId, size_t> gone;  // readers that are erased
  auto& ops = program.blocks[static_cast<size_t>(context.block)].ops;
  for (size_t i = ops.size(); i-- > 0;) {
    if (!spare[i]) continue;
    for (const auto& slot : ops[i].outputs)
      for (VarId v : slot)
        if (v != ir::kNoVar && (view.readers(v).size() > gone[v] || context.fetched.count(v) > 0 ||
                                !view.SingleWriter(v)))
          spare[i] = false;
    if (!spare[i]) continue;
    for (const auto& slot : ops[i].inputs)
      for (VarId v : slot)
        if (v != ir::kNoVar) ++gone[v];  // these operators read a variable once
  }
  size_t kept = 0;
  for (size_t i = 0; i < ops.size(); ++i) {
    LookForInterrupt();
    if (spare[i]) continue;
    if (kept != i) ops[kept] = std::move(ops[i]);
    ++kept;
  }
  ops.resize(kept);
}

// Whether some operator needs another result than 'Out' of an operator, such as the shape before a
// transpose, which a gradient reads.
bool HasOtherReaders(const GraphView& view, const PassContext& context, const ir::Op& op) {
  const int out = std::max(0, op.def->FindOutput("Out"));
  for (size_t s = 0; s < op.outputs.size(); ++s)
    for (const VarId v : op.outputs[s])
      if (static_cast<int>(s) != out && v != ir::kNoVar &&
          (!view.readers(v).empty() || context.fetched.count(v) > 0))
        return true;
  return false;
}

Result<bool> RunFuseAttention(ir::Program& program, PassContext& context) {
  const GraphView view(program, context);
  auto& ops = program.blocks[static_cast<size_t>(context.block)].ops;
  std::vector<std::optional<ir::Op>> replaced(ops.size()), masks(ops.size());
  std::vector<bool> gone(ops.size(), false), spare(ops.size(), false);
  bool changed = false;
  for (size_t i = 0; i < ops.size(); ++i) {
    LookForInterrupt();
    AttentionFuser fuser(program, context, view, gone);
    if (!fuser.Match(static_cast<int>(i)) || !SamePlace(ops, fuser.last(), fuser.absorbed) ||
        !SamePlace(ops, fuser.last(), fuser.spare) ||
        !view.ReadTheSame(fuser.absorbed, fuser.last()) ||
        !view.ReadTheSame(fuser.spare, fuser.last()))
      continue;
    const auto needed = [&](int at) {
      return HasOtherReaders(view, context, ops[static_cast<size_t>(at)]);
    };
    if (needed(fuser.last()) || std::any_of(fuser.absorbed.begin(), fuser.absorbed.end(), needed))
      continue;
    changed = gone[i] = gone[static_cast<size_t>(fuser.last())] = true;
    for (int a : fuser.absorbed) gone[static_cast<size_t>(a)] = true;
    for (int a : fuser.spare) spare[static_cast<size_t>(a)] = true;
    masks[static_cast<size_t>(fuser.last())] = fuser.MakeMask(program);
    replaced[static_cast<size_t>(fuser.last())] = fuser.Make();
  }
  if (!changed) return false;
  std::vector<ir::Op> kept;
  std::vector<bool> kept_spare;
  for (size_t i = 0; i < ops.size(); ++i) {
    LookForInterrupt();
    if (!replaced[i] && gone[i]) continue;
    if (masks[i]) {
      kept.push_back(*std::move(masks[i]));
      kept_spare.push_back(false);
    }
    kept.push_back(replaced[i] ? *std::move(replaced[i]) : std::move(ops[i]));
    kept_spare.push_back(spare[i]);
  }
  ops = std::move(kept);
  DropUnread(program, context, std::move(kept_spare));
  return true;
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_attention) {
  pass.doc =
      "product + factor + mask, added or selected by + softmax + product, and heads' transposes -> "
      "scaled_dot_attention";
  pass.level = 2;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.own_ops = {"scaled_dot_attention"};
  pass.seeks = OfTypes({"softmax"});
  pass.run = RunFuseAttention;
}
