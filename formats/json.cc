#include "formats/json.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

#include "core/error.h"

namespace heddle {

// Reads values one after another, with the open arrays and objects on a stack of its own.
class JsonParser {
 public:
  JsonParser(std::string_view bytes, JsonDocument* document)
      : bytes_(bytes), nodes_(document->nodes_), unescaped_(document->unescaped_) {}

  Status Run() {
    HEDDLE_RETURN_IF_ERROR(Value());
    while (!open_.empty()) HEDDLE_RETURN_IF_ERROR(Next());
    SkipSpace();
    return at_ == bytes_.size() ? Status::Ok() : Expected("the end of the file");
  }

 private:
  using Node = JsonDocument::Node;
  using Kind = JsonDocument::Kind;

  Status Expected(const char* what) const {
    if (at_ >= bytes_.size())
      return DataLoss("cut short at byte ", at_, ", where ", what, " is due");
    return DataLoss("not JSON at byte ", at_, ", where ", what, " is expected");
  }
  void SkipSpace() {
    while (at_ < bytes_.size() && (bytes_[at_] == ' ' || bytes_[at_] == '\n' ||
                                   bytes_[at_] == '\t' || bytes_[at_] == '\r'))
      ++at_;
  }
  bool Take(char c) {
    if (at_ >= bytes_.size() || bytes_[at_] != c) return false;
    ++at_;
    return true;
  }
  Node& Add(Kind kind) {
    Node& node = nodes_.Add();
    node.kind = kind;
    node.next = static_cast<uint32_t>(nodes_.size());
    return node;
  }

  // Reads the next element or member of the innermost open value, or its end.
  Status Next() {
    const uint32_t parent = open_.back();
    const bool object = nodes_[parent].kind == Kind::kObject;
    SkipSpace();
    if (Take(object ? '}' : ']')) {
      nodes_[parent].next = static_cast<uint32_t>(nodes_.size());
      open_.pop_back();
      return Status::Ok();
    }
    if (nodes_[parent].size > 0) {
      if (!Take(',')) return Expected(object ? "',' or '}'" : "',' or ']'");
      SkipSpace();
    }
    if (object) {
      if (nodes_[parent].size == JsonDocument::kMaxMembers)
        return DataLoss("an object of more than ", JsonDocument::kMaxMembers, " members at byte ",
                        at_);
      if (at_ >= bytes_.size() || bytes_[at_] != '"') return Expected("a key");
      HEDDLE_RETURN_IF_ERROR(Text());
      HEDDLE_RETURN_IF_ERROR(CheckNewKey(parent));
      SkipSpace();
      if (!Take(':')) return Expected("':'");
    }
    ++nodes_[parent].size;
    return Value();
  }

  std::string_view TextOf(uint32_t at) const { return {nodes_[at].text, nodes_[at].size}; }

  // Checks that the last node, a key of `object`, differs from all its earlier keys.
  Status CheckNewKey(uint32_t object) const {
    const auto key = static_cast<uint32_t>(nodes_.size() - 1);
    uint32_t at = object + 1;
    for (uint32_t i = 0; i < nodes_[object].size; ++i) {
      if (TextOf(at) == TextOf(key))
        return DataLoss("the key '", std::string(TextOf(key)), "' twice in one object, at byte ",
                        at_);
      at = nodes_[at + 1].next;
    }
    return Status::Ok();
  }

  Status Value() {
    SkipSpace();
    if (at_ >= bytes_.size()) return Expected("a value");
    const char c = bytes_[at_];
    if (c == '{' || c == '[') {
      if (open_.size() == JsonDocument::kMaxDepth)
        return DataLoss("values nested more than ", JsonDocument::kMaxDepth, " deep at byte ", at_);
      open_.push_back(static_cast<uint32_t>(nodes_.size()));
      Add(c == '{' ? Kind::kObject : Kind::kArray);
      ++at_;
      return Status::Ok();
    }
    if (c == '"') return Text();
    if (c == '-' || (c >= '0' && c <= '9')) return Number();
    for (const auto& [word, kind, value] :
         {std::tuple{std::string_view("null"), Kind::kNull, 0},
          std::tuple{std::string_view("true"), Kind::kBool, 1},
          std::tuple{std::string_view("false"), Kind::kBool, 0}}) {
      if (!bytes_.substr(at_).starts_with(word)) continue;
      at_ += word.size();
      Add(kind).integer = value;
      return Status::Ok();
    }
    return Expected("a value");
  }

  size_t Digits() {
    const size_t from = at_;
    while (at_ < bytes_.size() && bytes_[at_] >= '0' && bytes_[at_] <= '9') ++at_;
    return at_ - from;
  }

