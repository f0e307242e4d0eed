// Value: what a variable of a program can hold: a tensor, an array of tensors, selected rows, or
// something else.
//
// Ownership and threads: as for Tensor; a Value is a plain value type.
#pragma once

#include <any>
#include <memory>
#include <vector>

#include "heddle/tensor.h"

namespace heddle {

using TensorArray = std::vector<Tensor>;

// Rows of a taller tensor: row rows[i] of the full tensor is value[i, …]; rows may repeat.
struct SelectedRows {
  std::vector<int64_t> rows;
  int64_t height = 0;
  Tensor value;
};

class Value {
 public:
  enum class Kind : uint8_t { kTensor, kArray, kRows, kOther };

  Value() = default;
  Value(Tensor t) : tensor_(std::move(t)) {}  // NOLINT(google-explicit-constructor)
  explicit Value(TensorArray a) : kind_(Kind::kArray), rare_(std::make_shared<Rare>()) {
    rare_->array = std::move(a);
  }
  explicit Value(SelectedRows r) : kind_(Kind::kRows), rare_(std::make_shared<Rare>()) {
    rare_->rows = std::move(r);
  }

  Kind kind() const { return kind_; }
  bool is_tensor() const { return kind_ == Kind::kTensor; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_rows() const { return kind_ == Kind::kRows; }
  // Whether something has been written to it.
  bool initialized() const {
    return kind_ == Kind::kTensor ? tensor_.initialized() : rare_ != nullptr;
  }

  const Tensor& tensor() const { return tensor_; }
  Tensor& tensor() { return tensor_; }
  // Precondition: is_array() / is_rows().
  const TensorArray& array() const { return rare_->array; }
  const SelectedRows& rows() const { return rare_->rows; }
  // These turn the value into an array, rows or something else and return it; contents of the same
  // kind are kept. Copies share state until the first mutable access.
  TensorArray& mutable_array() { return Become(Kind::kArray).array; }
  SelectedRows& mutable_rows() { return Become(Kind::kRows).rows; }
  std::any& mutable_other() { return Become(Kind::kOther).other; }
  // Makes it a tensor again, and returns it; an existing tensor is kept.
  Tensor& MutableTensor() {
    kind_ = Kind::kTensor;
    rare_.reset();
    return tensor_;
  }
  void Clear() { *this = Value(); }

 private:
  struct Rare {
    TensorArray array;
    SelectedRows rows;
    std::any other;
  };
  Rare& Become(Kind kind) {
    if (kind_ != kind || !rare_) {
      tensor_ = Tensor();
      kind_ = kind;
      rare_ = std::make_shared<Rare>();
    } else if (rare_.use_count() > 1) {
      rare_ = std::make_shared<Rare>(*rare_);
    }
    return *rare_;
  }
  Kind kind_ = Kind::kTensor;
  Tensor tensor_;
  std::shared_ptr<Rare> rare_;
};

}  // namespace heddle
