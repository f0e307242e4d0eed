// Fuses a channel shuffle with channels last: concat, reshape, transpose, reshape and split pass
// over memory three times, the fused operator once.
#include <algorithm>
#include <numeric>

#include "core/op_registry.h"
#include "passes/fuse/replace_chains.h"
#include "passes/pass.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

class ShuffleFuser {
 public:
  ShuffleFuser(const ir::Program& program, const PassContext& context, const GraphView& view,
               int at)
      : p_(program),
        context_(context),
        view_(view),
        ops_(program.blocks[static_cast<size_t>(view.block())].ops),
        at_(at) {}

  bool Grow(const TakenOps& gone) {
    const ir::Op& concat = Op(at_);
    if (concat.type() != "concat" || !concat.var_attrs.empty() || !concat.In("AxisTensor").empty())
      return false;
    const VarId whole = concat.Out("Out")[0];
    if (!IsLast(concat.Attr<int64_t>("axis"), whole) || !SameAndStable(concat.In("X")))
      return false;
    const int apart = Next(whole, "reshape2", gone),
              swapped = Next(OutOf(apart), "transpose2", gone),
              together = Next(OutOf(swapped), "reshape2", gone);
    if (together < 0 || !Parts(Op(apart)) || !SwapsLast(Op(swapped)) || !Joins(Op(together)))
      return false;
    absorbed = {apart, swapped, together};
    outs_ = {OutOf(together)};
    sections_ = {shape_.back()};
    const int split = Next(outs_[0], "split", gone);
    if (split >= 0 && Cuts(Op(split))) absorbed.push_back(split);
    return std::all_of(concat.In("X").begin(), concat.In("X").end(),
                       [&](VarId v) { return view_.WrittenBefore(v, at_); });
  }

  ir::Op Make() const {
    const ir::Op& last = Op(absorbed.back());
    ir::Op fused = ir::MakeOp(*FindOp("fused_channel_shuffle"));
    fused.index = last.index;
    fused.call_stack = last.call_stack;
    fused.attrs[fused.def->FindAttr("shape")] = shape_;
    fused.attrs[fused.def->FindAttr("sections")] = sections_;
    fused.inputs[fused.def->FindInput("X")] = Op(at_).In("X");
    fused.outputs[fused.def->FindOutput("Out")] = outs_;
    return fused;
  }

  std::vector<int> absorbed;

 private:
  const ir::Op& Op(int at) const { return ops_[static_cast<size_t>(at)]; }
  VarId OutOf(int at) const { return at < 0 ? kNoVar : Op(at).Out("Out")[0]; }

  // The position of the only reader of `v`, if it has this type, no other input, and an XShape that
  // nobody reads; else -1.
  int Next(VarId v, const char* type, const TakenOps& gone) const {
    const int at = v == kNoVar ? -1 : view_.OnlyReader(v, context_);
    if (at < 0 || gone[static_cast<size_t>(at)]) return -1;
    const ir::Op& op = Op(at);
    if (op.type() != type || !op.var_attrs.empty() || !HasOnlyInput(op, "X")) return -1;
    const int slot = op.def->FindOutput("XShape");
    if (slot >= 0)
      for (VarId shape : op.outputs[static_cast<size_t>(slot)])
        if (shape != kNoVar && (!view_.SingleWriter(shape) || !view_.readers(shape).empty() ||
                                context_.fetched.count(shape) > 0))
          return -1;
    return at;
  }

  bool IsLast(int64_t axis, VarId v) const {
    const Shape& shape = p_.vars[v].shape;
    return shape.known_rank() && shape.rank() > 1 && (axis == -1 || axis == shape.rank() - 1);
  }

  // Whether the parts are float tensors with the same number of channels.
  bool SameAndStable(const std::vector<VarId>& list) {
    constexpr size_t kMost = 16;
    if (list.size() < 2 || list.size() > kMost) return false;
    for (VarId v : list) {
      if (v == kNoVar || p_.vars[v].dtype != DType::kF32 || !p_.vars[v].shape.known_rank() ||
          p_.vars[v].shape.rank() < 2)
        return false;
      const Shape& shape = p_.vars[v].shape;
      const int64_t channels = shape[shape.rank() - 1];
      if (channels <= 0 || (v != list[0] && channels != channels_)) return false;
      channels_ = channels;
    }
    groups_ = static_cast<int64_t>(list.size());
    return true;
  }

