// Errors, versions and texts of the C API.
#include <new>

#include "capi/handles.h"

namespace heddle::capi {
namespace {

// Handed out when there is no memory for another; freeing it does nothing.
heddle_error* OutOfMemory() {
  static heddle_error error{Status(StatusCode::kResourceExhausted, ""),
                            "RESOURCE_EXHAUSTED: out of memory"};
  return &error;
}

// Made while the library is loaded, when memory is still to be had.
[[maybe_unused]] heddle_error* const kOutOfMemory = OutOfMemory();

// Names that a caller or a file has given may hold anything.
std::string OneLine(const std::string& text) {
  std::string line;
  for (const char c : text) {
    if (c == '\n')
      line += "\\n";
    else if (c == '\r')
      line += "\\r";
    else
      line += c;
  }
  return line;
}

}  // namespace

heddle_error* MakeError(const Status& status) noexcept {
  try {
    return new heddle_error{status, OneLine(status.ToString())};
  } catch (...) {
    return OutOfMemory();
  }
}

heddle_error* Unexpected(const char* what) noexcept {
  try {
    return MakeError(Status(StatusCode::kInternal, what));
  } catch (...) {
    return OutOfMemory();
  }
}

}  // namespace heddle::capi

using heddle::capi::OutOfMemory;

const char* heddle_version(void) { return HEDDLE_VERSION; }
int heddle_abi_version(void) { return HEDDLE_ABI_VERSION; }

heddle_code heddle_error_code(const heddle_error* error) {
  return error == nullptr ? HEDDLE_OK : static_cast<heddle_code>(error->status.code());
}

const char* heddle_error_text(const heddle_error* error) {
  return error == nullptr ? "" : error->text.c_str();
}

const char* heddle_error_op_type(const heddle_error* error) {
  if (error == nullptr || !error->status.location()) return "";
  return error->status.location()->op_type.c_str();
}

const char* heddle_error_output(const heddle_error* error) {
  if (error == nullptr || !error->status.location()) return "";
  return error->status.location()->output.c_str();
}

int heddle_error_block(const heddle_error* error) {
  return error == nullptr || !error->status.location() ? -1 : error->status.location()->block;
}

int heddle_error_op_index(const heddle_error* error) {
  return error == nullptr || !error->status.location() ? -1 : error->status.location()->op;
}

void heddle_error_free(heddle_error* error) {
  if (error != OutOfMemory()) delete error;
}

const char* heddle_text_data(const heddle_text* text) {
  return text == nullptr ? "" : text->text.c_str();
}

size_t heddle_text_size(const heddle_text* text) { return text == nullptr ? 0 : text->text.size(); }

void heddle_text_free(heddle_text* text) { delete text; }
