// Errors as values. heddle's public functions never throw: they return Status or Result<T>.
//
// Ownership: a Status owns its text. Threads: distinct objects are independent; copies share
// immutable state and may be used from any thread.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace heddle {

enum class StatusCode {
  kOk = 0,
  kInvalidArgument,    // the caller's values are wrong: shape, dtype, name, option
  kNotFound,           // a file, variable or operator does not exist
  kOutOfRange,         // an index outside its axis
  kDataLoss,           // a file is truncated, too long or damaged
  kUnimplemented,      // known, but not supported
  kResourceExhausted,  // out of memory
  kCancelled,
  kDeadlineExceeded,
  kInternal,
};

std::string_view StatusCodeName(StatusCode code);

// The place of an error in a program. Indices are those of the loaded file; -1 = unknown.
struct OpLocation {
  int block = -1;
  int op = -1;
  std::string op_type;
  std::string output;      // first output variable of the operator
  std::string call_stack;  // Python stack at the operator's creation, if the file has it
};

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  Status(StatusCode code, std::string message);
  static Status Ok() { return Status(); }

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  const std::string& message() const;
  // The operator that the error is about; nullopt: none.
  const std::optional<OpLocation>& location() const;
  // The same error with a location; an existing location is kept, since the innermost one is the
  // most exact.
  Status At(OpLocation location) const;
  // "INVALID_ARGUMENT: block 0, op 17 (matmul_v2 -> tmp_3): message"
  std::string ToString() const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
    std::optional<OpLocation> location;
  };
  std::shared_ptr<const Rep> rep_;
};

// A value, or the error for which there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {  // NOLINT(google-explicit-constructor)
    if (status_.ok()) std::abort();                     // an OK Status is not a value
  }
  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

#define HEDDLE_CONCAT_INNER(a, b) a##b
#define HEDDLE_CONCAT(a, b) HEDDLE_CONCAT_INNER(a, b)
#define HEDDLE_RETURN_IF_ERROR(expr)                                                        \
  do {                                                                                      \
    if (::heddle::Status heddle_status = (expr); !heddle_status.ok()) return heddle_status; \
  } while (false)
#define HEDDLE_ASSIGN_OR_RETURN(lhs, expr) \
  HEDDLE_ASSIGN_OR_RETURN_IMPL(HEDDLE_CONCAT(heddle_result_, __LINE__), lhs, expr)
#define HEDDLE_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return tmp.status();                \
  lhs = *std::move(tmp)

}  // namespace heddle
