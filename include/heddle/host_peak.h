// The measured peak rates of this machine, which no kernel can exceed.
#pragma once

namespace heddle {

struct HostPeak {
  double gflops =
      0;  // float32 multiply-adds, two operations each, of all threads together, in 1e9/s
  double copy_gbs = 0;  // bytes read and written by copying between large arrays, in 1e9/s
};

// Measures for about a tenth of a second on `threads` (>= 1) threads, including the calling one.
// Any thread may call it; other work on the machine lowers the result.
HostPeak MeasureHostPeak(int threads);

}  // namespace heddle
