#include "formats/tensorflow/text/form.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cstring>
#include <limits>
#include <optional>
#include <system_error>

#include "core/error.h"
#include "core/interrupts.h"
#include "formats/tensorflow/text/schema.h"
#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

using wire::Field;

// The deepest nesting, which occurs for functions in attributes of functions.
constexpr int kMostNesting = 100;

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Skips white space and comments.
void SkipSpace(std::string_view* rest) {
  for (;;) {
    while (!rest->empty() && IsSpace(rest->front())) rest->remove_prefix(1);
    if (!rest->starts_with('#')) return;
    rest->remove_prefix(std::min(rest->find('\n'), rest->size()));
  }
}

// Whether a message, or a list of messages, begins here: no colon is needed before it.
bool BeginsMessages(std::string_view text) {
  return text.starts_with('{') || text.starts_with('<') || text.starts_with('[');
}
bool MayBeMessage(const TextField& field) {
  return field.kind == TextField::kMessage || field.kind == TextField::kUnused;
}

std::string_view TakeWord(std::string_view* rest) {
  size_t n = 0;
  while (n < rest->size() && IsWord((*rest)[n])) ++n;
  const std::string_view word = rest->substr(0, n);
  rest->remove_prefix(n);
  return word;
}

template <size_t kSize, typename Number>
void AppendFixed(uint32_t number, uint32_t wire_type, Number value, std::string* out) {
  static_assert(sizeof(value) == kSize && std::endian::native == std::endian::little);
  char bytes[kSize];
  std::memcpy(bytes, &value, kSize);
  wire::AppendVarint(number << 3 | wire_type, out);
  out->append(bytes, kSize);
}

void AppendCodePoint(uint32_t c, std::string* out) {
  const auto add = [&](uint32_t byte) { out->push_back(static_cast<char>(byte)); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      add(0xe0 | c >> 12);
    } else {
      add(0xf0 | c >> 18);
      add(0x80 | (c >> 12 & 0x3f));
    }
    add(0x80 | (c >> 6 & 0x3f));
  }
  add(0x80 | (c & 0x3f));
}

class Text {
 public:
  explicit Text(std::string_view text) : all_(text), rest_(text) {}

  // Converts the fields of a message up to `close`, or to the end of the text.
  Status Fields(Message message, char close, int depth, std::string* out) {
    for (;;) {
      LookForInterrupt();
      SkipSpace(&rest_);
      if (rest_.empty() && close == '\0') return Status::Ok();
      if (rest_.empty()) return Wrong(StrCat("the text ends inside a ", Name(message)));
      if (close != '\0' && rest_.front() == close) {
        rest_.remove_prefix(1);
        return Status::Ok();
      }
      const std::string_view word = TakeWord(&rest_);
      if (word.empty()) return Wrong(StrCat("a field of ", Name(message), " is expected"));
      const TextField* field = FindTextField(message, word);
      if (field == nullptr)
        return Wrong(StrCat(Name(message), " has no field '", std::string(word), "'"));
      HEDDLE_RETURN_IF_ERROR(Values(*field, depth, out));
      SkipSpace(&rest_);
      if (rest_.starts_with(',') || rest_.starts_with(';')) rest_.remove_prefix(1);
    }
  }

 private:
  static std::string Name(Message message) { return std::string(NameOf(message)); }

  Status Wrong(const std::string& what) const {
    const std::string_view before = all_.substr(0, all_.size() - rest_.size());
    return DataLoss("line ", 1 + std::count(before.begin(), before.end(), '\n'), ": ", what);
  }
  Status Expected(const TextField& field, const char* what) const {
    std::string_view found = rest_.substr(0, 20);
    found = found.substr(0, found.find('\n'));
    return Wrong(StrCat("field '", std::string(field.name), "' wants ", what, "; '",
                        std::string(found), "' stands there"));
  }

