// Factorizations and systems on matrices below, at and above the width of a block: factors give
// back the matrix, solutions fit their system.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

constexpr int64_t kSizes[] = {1, 5, 31, 32, 33, 64, 100};

struct Mat {
  int64_t rows, cols;
  std::vector<double> v;
  Mat(int64_t r, int64_t c) : rows(r), cols(c), v(static_cast<size_t>(r * c), 0.0) {}
  double& operator()(int64_t r, int64_t c) { return v[static_cast<size_t>(r * cols + c)]; }
  double operator()(int64_t r, int64_t c) const { return v[static_cast<size_t>(r * cols + c)]; }
};

Mat Random(int64_t rows, int64_t cols, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Mat m(rows, cols);
  // Values that a float holds, so that both types see one matrix.
  for (double& x : m.v) x = static_cast<float>(uniform(engine));
  return m;
}
Mat Identity(int64_t n) {
  Mat m(n, n);
  for (int64_t i = 0; i < n; ++i) m(i, i) = 1;
  return m;
}
Mat Turned(const Mat& a) {
  Mat t(a.cols, a.rows);
  for (int64_t r = 0; r < a.rows; ++r)
    for (int64_t c = 0; c < a.cols; ++c) t(c, r) = a(r, c);
  return t;
}
Mat operator*(const Mat& a, const Mat& b) {
  Mat out(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t k = 0; k < a.cols; ++k)
      for (int64_t j = 0; j < b.cols; ++j) out(i, j) += a(i, k) * b(k, j);
  return out;
}
double Distance(const Mat& a, const Mat& b) {
  if (a.rows != b.rows || a.cols != b.cols) return INFINITY;
  double largest = 0;
  for (size_t i = 0; i < a.v.size(); ++i)
    if (const double d = std::abs(a.v[i] - b.v[i]); !(d <= largest)) largest = d;
  return largest;
}
// What lies outside of a triangle becomes `other`.
Mat Triangle(Mat m, bool upper, double other = 0) {
  for (int64_t r = 0; r < m.rows; ++r)
    for (int64_t c = 0; c < m.cols; ++c)
      if (upper ? c < r : c > r) m(r, c) = other;
  return m;
}

template <typename T>
Tensor ToTensor(const Mat& m) {
  Tensor t = Tensor::Zeros(sizeof(T) == 4 ? DType::kF32 : DType::kF64, Shape{m.rows, m.cols});
  for (size_t i = 0; i < m.v.size(); ++i) t.mutable_data<T>()[i] = static_cast<T>(m.v[i]);
  return t;
}
template <typename T>
Mat ToMat(const Tensor& t) {
  Mat m(t.dim(0), t.dim(1));
  for (size_t i = 0; i < m.v.size(); ++i) m.v[i] = static_cast<double>(t.data<T>()[i]);
  return m;
}

template <typename T>
class Linalg : public ::testing::Test {
 protected:
  // One operator with the inputs of these names; what it writes to `outs`, or its error.
  static Result<std::vector<Tensor>> Run(const std::string& type,
                                         const std::vector<std::pair<std::string, Mat>>& ins,
                                         const std::vector<std::string>& outs,
                                         const Attrs& attrs = {}) {
    ProgramBuilder b;
    std::vector<Feed> feeds;
    Slots in, out;
    for (const auto& [name, m] : ins) {
      feeds.push_back({name, ToTensor<T>(m)});
      b.Feed(name, feeds.back().value.tensor().dtype(), feeds.back().value.tensor().shape());
      in.push_back({name, {name}});
    }
    for (const auto& name : outs) out.push_back({name, {name}});
    b.Op(type, in, out, attrs);
    for (const auto& name : outs) b.Fetch(name);
    Executor executor({.threads = 1});
    auto compiled = executor.Compile(b.Build(), nullptr, {.opt_level = 0});
    if (!compiled.ok()) return compiled.status();
    return executor.Run(*compiled, feeds);
  }
  static Mat One(const std::string& type, const std::vector<std::pair<std::string, Mat>>& ins,
                 const std::string& out, const Attrs& attrs = {}) {
    auto got = Run(type, ins, {out}, attrs);
    EXPECT_TRUE(got.ok()) << got.status().ToString();
    return got.ok() ? ToMat<T>((*got)[0]) : Mat(0, 0);
  }
  static constexpr double kTolerance = sizeof(T) == 4 ? 5e-4 : 1e-11;
};
using Types = ::testing::Types<float, double>;
TYPED_TEST_SUITE(Linalg, Types);

TYPED_TEST(Linalg, TriangularSystems) {
  for (int64_t n : kSizes)
    for (int64_t k : {1, 3, 40})
      for (int flags = 0; flags < 8; ++flags) {
        const bool upper = flags & 1, transpose = flags & 2, unit = flags & 4;
        Mat a = Random(n, n, 1);
        for (double& x : a.v) x = static_cast<float>(x / static_cast<double>(n));
        for (int64_t i = 0; i < n; ++i) a(i, i) = unit ? 1 : 2;
        Mat given = Triangle(a, upper, NAN);  // is not read
        a = Triangle(a, upper);
        for (int64_t i = 0; i < n && unit; ++i) given(i, i) = NAN;
        const Mat y = Random(n, k, 2);
        const Mat z =
            this->One("triangular_solve", {{"X", given}, {"Y", y}}, "Out",
                      {{"upper", upper}, {"transpose", transpose}, {"unitriangular", unit}});
        EXPECT_LT(Distance((transpose ? Turned(a) : a) * z, y), this->kTolerance)
            << n << " " << k << " " << flags;
      }
}

