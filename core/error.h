// Short ways to make an error with a readable message.
#pragma once

#include <sstream>
#include <string>

#include "heddle/status.h"

namespace heddle {

template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return Status(StatusCode::kInvalidArgument, StrCat(parts...));
}
template <typename... Parts>
Status NotFound(const Parts&... parts) {
  return Status(StatusCode::kNotFound, StrCat(parts...));
}
template <typename... Parts>
Status OutOfRange(const Parts&... parts) {
  return Status(StatusCode::kOutOfRange, StrCat(parts...));
}
template <typename... Parts>
Status DataLoss(const Parts&... parts) {
  return Status(StatusCode::kDataLoss, StrCat(parts...));
}
template <typename... Parts>
Status Unimplemented(const Parts&... parts) {
  return Status(StatusCode::kUnimplemented, StrCat(parts...));
}
template <typename... Parts>
Status ResourceExhausted(const Parts&... parts) {
  return Status(StatusCode::kResourceExhausted, StrCat(parts...));
}
template <typename... Parts>
Status Internal(const Parts&... parts) {
  return Status(StatusCode::kInternal, StrCat(parts...));
}

}  // namespace heddle
