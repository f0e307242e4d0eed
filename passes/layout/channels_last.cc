// Moves the convolutional parts of a network to channels last: in this layout convolutions need no
// reordering, and per-channel operands are rows.
//
// The pass visits a block once. A 4-D variable gets a twin with channels last if an operator can
// write it so; readers that can take the twin do, for the others it is transposed back once. Feeds
// are transposed once. Channel shuffles by reshape, transpose and reshape keep channels last. 3-D
// variables have twins too: 1-D convolutions are convolutions of images of one row, before and
// after which the row's dimension is inserted and removed.
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/graph_view.h"
#include "passes/nested_blocks.h"
#include "passes/pass.h"

namespace heddle::passes {
namespace {

using ir::VarId;

const char* FormatAttr(const ir::Op& op) {
  if (op.def->FindAttr("data_format") >= 0) return "data_format";
  return op.def->FindAttr("data_layout") >= 0 ? "data_layout" : nullptr;
}

bool IsConv(const ir::Op& op) {
  return op.def->FindInput("Filter") >= 0 && op.def->has(kChannelsLast);
}

class LayoutRewriter {
 public:
  LayoutRewriter(ir::Program& program, PassContext& context)
      : p_(program), context_(context), view_(program, context) {}

  bool Run() {
    auto& ops = p_.blocks[static_cast<size_t>(view_.block())].ops;
    if (!Worthwhile(ops)) return false;
    std::vector<ir::Op> old = std::move(ops);
    for (ir::Op& op : old) {
      if (moved_.count(static_cast<int>(&op - old.data())) > 0) continue;
      device_ = op.device;
      if (Rewrite(op) || Shuffle(op, old)) continue;
      for (auto& slot : op.inputs)
        for (VarId v : slot) Restore(v);
      RestoreNested(op);
      ForgetWritten(op);
      out_.push_back(std::move(op));
    }
    for (VarId v : context_.fetched) {
      if (const auto home = home_.find(v); home != home_.end()) device_ = home->second;
      Restore(v);
    }
    p_.blocks[static_cast<size_t>(view_.block())].ops = std::move(out_);
    return changed_;
  }

 private:
  // Whether the block has at least two convolutions, one after another or from turn to turn, or one
  // of an image whose channels were last before a transpose; and no gradients, which read the
  // variables that this pass replaces.
  bool Worthwhile(const std::vector<ir::Op>& ops) const {
    int convolutions = 0;
    for (size_t at = 0; at < ops.size(); ++at) {
      LookForInterrupt();
      if (ops[at].type().ends_with("_grad")) return false;
      if (!IsConv(ops[at])) continue;
      const VarId image = ops[at].inputs[0].empty() ? ir::kNoVar : ops[at].inputs[0][0];
      const bool carried =
          view_.block() > 0 && image != ir::kNoVar &&
          !view_.Unchanged(image, static_cast<int>(at) + 1, static_cast<int>(ops.size()));
      convolutions += carried || IsTransposed(ops, image) ? 2 : 1;
    }
    return convolutions >= 2;
  }

  // Whether a transpose made the image, and all dimensions after its channels were 1 before: the
  // memory already has channels last.
  bool IsTransposed(const std::vector<ir::Op>& ops, VarId v) const {
    if (v == ir::kNoVar || !view_.SingleWriter(v)) return false;
    const ir::Op& writer = ops[static_cast<size_t>(view_.writers(v)[0])];
    if (writer.type() != "transpose2" || !IsImage(v) || RankOf(writer.In("X")[0]) != RankOf(v))
      return false;
    const Ints axis = writer.Attr<Ints>("axis");
    const int rank = RankOf(v);
    if (!writer.var_attrs.empty() || static_cast<int>(axis.size()) != rank || axis[1] < -rank ||
        axis[1] >= rank)
      return false;
    const int64_t channels = axis[1] < 0 ? axis[1] + rank : axis[1];
    const Shape& from = p_.vars[writer.In("X")[0]].shape;
    for (int64_t at = channels + 1; at < rank; ++at)
      if (from[static_cast<int>(at)] != 1) return false;
    return true;
  }

