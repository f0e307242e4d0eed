// Images in a batch, with channels first or last.
#pragma once

#include <cstdint>

#include "device/cuda/grid/grid_body.h"

namespace heddle::HEDDLE_GRID {

struct Pixels {
  struct Place {
    int64_t n, c, y, x;
  };
  bool channels_last = false;
  int64_t batch = 0, channels = 0;

  // The place of element i of images of this size, and back.
  HEDDLE_BODY Place At(int64_t i, int64_t rows, int64_t cols) const {
    if (channels_last)
      return {i / channels / cols / rows, i % channels, i / channels / cols % rows,
              i / channels % cols};
    return {i / cols / rows / channels, i / cols / rows % channels, i / cols % rows, i % cols};
  }
  HEDDLE_BODY int64_t Number(const Place& p, int64_t y, int64_t x, int64_t rows,
                             int64_t cols) const {
    return channels_last ? ((p.n * rows + y) * cols + x) * channels + p.c
                         : ((p.n * channels + p.c) * rows + y) * cols + x;
  }
};

}  // namespace heddle::HEDDLE_GRID
