// .npz archives: ZIP files of .npy members (APPNOTE.TXT 6.3, with the 64-bit extension that NumPy
// writes for its members).
#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>

#ifdef HEDDLE_WITH_ZLIB
#include <zlib.h>
#endif

#include "tools/values/npy.h"

namespace heddle::tools {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint32_t kFull32 = std::numeric_limits<uint32_t>::max();

struct Member {
  std::string name;
  int flags = 0;
  int method = 0;
  uint32_t crc = 0;
  uint64_t packed = 0;    // bytes in the archive
  uint64_t unpacked = 0;  // bytes of the .npy file
  uint64_t offset = 0;    // of the local header
};

// Little-endian numbers at checked places of the archive.
class Bytes {
 public:
  explicit Bytes(std::string_view all) : all_(all) {}
  uint64_t size() const { return all_.size(); }
  bool Has(uint64_t at, uint64_t n) const { return at <= all_.size() && n <= all_.size() - at; }
  // 0 outside of the archive, so that a wrong offset ends in a wrong signature.
  uint64_t Number(uint64_t at, int width) const {
    if (!Has(at, width)) return 0;
    uint64_t value = 0;
    for (int i = width - 1; i >= 0; --i) value = value << 8 | static_cast<uint8_t>(all_[at + i]);
    return value;
  }
  uint16_t U16(uint64_t at) const { return static_cast<uint16_t>(Number(at, 2)); }
  uint32_t U32(uint64_t at) const { return static_cast<uint32_t>(Number(at, 4)); }
  uint64_t U64(uint64_t at) const { return Number(at, 8); }
  std::string_view Slice(uint64_t at, uint64_t n) const { return all_.substr(at, n); }

 private:
  std::string_view all_;
};

Status BadArchive(const std::string& path, const std::string& why) {
  return Status(StatusCode::kDataLoss, path + ": " + why);
}

uint32_t Crc32(std::string_view bytes) {
  static const auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t c = i;
      for (int k = 0; k < 8; ++k) c = (c >> 1) ^ (c & 1 ? 0xedb88320u : 0u);
      table[i] = c;
    }
    return table;
  }();
  uint32_t crc = kFull32;
  for (char b : bytes) crc = kTable[(crc ^ static_cast<uint8_t>(b)) & 0xff] ^ (crc >> 8);
  return ~crc;
}

// The offset of the central directory and the number of its entries.
struct Directory {
  uint64_t offset = 0;
  uint64_t entries = 0;
};

std::optional<Directory> FindDirectory(const Bytes& zip) {
  constexpr uint64_t kEndBytes = 22, kMaxComment = 65535;
  if (zip.size() < kEndBytes) return std::nullopt;
  const uint64_t last = zip.size() - kEndBytes;
  const uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    if (zip.U32(at) != kEnd || zip.U16(at + 20) != last - at) continue;
    Directory found{zip.U32(at + 16), zip.U16(at + 10)};
    if (at >= 20 && zip.U32(at - 20) == kEnd64Locator) {
      const uint64_t end64 = zip.U64(at - 12);
      if (zip.U32(end64) != kEnd64) return std::nullopt;
      found = {zip.U64(end64 + 48), zip.U64(end64 + 32)};
    }
    return found;
  }
  return std::nullopt;
}

// Replaces the sizes and the offset that do not fit into 32 bits by those of the extra field.
bool ApplyZip64(const Bytes& zip, uint64_t at, uint64_t length, Member* member) {
  const uint64_t end = at + length;
  while (at + 4 <= end) {
    const uint64_t next = at + 4 + zip.U16(at + 2);
    if (next > end) return false;
    if (zip.U16(at) == 1) {
      at += 4;
      for (uint64_t* field : {&member->unpacked, &member->packed, &member->offset}) {
        if (*field != kFull32) continue;
        if (at + 8 > next) return false;
        *field = zip.U64(at);
        at += 8;
      }
      return true;
    }
    at = next;
  }
  return true;
}

