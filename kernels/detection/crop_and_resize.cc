// Parts of images: boxes as crops of one size, and the windows around each pixel.
#include <cmath>
#include <functional>
#include <memory_resource>
#include <queue>
#include <span>
#include <vector>

#include "core/interrupts.h"
#include "core/threads/look_meter.h"
#include "kernels/base/call_heap.h"
#include "kernels/base/index_args.h"
#include "kernels/operands/narrow.h"
#include "kernels/operands/operands.h"

namespace heddle {
namespace {

Status CropShape(ShapeContext& ctx) {
  const Shape &x = ctx.InShape("image"), &boxes = ctx.InShape("boxes");
  if (!x.known_rank() || !boxes.known_rank()) return ctx.Defer();
  if (x.rank() != 4 || boxes.rank() != 2 || (boxes[1] >= 0 && boxes[1] != 4))
    return InvalidArgument("image has shape ", x.ToString(), " and boxes ", boxes.ToString(),
                           ", expected rank 4 and [?, 4]");
  Shape out{boxes[0], -1, -1, x[3]};
  if (Known(ctx, "crop_size")) {
    HEDDLE_ASSIGN_OR_RETURN(const ShortInts size, IntsIn(ctx, "crop_size"));
    if (size.size() != 2 || size[0] < 1 || size[1] < 1)
      return InvalidArgument("crop_size has ", size.size(), " elements, expected two above 0");
    out[1] = size[0];
    out[2] = size[1];
  }
  ctx.SetOut("crops", out, DType::kF32);
  return Status::Ok();
}

// Positions of a crop along one side, of which some lie outside the image.
void FindCropPositions(float from, float to, int64_t side, std::span<float> at) {
  const auto crop = std::ssize(at);
  const auto last = static_cast<float>(side - 1);
  const float step = crop > 1 ? (to - from) * last / static_cast<float>(crop - 1) : 0;
  for (int64_t i = 0; i < crop; ++i)
    at[static_cast<size_t>(i)] =
        crop > 1 ? from * last + static_cast<float>(i) * step : 0.5F * (from + to) * last;
}

Status CropAndResize(KernelContext& ctx) {
  const Tensor x = InFloat(ctx, ctx.In("image"));
  const Tensor &boxes = ctx.In("boxes"), &images = ctx.In("box_ind");
  HEDDLE_RETURN_IF_ERROR(CheckIntDType(images.dtype(), "box_ind"));
  const std::string& method = ctx.Str("method");
  const bool nearest = method == "nearest";
  if (!nearest && method != "bilinear")
    return InvalidArgument("method is '", method, "', expected bilinear or nearest");
  if (images.numel() != boxes.dim(0) || boxes.dtype() != DType::kF32)
    return InvalidArgument("box_ind has ", images.numel(), " elements and boxes is ",
                           Name(boxes.dtype()), " ", boxes.shape().ToString());
  Tensor& out = ctx.Out("crops");
  const int64_t h = x.dim(1), w = x.dim(2), c = x.dim(3), ch = out.dim(1), cw = out.dim(2);
  for (const auto part : Stretches(images.numel()))
    for (int64_t b = part.begin; b < part.end; ++b)
      if (const int64_t i = IntAt(images, b); i < 0 || i >= x.dim(0))
        return OutOfRange("box_ind holds ", i, " at position ", b, ", expected 0 to ",
                          x.dim(0) - 1);
  if (out.numel() == 0) return Status::Ok();
  if (h == 0 || w == 0) return InvalidArgument("image has no pixels");
  const auto outside = static_cast<float>(ctx.Float("extrapolation_value"));
  const float* from = x.data<float>();
  float* to = out.mutable_data<float>();
  ctx.ParallelFor(boxes.dim(0), 1, [&](int64_t begin, int64_t end) {
    CallHeap heap(ctx);  // of the thread
    std::pmr::vector<float> ys(static_cast<size_t>(ch), &heap), xs(static_cast<size_t>(cw), &heap);
    for (int64_t b = begin; b < end; ++b) {
      const float* box = boxes.data<float>() + b * 4;
      FindCropPositions(box[0], box[2], h, ys);
      FindCropPositions(box[1], box[3], w, xs);
      const float* image = from + IntAt(images, b) * h * w * c;
      for (int64_t i = 0; i < ch * cw; ++i) {
        const float py = ys[static_cast<size_t>(i / cw)], px = xs[static_cast<size_t>(i % cw)];
        float* pixel = to + (b * ch * cw + i) * c;
        if (!(py >= 0 && py <= static_cast<float>(h - 1) && px >= 0 &&
              px <= static_cast<float>(w - 1))) {
          std::fill(pixel, pixel + c, outside);
          continue;
        }
        if (nearest) {
          const int64_t iy = std::min(static_cast<int64_t>(std::round(py)), h - 1),
                        ix = std::min(static_cast<int64_t>(std::round(px)), w - 1);
          std::copy_n(image + (iy * w + ix) * c, c, pixel);
          continue;
        }
        // The last position as float may lie behind the image where that has more than 2^24.
        const int64_t y0 = std::min(static_cast<int64_t>(std::floor(py)), h - 1),
                      y1 = std::min(static_cast<int64_t>(std::ceil(py)), h - 1);
        const int64_t x0 = std::min(static_cast<int64_t>(std::floor(px)), w - 1),
                      x1 = std::min(static_cast<int64_t>(std::ceil(px)), w - 1);
        const float dy = py - static_cast<float>(y0), dx = px - static_cast<float>(x0);
        for (int64_t k = 0; k < c; ++k) {
          const auto at = [&](int64_t yy, int64_t xx) { return image[(yy * w + xx) * c + k]; };
          const float top = at(y0, x0) + (at(y0, x1) - at(y0, x0)) * dx;
          const float bottom = at(y1, x0) + (at(y1, x1) - at(y1, x0)) * dx;
          pixel[k] = top + (bottom - top) * dy;
        }
      }
    }
  });
  return Status::Ok();
}

// The pixels of windows as channels, zeros outside the image.
constexpr int64_t kMostStep = int64_t{1} << 31;
struct Patches {
  int64_t size[2], stride[2], rate[2], pad[2], out[2];
};
Result<Patches> PatchesOf(const OpContext& ctx, const Shape& x) {
  Patches p;
  const Ints &sizes = ctx.IntList("ksizes"), &strides = ctx.IntList("strides"),
             &rates = ctx.IntList("rates");
  const std::string& padding = ctx.Str("padding");
  if (x.rank() != 4 || sizes.size() != 4 || strides.size() != 4 || rates.size() != 4 ||
      (padding != "SAME" && padding != "VALID"))
    return InvalidArgument("images has shape ", x.ToString(),
                           "; four numbers of ksizes, strides and rates and padding SAME or VALID "
                           "are expected");
  for (int i = 0; i < 2; ++i) {
    const auto k = static_cast<size_t>(i) + 1;
    p.size[i] = sizes[k];
    p.stride[i] = strides[k];
    p.rate[i] = rates[k];
    if (p.size[i] < 1 || p.stride[i] < 1 || p.rate[i] < 1 || p.size[i] > 1 << 15 ||
        p.stride[i] > kMostStep || p.rate[i] > kMostStep)
      return InvalidArgument("ksizes, strides and rates hold ", p.size[i], ", ", p.stride[i],
                             " and ", p.rate[i], ", expected at least 1");
    const int64_t in = x[i + 1], reach = (p.size[i] - 1) * p.rate[i] + 1;
    const bool same = padding == "SAME";
    p.out[i] = same ? (in + p.stride[i] - 1) / p.stride[i]
                    : std::max<int64_t>(0, (in - reach + p.stride[i]) / p.stride[i]);
    const int64_t total = std::max<int64_t>(0, (p.out[i] - 1) * p.stride[i] + reach - in);
    p.pad[i] = same ? total / 2 : 0;
  }
  return p;
}
Status PatchShape(ShapeContext& ctx) {
  const Shape& x = ctx.InShape("images");
  if (!x.is_static()) return ctx.Defer();
  HEDDLE_ASSIGN_OR_RETURN(const Patches p, PatchesOf(ctx, x));
  HEDDLE_ASSIGN_OR_RETURN(
      const Shape out,
      MakeShape({x[0], p.out[0], p.out[1], p.size[0] * p.size[1] * x[3]}, "patches"));
  ctx.SetOut("patches", out, ctx.InDType("images"));
  return Status::Ok();
}
Status ExtractPatches(KernelContext& ctx) {
  const Tensor& x = ctx.In("images");
  HEDDLE_ASSIGN_OR_RETURN(const Patches p, PatchesOf(ctx, x.shape()));
  Tensor& out = ctx.Out("patches");
  ZeroBytes(ctx, out.mutable_raw(), out.bytes());
  const int64_t h = x.dim(1), w = x.dim(2);
  const int64_t row = x.dim(3) * static_cast<int64_t>(SizeOf(x.dtype()));
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(out.mutable_raw());
  const int64_t taps = p.size[0] * p.size[1];
  for (const int64_t i : Watched(row > 0 ? x.dim(0) * p.out[0] * p.out[1] * taps : 0)) {
    const int64_t tap = i % taps, place = i / taps;
    const int64_t ox = place % p.out[1], oy = place / p.out[1] % p.out[0];
    const int64_t n = place / (p.out[0] * p.out[1]);
    const int64_t iy = oy * p.stride[0] - p.pad[0] + tap / p.size[1] * p.rate[0];
    const int64_t ix = ox * p.stride[1] - p.pad[1] + tap % p.size[1] * p.rate[1];
    if (iy >= 0 && iy < h && ix >= 0 && ix < w)
      CopyRow(to + i * row, from + ((n * h + iy) * w + ix) * row, row);
  }
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(crop_and_resize) {
  op.Doc("parts of images, resized; what lies outside is extrapolation_value; float32");
  op.Input("image").Input("boxes").Input("box_ind").Input("crop_size", kShapeValue);
  op.Output("crops").Attr("method", "bilinear").Attr("extrapolation_value", 0.0);
  op.InferShape(CropShape).KernelKey("image");
  op.Kernel({DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kU8, DType::kI8,
             DType::kI16, DType::kI32, DType::kI64},
            CropAndResize);
}
HEDDLE_OP(extract_image_patches) {
  op.Doc("the pixels of windows as channels").Input("images").Output("patches");
  op.Attr("ksizes", Ints{}).Attr("strides", Ints{}).Attr("rates", Ints{});
  op.Attr("padding", "VALID").InferShape(PatchShape).AnyKernel(ExtractPatches);
}
