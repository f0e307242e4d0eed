#include <algorithm>
#include <cmath>

#include "core/interrupts.h"
#include "kernels/sequence/sequence.h"

namespace heddle {
namespace {

Status BoxClipShape(ShapeContext& ctx) {
  const Shape &boxes = ctx.InShape("Input"), &info = ctx.InShape("ImInfo");
  if (boxes.known_rank() && boxes.dim(-1) >= 0 && boxes.dim(-1) != 4)
    return InvalidArgument("Input has shape ", boxes.ToString(), ", expected boxes of 4 values");
  if (info.known_rank() && (info.rank() != 2 || (info[1] >= 0 && info[1] != 3)))
    return InvalidArgument("ImInfo has shape ", info.ToString(), ", expected [images, 3]");
  ctx.SetOut("Output", boxes, ctx.InDType("Input"));
  ctx.ShareLoD("Input", "Output");
  return Status::Ok();
}

template <typename T>
struct BoxClip {
  static Status Run(KernelContext& ctx) {
    const Tensor &boxes = ctx.In("Input"), &info = ctx.In("ImInfo");
    HEDDLE_ASSIGN_OR_RETURN(const Offsets* images, OffsetsOf(boxes, "Input"));
    if (SequenceCount(*images) != info.dim(0))
      return InvalidArgument("Input holds boxes of ", SequenceCount(*images), " images, ImInfo ",
                             info.dim(0));
    const int64_t width = RowSize(boxes);
    T* out = ctx.Out("Output").template mutable_data<T>();
    for (const int64_t i : Watched(info.dim(0))) {
      const T* image = info.data<T>() + i * 3;  // height, width, scale
      const T most[] = {std::round(image[1] / image[2]) - 1, std::round(image[0] / image[2]) - 1};
      for (int64_t k = Begin(*images, i) * width; k < Begin(*images, i + 1) * width; ++k)
        out[k] = std::max(std::min(boxes.data<T>()[k], most[k % 2]), T(0));
    }
    return Status::Ok();
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(box_clip) {
  op.Doc("boxes cut off at the borders of their images");
  op.Input("Input").Input("ImInfo").Output("Output").Inplace("Input", "Output");
  op.InferShape(BoxClipShape).Kernels<BoxClip, float, double>();
}
