#include "heddle/status.h"

#include <algorithm>

#include "core/utf8.h"
#include "heddle/bounds.h"

namespace heddle {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "OK";
    case StatusCode::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case StatusCode::kNotFound:
      return "NOT_FOUND";
    case StatusCode::kOutOfRange:
      return "OUT_OF_RANGE";
    case StatusCode::kDataLoss:
      return "DATA_LOSS";
    case StatusCode::kUnimplemented:
      return "UNIMPLEMENTED";
    case StatusCode::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case StatusCode::kCancelled:
      return "CANCELLED";
    case StatusCode::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case StatusCode::kInternal:
      return "INTERNAL";
  }
  return "UNKNOWN";
}

namespace {

// The line of user code that made the operator: the innermost frame outside of Paddle.
std::string CreatedAt(const std::string& stack) {
  std::string best;
  for (size_t at = 0; at < stack.size();) {
    const size_t end = std::min(stack.find('\n', at), stack.size());
    const std::string line = stack.substr(at, end - at);
    if (line.find("File \"") != std::string::npos && line.find("/paddle/") == std::string::npos &&
        line.find("/decorator.py") == std::string::npos)
      best = line.substr(line.find("File \""));
    at = end + 1;
  }
  return best.empty() ? "" : "\n  (the operator was created in " + best + ")";
}

std::string Shortened(std::string text) {
  if (text.size() <= kMostErrorBytes) return text;
  const size_t begin = CharacterAt(text, kMostErrorBytes / 2);
  const size_t end = CharacterAt(text, text.size() - kMostErrorBytes / 2);
  const std::string left_out = " ... (" + std::to_string(end - begin) + " bytes) ... ";
  text.replace(begin, end - begin, left_out);
  return text;
}

}  // namespace

Status::Status(StatusCode code, std::string message)
    : rep_(code == StatusCode::kOk ? nullptr
                                   : std::make_shared<const Rep>(
                                         Rep{code, Shortened(std::move(message)), std::nullopt})) {}

const std::string& Status::message() const {
  static const std::string kEmpty;
  return rep_ ? rep_->message : kEmpty;
}

const std::optional<OpLocation>& Status::location() const {
  static const std::optional<OpLocation> kNone;
  return rep_ ? rep_->location : kNone;
}

Status Status::At(OpLocation location) const {
  if (!rep_ || rep_->location) return *this;
  Status s;
  s.rep_ = std::make_shared<const Rep>(Rep{rep_->code, rep_->message, std::move(location)});
  return s;
}

std::string Status::ToString() const {
  if (ok()) return "OK";
  std::string text(StatusCodeName(code()));
  text += ": ";
  if (const auto& at = location()) {
    text += "block " + std::to_string(at->block) + ", op " +
            (at->op < 0 ? std::string("(made by a pass)") : std::to_string(at->op)) + " (" +
            at->op_type;
    if (!at->output.empty()) text += " -> " + at->output;
    text += "): ";
  }
  text += message();
  if (location()) text += CreatedAt(location()->call_stack);
  return text;
}

}  // namespace heddle
