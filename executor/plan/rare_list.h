// RareList: a list that is nearly always empty: one pointer, and no allocation while it is empty.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace heddle {

template <typename T>
class RareList {
 public:
  bool empty() const { return list_ == nullptr || list_->empty(); }
  size_t size() const { return list_ == nullptr ? 0 : list_->size(); }
  T* begin() { return list_ == nullptr ? nullptr : list_->data(); }
  T* end() { return begin() + size(); }
  const T* begin() const { return list_ == nullptr ? nullptr : list_->data(); }
  const T* end() const { return begin() + size(); }
  // Precondition: not empty().
  const std::vector<T>& vector() const { return *list_; }
  void push_back(T value) {
    if (list_ == nullptr) list_ = std::make_unique<std::vector<T>>();
    list_->push_back(std::move(value));
  }
  void Assign(const std::vector<T>& values) {
    list_ = values.empty() ? nullptr : std::make_unique<std::vector<T>>(values);
  }
  void clear() { list_.reset(); }

 private:
  std::unique_ptr<std::vector<T>> list_;
};

}  // namespace heddle