// Reads the directory entry at `*at` and moves on to the next one.
bool ReadEntry(const Bytes& zip, uint64_t* at, Member* member) {
  if (zip.U32(*at) != kCentralHeader || !zip.Has(*at, 46)) return false;
  const uint64_t name = zip.U16(*at + 28), extra = zip.U16(*at + 30), comment = zip.U16(*at + 32);
  if (!zip.Has(*at, 46 + name + extra + comment)) return false;
  member->flags = zip.U16(*at + 8);
  member->method = zip.U16(*at + 10);
  member->crc = zip.U32(*at + 16);
  member->packed = zip.U32(*at + 20);
  member->unpacked = zip.U32(*at + 24);
  member->offset = zip.U32(*at + 42);
  member->name = zip.Slice(*at + 46, name);
  const bool ok = ApplyZip64(zip, *at + 46 + name, extra, member);
  *at += 46 + name + extra + comment;
  return ok;
}

Result<std::string> Inflate(std::string_view packed, uint64_t size, const std::string& what) {
#ifdef HEDDLE_WITH_ZLIB
  // Deflate shrinks by at most 1032:1; a larger promise is a lie that must not cost memory.
  if (size / 1032 > packed.size() + 1) return BadArchive(what, "the compressed data is damaged");
  std::string out(size, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    return Status(StatusCode::kResourceExhausted, what + ": out of memory");
  // zlib counts in 32 bits.
  constexpr uint64_t kStep = 1 << 30;
  uint64_t in = 0, done = 0;
  int code = Z_OK;
  while (code == Z_OK) {
    const uint64_t in_step = std::min<uint64_t>(kStep, packed.size() - in);
    const uint64_t out_step = std::min<uint64_t>(kStep, size - done);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in));
    stream.avail_in = static_cast<uInt>(in_step);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(out_step);
    code = inflate(&stream, Z_NO_FLUSH);
    in += in_step - stream.avail_in;
    done += out_step - stream.avail_out;
  }
  inflateEnd(&stream);
  if (code != Z_STREAM_END || done != size)
    return BadArchive(what, "the compressed data is damaged");
  return out;
#else
  (void)packed;
  (void)size;
  return Status(StatusCode::kUnimplemented,
                what + ": is compressed, and this build has no zlib; write it with numpy.savez");
#endif
}

Result<NpyArray> ReadMember(const Bytes& zip, const Member& member, const std::string& path) {
  const std::string what = path + ": " + member.name;
  if (zip.U32(member.offset) != kLocalHeader || !zip.Has(member.offset, 30))
    return BadArchive(what, "its header is not where the archive says");
  const uint64_t data =
      member.offset + 30 + zip.U16(member.offset + 26) + zip.U16(member.offset + 28);
  if (!zip.Has(data, member.packed)) return BadArchive(what, "is cut short");
  if (member.flags & 1) return Status(StatusCode::kUnimplemented, what + ": is encrypted");
  std::string_view content = zip.Slice(data, member.packed);
  std::string inflated;
  if (member.method == 8) {
    HEDDLE_ASSIGN_OR_RETURN(inflated, Inflate(content, member.unpacked, what));
    content = inflated;
  } else if (member.method != 0) {
    return Status(StatusCode::kUnimplemented,
                  what + ": compression method " + std::to_string(member.method) + " is not known");
  }
  if (content.size() != member.unpacked || Crc32(content) != member.crc)
    return BadArchive(what, "the checksum does not match");
  return ParseNpyArray(content, what);
}

}  // namespace

Result<NamedArrays> ParseNpzArrays(std::string_view bytes, const std::string& name, uint64_t most) {
  constexpr uint64_t kUsualMost = 256 << 20, kUsualRatio = 100;
  if (most == 0) most = std::max(kUsualMost, bytes.size() * kUsualRatio);
  uint64_t left = most;
  const Bytes zip(bytes);
  const auto directory = FindDirectory(zip);
  if (!directory && bytes.starts_with("PK"))
    return BadArchive(name, "not an .npz file, or cut short");
  if (!directory) return NotA("an .npz file", name, bytes);
  NamedArrays arrays;
  uint64_t at = directory->offset;
  for (uint64_t i = 0; i < directory->entries; ++i) {
    Member member;
    if (!ReadEntry(zip, &at, &member))
      return BadArchive(name, "the archive's directory is damaged");
    if (member.unpacked > left)
      return Status(StatusCode::kResourceExhausted,
                    name + ": array '" + member.name + "' has " + std::to_string(member.unpacked) +
                        " bytes unpacked, and the archive of " + std::to_string(bytes.size()) +
                        " bytes may have " + std::to_string(most) +
                        " in all (--unpack-limit); numpy.savez stores without packing");
    left -= member.unpacked;
    HEDDLE_ASSIGN_OR_RETURN(NpyArray read, ReadMember(zip, member, name));
    std::string array = member.name;
    if (array.ends_with(".npy")) array.resize(array.size() - 4);
    arrays.emplace_back(std::move(array), std::move(read));
  }
  return arrays;
}

