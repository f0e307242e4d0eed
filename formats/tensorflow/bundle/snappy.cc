// The format (Google's snappy, format_description.txt): a varint with the number of bytes, then
// elements. The two low bits of an element's first byte distinguish a literal, whose bytes follow,
// from a copy of earlier bytes, at a distance of 11, 16 or 32 bits.
#include "formats/tensorflow/bundle/snappy.h"

#include <cstdint>

#include "core/error.h"
#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

// The most output per input byte: the longest copy makes 64 bytes and takes 3.
constexpr size_t kMostPerByte = 22;

enum Element : uint8_t { kLiteral, kNearCopy, kCopy, kFarCopy };

class Reader {
 public:
  explicit Reader(std::string_view block) : rest_(block) {}

  Result<std::string> Run() {
    const size_t packed = rest_.size();
    uint64_t size = 0;
    if (!wire::TakeVarint(&rest_, &size)) return Damaged();
    if (size > packed * kMostPerByte)
      return DataLoss("a compressed block of ", packed, " bytes claims to hold ", size);
    size_ = static_cast<size_t>(size);
    out_.reserve(size_);
    while (!rest_.empty())
      if (!TakeElement()) return Damaged();
    if (out_.size() != size_) return Damaged();
    return std::move(out_);
  }

 private:
  static Status Damaged() { return DataLoss("a compressed block is damaged"); }

  // Takes a little-endian number of `count` bytes.
  bool TakeBytes(size_t count, size_t* number) {
    if (rest_.size() < count) return false;
    *number = 0;
    for (size_t i = 0; i < count; ++i) *number |= size_t{static_cast<uint8_t>(rest_[i])} << (8 * i);
    rest_.remove_prefix(count);
    return true;
  }

  bool TakeElement() {
    const auto tag = static_cast<uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    const size_t upper = tag >> 2;
    size_t distance = 0;
    switch (static_cast<Element>(tag & 3)) {
      case kLiteral:
        return TakeLiteral(upper);
      case kNearCopy:
        return TakeBytes(1, &distance) && Copy(distance | (upper >> 3) << 8, (upper & 7) + 4);
      case kCopy:
        return TakeBytes(2, &distance) && Copy(distance, upper + 1);
      default:
        return TakeBytes(4, &distance) && Copy(distance, upper + 1);
    }
  }

  // Lengths above 60 follow the tag, in 1 to 4 bytes.
  bool TakeLiteral(size_t upper) {
    constexpr size_t kInTag = 60;
    size_t length = upper;
    if (upper >= kInTag && !TakeBytes(upper - kInTag + 1, &length)) return false;
    ++length;
    if (length > rest_.size() || length > size_ - out_.size()) return false;
    out_.append(rest_.substr(0, length));
    rest_.remove_prefix(length);
    return true;
  }

  // A copy may overlap its own output: bytes then repeat.
  bool Copy(size_t distance, size_t length) {
    if (distance == 0 || distance > out_.size() || length > size_ - out_.size()) return false;
    for (size_t i = 0; i < length; ++i) out_.push_back(out_[out_.size() - distance]);
    return true;
  }

  std::string_view rest_;
  size_t size_ = 0;
  std::string out_;
};

}  // namespace

Result<std::string> Uncompress(std::string_view block) { return Reader(block).Run(); }

}  // namespace heddle::tensorflow
