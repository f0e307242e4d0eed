// Recognises files that are no program, or none that heddle reads, so that an error can say what
// they are and what to do.
//
// Threads: any may call any function.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heddle/status.h"

namespace heddle::formats {

class DataFile;

struct OtherKind {
  std::string what;     // "a safetensors file"
  std::string instead;  // "it holds weights without a program; export the model to ONNX"
  std::string Text() const { return what + ": " + instead; }
};

// The kind of the bytes, by their beginning (for archives also their end); nothing where that is
// not certain. A program that heddle reads is never taken for another kind.
std::optional<OtherKind> OtherKindOf(std::string_view bytes);
// The same for a file, of which at most 128 KiB are read.
std::optional<OtherKind> OtherKindOf(const DataFile& file);

// An error if the bytes are of another kind or empty.
Status CheckKind(std::string_view bytes, const std::string& name);
// The error for bytes of no known kind that no format recognises.
Status UnknownKind(std::string_view bytes, const std::string& name);
// An addition to an error about a malformed data file: "; it is a Git LFS pointer …", or empty.
std::string OtherKindNote(const DataFile& file);
// An addition to an error about a directory without a program: "; it holds …", or empty.
std::string OtherKindsIn(const std::string& directory);

}  // namespace heddle::formats