Result<NamedArrays> ReadNpzArrays(const std::string& path, uint64_t most) {
  if (IsPipe(path)) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, Receive(path));
    return ParseNpzArrays(bytes, path, most);
  }
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Status(StatusCode::kNotFound, path + ": no such file, or not readable");
  const std::streamoff size = file.tellg();
  // A directory opens, but has no sensible size.
  if (size < 0 || size == std::numeric_limits<std::streamoff>::max())
    return Status(StatusCode::kInvalidArgument, path + ": not a file");
  std::string all(static_cast<size_t>(size), '\0');
  file.seekg(0);
  if (!file.read(all.data(), size)) return BadArchive(path, "cannot be read");
  return ParseNpzArrays(all, path, most);
}

namespace {

Result<NamedTensors> NumbersOfAll(Result<NamedArrays> arrays, const std::string& path) {
  HEDDLE_RETURN_IF_ERROR(arrays.status());
  NamedTensors tensors;
  for (auto& [name, array] : *arrays) {
    if (!array.value.is_tensor())
      return Status(StatusCode::kUnimplemented,
                    path + ": array '" + name + "' holds texts, not numbers");
    tensors.emplace_back(name, array.value.tensor());
  }
  return tensors;
}

}  // namespace

Result<NamedTensors> ParseNpz(std::string_view bytes, const std::string& name) {
  return NumbersOfAll(ParseNpzArrays(bytes, name), name);
}

Result<NamedTensors> ReadNpz(const std::string& path, uint64_t most) {
  return NumbersOfAll(ReadNpzArrays(path, most), path);
}

namespace {

void Append16(uint32_t v, std::string* out) {
  out->push_back(static_cast<char>(v & 0xff));
  out->push_back(static_cast<char>(v >> 8 & 0xff));
}
void Append32(uint32_t v, std::string* out) {
  Append16(v & 0xffff, out);
  Append16(v >> 16, out);
}

}  // namespace

Result<std::string> PackNpz(const NamedTensors& arrays) {
  std::string file, directory;
  for (const auto& [array, tensor] : arrays) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string content, NpyBytes(tensor));
    const std::string name = array + ".npy";
    if (file.size() + content.size() + name.size() > kFull32 / 2 || arrays.size() > 0xfffe)
      return Status(StatusCode::kUnimplemented, "archives of 2 GB are not written");
    // The fields that the local header and the directory share, from the version on.
    std::string facts;
    Append16(20, &facts);          // version
    Append16(0, &facts);           // flags
    Append16(0, &facts);           // stored
    Append32(0x00210000, &facts);  // 1980-01-01
    Append32(Crc32(content), &facts);
    Append32(static_cast<uint32_t>(content.size()), &facts);
    Append32(static_cast<uint32_t>(content.size()), &facts);
    Append16(static_cast<uint32_t>(name.size()), &facts);
    Append16(0, &facts);  // nothing extra
    Append32(0x02014b50, &directory);
    Append16(20, &directory);
    directory += facts;
    Append16(0, &directory);  // no comment
    Append16(0, &directory);  // first disk
    Append16(0, &directory);
    Append32(0, &directory);
    Append32(static_cast<uint32_t>(file.size()), &directory);
    directory += name;
    Append32(0x04034b50, &file);
    file += facts + name + content;
  }
  const auto offset = static_cast<uint32_t>(file.size());
  file += directory;
  Append32(0x06054b50, &file);
  Append32(0, &file);  // disks
  Append16(static_cast<uint32_t>(arrays.size()), &file);
  Append16(static_cast<uint32_t>(arrays.size()), &file);
  Append32(static_cast<uint32_t>(directory.size()), &file);
  Append32(offset, &file);
  Append16(0, &file);
  return file;
}

}  // namespace heddle::tools
