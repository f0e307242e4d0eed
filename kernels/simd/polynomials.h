// The constants of elementary functions that fast_math.h and vector_math.h both compute.
//
// Coefficients stand lowest order first; they are least-maximum fits.
#pragma once

namespace heddle::simd {

inline constexpr float kLog2OfE = 1.44269504088896341f;
// 1.5 * 2^23: a small number added to it is rounded to an integer, which is in the low bits.
inline constexpr float kRoundingShift = 12582912.0f;

// tanh(x) = x P(x^2) / Q(x^2) to 7e-9 of the value; 1 from kTanhBound on.
inline constexpr float kTanhBound = 8.13091373f;
inline constexpr float kTanhP[] = {1.f, 0.134383291f, 0.00356415912f, 2.17659423e-5f,
                                   1.50345304e-8f};
inline constexpr float kTanhQ[] = {1.f, 0.467716556f, 0.0261364494f, 3.39888274e-4f,
                                   8.44635237e-7f};

// erf(x) = x P(x^2) / Q(x^2); 1 from kErfBound on.
inline constexpr float kErfBound = 3.92f;
inline constexpr float kErfP[] = {1.12837915f,    0.190406581f,   0.0527487444f,
                                  3.76562334e-3f, 2.84883125e-4f, 2.05008986e-6f};
inline constexpr float kErfQ[] = {1.0f,          0.502076179f,   0.114109164f,
                                  0.0149692295f, 1.16253752e-3f, 3.80917625e-5f};

}  // namespace heddle::simd
