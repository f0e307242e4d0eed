// Sliding windows over images: taking patches out and adding them back.
#pragma once

#include "core/kernel_context.h"

namespace heddle {

// Windows over an image [n, c, h, w]: `out_h` × `out_w` of them, each `k_h` × `k_w` elements. The
// patch tensor holds element (n, c, i, j, y, x) — place (i, j) of window (y, x) — at the sum of the
// given steps, in elements.
struct Patches {
  int64_t n = 0, c = 0, h = 0, w = 0;
  int64_t k_h = 1, k_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  int64_t out_h = 0, out_w = 0;  // set by CountWindows
  int64_t n_step = 0, c_step = 0, i_step = 0, j_step = 0, y_step = 0, x_step = 0;
};

// Sets out_h and out_w; an error when a window does not fit. Unknown sizes (-1) stay unknown.
Status CountWindows(Patches* p);
// patches = the windows of `image`, zero outside it.
Status TakePatches(const KernelContext& ctx, const Patches& p, const Tensor& image,
                   Tensor& patches);
// image = the sum of the patches at their places.
Status AddPatches(const KernelContext& ctx, const Patches& p, const Tensor& patches, Tensor& image);

}  // namespace heddle