TYPED_TEST(Linalg, LuGivesBackTheMatrix) {
  for (int64_t rows : kSizes)
    for (int64_t cols : kSizes) {
      const Mat a = Random(rows, cols, 3);
      const int64_t k = std::min(rows, cols);
      auto got = this->Run("lu", {{"X", a}}, {"Out", "Pivots", "Infos"});
      ASSERT_TRUE(got.ok()) << got.status().ToString();
      const Mat packed = ToMat<TypeParam>((*got)[0]);
      Mat l(rows, k), u(k, cols), permuted = a;
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
          if (c < r && c < k) l(r, c) = packed(r, c);
          if (r == c) l(r, c) = 1;
          if (c >= r && r < k) u(r, c) = packed(r, c);
        }
      for (double x : l.v) EXPECT_LE(std::abs(x), 1);
      for (int64_t i = 0; i < k; ++i)
        for (int64_t c = 0; c < cols; ++c)
          std::swap(permuted(i, c), permuted((*got)[1].template data<int32_t>()[i] - 1, c));
      EXPECT_LT(Distance(l * u, permuted), this->kTolerance) << rows << " " << cols;
      EXPECT_EQ((*got)[2].template data<int32_t>()[0], 0);
    }
}

TYPED_TEST(Linalg, LuSaysWhichColumnHasNoPivot) {
  Mat a = Random(50, 50, 4);
  for (int64_t r = 0; r < 50; ++r) a(r, 40) = 0;
  auto got = this->Run("lu", {{"X", a}}, {"Out", "Pivots", "Infos"});
  ASSERT_TRUE(got.ok()) << got.status().ToString();
  EXPECT_EQ((*got)[2].template data<int32_t>()[0], 41);
}

TYPED_TEST(Linalg, SolvesInvertsAndPowers) {
  for (int64_t n : kSizes) {
    Mat a = Random(n, n, 5);
    for (int64_t i = 0; i < n; ++i) a(i, (i + 1) % n) += static_cast<double>(n);  // wants exchanges
    const Mat y = Random(n, 3, 6);
    EXPECT_LT(Distance(a * this->One("solve", {{"X", a}, {"Y", y}}, "Out"), y), this->kTolerance);
    EXPECT_LT(Distance(a * this->One("inverse", {{"Input", a}}, "Output"), Identity(n)),
              this->kTolerance);
    EXPECT_LT(
        Distance(a * (a * this->One("matrix_power", {{"X", a}}, "Out", {{"n", -2}})), Identity(n)),
        this->kTolerance * static_cast<double>(n));
  }
}

TYPED_TEST(Linalg, DeterminantsCountExchanges) {
  // Ones beside the diagonal, cyclic: n - 1 exchanges.
  for (int64_t n : {2, 3, 40, 65}) {
    Mat a(n, n);
    for (int64_t i = 0; i < n; ++i) a(i, (i + 1) % n) = i == 0 ? 3 : 1;
    auto got = this->Run("determinant", {{"Input", a}}, {"Out"});
    ASSERT_TRUE(got.ok()) << got.status().ToString();
    EXPECT_EQ((*got)[0].template data<TypeParam>()[0], n % 2 == 0 ? -3 : 3) << n;
  }
}

TYPED_TEST(Linalg, CholeskyGivesBackTheMatrix) {
  for (int64_t n : kSizes)
    for (bool upper : {false, true}) {
      const Mat half = Random(n, n, 7);
      Mat a = half * Turned(half);
      for (int64_t i = 0; i < n; ++i) a(i, i) += 1;
      const Mat f =
          this->One("cholesky", {{"X", Triangle(a, upper, NAN)}}, "Out", {{"upper", upper}});
      EXPECT_EQ(Distance(f, Triangle(f, upper)), 0);
      EXPECT_LT(Distance(upper ? Turned(f) * f : f * Turned(f), a), this->kTolerance) << n;
      a(n - 1, n - 1) = -1;
      EXPECT_FALSE(this->Run("cholesky", {{"X", a}}, {"Out"}, {{"upper", upper}}).ok());
    }
}

TYPED_TEST(Linalg, QrGivesBackTheMatrix) {
  for (int64_t rows : kSizes)
    for (int64_t cols : kSizes)
      for (const char* mode : {"reduced", "complete"}) {
        const Mat a = Random(rows, cols, 8);
        auto got = this->Run("qr", {{"X", a}}, {"Q", "R"}, {{"mode", std::string(mode)}});
        ASSERT_TRUE(got.ok()) << got.status().ToString();
        const Mat q = ToMat<TypeParam>((*got)[0]), r = ToMat<TypeParam>((*got)[1]);
        EXPECT_EQ(Distance(r, Triangle(r, true)), 0);
        EXPECT_LT(Distance(q * r, a), this->kTolerance) << rows << " " << cols;
        EXPECT_LT(Distance(Turned(q) * q, Identity(q.cols)), this->kTolerance);
      }
}

}  // namespace
}  // namespace heddle::testing