  // Converts what follows a field's name: a value, or a list of values.
  Status Values(const TextField& field, int depth, std::string* out) {
    SkipSpace(&rest_);
    if (rest_.starts_with(':')) {
      rest_.remove_prefix(1);
      SkipSpace(&rest_);
    } else if (!BeginsMessages(rest_) || (rest_.starts_with('[') && !MayBeMessage(field))) {
      return Expected(field, "a ':'");
    }
    if (!rest_.starts_with('[')) return Value(field, depth, out);
    rest_.remove_prefix(1);
    SkipSpace(&rest_);
    if (rest_.starts_with(']')) {
      rest_.remove_prefix(1);
      return Status::Ok();
    }
    for (;;) {
      LookForInterrupt();
      HEDDLE_RETURN_IF_ERROR(Value(field, depth, out));
      SkipSpace(&rest_);
      const char next = rest_.empty() ? '\0' : rest_.front();
      if (next != ',' && next != ']') return Expected(field, "',' or ']'");
      rest_.remove_prefix(1);
      if (next == ']') return Status::Ok();
      SkipSpace(&rest_);
    }
  }

  Status Value(const TextField& field, int depth, std::string* out) {
    switch (field.kind) {
      case TextField::kUnused:
        return Skip(field, depth);
      case TextField::kMessage: {
        if (depth >= kMostNesting) return Wrong("messages lie in each other too deep");
        const char open = rest_.empty() ? '\0' : rest_.front();
        if (open != '{' && open != '<') return Expected(field, "a message in braces");
        rest_.remove_prefix(1);
        std::string inner;
        HEDDLE_RETURN_IF_ERROR(Fields(field.message, open == '{' ? '}' : '>', depth + 1, &inner));
        wire::AppendBytesField(field.number, inner, out);
        return Status::Ok();
      }
      case TextField::kBytes: {
        std::string bytes;
        HEDDLE_RETURN_IF_ERROR(Strings(field, &bytes));
        wire::AppendBytesField(field.number, bytes, out);
        return Status::Ok();
      }
      case TextField::kFloat:
      case TextField::kDouble: {
        const auto value = Real();
        if (!value) return Expected(field, "a number");
        if (field.kind == TextField::kFloat)
          AppendFixed<4>(field.number, Field::kFixed32, static_cast<float>(*value), out);
        else
          AppendFixed<8>(field.number, Field::kFixed64, *value, out);
        return Status::Ok();
      }
      case TextField::kBool: {
        std::string_view ahead = rest_;
        const std::string_view word = TakeWord(&ahead);
        const bool yes = word == "true" || word == "True" || word == "t" || word == "1";
        if (!yes && word != "false" && word != "False" && word != "f" && word != "0")
          return Expected(field, "true or false");
        rest_ = ahead;
        wire::AppendVarintField(field.number, yes ? 1 : 0, out);
        return Status::Ok();
      }
      case TextField::kType: {
        std::string_view ahead = rest_;
        if (const auto type = TypeNumber(TakeWord(&ahead))) {
          rest_ = ahead;
          wire::AppendVarintField(field.number, static_cast<uint64_t>(*type), out);
          return Status::Ok();
        }
        return Integer(field, INT32_MIN, INT32_MAX, "an element type as DT_FLOAT", out);
      }
      case TextField::kInt32:
        return Integer(field, INT32_MIN, INT32_MAX, "an integer of 32 bits", out);
      case TextField::kInt64:
        return Integer(field, INT64_MIN, INT64_MAX, "an integer", out);
      case TextField::kUint32:
        return Integer(field, 0, UINT32_MAX, "an integer of 32 bits without a sign", out);
      case TextField::kUint64:
        return Integer(field, 0, UINT64_MAX, "an integer without a sign", out);
    }
    return Status::Ok();
  }

  bool TakeMinus() {
    if (!rest_.starts_with('-')) return false;
    rest_.remove_prefix(1);
    SkipSpace(&rest_);
    return true;
  }

