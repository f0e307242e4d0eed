// Writes .npz files for tests: archives of stored members.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/tools/cases/case_maker.h"

namespace heddle::tools {

inline std::string LittleEndian(uint64_t value, int width) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// CRC-32 as ZIP has it, bit by bit.
inline uint32_t PlainCrc32(const std::string& bytes) {
  uint32_t crc = ~0u;
  for (char b : bytes) {
    crc ^= static_cast<uint8_t>(b);
    for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

// An archive of .npy files, by the arrays' names.
inline std::string NpzBytes(const std::vector<std::pair<std::string, std::string>>& arrays) {
  std::string all, directory;
  for (const auto& [array, npy] : arrays) {
    const std::string name = array + ".npy";
    // Of a member: needed version, flags, method, time, date; checksum and sizes; name's length.
    const std::string facts = LittleEndian(20, 2) + std::string(8, '\0') +
                              LittleEndian(PlainCrc32(npy), 4) + LittleEndian(npy.size(), 4) +
                              LittleEndian(npy.size(), 4) + LittleEndian(name.size(), 2);
    directory += LittleEndian(0x02014b50, 4) + LittleEndian(20, 2) + facts + std::string(12, '\0') +
                 LittleEndian(all.size(), 4) + name;
    all += LittleEndian(0x04034b50, 4) + facts + LittleEndian(0, 2) + name + npy;
  }
  const std::string count = LittleEndian(arrays.size(), 2);
  return all + directory + LittleEndian(0x06054b50, 4) + std::string(4, '\0') + count + count +
         LittleEndian(directory.size(), 4) + LittleEndian(all.size(), 4) + std::string(2, '\0');
}

// A .npy file of float32 values.
inline std::string FloatNpy(const std::string& shape, const std::vector<float>& values) {
  return NpyBytes(
      "<f4", shape,
      std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
}

}  // namespace heddle::tools
