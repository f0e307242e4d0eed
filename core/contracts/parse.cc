#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "core/contracts/clause.h"
#include "core/contracts/contract.h"
#include "core/error.h"

namespace heddle::contracts {
namespace {

constexpr uint32_t Bit(DType t) { return uint32_t{1} << static_cast<int>(t); }

// The dtypes that a word stands for; 0: it is no such word.
uint32_t DTypesNamed(std::string_view word) {
  constexpr uint32_t kIndex = Bit(DType::kI32) | Bit(DType::kI64);
  if (word == "index") return kIndex;
  if (word == "integer") return kIndex | Bit(DType::kU8) | Bit(DType::kI8) | Bit(DType::kI16);
  if (word == "float")
    return Bit(DType::kF16) | Bit(DType::kBF16) | Bit(DType::kF32) | Bit(DType::kF64);
  if (word == "complex") return Bit(DType::kC64) | Bit(DType::kC128);
  if (word == "any") return Bit(DType::kUnknown) - 1;
  for (int t = 0; t < static_cast<int>(DType::kUnknown); ++t)
    if (word == Name(static_cast<DType>(t))) return Bit(static_cast<DType>(t));
  return 0;
}

std::string_view Trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> Split(std::string_view s, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = s.find(by);
    parts.push_back(Trimmed(s.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    s.remove_prefix(end + 1);
  }
}

std::optional<double> NumberIn(std::string_view s) {
  double value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return value;
}

// Takes words from the front of a text; what stands in brackets is one word.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(Trimmed(text)) {}
  bool empty() const { return rest_.empty(); }
  std::string_view Next() {
    const size_t end = rest_.starts_with('[') ? rest_.find(']') : rest_.find(' ');
    const size_t size = end == std::string_view::npos ? rest_.size()
                        : rest_[end] == ']'           ? end + 1
                                                      : end;
    const std::string_view word = rest_.substr(0, size);
    rest_ = Trimmed(rest_.substr(size));
    return word;
  }

 private:
  std::string_view rest_;
};

}  // namespace

// Reads one contract.
class Parser {
 public:
  Parser(std::string_view text, const OpDef& def, Contract* out)
      : text_(text), def_(def), out_(*out) {}

  Status Run() {
    out_.text_ = std::string(text_);
    for (const std::string_view clause : Split(text_, ';'))
      if (!clause.empty()) HEDDLE_RETURN_IF_ERROR(ReadClause(clause));
    out_.letters_ = static_cast<int>(letters_.size());
    out_.tells_outputs_ = TellsOutputs();
    return Status::Ok();
  }

 private:
  Status ReadClause(std::string_view clause) {
    const size_t colon = clause.find(':');
    if (colon == std::string_view::npos) return Bad("has no ':'", clause);
    for (const std::string_view name : Split(clause.substr(0, colon), ',')) {
      Clause c;
      c.name = std::string(name);
      Words words(clause.substr(colon + 1));
      if (words.empty()) return Bad("demands nothing", clause);
      const std::string key(name);
      if ((c.at = def_.FindInput(key)) != kNone) {
        HEDDLE_RETURN_IF_ERROR(ReadOperand(words, clause, &c));
        if (c.lod_of != kNone) return Bad("says the LoD of an input", clause);
        out_.inputs_.push_back(std::move(c));
      } else if ((c.at = def_.FindOutput(key)) != kNone) {
        HEDDLE_RETURN_IF_ERROR(ReadOperand(words, clause, &c));
        if (c.one || c.has_count || c.count_of != kNone)
          return Bad("counts elements of an output, which has a shape", clause);
        out_.outputs_.push_back(std::move(c));
      } else if ((c.at = def_.FindAttr(key)) != kNone) {
        HEDDLE_RETURN_IF_ERROR(ReadAttribute(words, clause, &c));
        out_.attributes_.push_back(std::move(c));
      } else {
        return Bad(StrCat("names '", key, "', which is no slot or attribute"), clause);
      }
    }
    return Status::Ok();
  }

  Status ReadOperand(Words& words, std::string_view clause, Clause* c) {
    while (!words.empty()) {
      const std::string_view word = words.Next();
      if (word.starts_with('[')) {
        HEDDLE_RETURN_IF_ERROR(ReadShape(word, clause, &c->shape));
        c->has_shape = true;
      } else if (word == "as") {
        HEDDLE_RETURN_IF_ERROR(ReadSlot(words, clause, &c->dtype_of));
      } else if (word == "like") {
        HEDDLE_RETURN_IF_ERROR(ReadSlot(words, clause, &c->like));
      } else if (word == "lod") {
        HEDDLE_RETURN_IF_ERROR(ReadSlot(words, clause, &c->lod_of));
      } else if (word == "count") {
        const std::string_view of = words.Next();
        c->count_of = def_.FindInput(std::string(of));
        c->has_count = c->count_of == kNone;
        if (c->has_count) HEDDLE_RETURN_IF_ERROR(ReadDimension(of, clause, &c->count));
      } else if (word == "one") {
        c->one = true;
      } else {
        for (const std::string_view part : Split(word, '|')) {
          const uint32_t dtypes = DTypesNamed(part);
          if (dtypes == 0) return Bad(StrCat("has the word '", std::string(part), "'"), clause);
          c->dtypes |= dtypes;
        }
        c->dtype_text = std::string(word);
      }
    }
    return Status::Ok();
  }

  Status ReadSlot(Words& words, std::string_view clause, int* slot) {
    const std::string name(words.Next());
    *slot = def_.FindInput(name);
    return *slot != kNone ? Status::Ok() : Bad(StrCat("names no input '", name, "'"), clause);
  }

