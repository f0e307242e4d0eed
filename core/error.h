// Functions that make an error with a readable message.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <type_traits>

#include "heddle/status.h"

namespace heddle {

// One part of a message, by reference, and how to print it. Messages are composed out of line:
// there are thousands of them, each with its own list of types, and none is time-critical.
struct MessagePart {
  const void* at;
  void (*print)(std::ostream& out, const void* at);
};

template <typename T>
void PrintPart(std::ostream& out, const void* at) {
  out << *static_cast<const T*>(at);
}
extern template void PrintPart<std::string>(std::ostream&, const void*);
extern template void PrintPart<int>(std::ostream&, const void*);
extern template void PrintPart<long>(std::ostream&, const void*);
extern template void PrintPart<unsigned long>(std::ostream&, const void*);
extern template void PrintPart<const char*>(std::ostream&, const void*);
void PrintChars(std::ostream& out, const void* at);

template <typename T>
MessagePart MessagePartOf(const T& part) {
  if constexpr (std::is_array_v<T>)
    return {static_cast<const char*>(part), PrintChars};
  else
    return {&part, PrintPart<T>};
}

[[gnu::cold]] std::string JoinParts(const MessagePart* parts, size_t count);
[[gnu::cold]] Status JoinedError(StatusCode code, const MessagePart* parts, size_t count);

template <typename... Parts>
std::string StrCat(const Parts&... parts) {
  const MessagePart all[] = {MessagePartOf(parts)...};
  return JoinParts(all, sizeof...(parts));
}

template <typename... Parts>
Status ErrorWith(StatusCode code, const Parts&... parts) {
  const MessagePart all[] = {MessagePartOf(parts)...};
  return JoinedError(code, all, sizeof...(parts));
}
template <typename... Parts>
Status InvalidArgument(const Parts&... parts) {
  return ErrorWith(StatusCode::kInvalidArgument, parts...);
}
template <typename... Parts>
Status NotFound(const Parts&... parts) {
  return ErrorWith(StatusCode::kNotFound, parts...);
}
template <typename... Parts>
Status OutOfRange(const Parts&... parts) {
  return ErrorWith(StatusCode::kOutOfRange, parts...);
}
template <typename... Parts>
Status DataLoss(const Parts&... parts) {
  return ErrorWith(StatusCode::kDataLoss, parts...);
}
template <typename... Parts>
Status Unimplemented(const Parts&... parts) {
  return ErrorWith(StatusCode::kUnimplemented, parts...);
}
template <typename... Parts>
Status ResourceExhausted(const Parts&... parts) {
  return ErrorWith(StatusCode::kResourceExhausted, parts...);
}
template <typename... Parts>
Status Internal(const Parts&... parts) {
  return ErrorWith(StatusCode::kInternal, parts...);
}

}  // namespace heddle
