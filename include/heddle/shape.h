// The dimensions of a tensor, stored inline: copies allocate no memory.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace heddle {

// Rank 0 is a scalar with one element; a dimension of 0 makes an empty tensor; -1 is an unknown
// dimension (in programs, never in tensors of a run). If the rank is unknown too, the shape is
// Shape::Unknown().
class Shape {
 public:
  static constexpr int kMaxRank = 10;

  Shape() = default;  // rank 0
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  // Precondition: dims.size() <= kMaxRank (checked for dims from files and users).
  explicit Shape(std::span<const int64_t> dims) {
    for (int64_t d : dims) push_back(d);
  }
  static Shape Unknown() {
    Shape s;
    s.rank_ = -1;
    return s;
  }

  bool known_rank() const { return rank_ >= 0; }
  // Whether the rank and all dimensions are known.
  bool is_static() const {
    if (rank_ < 0) return false;
    for (int i = 0; i < rank_; ++i)
      if (dims_[i] < 0) return false;
    return true;
  }
  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[i]; }
  int64_t& operator[](int i) { return dims_[i]; }
  // Dimension i; a negative i counts from the end.
  int64_t dim(int i) const { return dims_[i < 0 ? i + rank_ : i]; }
  int64_t numel() const { return Product(0, rank_); }
  // Product of dimensions [begin, end).
  int64_t Product(int begin, int end) const {
    int64_t n = 1;
    for (int i = begin; i < end; ++i) n *= dims_[i];
    return n;
  }
  void push_back(int64_t d) {
    if (rank_ < kMaxRank) dims_[rank_++] = d;
  }
  void insert(int at, int64_t d);
  void erase(int at);
  std::span<const int64_t> dims() const { return {dims_.data(), size_t(rank_ < 0 ? 0 : rank_)}; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + (rank_ < 0 ? 0 : rank_); }
  // "[2, 3, ?]"; "[]" for a scalar, "[?…]" for an unknown rank.
  std::string ToString() const;

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

 private:
  int rank_ = 0;
  std::array<int64_t, kMaxRank> dims_{};
};

}  // namespace heddle
