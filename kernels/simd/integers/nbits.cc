// The loops of nbits.h for AVX2, which all kernels are built for, and for any processor.
#include "kernels/simd/integers/nbits.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include "kernels/simd/integers/nbit_tile.h"
#include "kernels/simd/isa.h"

namespace heddle::simd {
namespace {

// One column after another; as wide as AVX2.
struct PlainBits {
  static constexpr int kLanes = 8;
  struct T {
    float v[kLanes];
  };
  struct Some {
    uint8_t v[kLanes];
  };
  template <typename Fn>
  static T Each(const Fn& fn) {
    T t;
    for (int i = 0; i < kLanes; ++i) t.v[i] = fn(i);
    return t;
  }
  static T Zero() { return Set(0); }
  static T Set(float x) {
    return Each([&](int) { return x; });
  }
  static T Load(const float* p) {
    return Each([&](int i) { return p[i]; });
  }
  static void Store(float* p, T t) {
    for (int i = 0; i < kLanes; ++i) p[i] = t.v[i];
  }
  static T Add(T a, T b) {
    return Each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static T Sub(T a, T b) {
    return Each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static T Mul(T a, T b) {
    return Each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static T Fma(T a, T b, T c) {
    return Each([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
  }
  static Some Bytes(const uint8_t* p) {
    Some s;
    for (int i = 0; i < kLanes; ++i) s.v[i] = p[i];
    return s;
  }
  static T Signed(const uint8_t* p) {
    return Each([&](int i) { return static_cast<float>(static_cast<int8_t>(p[i])); });
  }
  template <int kShift>
  static T Nibble(Some s) {
    return Each([&](int i) { return static_cast<float>((s.v[i] >> kShift & 15) - 8); });
  }
  template <int kShift>
  static T Crumb(Some s) {
    return Each([&](int i) { return static_cast<float>((s.v[i] >> kShift & 3) - 2); });
  }
};

#ifdef __AVX2__

struct Avx2Bits {
  static constexpr int kLanes = 8;
  using T = __m256;
  static T Zero() { return _mm256_setzero_ps(); }
  static T Set(float x) { return _mm256_set1_ps(x); }
  static T Load(const float* p) { return _mm256_loadu_ps(p); }
  static void Store(float* p, T t) { _mm256_storeu_ps(p, t); }
  static T Add(T a, T b) { return _mm256_add_ps(a, b); }
  static T Sub(T a, T b) { return _mm256_sub_ps(a, b); }
  static T Mul(T a, T b) { return _mm256_mul_ps(a, b); }
  static T Fma(T a, T b, T c) { return _mm256_fmadd_ps(a, b, c); }
  static __m256i Bytes(const uint8_t* p) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }
  static T Signed(const uint8_t* p) {
    return _mm256_cvtepi32_ps(
        _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  template <int kShift>
  static T Nibble(__m256i bytes) {
    const __m256i field = _mm256_and_si256(_mm256_srli_epi32(bytes, kShift), _mm256_set1_epi32(15));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(field, _mm256_set1_epi32(8)));
  }
  // A permutation reads the lower three bits of an index.
  template <int kShift>
  static T Crumb(__m256i bytes) {
    const T table = _mm256_setr_ps(-2, -1, 0, 1, -2, -1, 0, 1);
    return _mm256_permutevar8x32_ps(table, _mm256_srli_epi32(bytes, kShift));
  }
};

#endif

}  // namespace

const NbitKernels* PortableNbitKernels() { return &NbitLoops<PlainBits>::kTable; }

#ifdef __AVX2__
const NbitKernels* Avx2NbitKernels() { return &NbitLoops<Avx2Bits>::kTable; }
#else
const NbitKernels* Avx2NbitKernels() { return nullptr; }
#endif

const NbitKernels* NbitKernelsOf(Isa isa) {
  if (isa == Isa::kAvx512 && Avx512NbitKernels() != nullptr) return Avx512NbitKernels();
  return isa != Isa::kPortable && Avx2NbitKernels() != nullptr ? Avx2NbitKernels()
                                                               : PortableNbitKernels();
}

}  // namespace heddle::simd