  // Whether the reshape splits the channels: … -> […, groups, channels].
  bool Parts(const ir::Op& reshape) const {
    const Ints& shape = reshape.Attr<Ints>("shape");
    return shape.size() > 2 && Plain(shape) && shape.end()[-2] == groups_ &&
           shape.back() == channels_;
  }
  bool SwapsLast(const ir::Op& transpose) const {
    const auto& axis = transpose.Attr<Ints>("axis");
    Ints want(axis.size());
    std::iota(want.begin(), want.end(), 0);
    if (want.size() < 3) return false;
    std::swap(want.end()[-1], want.end()[-2]);
    return axis == want;
  }
  // Whether the reshape joins them: […, channels, groups] -> […, channels times groups].
  bool Joins(const ir::Op& reshape) {
    shape_ = reshape.Attr<Ints>("shape");
    return !shape_.empty() && Plain(shape_) && shape_.back() == groups_ * channels_;
  }
  // Whether the shape copies no dimension of the input (0) and infers at most one (-1).
  static bool Plain(const Ints& shape) {
    return std::count(shape.begin(), shape.end(), -1) <= 1 &&
           std::all_of(shape.begin(), shape.end(), [](int64_t d) { return d == -1 || d > 0; });
  }

  // Takes the outputs of a split along the last dimension, if there is one.
  bool Cuts(const ir::Op& split) {
    const auto rank = static_cast<int64_t>(shape_.size());
    const int64_t axis = split.Attr<int64_t>("axis"), num = split.Attr<int64_t>("num");
    const std::vector<VarId>& outs = split.Out("Out");
    if ((axis != -1 && axis != rank - 1) || outs.size() > 16) return false;
    Ints sections = split.Attr<Ints>("sections");
    if (num > 0) {
      if (shape_.back() % num != 0) return false;
      sections.assign(static_cast<size_t>(num), shape_.back() / num);
    }
    if (sections.size() != outs.size() || std::count(outs.begin(), outs.end(), kNoVar) > 0 ||
        std::any_of(sections.begin(), sections.end(), [](int64_t n) { return n <= 0; }) ||
        std::accumulate(sections.begin(), sections.end(), int64_t{0}) != shape_.back())
      return false;
    outs_ = outs;
    sections_ = std::move(sections);
    return true;
  }

  const ir::Program& p_;
  const PassContext& context_;
  const GraphView& view_;
  const std::vector<ir::Op>& ops_;
  const int at_;
  int64_t groups_ = 0, channels_ = 0;
  Ints shape_, sections_;
  std::vector<VarId> outs_;
};

Result<bool> RunFuseChannelShuffle(ir::Program& program, PassContext& context) {
  return !UsesLoD(program, context) && ReplaceChains<ShuffleFuser>(program, context);
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_channel_shuffle) {
  pass.doc =
      "concat + reshape + transpose of the last two dimensions + reshape (+ split) -> "
      "fused_channel_shuffle";
  pass.before =
      "c = concat([a, b], axis=3); d = reshape2(c, [-1, 28, 28, 2, 24]); e = transpose2(d, [0, 1, "
      "2, 4, 3]); f = reshape2(e, [-1, 28, 28, 48]); g, h = split(f, 2, axis=3)";
  pass.after = "g, h = fused_channel_shuffle([a, b], [-1, 28, 28, 48], [24, 24])";
  pass.refuses =
      "parts that are not float32 or differ in shape; another dimension than the last; shapes "
      "that variables hold or that take over dimensions (0); results in the middle that are "
      "fetched or read elsewhere; programs with sequence offsets";
  pass.level = 2;
  pass.each_block = true;
  pass.own_ops = {"fused_channel_shuffle"};
  pass.seeks = OfTypes({"concat"});
  pass.run = RunFuseChannelShuffle;
}