  int RankOf(VarId v) const {
    return v == ir::kNoVar || p_.vars[v].kind != ir::VarKind::kTensor ? -1
                                                                      : p_.vars[v].shape.rank();
  }
  bool Is4D(VarId v) const { return RankOf(v) == 4; }
  bool IsImage(VarId v) const { return RankOf(v) == 3 || RankOf(v) == 4; }
  bool HasTwin(VarId v) const { return twin_.count(v) > 0; }
  // The dimension of the twin that corresponds to dimension `dim` of the image; -1: out of range.
  int64_t Moved(VarId v, int64_t dim) const {
    const int64_t rank = RankOf(v);
    if (dim < -rank || dim >= rank) return -1;
    if (dim < 0) dim += rank;
    return dim == 0 ? 0 : dim == 1 ? rank - 1 : dim - 1;
  }
  bool MoveAll(VarId v, Ints* dims) const {
    for (int64_t& dim : *dims)
      if ((dim = Moved(v, dim)) < 0) return false;
    return !dims->empty();
  }

  VarId NewTwin(VarId v) {
    ir::Var var = p_.vars[v];
    const Shape s = var.shape;
    var.name = p_.FreshName(var.name + ".nhwc");
    var.shape = s.rank() == 3 ? Shape{s[0], s[2], s[1]} : Shape{s[0], s[2], s[3], s[1]};
    var.persistable = false;
    var.block = view_.block();
    home_[v] = device_;
    return twin_[v] = p_.AddVar(std::move(var));
  }

  ir::Op Transpose(VarId from, VarId to, Ints axis) {
    ir::Op op = ir::MakeOp(*FindOp("transpose2"));
    op.inputs[op.def->FindInput("X")] = {from};
    op.outputs[op.def->FindOutput("Out")] = {to};
    op.attrs[op.def->FindAttr("axis")] = std::move(axis);
    op.device = device_;
    return op;
  }

  // The twin of `v`, which is made by a transpose if there is none yet.
  VarId Twin(VarId v) {
    if (auto it = twin_.find(v); it != twin_.end()) return it->second;
    const VarId t = NewTwin(v);
    present_.insert(v);
    out_.push_back(Transpose(v, t, RankOf(v) == 3 ? Ints{0, 2, 1} : Ints{0, 2, 3, 1}));
    return t;
  }

  // Makes `v` itself available, for readers that need the usual layout.
  void Restore(VarId v) {
    if (v == ir::kNoVar || !HasTwin(v) || present_.count(v) > 0) return;
    present_.insert(v);
    out_.push_back(Transpose(twin_[v], v, RankOf(v) == 3 ? Ints{0, 2, 1} : Ints{0, 3, 1, 2}));
  }
  void RestoreNested(const ir::Op& op) {
    ForEachNestedName(p_, context_.uses, op, [&](VarId v, bool written) {
      if (!written) Restore(v);
    });
  }

  // Forgets the twins of variables that the operator overwrites: variables that a loop carries are
  // written after they have been read.
  void ForgetWritten(const ir::Op& op) {
    const auto forget = [this](VarId v) {
      twin_.erase(v);
      present_.erase(v);
    };
    for (const auto& slot : op.outputs)
      for (VarId v : slot) forget(v);
    ForEachNestedName(p_, context_.uses, op, [&](VarId v, bool written) {
      if (written) forget(v);
    });
  }

  // Rewrites the operator to use twins; false: it cannot, or that does not pay.
  bool Rewrite(ir::Op& op) {
    if (op.def->has(kControlFlow) || op.outputs.empty() || !op.var_attrs.empty()) return false;
    for (VarId v : op.outputs[0])
      if (!IsImage(v) || !view_.SingleWriter(v)) return false;
    if (op.outputs[0].empty()) return false;
    bool done = false;
    if (op.def->has(kChannelsLast))
      done = ChannelsLast(op);
    else if (op.def->has(kElementwise))
      done = Elementwise(op);
    else if (op.def->has(kBroadcasts))
      done = Broadcasts(op);
    else if (op.def->has(kAlongAxis))
      done = AlongAxis(op);
    else
      done = Reduces(op) || Slices(op) || ChangesRank(op);
    if (!done) return false;
    // A variable may also be another operand of the operator, which is read in the usual layout.
    for (const auto& slot : op.inputs)
      for (VarId v : slot) Restore(v);
    for (VarId& v : op.outputs[0]) v = NewTwin(v);
    out_.push_back(std::move(op));
    return changed_ = true;
  }

