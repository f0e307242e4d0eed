// StaticNameTable: a hash table of names made by the compiler: nothing is built when a program
// starts.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace heddle {

// The table holds `kCount` names from one literal, each followed by a zero ("abs\0acos\0"), since
// an array of pointers would be relocated whenever a program starts. Open addressing with at least
// half of the places free, so every search ends. Immutable; any thread may search.
template <size_t kCount, size_t kBytes>
class StaticNameTable {
 public:
  static constexpr size_t kNone = ~size_t{0};

  // `names` must stay valid.
  explicit constexpr StaticNameTable(const char (&names)[kBytes]) : names_(names) {
    static_assert(kBytes <= 1u << 16, "wider offsets are needed");
    size_t start = 0;
    for (size_t at = 0; at < kCount; ++at) {
      const std::string_view name(names + start);
      starts_[at] = static_cast<uint16_t>(start);
      start += name.size() + 1;
      starts_[at + 1] = static_cast<uint16_t>(start);
      uint16_t& place = places_[PlaceOf(name)];
      unique_ = unique_ && place == 0;
      place = static_cast<uint16_t>(at + 1);
    }
  }

  static constexpr size_t size() { return kCount; }
  // Whether no name occurs twice.
  constexpr bool unique() const { return unique_; }
  constexpr std::string_view operator[](size_t at) const {
    return {names_ + starts_[at], static_cast<size_t>(starts_[at + 1] - starts_[at] - 1)};
  }
  // The number of the name in the literal, from 0; kNone: it is absent.
  constexpr size_t Find(std::string_view name) const {
    const size_t place = places_[PlaceOf(name)];
    return place == 0 ? kNone : place - 1;
  }

 private:
  static constexpr size_t kPlaces = std::bit_ceil(2 * kCount);

  // FNV-1a, 32 bits (Fowler, Noll, Vo).
  static constexpr uint32_t HashOf(std::string_view name) {
    uint32_t hash = 2166136261u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
  }
  // The place of the name, or the free place where it belongs.
  constexpr size_t PlaceOf(std::string_view name) const {
    size_t at = HashOf(name) % kPlaces;
    while (places_[at] != 0 && (*this)[places_[at] - 1u] != name) at = (at + 1) % kPlaces;
    return at;
  }

  const char* names_;
  bool unique_ = true;
  std::array<uint16_t, kCount + 1> starts_{};  // offsets of the names in the literal
  std::array<uint16_t, kPlaces> places_{};     // 1 + the number of a name; 0: free
};

}  // namespace heddle
