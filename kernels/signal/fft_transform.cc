#include "kernels/signal/fft_transform.h"

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "core/interrupts.h"

namespace heddle {
namespace {

constexpr int64_t kLargestFactor = 31;  // beyond, two transforms of a power of two are cheaper

// Empty when a prime factor is too large.
std::vector<int64_t> FactorsOf(int64_t n) {
  std::vector<int64_t> factors;
  for (; n % 4 == 0; n /= 4) factors.push_back(4);
  for (int64_t p = 2; p * p <= n || n > 1; ++p) {
    if (p * p > n) p = n;
    if (p > kLargestFactor) return {};
    for (; n % p == 0; n /= p) factors.push_back(p);
  }
  if (factors.empty()) factors.push_back(1);
  return factors;
}

Fft::Value Root(int64_t k, int64_t n, bool forward) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), forward ? -std::sin(angle) : std::sin(angle)};
}

}  // namespace

Fft::Fft(int64_t n, bool forward) : n_(n), factors_(FactorsOf(n)) {
  if (!factors_.empty()) {
    for (const auto part : Stretches(n))
      for (int64_t k = part.begin; k < part.end; ++k) roots_.push_back(Root(k, n, forward));
    return;
  }
  // x[j] w^(j k) = conj-symmetric chirps around a convolution: j k = (j^2 + k^2 - (k - j)^2) / 2.
  int64_t size = 1;
  while (size < 2 * n - 1) size *= 2;
  there_ = std::make_unique<Fft>(size, true);
  back_ = std::make_unique<Fft>(size, false);
  for (const auto part : Stretches(n))
    for (int64_t k = part.begin; k < part.end; ++k)
      chirp_.push_back(Root(k * k % (2 * n), 2 * n, forward));
  kernel_.resize(static_cast<size_t>(size));
  for (const int64_t k : Watched(n)) {
    const Value v = std::conj(chirp_[static_cast<size_t>(k)]) / static_cast<double>(size);
    kernel_[static_cast<size_t>(k)] = v;
    if (k > 0) kernel_[static_cast<size_t>(size - k)] = v;
  }
  std::vector<Value> work;
  there_->Run(kernel_.data(), &work);
}

// Decimation in time: out[0, n) = the transform of in[0], in[stride], …
void Fft::Mixed(int64_t n, const Value* in, int64_t stride, size_t depth, Value* out) const {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  const int64_t p = factors_[depth], m = n / p, step = n_ / n;
  for (int64_t k = 0; k < p; ++k) Mixed(m, in + k * stride, stride * p, depth + 1, out + k * m);
  Value part[kLargestFactor];
  for (const int64_t j : Watched(m)) {
    for (int64_t k = 0; k < p; ++k)
      part[k] = out[k * m + j] * roots_[static_cast<size_t>(j * k * step)];
    for (int64_t q = 0; q < p; ++q) {
      Value sum = part[0];
      for (int64_t k = 1; k < p; ++k)
        sum += part[k] * roots_[static_cast<size_t>(q * k % p * m * step)];
      out[q * m + j] = sum;
    }
  }
}

void Fft::Chirp(Value* x, std::vector<Value>* work) const {
  std::vector<Value> a(kernel_.size());
  const auto n = static_cast<size_t>(n_);
  for (size_t k = 0; k < n; ++k) a[k] = x[k] * chirp_[k];
  there_->Run(a.data(), work);
  for (size_t k = 0; k < a.size(); ++k) a[k] *= kernel_[k];
  back_->Run(a.data(), work);
  for (size_t k = 0; k < n; ++k) x[k] = a[k] * chirp_[k];
}

void Fft::Run(Value* x, std::vector<Value>* work) const {
  if (factors_.empty()) return Chirp(x, work);
  work->assign(x, x + n_);
  Mixed(n_, work->data(), 1, 0, x);
}

Result<double> FftScale(const std::string& normalization, bool forward, double n) {
  if (normalization == "ortho") return 1 / std::sqrt(n);
  if (normalization == "backward" || normalization.empty()) return forward ? 1.0 : 1 / n;
  if (normalization == "forward") return forward ? 1 / n : 1.0;
  return InvalidArgument("normalization must be backward, ortho or forward, not '", normalization,
                         "'");
}

}  // namespace heddle