  Status Number() {
    const size_t from = at_;
    Take('-');
    if (!Take('0') && Digits() == 0) return Expected("a digit");
    const size_t whole_end = at_;
    if (Take('.') && Digits() == 0) return Expected("a digit");
    if (Take('e') || Take('E')) {
      if (!Take('+')) Take('-');
      if (Digits() == 0) return Expected("a digit");
    }
    const char *begin = bytes_.data() + from, *end = bytes_.data() + at_;
    int64_t integer = 0;
    if (at_ == whole_end && std::from_chars(begin, end, integer).ec == std::errc()) {
      Add(Kind::kInteger).integer = integer;
      return Status::Ok();
    }
    double number = 0;
    if (std::from_chars(begin, end, number).ec != std::errc())  // too large, or too small
      number = std::strtod(std::string(begin, end).c_str(), nullptr);
    if (!std::isfinite(number)) return DataLoss("a number that is too large at byte ", from);
    Add(Kind::kNumber).number = number;
    return Status::Ok();
  }

  Status Text() {
    const size_t from = ++at_;
    SkipAscii();
    while (at_ < bytes_.size() && bytes_[at_] != '"' && bytes_[at_] != '\\')
      HEDDLE_RETURN_IF_ERROR(Plain());
    std::string_view text = bytes_.substr(from, at_ - from);
    if (at_ < bytes_.size() && bytes_[at_] == '\\') {
      std::string& copy = unescaped_.emplace_back(text);
      while (at_ < bytes_.size() && bytes_[at_] != '"') {
        const size_t begin = at_;
        if (bytes_[at_] == '\\') {
          HEDDLE_RETURN_IF_ERROR(Escape(&copy));
          continue;
        }
        HEDDLE_RETURN_IF_ERROR(Plain());
        copy.append(bytes_.substr(begin, at_ - begin));
      }
      text = copy;
    }
    if (!Take('"')) return Expected("the end of a text");
    Node& node = Add(Kind::kText);
    node.text = text.data();
    node.size = static_cast<uint32_t>(text.size());
    return Status::Ok();
  }

  // Skips characters of one byte that need no escape, as nearly all are.
  void SkipAscii() {
    const char *const begin = bytes_.data() + at_, *const end = bytes_.data() + bytes_.size();
    const char* at = begin;
    // Bytes of multi-byte characters are negative as signed char.
    while (at < end && static_cast<signed char>(*at) >= 0x20 && *at != '"' && *at != '\\') ++at;
    at_ += static_cast<size_t>(at - begin);
  }
  // Takes one character that needs no escape, and checks that it is well-formed UTF-8.
  Status Plain() {
    const auto c = static_cast<unsigned char>(bytes_[at_]);
    if (c < 0x20) return Expected("no control character");
    const size_t more = c < 0x80   ? 0
                        : c < 0xc2 ? 9
                        : c < 0xe0 ? 1
                        : c < 0xf0 ? 2
                        : c < 0xf5 ? 3
                                   : 9;
    if (more == 9) return Expected("UTF-8");
    for (size_t i = 1; i <= more; ++i) {
      const auto next = at_ + i < bytes_.size() ? static_cast<unsigned char>(bytes_[at_ + i]) : 0u;
      const bool first = i == 1;
      const unsigned least = first && c == 0xe0 ? 0xa0 : first && c == 0xf0 ? 0x90 : 0x80;
      const unsigned most = first && c == 0xed ? 0x9f : first && c == 0xf4 ? 0x8f : 0xbf;
      if (next < least || next > most) return Expected("UTF-8");
    }
    at_ += more + 1;
    return Status::Ok();
  }

  bool Hex(uint32_t* code) {
    if (bytes_.size() - at_ < 4) return false;
    const char* begin = bytes_.data() + at_;
    const auto [end, error] = std::from_chars(begin, begin + 4, *code, 16);
    if (error != std::errc() || end != begin + 4 || *begin == '-') return false;
    at_ += 4;
    return true;
  }

  Status Escape(std::string* to) {
    ++at_;
    const char c = at_ < bytes_.size() ? bytes_[at_] : '\0';
    constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    if (const size_t i = kFrom.find(c); c != '\0' && i != std::string_view::npos) {
      ++at_;
      to->push_back(kTo[i]);
      return Status::Ok();
    }
    if (c != 'u') return Expected("an escape");
    ++at_;
    uint32_t code = 0, low = 0;
    if (!Hex(&code)) return Expected("four hexadecimal digits");
    if (code >= 0xd800 && code < 0xdc00) {
      if (!Take('\\') || !Take('u') || !Hex(&low) || low < 0xdc00 || low > 0xdfff)
        return Expected("the other half of a surrogate pair");
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
      return Expected("no half of a surrogate pair");
    }
    AppendUtf8(code, to);
    return Status::Ok();
  }

