// Files that heddle knows of and does not read, to say more than "damaged".
#include "core/error.h"
#include "formats/registry.h"

namespace heddle::formats {

Status CheckKind(std::string_view bytes, const std::string& name) {
  if (bytes.empty()) return DataLoss(name, ": the file is empty; a Paddle program is expected");
#ifdef HEDDLE_WITHOUT_PIR
  if (bytes.substr(0, 64).find("\"base_code\"") != std::string_view::npos)
    return Unimplemented(name, ": this is a PIR program, which this build of heddle does not read");
#endif
  if (bytes[0] == '{')
    return Unimplemented(name,
                         ": this is a JSON file, but not a PIR program, which begins with "
                         "\"base_code\"");
  if (bytes.starts_with("PK\x03\x04"))
    return Unimplemented(name, ": this is a zip archive (PyTorch, Keras?), not a Paddle program");
  for (const char* pickle : {"\x80\x02", "\x80\x03", "\x80\x04", "\x80\x05"})
    if (bytes.starts_with(pickle))
      return Unimplemented(name,
                           ": this is a Python pickle (.pdparams, .pdopt?), not a Paddle program");
  return Status::Ok();
}

}  // namespace heddle::formats