  Status Integer(const TextField& field, int64_t least, uint64_t most, const char* what,
                 std::string* out) {
    const std::string_view before = rest_;
    const bool negative = TakeMinus();
    std::string_view digits = TakeWord(&rest_);
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.size() > 1 && digits.starts_with('0')) {
      base = 8;
    }
    uint64_t value = 0;
    const char* end = digits.data() + digits.size();
    const auto [at, error] = std::from_chars(digits.data(), end, value, base);
    // The negation of `least` in unsigned arithmetic, since int64 cannot hold that of the smallest
    // number.
    const uint64_t room = negative ? uint64_t{0} - static_cast<uint64_t>(least) : most;
    if (error != std::errc() || at != end || value > room || rest_.starts_with('.')) {
      rest_ = before;
      return Expected(field, what);
    }
    wire::AppendVarintField(field.number, negative ? uint64_t{0} - value : value, out);
    return Status::Ok();
  }

  std::optional<double> Real() {
    const std::string_view before = rest_;
    const bool negative = TakeMinus();
    double value = 0;
    std::string_view ahead = rest_;
    std::string word(TakeWord(&ahead));
    for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (word == "inf" || word == "infinity" || word == "inff") {
      value = std::numeric_limits<double>::infinity();
      rest_ = ahead;
    } else if (word == "nan" || word == "nanf") {
      value = std::numeric_limits<double>::quiet_NaN();
      rest_ = ahead;
    } else {
      if (rest_.starts_with('-')) {  // a second sign, which from_chars would accept
        rest_ = before;
        return std::nullopt;
      }
      const auto [at, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
      const auto taken = static_cast<size_t>(at - rest_.data());
      if (error == std::errc::result_out_of_range) {
        value = Underflows(rest_.substr(0, taken)) ? 0 : std::numeric_limits<double>::infinity();
      } else if (error != std::errc()) {
        rest_ = before;
        return std::nullopt;
      }
      rest_.remove_prefix(taken);
      if (rest_.starts_with('f') || rest_.starts_with('F')) rest_.remove_prefix(1);
      if (!rest_.empty() && (IsWord(rest_.front()) || rest_.front() == '.')) {
        rest_ = before;
        return std::nullopt;
      }
    }
    return negative ? -value : value;
  }
  // Whether a number that no double can hold is too small rather than too large.
  static bool Underflows(std::string_view number) {
    const size_t e = number.find_first_of("eE");
    return e != std::string_view::npos ? number.substr(e + 1).starts_with('-')
                                       : number.starts_with("0.") || number.starts_with('.');
  }

  // Adjacent strings are concatenated.
  Status Strings(const TextField& field, std::string* out) {
    if (!rest_.starts_with('"') && !rest_.starts_with('\'')) return Expected(field, "a string");
    while (rest_.starts_with('"') || rest_.starts_with('\'')) {
      HEDDLE_RETURN_IF_ERROR(OneString(field, out));
      SkipSpace(&rest_);
    }
    return Status::Ok();
  }

  Status OneString(const TextField& field, std::string* out) {
    const char quote = rest_.front();
    rest_.remove_prefix(1);
    for (;;) {
      if (rest_.empty() || rest_.front() == '\n')
        return Wrong(StrCat("the string of field '", std::string(field.name), "' does not end"));
      const char c = rest_.front();
      if (c == '\\') {
        if (!Escape(out)) return Expected(field, "an escape sequence");
        continue;
      }
      rest_.remove_prefix(1);
      if (c == quote) return Status::Ok();
      out->push_back(c);
    }
  }

  // Takes at most `most` digits of a base.
  std::optional<uint32_t> Digits(int base, size_t most) {
    const std::string_view digits = rest_.substr(0, most);
    uint32_t value = 0;
    const auto [at, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(at - digits.data()));
    return value;
  }

  bool Escape(std::string* out) {
    if (rest_.size() < 2) return false;
    const char c = rest_[1];
    constexpr std::string_view kLetters = "nrtabfv\\'\"?", kMeaning = "\n\r\t\a\b\f\v\\'\"?";
    if (const size_t at = kLetters.find(c); at != std::string_view::npos) {
      out->push_back(kMeaning[at]);
      rest_.remove_prefix(2);
      return true;
    }
    const bool octal = c >= '0' && c <= '7';
    if (!octal && c != 'x' && c != 'X' && c != 'u' && c != 'U') return false;
    rest_.remove_prefix(octal ? 1 : 2);
    const size_t before = rest_.size(), wanted = c == 'u' ? 4 : c == 'U' ? 8 : 0;
    const auto value = octal ? Digits(8, 3) : Digits(16, wanted == 0 ? 2 : wanted);
    if (!value) return false;
    if (wanted == 0) {
      if (*value > 0xff) return false;
      out->push_back(static_cast<char>(*value));
      return true;
    }
    if (before - rest_.size() != wanted || *value > 0x10ffff) return false;
    AppendCodePoint(*value, out);
    return true;
  }

  // Skips the value of a field that heddle does not use.
  Status Skip(const TextField& field, int depth) {
    if (rest_.starts_with('{') || rest_.starts_with('<')) {
      if (depth >= kMostNesting) return Wrong("messages lie in each other too deep");
      const char close = rest_.front() == '{' ? '}' : '>';
      rest_.remove_prefix(1);
      for (;;) {
        SkipSpace(&rest_);
        if (rest_.empty()) return Wrong("the text ends inside a message");
        if (rest_.front() == close) break;
        if (rest_.front() == '[') {  // a type name in brackets, as in an Any
          rest_.remove_prefix(std::min(rest_.find(']'), rest_.size() - 1) + 1);
        } else if (TakeWord(&rest_).empty()) {
          return Wrong("a field is expected");
        }
        std::string nothing;
        HEDDLE_RETURN_IF_ERROR(Values(field, depth + 1, &nothing));
        SkipSpace(&rest_);
        if (rest_.starts_with(',') || rest_.starts_with(';')) rest_.remove_prefix(1);
      }
      rest_.remove_prefix(1);
      return Status::Ok();
    }
    if (rest_.starts_with('"') || rest_.starts_with('\'')) {
      std::string nothing;
      return Strings(field, &nothing);
    }
    std::string_view ahead = rest_;
    if (!TypeNumber(TakeWord(&ahead)) && Real()) return Status::Ok();
    TakeMinus();
    if (TakeWord(&rest_).empty()) return Expected(field, "a value");
    return Status::Ok();
  }

  const std::string_view all_;
  std::string_view rest_;
};