  Status ReadShape(std::string_view word, std::string_view clause, ShapePattern* shape) {
    if (!word.ends_with(']')) return Bad("has no ']'", clause);
    shape->text = std::string(word);
    const std::string_view inside = Trimmed(word.substr(1, word.size() - 2));
    if (inside.empty()) return Status::Ok();
    for (const std::string_view part : Split(inside, ',')) {
      if (part == "..." || part == "..._") {
        if (shape->has_dots) return Bad("has dots twice", clause);
        shape->has_dots = true;
        shape->shares_dots = part == "...";
        continue;
      }
      Dimension d;
      HEDDLE_RETURN_IF_ERROR(ReadDimension(part, clause, &d));
      (shape->has_dots ? shape->tail : shape->head).push_back(std::move(d));
    }
    return Status::Ok();
  }

  Status ReadDimension(std::string_view text, std::string_view clause, Dimension* d) {
    d->text = std::string(text);
    if (text == "_") {
      d->any = true;
      return Status::Ok();
    }
    bool over = true;
    while (true) {
      const size_t end = text.find_first_of("*/");
      HEDDLE_RETURN_IF_ERROR(
          ReadFactor(Trimmed(text.substr(0, end)), clause, over ? &d->over : &d->under));
      if (end == std::string_view::npos) return Status::Ok();
      over = text[end] == '*';
      text.remove_prefix(end + 1);
    }
  }

  Status ReadFactor(std::string_view text, std::string_view clause, std::vector<Factor>* factors) {
    Factor f;
    if (const auto number = NumberIn(text)) {
      f.number = static_cast<int64_t>(*number);
    } else if (const int attr = def_.FindAttr(std::string(text)); attr != kNone) {
      if (!std::holds_alternative<int64_t>(def_.attrs()[static_cast<size_t>(attr)].default_value))
        return Bad(StrCat("counts with '", std::string(text), "', which is no integer"), clause);
      f.kind = Factor::Kind::kAttribute;
      f.number = attr;
    } else if (!text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
                 return std::isalnum(c) != 0 || c == '_';
               })) {
      f.kind = Factor::Kind::kLetter;
      const auto found = std::find(letters_.begin(), letters_.end(), text);
      f.number = found - letters_.begin();
      if (found == letters_.end()) letters_.emplace_back(text);
    } else {
      return Bad(StrCat("has the dimension '", std::string(text), "'"), clause);
    }
    factors->push_back(f);
    return Status::Ok();
  }

  Status ReadAttribute(Words& words, std::string_view clause, Clause* c) {
    while (!words.empty()) {
      const std::string_view word = words.Next();
      const size_t dots = word.find("..");
      if (word == "length" || word == "divides") {
        c->has_length = c->has_length || word == "length";
        c->divides = c->divides || word == "divides";
        HEDDLE_RETURN_IF_ERROR(
            ReadDimension(words.Next(), clause, word == "length" ? &c->length : &c->dividend));
      } else if (word == "axis") {
        HEDDLE_RETURN_IF_ERROR(ReadSlot(words, clause, &c->axis_of));
      } else if (word == "distinct") {
        c->distinct = true;
      } else if (word.starts_with('>') || word.starts_with('<')) {
        const auto bound = NumberIn(word.substr(1));
        if (!bound) return Bad(StrCat("has no number in '", std::string(word), "'"), clause);
        (word[0] == '>' ? c->least : c->most) = *bound;
        (word[0] == '>' ? c->above : c->below) = true;
      } else if (dots != std::string_view::npos) {
        const auto least = NumberIn(word.substr(0, dots)), most = NumberIn(word.substr(dots + 2));
        if ((!least && dots > 0) || (!most && dots + 2 < word.size()))
          return Bad(StrCat("has no numbers in '", std::string(word), "'"), clause);
        if (least) c->least = *least;
        if (most) c->most = *most;
      } else {
        for (const std::string_view text : Split(word, '|')) c->texts.emplace_back(text);
      }
    }
    if (c->distinct && c->axis_of == kNone) return Bad("has 'distinct' without 'axis'", clause);
    const AttrValue& usual = def_.attrs()[static_cast<size_t>(c->at)].default_value;
    if (!c->texts.empty() && !std::holds_alternative<std::string>(usual))
      return Bad("has words for an attribute that is no text", clause);
    return Status::Ok();
  }

  bool TellsOutputs() const {
    for (size_t o = 0; o < def_.outputs().size(); ++o) {
      const bool told = std::any_of(out_.outputs_.begin(), out_.outputs_.end(), [&](const auto& c) {
        const bool dtype = c.dtype_of != kNone || (c.dtypes & (c.dtypes - 1)) == 0;
        return c.at == static_cast<int>(o) &&
               ((c.like != kNone && dtype) ||
                (c.has_shape && dtype && (c.dtype_of != kNone || c.dtypes)));
      });
      if (!told) return false;
    }
    return true;
  }

  template <typename What>
  Status Bad(const What& what, std::string_view clause) const {
    return InvalidArgument("contract of ", def_.name(), ": clause '", std::string(clause), "' ",
                           what);
  }

  const std::string_view text_;
  const OpDef& def_;
  Contract& out_;
  std::vector<std::string> letters_;
};

Result<std::shared_ptr<const Contract>> Contract::Parse(std::string_view text, const OpDef& def) {
  const std::shared_ptr<Contract> contract(new Contract);
  HEDDLE_RETURN_IF_ERROR(Parser(text, def, contract.get()).Run());
  return std::shared_ptr<const Contract>(contract);
}

}  // namespace heddle::contracts
