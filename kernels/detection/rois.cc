#include "kernels/detection/rois.h"

#include "core/error.h"
#include "core/interrupts.h"
#include "kernels/base/shape_checks.h"
#include "kernels/sequence/sequence.h"

namespace heddle {

Status CheckRoiOperands(const ShapeContext& ctx) {
  const Shape &x = ctx.InShape("X"), &rois = ctx.InShape("ROIs");
  if (x.known_rank() && x.rank() != 4)
    return InvalidArgument("X must be [N, C, H, W], not ", x.ToString());
  if (rois.known_rank() && (rois.rank() != 2 || (rois[1] >= 0 && rois[1] != 4)))
    return InvalidArgument("ROIs must be [R, 4], not ", rois.ToString());
  if (ctx.InDType("X") != ctx.InDType("ROIs"))
    return InvalidArgument("X and ROIs must have the same dtype");
  if (ctx.Int("pooled_height") < 1 || ctx.Int("pooled_width") < 1)
    return InvalidArgument("pooled_height and pooled_width must be positive");
  constexpr int64_t kMost = int64_t{1}
                            << 30;  // of bins along a side: their product is counted with
  if (ctx.Int("pooled_height") > kMost || ctx.Int("pooled_width") > kMost)
    return InvalidArgument("pooled_height is ", ctx.Int("pooled_height"), " and pooled_width ",
                           ctx.Int("pooled_width"), ", beyond the limit of ", kMost);
  return Status::Ok();
}

Result<std::pmr::vector<int64_t>> ImagesOf(KernelContext& ctx, int64_t images, CallHeap* heap) {
  const Tensor& rois = ctx.In("ROIs");
  std::pmr::vector<int64_t> of(heap);
  const Tensor* named = ctx.def().FindInput("Images") < 0 ? nullptr : ctx.InOpt("Images");
  if (named != nullptr) {
    const Labels image(ctx, *named);
    for (const int64_t i : Watched(named->numel())) {
      if (image[i] < 0 || image[i] >= images)
        return OutOfRange("Images holds ", image[i], ", X has ", images, " images");
      of.push_back(image[i]);
    }
    if (named->numel() == rois.dim(0)) return of;
  } else if (const Tensor* numbers = ctx.InOpt("RoisNum")) {
    const Labels count(ctx, *numbers);
    for (const int64_t i : Watched(numbers->numel())) {
      if (count[i] < 0 || count[i] > rois.dim(0))
        return OutOfRange("RoisNum holds ", count[i], " of ", rois.dim(0), " regions");
      of.insert(of.end(), static_cast<size_t>(count[i]), i);
    }
  } else {
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* const offsets, OffsetsOf(rois, "ROIs"));
    for (int64_t i = 0; i < SequenceCount(*offsets); ++i)
      of.insert(of.end(), static_cast<size_t>(Length(*offsets, i)), i);
  }
  if (static_cast<int64_t>(of.size()) != rois.dim(0) || (!of.empty() && of.back() >= images))
    return InvalidArgument("the regions' images do not fit ", rois.dim(0), " regions and ", images,
                           " images");
  return of;
}

}  // namespace heddle
