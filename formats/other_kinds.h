// Files that are no program, or none that heddle reads: what they are, so that an error can say it
// and what to do.
//
// Threads: any.
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

// The kind of the bytes by their beginning (and, of archives, their end); nothing where that is not
// certain. No program that heddle reads is taken for something else.
std::optional<OtherKind> OtherKindOf(std::string_view bytes);
// The same for a file, of which a little is read.
std::optional<OtherKind> OtherKindOf(const DataFile& file);

// An error where the bytes are of such a kind, or there are none.
Status CheckKind(std::string_view bytes, const std::string& name);
// The error for bytes that are of no such kind and that no format recognises either.
Status UnknownKind(std::string_view bytes, const std::string& name);
// For an error about a file of data that is not as it should be: "; it is a Git LFS pointer …", or
// nothing.
std::string OtherKindNote(const DataFile& file);
// For an error about a directory without a program: "; it holds …", or nothing.
std::string OtherKindsIn(const std::string& directory);

}  // namespace heddle::formats
