// Reads messages in protobuf's wire format (https://protobuf.dev/programming-guides/encoding) field
// by field, without objects for them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::paddle::wire {

// One field of a message.
struct Field {
  static constexpr uint32_t kBytes = 2;  // the wire type of strings, messages and packed lists
  uint32_t number = 0, wire_type = 0;
  std::string_view whole;    // tag and value
  std::string_view payload;  // of wire type kBytes
  bool Is(uint32_t n) const { return number == n && wire_type == kBytes; }
};

class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}
  bool done() const { return rest_.empty(); }
  // False: damaged, or of a form that no version of protobuf writes any more.
  bool Next(Field* f) {
    const std::string_view start = rest_;
    uint64_t tag = 0, length = 0;
    if (!Varint(&tag) || tag >> 35 != 0) return false;
    f->number = static_cast<uint32_t>(tag >> 3);
    f->wire_type = tag & 7;
    f->payload = {};
    switch (f->wire_type) {
      case 0:
        if (!Varint(&length)) return false;
        length = 0;
        break;
      case 1:
        length = 8;
        break;
      case Field::kBytes:
        if (!Varint(&length)) return false;
        break;
      case 5:
        length = 4;
        break;
      default:
        return false;
    }
    if (f->number == 0 || length > rest_.size()) return false;
    if (f->wire_type == Field::kBytes) f->payload = rest_.substr(0, length);
    rest_.remove_prefix(length);
    f->whole = start.substr(0, start.size() - rest_.size());
    return true;
  }

 private:
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) return false;
      const auto byte = static_cast<uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      *value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  std::string_view rest_;
};

inline void AppendBytesField(uint32_t number, std::string_view payload, std::string* out) {
  auto varint = [&](uint64_t v) {
    for (; v >= 0x80; v >>= 7) out->push_back(static_cast<char>(v | 0x80));
    out->push_back(static_cast<char>(v));
  };
  varint(number << 3 | Field::kBytes);
  varint(payload.size());
  out->append(payload);
}

// The numbers of proto/framework.proto.
inline constexpr uint32_t kBlocks = 1, kOps = 4, kOpType = 3, kAttrs = 4;
inline constexpr uint32_t kAttrName = 1, kAttrType = 2, kStrings = 8;

}  // namespace heddle::paddle::wire
