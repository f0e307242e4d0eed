// IdList: a list of slot numbers without an allocation for up to four, as most have. A plan has
// four such lists per instruction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace heddle {

class IdList {
 public:
  IdList() = default;
  IdList(std::initializer_list<uint32_t> ids) { Assign({ids.begin(), ids.size()}); }
  explicit IdList(std::span<const uint32_t> ids) { Assign(ids); }
  IdList(const IdList& o) { Assign(o); }
  IdList(IdList&& o) noexcept { Steal(o); }
  IdList& operator=(const IdList& o) {
    if (this != &o) Assign(o);
    return *this;
  }
  IdList& operator=(IdList&& o) noexcept {
    if (this != &o) {
      Free();
      Steal(o);
    }
    return *this;
  }
  ~IdList() { Free(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  uint32_t* data() { return capacity_ > kInline ? heap_ : inline_; }
  const uint32_t* data() const { return capacity_ > kInline ? heap_ : inline_; }
  uint32_t* begin() { return data(); }
  uint32_t* end() { return data() + size_; }
  const uint32_t* begin() const { return data(); }
  const uint32_t* end() const { return data() + size_; }
  uint32_t& operator[](size_t i) { return data()[i]; }
  uint32_t operator[](size_t i) const { return data()[i]; }
  uint32_t back() const { return data()[size_ - 1]; }

  void reserve(size_t n) {
    if (n > capacity_) Grow(static_cast<uint32_t>(n));
  }
  void push_back(uint32_t id) {
    if (size_ == capacity_) Grow(2 * capacity_);
    data()[size_++] = id;
  }
  void resize(size_t n) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data()[i] = 0;
    size_ = static_cast<uint32_t>(n);
  }

 private:
  static constexpr uint32_t kInline = 4;

  void Assign(std::span<const uint32_t> ids) {
    reserve(ids.size());
    size_ = static_cast<uint32_t>(ids.size());
    std::copy(ids.begin(), ids.end(), data());
  }
  void Grow(uint32_t capacity) {
    auto* larger = new uint32_t[capacity];
    std::copy_n(data(), size_, larger);
    Free();
    heap_ = larger;
    capacity_ = capacity;
  }
  void Free() {
    if (capacity_ > kInline) delete[] heap_;
    capacity_ = kInline;
  }
  // Leaves `o` empty.
  void Steal(IdList& o) {
    size_ = o.size_;
    capacity_ = o.capacity_;
    if (capacity_ > kInline)
      heap_ = o.heap_;
    else
      std::copy_n(o.inline_, kInline, inline_);
    o.size_ = 0;
    o.capacity_ = kInline;
  }

  union {
    uint32_t inline_[kInline] = {};
    uint32_t* heap_;
  };
  uint32_t size_ = 0, capacity_ = kInline;
};

}  // namespace heddle
