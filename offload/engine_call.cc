#include "offload/engine_call.h"

#include <algorithm>
#include <cstring>

namespace heddle::offload {

std::string TextOf(const char* message, size_t room) {
  std::string text(message, strnlen(message, room));
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Status StatusOf(const std::string& engine, const char* what, const char* about, int status,
                const char* message, size_t room, bool stops) {
  if (status == HEDDLE_ENGINE_OK) return Status::Ok();
  std::string text = TextOf(message, room);
  const bool silent = text.empty();
  if (silent) text = "the engine does not say why";
  switch (status) {
    case HEDDLE_ENGINE_REFUSED:
      return Unimplemented("engine ", engine, " refuses ", about, ": ", text);
    case HEDDLE_ENGINE_FAILED:
      return Internal("engine ", engine, " failed in ", what, ": ", text);
    case HEDDLE_ENGINE_STOPPED:
      if (!stops)
        return Internal("engine ", engine, " stopped in ", what, ", though nothing asked it to",
                        silent ? "" : ": " + text);
      return Status(StatusCode::kCancelled,
                    StrCat("engine ", engine, " stopped in ", what, ": ", text));
    default:
      return Internal("engine ", engine, " answered ", what, " with status ", status,
                      ", which is none: ", text);
  }
}

}  // namespace heddle::offload