  static bool HasOtherInputs(const ir::Op& op, const char* one) {
    for (size_t slot = 0; slot < op.inputs.size(); ++slot)
      if (static_cast<int>(slot) != op.def->FindInput(one) && !op.inputs[slot].empty()) return true;
    return false;
  }
  bool OtherOutputs(const ir::Op& op) const {
    for (size_t s = 1; s < op.outputs.size(); ++s)
      for (VarId v : op.outputs[s])
        if (v != ir::kNoVar && (!view_.readers(v).empty() || context_.fetched.count(v)))
          return true;
    return false;
  }

  // Drops optional outputs that nobody reads, which would be declared with the usual layout.
  void DropUnread(ir::Op& op) {
    for (size_t s = 1; s < op.outputs.size(); ++s)
      if ((op.def->outputs()[s].flags & kOptional) != 0)
        std::erase_if(op.outputs[s], [&](VarId v) {
          return v != ir::kNoVar && !p_.vars[v].persistable && view_.readers(v).empty() &&
                 context_.fetched.count(v) == 0;
        });
  }

  bool ChannelsLast(ir::Op& op) {
    const char* format = FormatAttr(op);
    auto& value = std::get<std::string>(op.attrs[op.def->FindAttr(format)]);
    VarId& x = op.inputs[0][0];
    if ((value != "NCHW" && value != "AnyLayout") || !IsImage(x)) return false;
    if (!IsConv(op) && (!HasTwin(x) || OtherOutputs(op))) return false;
    value = "NHWC";
    x = Twin(x);
    DropUnread(op);
    if (const int r = op.def->FindInput("ResidualData"); r >= 0)
      for (VarId& v : op.inputs[r])
        if (v != ir::kNoVar) v = Twin(v);
    return true;
  }

  // Whether the operator may have a scale for each index of an axis.
  bool HasScales(const ir::Op& op) const {
    if (op.def->FindAttr("block_size") < 0) return false;
    for (size_t s = 1; s < op.inputs.size(); ++s)
      for (VarId v : op.inputs[s])
        if (v != ir::kNoVar && !(p_.vars[v].shape.is_static() && p_.vars[v].shape.numel() == 1))
          return true;
    return op.Attr<int64_t>("block_size") != 0;
  }

  bool Elementwise(ir::Op& op) {
    VarId& x = op.inputs[0][0];
    if (!HasTwin(x) || HasScales(op)) return false;
    x = twin_[x];
    return true;
  }

  // The operand that a broadcast with a twin of rank `rank` uses in place of `v`: its twin, a
  // number, or a constant per channel; nullopt: it is none of these.
  std::optional<VarId> Beside(VarId v, int64_t axis, int rank) {
    if (HasTwin(v) || (RankOf(v) == rank && !p_.vars[v].persistable)) {
      if (RankOf(v) != rank) return std::nullopt;
      return Twin(v);
    }
    const Tensor* t = context_.Constant(p_, view_, v);
    if (t == nullptr) return std::nullopt;
    if (t->numel() == 1 && t->rank() <= 1) return v;
    const Shape& s = t->shape();
    const bool vector = s.rank() == 1 && axis == 1;
    // All dimensions except that of the channels are 1.
    const bool aligned = s.rank() == rank || (s.rank() == rank - 1 && (axis == -1 || axis == 1));
    const bool column = aligned && s[s.rank() - rank + 1] == t->numel();
    if (!vector && !column) return std::nullopt;
    Tensor row = t->Clone();
    row.SetMeta(row.dtype(), {t->numel()});
    return context_.AddConstant(p_, p_.vars[v].name, std::move(row));
  }

