// Discrete Fourier transforms of any length, computed in double precision.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/status.h"

namespace heddle {

// A transform of one length and direction. Immutable once made: any thread may use it.
class Fft {
 public:
  using Value = std::complex<double>;

  // Precondition: n >= 1. `forward`: exp(-2 pi i j k / n); nothing is scaled.
  Fft(int64_t n, bool forward);
  // Transforms x[0, n) in place. `work` grows to what is needed and may serve many calls.
  void Run(Value* x, std::vector<Value>* work) const;
  int64_t n() const { return n_; }

 private:
  void Mixed(int64_t n, const Value* in, int64_t stride, size_t depth, Value* out) const;
  void Chirp(Value* x, std::vector<Value>* work) const;

  int64_t n_;
  std::vector<int64_t> factors_;  // empty: by a convolution with a chirp
  std::vector<Value> roots_;      // roots_[k] = exp(-+ 2 pi i k / n)
  // For lengths with a large prime factor.
  std::vector<Value> chirp_, kernel_;
  std::unique_ptr<Fft> there_, back_;
};

// Factor of Paddle's `normalization` ("backward", "ortho", "forward") for `n` values.
Result<double> FftScale(const std::string& normalization, bool forward, double n);

}  // namespace heddle
