// Writes LevelDB's table format, in which TensorFlow keeps the index of a bundle of variables:
// blocks of entries with prefix-compressed keys, and a footer.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "core/memory/crc32c.h"
#include "formats/wire_fields.h"

namespace heddle::formats {

constexpr size_t kTableFooter = 48;
// The last bytes of a table.
constexpr std::string_view kTableMagic = "\x57\xfb\x80\x8b\x24\x75\x47\xdb";

// Appends a 32-bit number, little-endian.
inline void AppendFixed32(uint32_t value, std::string* out) {
  for (int shift = 0; shift < 32; shift += 8)
    out->push_back(static_cast<char>(value >> shift & 0xff));
}

// The bytes of one block, with one restart point at its beginning.
inline std::string TableBlock(const std::map<std::string, std::string>& entries) {
  std::string block, last;
  for (const auto& [key, value] : entries) {
    size_t shared = 0;
    while (shared < last.size() && shared < key.size() && last[shared] == key[shared]) ++shared;
    wire::AppendVarint(shared, &block);
    wire::AppendVarint(key.size() - shared, &block);
    wire::AppendVarint(value.size(), &block);
    block += key.substr(shared) + value;
    last = key;
  }
  AppendFixed32(0, &block);
  AppendFixed32(1, &block);
  return block;
}

// The block as it stands in a file: with a byte for "not compressed" and the checksum of both.
inline std::string SealedBlock(std::string block) {
  block += '\0';
  AppendFixed32(MaskedCrc32c(Crc32c(block)), &block);
  return block;
}

// A whole table with one block of entries, of which there is at least one.
inline std::string TableFile(const std::map<std::string, std::string>& entries) {
  std::string file;
  const auto append = [&file](const std::string& block) {
    std::string handle;
    wire::AppendVarint(file.size(), &handle);
    wire::AppendVarint(block.size(), &handle);
    file += SealedBlock(block);
    return handle;
  };
  const std::string data = append(TableBlock(entries));
  const std::string meta = append(TableBlock({}));
  const std::string index = append(TableBlock({{entries.rbegin()->first + '\xff', data}}));
  std::string footer = meta + index;
  footer.resize(kTableFooter - kTableMagic.size(), '\0');
  return file + footer + std::string(kTableMagic);
}

}  // namespace heddle::formats
