// Lists that are short as a rule: up to kInline elements lie in the object, so that a shape
// function or a kernel, which makes such lists in every run of a dynamic shape, takes nothing from
// the heap.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <type_traits>
#include <vector>

#include "heddle/shape.h"

namespace heddle {

template <typename T, size_t kInline>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;

  ShortList() = default;
  explicit ShortList(size_t n, const T& value = T()) { resize(n, value); }
  ShortList(std::initializer_list<T> list) : ShortList(list.begin(), list.end()) {}
  explicit ShortList(std::span<const T> list) : ShortList(list.begin(), list.end()) {}
  // NOLINTNEXTLINE(google-explicit-constructor): attributes are such lists
  ShortList(const std::vector<T>& list) : ShortList(list.begin(), list.end()) {}
  template <typename It>
  requires(!std::is_integral_v<It>) ShortList(It begin, It end) {
    for (; begin != end; ++begin) push_back(*begin);
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return size_ > kInline ? long_.data() : short_.data(); }
  const T* data() const { return size_ > kInline ? long_.data() : short_.data(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void push_back(const T& value) { resize(size_ + 1, value); }
  void resize(size_t n, const T& value = T()) {
    const T copy = value;  // it may be an element
    if (n > kInline) {
      if (size_ <= kInline) long_.assign(short_.begin(), short_.begin() + size_);
      long_.resize(n, copy);
    } else {
      if (size_ > kInline) std::copy_n(long_.begin(), n, short_.begin());
      if (n > size_) std::fill(short_.begin() + size_, short_.begin() + n, copy);
    }
    size_ = n;
  }
  // n times `value` in front of element `at`.
  void insert(size_t at, size_t n, const T& value) {
    const size_t had = size_;
    resize(had + n, value);
    std::rotate(begin() + at, begin() + had, end());
  }

  friend bool operator==(const ShortList& a, const ShortList& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  size_t size_ = 0;
  std::array<T, kInline> short_;  // the elements while there are at most kInline
  std::vector<T> long_;           // all elements when there are more
};

// Integers of which a tensor has at most two for each of its dimensions.
using ShortInts = ShortList<int64_t, size_t{2} * Shape::kMaxRank>;

}  // namespace heddle
