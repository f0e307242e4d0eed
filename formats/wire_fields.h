// Reads and writes messages in protobuf's wire format
// (https://protobuf.dev/programming-guides/encoding), field by field and without message objects.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::wire {

// One field of a message.
struct Field {
  static constexpr uint32_t kVarint = 0, kFixed64 = 1, kFixed32 = 5;
  static constexpr uint32_t kBytes = 2;  // the wire type of strings, messages and packed lists
  uint32_t number = 0, wire_type = 0;
  std::string_view whole;    // tag and value
  std::string_view payload;  // of wire type kBytes; the 8 or 4 bytes of a fixed one
  uint64_t varint = 0;       // of wire type kVarint
  bool Is(uint32_t n) const { return number == n && wire_type == kBytes; }
  bool IsVarint(uint32_t n) const { return number == n && wire_type == kVarint; }
  int64_t integer() const { return static_cast<int64_t>(varint); }
};

// Takes a varint from the front of `rest`. False: it does not begin with one.
inline bool TakeVarint(std::string_view* rest, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest->empty()) return false;
    const auto byte = static_cast<uint8_t>(rest->front());
    rest->remove_prefix(1);
    *value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  bool done() const { return rest_.empty(); }
  // Reads the next field. False: damaged, or a group, which protobuf no longer writes.
  bool Next(Field* f) {
    const std::string_view start = rest_;
    uint64_t tag = 0, length = 0;
    if (!TakeVarint(&rest_, &tag) || tag >> 35 != 0) return false;
    f->number = static_cast<uint32_t>(tag >> 3);
    f->wire_type = tag & 7;
    f->payload = {};
    f->varint = 0;
    switch (f->wire_type) {
      case Field::kVarint:
        if (!TakeVarint(&rest_, &f->varint)) return false;
        break;
      case Field::kFixed64:
        length = 8;
        break;
      case Field::kBytes:
        if (!TakeVarint(&rest_, &length)) return false;
        break;
      case Field::kFixed32:
        length = 4;
        break;
      default:
        return false;
    }
    if (f->number == 0 || length > rest_.size()) return false;
    f->payload = rest_.substr(0, length);
    rest_.remove_prefix(length);
    f->whole = start.substr(0, start.size() - rest_.size());
    return true;
  }

 private:
  std::string_view rest_;
};

inline void AppendVarint(uint64_t v, std::string* out) {
  for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
  out->push_back(static_cast<char>(v));
}

inline void AppendVarintField(uint32_t number, uint64_t value, std::string* out) {
  AppendVarint(number << 3, out);
  AppendVarint(value, out);
}

inline void AppendBytesField(uint32_t number, std::string_view payload, std::string* out) {
  AppendVarint(number << 3 | Field::kBytes, out);
  AppendVarint(payload.size(), out);
  out->append(payload);
}

}  // namespace heddle::wire