  bool Broadcasts(ir::Op& op) {
    VarId &x = op.inputs[0][0], &y = op.inputs[1][0];
    if (!HasTwin(x) && !HasTwin(y)) return false;
    const int rank = RankOf(HasTwin(x) ? x : y);
    const int64_t axis = op.Attr<int64_t>("axis");
    const bool both = RankOf(x) == rank && RankOf(y) == rank;
    if ((both && axis > 0) || RankOf(op.outputs[0][0]) != rank) return false;
    // A second operand of lower rank is aligned by `axis`; the first may have the lower rank only
    // if axis is -1.
    if (RankOf(x) != rank && axis >= 0) return false;
    auto a = Beside(x, axis, rank), b = a ? Beside(y, axis, rank) : std::nullopt;
    if (!a || !b) return false;
    x = *a;
    y = *b;
    op.attrs[op.def->FindAttr("axis")] = int64_t{-1};
    return true;
  }

  // Whether the operator is a sum, a mean or the like that keeps the reduced dimensions as 1;
  // rewrites it.
  bool Reduces(ir::Op& op) {
    static const std::set<std::string> types{"reduce_max", "reduce_mean", "reduce_min",
                                             "reduce_sum"};
    if (types.count(op.type()) == 0 || !HasTwin(op.In("X")[0]) || !op.Attr<bool>("keep_dim") ||
        op.Attr<bool>("reduce_all") || !op.In("Axes").empty())
      return false;
    Ints dims = op.Attr<Ints>("dim");
    VarId& x = op.inputs[op.def->FindInput("X")][0];
    if (!MoveAll(x, &dims)) return false;
    op.attrs[op.def->FindAttr("dim")] = std::move(dims);
    x = twin_[x];
    return true;
  }

  // Whether the operator is a slice of an image whose bounds are attributes; rewrites it.
  bool Slices(ir::Op& op) {
    if (op.type() != "slice" || !HasTwin(op.In("Input")[0]) || HasOtherInputs(op, "Input") ||
        OtherOutputs(op) || !op.Attr<Ints>("decrease_axis").empty())
      return false;
    VarId& x = op.inputs[op.def->FindInput("Input")][0];
    Ints axes = op.Attr<Ints>("axes");
    if (RankOf(op.outputs[0][0]) != RankOf(x) || !MoveAll(x, &axes)) return false;
    op.attrs[op.def->FindAttr("axes")] = std::move(axes);
    x = twin_[x];
    return true;
  }

  // Whether the operator removes the row's or the column's dimension of 1 from an image, or inserts
  // one; rewrites it.
  bool ChangesRank(ir::Op& op) {
    const bool takes = op.type() == "squeeze2";
    if ((!takes && op.type() != "unsqueeze2") || !HasTwin(op.In("X")[0]) ||
        HasOtherInputs(op, "X") || OtherOutputs(op))
      return false;
    VarId& x = op.inputs[op.def->FindInput("X")][0];
    const VarId out = op.outputs[0][0];
    Ints axes = op.Attr<Ints>("axes");
    if (axes.size() != 1 || RankOf(x) != (takes ? 4 : 3) || RankOf(out) != (takes ? 3 : 4))
      return false;
    const int64_t at = axes[0] < 0 ? axes[0] + 4 : axes[0];  // in the image
    if (at != 2 && at != 3) return false;
    // A squeeze keeps a dimension that is not 1.
    if (takes && p_.vars[x].shape[static_cast<int>(at)] != 1) return false;
    op.attrs[op.def->FindAttr("axes")] = Ints{at - 1};
    DropUnread(op);
    x = twin_[x];
    return true;
  }

  bool AlongAxis(ir::Op& op) {
    bool any = false;
    const int rank = RankOf(op.outputs[0][0]);
    for (VarId v : op.inputs[0]) {
      if (RankOf(v) != rank || p_.vars[v].persistable) return false;
      any = any || HasTwin(v);
    }
    for (size_t s = 1; s < op.inputs.size(); ++s)
      if (!op.inputs[s].empty()) return false;
    if (!any) return false;
    auto& axis = std::get<int64_t>(op.attrs[op.def->FindAttr("axis")]);
    const int64_t moved = Moved(op.inputs[0][0], axis);
    if (moved < 0) return false;
    axis = moved;
    for (VarId& v : op.inputs[0]) v = Twin(v);
    return true;
  }

