// Key: a name of a slot or attribute as a compile-time hash, so that ctx.In("X") in an operator's
// file only compares a few integers.
#pragma once

#include <cstdint>
#include <string_view>

namespace heddle {

constexpr uint32_t HashName(std::string_view s) {  // FNV-1a, 32 bits
  uint32_t h = 2166136261u;
  for (char c : s) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

// Only literals convert, so the hash is a compile-time constant. OpDef refuses two names with equal
// hashes in one operator.
struct Key {
  consteval Key(const char* name) : hash(HashName(name)), name(name) {}  // NOLINT
  uint32_t hash;
  const char* name;  // for messages
};

}  // namespace heddle