  static void AppendUtf8(uint32_t code, std::string* to) {
    const auto add = [to](uint32_t byte) { to->push_back(static_cast<char>(byte)); };
    if (code < 0x80) return add(code);
    if (code < 0x800) {
      add(0xc0 | (code >> 6));
    } else {
      if (code < 0x10000) {
        add(0xe0 | (code >> 12));
      } else {
        add(0xf0 | (code >> 18));
        add(0x80 | ((code >> 12) & 0x3f));
      }
      add(0x80 | ((code >> 6) & 0x3f));
    }
    add(0x80 | (code & 0x3f));
  }

  const std::string_view bytes_;
  JsonDocument::Nodes& nodes_;
  std::deque<std::string>& unescaped_;
  std::vector<uint32_t> open_;
  size_t at_ = 0;
};

Result<JsonDocument> JsonDocument::Parse(std::string_view bytes) {
  if (bytes.size() > kMaxBytes)
    return ResourceExhausted("the file has ", bytes.size(), " bytes; at most ", kMaxBytes,
                             " are read");
  JsonDocument document;
  HEDDLE_RETURN_IF_ERROR(JsonParser(bytes, &document).Run());
  return document;
}

bool Json::is_object() const {
  return document_ && document_->nodes_[at_].kind == JsonDocument::Kind::kObject;
}
bool Json::is_array() const {
  return document_ && document_->nodes_[at_].kind == JsonDocument::Kind::kArray;
}
bool Json::is_number() const {
  double ignored = 0;
  return Get(&ignored);
}

size_t Json::size() const { return is_object() || is_array() ? document_->nodes_[at_].size : 0; }

Json Json::operator[](std::string_view key) const {
  if (!is_object()) return {};
  uint32_t at = at_ + 1;
  for (uint32_t i = 0; i < document_->nodes_[at_].size; ++i) {
    const JsonDocument::Node& node = document_->nodes_[at];
    if (std::string_view(node.text, node.size) == key) return {document_, at + 1};
    at = document_->nodes_[at + 1].next;
  }
  return {};
}

std::vector<std::string_view> Json::keys() const {
  std::vector<std::string_view> found;
  if (!is_object()) return found;
  uint32_t at = at_ + 1;
  for (uint32_t i = 0; i < document_->nodes_[at_].size; ++i) {
    const JsonDocument::Node& node = document_->nodes_[at];
    found.emplace_back(node.text, node.size);
    at = document_->nodes_[at + 1].next;
  }
  return found;
}

bool Json::Get(std::string_view* to) const {
  if (!document_ || document_->nodes_[at_].kind != JsonDocument::Kind::kText) return false;
  *to = {document_->nodes_[at_].text, document_->nodes_[at_].size};
  return true;
}

bool Json::Get(int64_t* to) const {
  if (!document_) return false;
  const JsonDocument::Node& node = document_->nodes_[at_];
  if (node.kind == JsonDocument::Kind::kInteger) {
    *to = node.integer;
    return true;
  }
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (node.kind != JsonDocument::Kind::kNumber || node.number != std::trunc(node.number) ||
      node.number < -kLimit || node.number >= kLimit)
    return false;
  *to = static_cast<int64_t>(node.number);
  return true;
}

bool Json::Get(double* to) const {
  if (!document_) return false;
  const JsonDocument::Node& node = document_->nodes_[at_];
  if (node.kind == JsonDocument::Kind::kInteger)
    *to = static_cast<double>(node.integer);
  else if (node.kind == JsonDocument::Kind::kNumber)
    *to = node.number;
  else
    return false;
  return true;
}

bool Json::Get(bool* to) const {
  if (!document_) return false;
  const JsonDocument::Node& node = document_->nodes_[at_];
  const bool digit = node.kind == JsonDocument::Kind::kInteger && (node.integer | 1) == 1;
  if (node.kind != JsonDocument::Kind::kBool && !digit) return false;
  *to = node.integer != 0;
  return true;
}

Json::Iterator& Json::Iterator::operator++() {
  at_ = document_->nodes_[at_].next;
  return *this;
}
Json::Iterator Json::begin() const { return {document_, is_array() ? at_ + 1 : 0}; }
Json::Iterator Json::end() const {
  return {document_, is_array() ? document_->nodes_[at_].next : 0};
}

}  // namespace heddle
