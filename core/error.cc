#include "core/error.h"

#include <charconv>
#include <sstream>
#include <string_view>

namespace heddle {

template void PrintPart<std::string>(std::ostream&, const void*);
template void PrintPart<int>(std::ostream&, const void*);
template void PrintPart<long>(std::ostream&, const void*);
template void PrintPart<unsigned long>(std::ostream&, const void*);
template void PrintPart<const char*>(std::ostream&, const void*);

void PrintChars(std::ostream& out, const void* at) { out << static_cast<const char*>(at); }

namespace {

template <typename T>
void AppendNumber(const void* at, std::string* text) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), *static_cast<const T*>(at)).ptr;
  text->append(digits, static_cast<size_t>(end - digits));
}

const char* OrEmpty(const char* text) { return text != nullptr ? text : ""; }

// Texts and whole numbers, of which names are made that a program has many thousands of: a stream
// would take longer than all the rest. False: something else.
bool Append(const MessagePart& part, std::string* text) {
  if (part.print == PrintChars)
    *text += static_cast<const char*>(part.at);
  else if (part.print == PrintPart<const char*>)
    *text += OrEmpty(*static_cast<const char* const*>(part.at));
  else if (part.print == PrintPart<std::string>)
    *text += *static_cast<const std::string*>(part.at);
  else if (part.print == PrintPart<std::string_view>)
    *text += *static_cast<const std::string_view*>(part.at);
  else if (part.print == PrintPart<int>)
    AppendNumber<int>(part.at, text);
  else if (part.print == PrintPart<long>)
    AppendNumber<long>(part.at, text);
  else if (part.print == PrintPart<unsigned long>)
    AppendNumber<unsigned long>(part.at, text);
  else
    return false;
  return true;
}

}  // namespace

std::string JoinParts(const MessagePart* parts, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    if (Append(parts[i], &text)) continue;
    std::ostringstream out;
    parts[i].print(out, parts[i].at);
    text += std::move(out).str();
  }
  return text;
}

Status JoinedError(StatusCode code, const MessagePart* parts, size_t count) {
  return Status(code, JoinParts(parts, count));
}

}  // namespace heddle
