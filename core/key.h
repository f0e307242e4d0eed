// Names of slots and attributes as compile-time hashes: an operator's file says ctx.In("X"), and
// what runs is a compare of a few integers.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

constexpr uint32_t HashName(std::string_view s) {  // FNV-1a, 32 bits
  uint32_t h = 2166136261u;
  for (char c : s) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

// Only literals convert: the hash is a constant of the calling code. OpDef refuses two names of one
// operator with equal hashes.
struct Key {
  consteval Key(const char* name) : hash(HashName(name)), name(name) {}  // NOLINT
  uint32_t hash;
  const char* name;  // for messages
};

}  // namespace heddle
