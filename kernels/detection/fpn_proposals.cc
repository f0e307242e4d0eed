// distribute_fpn_proposals and collect_fpn_proposals: regions of a feature pyramid, from one list
// to one per level and back.
#include <cmath>

#include "core/interrupts.h"
#include "kernels/base/axis_lines.h"
#include "kernels/base/shape_checks.h"
#include "kernels/base/to_place.h"
#include "kernels/detection/boxes.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

// Offsets of the images' regions: from their numbers where given, else from the sequences.
Result<Offsets> ImageOffsets(const Tensor& rois, const Tensor* numbers, const char* slot) {
  if (numbers == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(rois, slot));
    return *offsets;
  }
  Offsets offsets{0};
  for (int64_t n : ToInts(*numbers))
    offsets.push_back(offsets.back() + static_cast<size_t>(std::max<int64_t>(n, 0)));
  if (static_cast<int64_t>(offsets.back()) > rois.dim(0))
    return OutOfRange("there are ", rois.dim(0), " regions in ", slot, ", ", offsets.back(),
                      " are counted");
  return offsets;
}

template <typename T>
struct Distribute {
  static Status Run(KernelContext& ctx) {
    const Tensor& rois = ctx.In("FpnRois");
    const int64_t low = ctx.Int("min_level"), levels = ctx.Int("max_level") - low + 1;
    if (rois.rank() != 2 || rois.dim(1) != 4 || levels < 1 ||
        ctx.OutCount("MultiFpnRois") != levels)
      return InvalidArgument("FpnRois ", rois.shape().ToString(), " and ", levels,
                             " levels do not fit the outputs");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets offsets,
                            ImageOffsets(rois, ctx.InOpt("RoisNum"), "FpnRois"));
    const int64_t images = SequenceCount(offsets), total = static_cast<int64_t>(offsets.back());
    std::vector<std::vector<int64_t>> members(static_cast<size_t>(levels));
    std::vector<Offsets> level_offsets(static_cast<size_t>(levels), Offsets{0});
    for (const int64_t n : Watched(images)) {
      for (int64_t i = Begin(offsets, n); i < Begin(offsets, n + 1); ++i)
        members[static_cast<size_t>(LevelOf(ctx, rois.data<T>() + i * 4, low, levels))].push_back(
            i);
      for (size_t l = 0; l < members.size(); ++l) level_offsets[l].push_back(members[l].size());
    }
    int32_t* restore =
        ctx.Alloc("RestoreIndex", DType::kI32, Shape{total, 1}).template mutable_data<int32_t>();
    int32_t next = 0;
    for (size_t l = 0; l < members.size(); ++l) {
      for (int64_t i : members[l]) restore[i] = next++;
      PutLevel(ctx, rois, members[l], level_offsets[l], static_cast<int>(l));
    }
    return Status::Ok();
  }

  static int64_t LevelOf(const KernelContext& ctx, const T* roi, int64_t low, int64_t levels) {
    const T size = std::sqrt(BoxArea(roi, !ctx.Bool("pixel_offset")));
    const T scale = size / static_cast<T>(ctx.Int("refer_scale")) + static_cast<T>(1e-6);
    const T level = std::floor(std::log2(scale) + static_cast<T>(ctx.Int("refer_level")));
    return std::clamp<int64_t>(ToPlace(level), low, low + levels - 1) - low;
  }

  static void PutLevel(const KernelContext& ctx, const Tensor& rois,
                       const std::vector<int64_t>& members, const Offsets& offsets, int level) {
    if (ctx.HasOut("MultiFpnRois", level)) {
      Tensor& out = ctx.Alloc("MultiFpnRois", rois.dtype(), Shape{std::ssize(members), 4}, level);
      for (size_t i = 0; i < members.size(); ++i)
        CopyRows(rois, members[i], 1, out, static_cast<int64_t>(i));
      out.set_lod({offsets});
    }
    if (level >= ctx.OutCount("MultiLevelRoIsNum") || !ctx.HasOut("MultiLevelRoIsNum", level))
      return;
    Tensor& numbers =
        ctx.Alloc("MultiLevelRoIsNum", DType::kI32, Shape{SequenceCount(offsets)}, level);
    for (int64_t n = 0; n < SequenceCount(offsets); ++n)
      numbers.mutable_data<int32_t>()[n] = static_cast<int32_t>(Length(offsets, n));
  }
};