  // Whether the operator has this type, one input, and one output that is used.
  bool Moves(const ir::Op& op, const char* type) const {
    return op.type() == type && op.var_attrs.empty() && !OtherOutputs(op) &&
           !HasOtherInputs(op, "X");
  }
  int Next(const ir::Op& op) const { return view_.OnlyReader(op.outputs[0][0], context_); }

  // Rewrites a channel shuffle for channels last: `reshape` to [n, groups, c, h, w], a transpose to
  // [n, c, groups, h, w], and a reshape to [n, channels, h, w].
  bool Shuffle(ir::Op& reshape, std::vector<ir::Op>& ops) {
    if (!Moves(reshape, "reshape2") || !HasTwin(reshape.In("X")[0])) return false;
    const int second = Next(reshape);
    if (second < 0 || !Moves(ops[second], "transpose2")) return false;
    const int third = Next(ops[second]);
    if (third < 0 || !Moves(ops[third], "reshape2")) return false;
    const VarId x = reshape.In("X")[0], y = ops[third].outputs[0][0];
    const Shape &from = p_.vars[x].shape, &to = p_.vars[y].shape;
    const Ints& split = reshape.Attr<Ints>("shape");
    const Ints& merged = ops[third].Attr<Ints>("shape");
    if (!Is4D(y) || !view_.SingleWriter(y) || split.size() != 5 || merged.size() != 4 ||
        ops[second].Attr<Ints>("axis") != Ints{0, 2, 1, 3, 4} || !(from == to))
      return false;
    for (int i = 1; i < 4; ++i)
      if (from[i] <= 0 || merged[i] != from[i]) return false;
    if (split[1] <= 0 || split[2] <= 0 || split[1] * split[2] != from[1] || split[3] != from[2] ||
        split[4] != from[3])
      return false;
    reshape.attrs[reshape.def->FindAttr("shape")] = Ints{-1, from[2], from[3], split[1], split[2]};
    ops[second].attrs[ops[second].def->FindAttr("axis")] = Ints{0, 1, 2, 4, 3};
    ops[third].attrs[ops[third].def->FindAttr("shape")] = Ints{-1, from[2], from[3], from[1]};
    reshape.inputs[reshape.def->FindInput("X")][0] = twin_[x];
    Redeclare(reshape.outputs[0][0], {from[0], from[2], from[3], split[1], split[2]});
    Redeclare(ops[second].outputs[0][0], {from[0], from[2], from[3], split[2], split[1]});
    ops[third].outputs[0][0] = NewTwin(y);
    out_.push_back(std::move(reshape));
    for (const int at : {second, third}) {
      moved_.insert(at);
      out_.push_back(std::move(ops[at]));
    }
    return changed_ = true;
  }
  void Redeclare(VarId v, const Shape& shape) { p_.vars[v].shape = shape; }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op> out_;
  std::string device_;   // where added operators run: with the operator that needs them
  std::set<int> moved_;  // operators that have been moved ahead
  std::map<VarId, VarId> twin_;
  std::map<VarId, std::string> home_;  // where a variable with a twin is written
  std::set<VarId> present_;            // variables with a twin that also exist themselves
  bool changed_ = false;
};

Result<bool> RunChannelsLast(ir::Program& program, PassContext& context) {
  return LayoutRewriter(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(channels_last) {
  pass.doc = "moves the convolutional part of a network to NHWC, with as few transposes as needed";
  pass.level = 2;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.before = "b = conv2d(a); c = relu(b); d = conv2d(c)";
  pass.after =
      "a1 = transpose2(a); b1 = conv2d(a1), NHWC; c1 = relu(b1); d1 = conv2d(c1), NHWC; d = "
      "transpose2(d1)";
  pass.refuses =
      "blocks with one convolution, unless its image is the result of the iteration before, or "
      "with gradients; results that sub-blocks touch; operators that do not say how they take the "
      "layout";
  pass.seeks = [](const OpDef& def) {
    return def.FindInput("Filter") >= 0 && def.has(kChannelsLast);
  };
  pass.run = RunChannelsLast;
}
