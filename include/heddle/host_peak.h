// The measured peak rates of this machine, which bound every kernel.
#pragma once

namespace heddle {

struct HostPeak {
  double gflops =
      0;  // float32 multiply-adds, two operations each, of all threads together, in 1e9/s
  double copy_gbs = 0;  // bytes read and written by copying between large arrays, in 1e9/s
};

// Measures for about a tenth of a second on `threads` (>= 1) threads, the calling one among them.
// Any thread may call it; what runs beside it lowers the result.
HostPeak MeasureHostPeak(int threads);

}  // namespace heddle
