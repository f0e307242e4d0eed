#include "core/error.h"

#include <sstream>

namespace heddle {

template void PrintPart<std::string>(std::ostream&, const void*);
template void PrintPart<int>(std::ostream&, const void*);
template void PrintPart<long>(std::ostream&, const void*);
template void PrintPart<unsigned long>(std::ostream&, const void*);
template void PrintPart<const char*>(std::ostream&, const void*);

void PrintChars(std::ostream& out, const void* at) { out << static_cast<const char*>(at); }

std::string JoinParts(const MessagePart* parts, size_t count) {
  std::ostringstream out;
  for (size_t i = 0; i < count; ++i) parts[i].print(out, parts[i].at);
  return std::move(out).str();
}

Status JoinedError(StatusCode code, const MessagePart* parts, size_t count) {
  return Status(code, JoinParts(parts, count));
}

}  // namespace heddle