template <typename T>
struct Collect {
  struct Region {
    T score;
    int64_t image, level, at;
  };

  static Status Run(KernelContext& ctx) {
    const int levels = ctx.InCount("MultiLevelRois");
    if (levels == 0 || levels != ctx.InCount("MultiLevelScores"))
      return InvalidArgument("MultiLevelRois and MultiLevelScores differ in length");
    std::vector<Region> all;
    int64_t images = 0;
    for (int l = 0; l < levels; ++l) {
      const Tensor &rois = ctx.In("MultiLevelRois", l), &scores = ctx.In("MultiLevelScores", l);
      const bool counted = l < ctx.InCount("MultiLevelRoIsNum");
      HEDDLE_ASSIGN_OR_RETURN(
          const Offsets offsets,
          ImageOffsets(rois, counted ? ctx.InOpt("MultiLevelRoIsNum", l) : nullptr,
                       "MultiLevelRois"));
      if (scores.dtype() != rois.dtype() || rois.numel() != 4 * rois.dim(0) ||
          scores.numel() < static_cast<int64_t>(offsets.back()))
        return InvalidArgument("MultiLevelScores [", l, "] does not fit MultiLevelRois");
      if (l == 0) images = SequenceCount(offsets);
      for (const int64_t n : Watched(SequenceCount(offsets)))
        for (int64_t i = Begin(offsets, n); i < Begin(offsets, n + 1); ++i)
          all.push_back({scores.data<T>()[i], n, l, i});
    }
    LookCount looks;
    std::stable_sort(all.begin(), all.end(), looks.In([](const Region& a, const Region& b) {
      return Greater(a.score, b.score);
    }));
    if (const int64_t keep = ctx.Int("post_nms_topN"); keep < std::ssize(all))
      all.resize(static_cast<size_t>(std::max<int64_t>(keep, 0)));
    std::stable_sort(all.begin(), all.end(),
                     looks.In([](const Region& a, const Region& b) { return a.image < b.image; }));
    Put(ctx, all, images);
    return Status::Ok();
  }

  static void Put(const KernelContext& ctx, const std::vector<Region>& all, int64_t images) {
    Tensor& out = ctx.Alloc("FpnRois", kDTypeOf<T>, Shape{std::ssize(all), 4});
    Offsets offsets(static_cast<size_t>(images) + 1, 0);
    for (size_t i = 0; i < all.size(); ++i) {
      CopyRows(ctx.In("MultiLevelRois", static_cast<int>(all[i].level)), all[i].at, 1, out,
               static_cast<int64_t>(i));
      for (auto n = static_cast<size_t>(all[i].image) + 1; n < offsets.size(); ++n) ++offsets[n];
    }
    out.set_lod({offsets});
    if (!ctx.HasOut("RoisNum")) return;
    Tensor& numbers = ctx.Alloc("RoisNum", DType::kI32, Shape{images});
    for (int64_t n = 0; n < images; ++n)
      numbers.mutable_data<int32_t>()[n] = static_cast<int32_t>(Length(offsets, n));
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(distribute_fpn_proposals) {
  op.Doc("regions, by size, to the levels of a feature pyramid");
  op.Input("FpnRois").Input("RoisNum", kOptional).Output("MultiFpnRois", kList);
  op.Output("RestoreIndex").Output("MultiLevelRoIsNum", kList | kOptional);
  op.Attr("min_level", 2).Attr("max_level", 5).Attr("refer_level", 4).Attr("refer_scale", 224);
  op.Attr("pixel_offset", true).Kernels<Distribute, float, double>();
}
HEDDLE_OP(collect_fpn_proposals) {
  op.Doc("the best regions of all levels of a feature pyramid, by image");
  op.Input("MultiLevelRois", kList).Input("MultiLevelScores", kList);
  op.Input("MultiLevelRoIsNum", kList | kOptional).Output("FpnRois").Output("RoisNum", kOptional);
  op.Attr("post_nms_topN", 1000).Kernels<Collect, float, double>();
}
