// What this machine can do at most, measured.
#pragma once

namespace heddle::tools {

struct MachinePeak {
  double gflops = 0;    // float32 multiply-adds, two operations each, of all threads together
  double copy_gbs = 0;  // bytes read and written by copying between large arrays
};

// Takes about a tenth of a second.
MachinePeak MeasurePeak(int threads);

}  // namespace heddle::tools