// Finds the top-level message that has a field of this name; no two of the three share one.
const TextField* FieldOfAny(std::string_view word, Message* message) {
  for (const Message m : {Message::kGraph, Message::kSavedModel, Message::kMetaGraph}) {
    *message = m;
    if (const TextField* field = FindTextField(m, word)) return field;
  }
  return nullptr;
}

}  // namespace

bool LooksLikeText(std::string_view bytes) {
  SkipSpace(&bytes);
  const std::string_view word = TakeWord(&bytes);
  Message message;
  const TextField* const field = FieldOfAny(word, &message);
  if (field == nullptr || word == "debug_info") return false;
  SkipSpace(&bytes);
  if (field->kind != TextField::kMessage) return bytes.starts_with(':');
  if (bytes.starts_with(':')) bytes.remove_prefix(1);
  SkipSpace(&bytes);
  return BeginsMessages(bytes);
}

Result<std::string> BinaryFromText(std::string_view text) {
  std::string out;
  Message message = Message::kGraph;
  std::string_view rest = text;
  SkipSpace(&rest);
  if (FieldOfAny(TakeWord(&rest), &message) == nullptr) message = Message::kGraph;
  HEDDLE_RETURN_IF_ERROR(Text(text).Fields(message, '\0', 0, &out));
  return out;
}

}  // namespace heddle::tensorflow
