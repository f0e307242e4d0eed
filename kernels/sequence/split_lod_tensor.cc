// split_lod_tensor and merge_lod_tensor: the sequences of a batch parted by a mask and joined again
// (what an IfElse over samples becomes). Without sequence offsets, rows take their place. Each is
// the other's gradient.
#include "core/interrupts.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Gathers sequences, which start at a level of their tensor's offsets, into rows and offsets.
class Collector {
 public:
  struct Piece {
    const Tensor* from;
    int64_t begin, count;  // rows
  };

  // Adds sequence `i` of `level`.
  Status Add(const Tensor& from, size_t level, int64_t i) {
    const LoD& lod = from.lod();
    size_t begin = static_cast<size_t>(i), end = begin + 1;
    if (lod_.empty() && level < lod.size()) lod_.assign(lod.size() - level, Offsets{0});
    for (size_t l = level; l < lod.size(); ++l) {
      if (begin > end || end >= lod[l].size() || l - level >= lod_.size())
        return InvalidArgument("there is no sequence ", i, " at level ", level);
      for (size_t k = begin; k < end; ++k)
        lod_[l - level].push_back(lod_[l - level].back() + lod[l][k + 1] - lod[l][k]);
      begin = lod[l][begin];
      end = lod[l][end];
    }
    if (end > static_cast<size_t>(from.dim(0)) || begin > end)
      return InvalidArgument("there are no rows ", begin, " to ", end);
    pieces_.push_back({&from, static_cast<int64_t>(begin), static_cast<int64_t>(end - begin)});
    rows_ += static_cast<int64_t>(end - begin);
    return Status::Ok();
  }

  // `like` says dtype and row shape; `outer` are levels put in front.
  void Put(const KernelContext& ctx, Key key, const Tensor& like, LoD outer) const {
    if (!ctx.HasOut(key)) return;
    Shape shape = like.shape();
    shape[0] = rows_;
    Tensor& out = ctx.Alloc(key, like.dtype(), shape);
    int64_t at = 0;
    for (const Piece& p : pieces_) {
      CopyRows(*p.from, p.begin, p.count, out, at);
      at += p.count;
    }
    outer.insert(outer.end(), lod_.begin(), lod_.end());
    if (!outer.empty()) out.set_lod(std::move(outer));
  }

 private:
  std::vector<Piece> pieces_;
  LoD lod_;
  int64_t rows_ = 0;
};

Status CheckMask(const KernelContext& ctx) {
  const Tensor& mask = ctx.In("Mask");
  if (mask.dtype() != DType::kBool || mask.rank() < 1 || mask.numel() != mask.dim(0))
    return InvalidArgument("Mask must be a column of bool, it is ", Name(mask.dtype()), " ",
                           mask.shape().ToString());
  if (ctx.Int("level") < 0) return InvalidArgument("level is ", ctx.Int("level"));
  return Status::Ok();
}

Status Split(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMask(ctx));
  const Tensor &x = ctx.In("X"), &mask = ctx.In("Mask");
  if (x.rank() < 1) return InvalidArgument("X must have rows");
  Collector parts[2];
  for (const auto part : Stretches(mask.numel()))
    for (int64_t i = part.begin; i < part.end; ++i)
      HEDDLE_RETURN_IF_ERROR(
          parts[mask.data<bool>()[i]].Add(x, static_cast<size_t>(ctx.Int("level")), i));
  parts[0].Put(ctx, "OutFalse", x, {});
  parts[1].Put(ctx, "OutTrue", x, {});
  return Status::Ok();
}

Status Merge(KernelContext& ctx) {
  HEDDLE_RETURN_IF_ERROR(CheckMask(ctx));
  const Tensor &mask = ctx.In("Mask"), &yes = ctx.In("InTrue"), &no = ctx.In("InFalse");
  if (yes.rank() < 1 || no.rank() < 1 || yes.dtype() != no.dtype() ||
      yes.shape().Product(1, yes.rank()) != no.shape().Product(1, no.rank()))
    return InvalidArgument("InTrue ", yes.shape().ToString(), " and InFalse ",
                           no.shape().ToString(), " must have rows of one kind");
  const auto level = static_cast<size_t>(ctx.Int("level"));
  LoD outer;
  if (level > 0) {
    const Value* x = ctx.InVar("X");  // whose contents may be gone
    if (x == nullptr || !x->is_tensor() || x->tensor().lod().size() < level)
      return InvalidArgument("X has less than ", level, " levels of sequences");
    const LoD& lod = x->tensor().lod();
    outer.assign(lod.begin(), lod.begin() + static_cast<std::ptrdiff_t>(level));
  }
  Collector all;
  int64_t next[2] = {0, 0};
  for (const int64_t i : Watched(mask.numel())) {
    const bool which = mask.data<bool>()[i];
    HEDDLE_RETURN_IF_ERROR(all.Add(which ? yes : no, 0, next[which]++));
  }
  all.Put(ctx, "Out", yes.rank() > 0 ? yes : no, std::move(outer));
  return Status::Ok();
}

void DefineMerge(OpDef& op) {
  op.Doc("The sequences (or rows) of InTrue and InFalse in the order that Mask says.");
  op.Input("X", kOptional | kNoBuffer).Input("Mask").Input("InTrue").Input("InFalse");
  op.Output("Out").Attr("level", 0).KernelKey("InTrue").AnyKernel(Merge);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(split_lod_tensor) {
  op.Doc("The sequences (or rows) of X for which Mask holds, and the others.");
  op.Input("X").Input("Mask").Output("OutTrue", kOptional).Output("OutFalse", kOptional);
  op.Attr("level", 0).AnyKernel(Split);
}
HEDDLE_OP(merge_lod_tensor) { DefineMerge(op); }
HEDDLE_OP(merge_lod_tensor_infer) { DefineMerge(op); }
