// Sequences sorted by length (lod_rank_table) and tensors cut by that order, for the dynamic
// recurrent networks of older programs.
#pragma once

#include <any>

#include "core/interrupts.h"
#include "kernels/sequence/sequence.h"

namespace heddle {

struct RankTable {
  struct Item {
    int64_t index, length;
  };
  std::vector<Item> items;  // by falling length; equal ones in their order
  LoD outer;                // the levels above the one that was sorted
};

inline Result<const RankTable*> RankTableOf(const KernelContext& ctx) {
  Value* v = ctx.InVar("RankTable");
  const auto* table = v != nullptr && v->kind() == Value::Kind::kOther
                          ? std::any_cast<RankTable>(&v->mutable_other())
                          : nullptr;
  if (table == nullptr) return InvalidArgument("'RankTable' holds no table of ranks");
  return table;
}

// The rows of X that sequence `i` of `level` spans, and the deeper levels' lengths on the way.
struct RowSpan {
  int64_t begin, end;
};

inline RowSpan RowSpanOf(const LoD& lod, size_t level, int64_t begin, int64_t end,
                         std::vector<std::vector<size_t>>* lengths) {
  for (size_t l = level; l < lod.size(); ++l) {
    const Offsets& o = lod[l];
    for (int64_t i = begin; i < end; ++i)
      if (lengths) (*lengths)[l - level].push_back(static_cast<size_t>(Length(o, i)));
    begin = Begin(o, begin);
    end = Begin(o, end);
  }
  return {begin, end};
}

inline LoD LoDFromLengths(const std::vector<std::vector<size_t>>& lengths) {
  LoD lod;
  for (const auto& level : lengths) {
    Offsets o{0};
    for (size_t n : level) o.push_back(o.back() + n);
    lod.push_back(std::move(o));
  }
  return lod;
}

// The spans of `x`, one after the other, as a tensor with these sequences.
inline Tensor& JoinSpans(const KernelContext& ctx, const Tensor& x,
                         const std::vector<RowSpan>& spans,
                         const std::vector<std::vector<size_t>>& lengths, Tensor& out) {
  int64_t rows = 0, at = 0;
  for (const RowSpan& s : spans) rows += s.end - s.begin;
  Shape shape = x.shape();
  shape[0] = rows;
  out = ctx.Scratch(x.dtype(), shape);
  for (const RowSpan& s : spans) {
    LookForInterrupt();
    CopyRows(x, s.begin, s.end - s.begin, out, at);
    at += s.end - s.begin;
  }
  if (!lengths.empty()) out.set_lod(LoDFromLengths(lengths));
  return out;
}

inline Status CheckAllLevels(const Tensor& x) {
  if (x.rank() < 1) return InvalidArgument("X must have at least one dimension");
  for (size_t l = 0; l < x.lod().size(); ++l)
    HEDDLE_RETURN_IF_ERROR(OffsetsOf(x, "X", static_cast<int>(l)).status());
  return Status::Ok();
}

}  // namespace heddle
