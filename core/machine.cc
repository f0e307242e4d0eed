#include "core/machine.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

#include "core/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <unistd.h>

namespace heddle {
namespace {

struct SetName {
  unsigned bit;
  std::string_view name;
};
constexpr SetName kSetNames[] = {
    {kAvx2, "avx2"},
    {kFma, "fma"},
    {kAvx512, "avx512"},
    {kAvx512Vnni, "avx512_vnni"},
    {kAvx512Bf16, "avx512_bf16"},
    {kAvx512Fp16, "avx512_fp16"},
    {kAmxBf16, "amx_bf16"},
    {kAmxInt8, "amx_int8"},
};

#if defined(__x86_64__)

// CPUID leaf 7, subleaf 0 (EDX) and 1 (EAX): bits for which older compilers have no names.
constexpr unsigned kEdxAmxBf16 = 1u << 22, kEdxFp16 = 1u << 23, kEdxAmxTile = 1u << 24,
                   kEdxAmxInt8 = 1u << 25, kEaxBf16 = 1u << 5;

bool HasTiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(0x1d, 0, &a, &b, &c, &d) != 0 && a != 0;
}

// __builtin_cpu_supports also checks that the operating system saves the registers.
unsigned DetectInstructions() {
  unsigned sets = 0;
  if (__builtin_cpu_supports("avx2")) sets |= kAvx2;
  if (__builtin_cpu_supports("fma")) sets |= kFma;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512vl") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512cd"))
    return sets;
  sets |= kAvx512;
  if (__builtin_cpu_supports("avx512vnni")) sets |= kAvx512Vnni;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kEaxBf16) != 0) sets |= kAvx512Bf16;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return sets;
  if ((d & kEdxFp16) != 0) sets |= kAvx512Fp16;
  if ((d & kEdxAmxTile) == 0 || !HasTiles()) return sets;
  if ((d & kEdxAmxBf16) != 0) sets |= kAmxBf16;
  if ((d & kEdxAmxInt8) != 0) sets |= kAmxInt8;
  return sets;
}

#else
unsigned DetectInstructions() { return 0; }
#endif

// Sets *bytes to a value of sysconf; keeps the default if there is none.
[[maybe_unused]] void AskBytes(int name, int64_t* bytes) {
  const long told = sysconf(name);
  if (told > 0) *bytes = told;
}

Machine Detect() {
  Machine m;
  m.instructions = DetectInstructions();
#ifdef _SC_LEVEL1_DCACHE_SIZE
  AskBytes(_SC_LEVEL1_DCACHE_SIZE, &m.l1_bytes);
  AskBytes(_SC_LEVEL2_CACHE_SIZE, &m.l2_bytes);
  AskBytes(_SC_LEVEL3_CACHE_SIZE, &m.l3_bytes);
#endif
  return m;
}

Result<unsigned> ParseInstructions(const std::string& text) {
  unsigned sets = 0;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto* at = std::ranges::find(kSetNames, word, &SetName::name);
    if (at == std::end(kSetNames)) {
      std::string known;
      for (const SetName& s : kSetNames) known += (known.empty() ? "" : ", ") + std::string(s.name);
      return InvalidArgument("machine: \"", word, "\" is no instruction set; known are ", known);
    }
    sets |= at->bit;
  }
  return sets;
}

std::string InstructionsText(unsigned sets) {
  std::string text;
  for (const SetName& s : kSetNames)
    if ((sets & s.bit) != 0) text += (text.empty() ? "" : " ") + std::string(s.name);
  return text;
}

// Parses a JSON object of strings and numbers, member by member.
class FlatObject {
 public:
  explicit FlatObject(std::string_view text) : text_(text) {}

  // Reads the next member. False: the object has ended, or error() says why it could not be read.
  bool Next(std::string* key, std::string* value) {
    Skip();
    if (Take(first_ ? '{' : ',')) {
      first_ = false;
      Skip();
      if (String(key) && (Skip(), Take(':')) && (Skip(), String(value) || Number(value)))
        return true;
      if (key->empty() && Take('}')) return End();
    } else if (!first_ && Take('}')) {
      return End();
    }
    return Fail();
  }
  const Status& error() const { return error_; }

 private:
  void Skip() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool String(std::string* to) {
    to->clear();
    if (!Take('"')) return false;
    const size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) return false;
    *to = text_.substr(at_, end - at_);
    at_ = end + 1;
    return to->find('\\') == std::string::npos;
  }
  bool Number(std::string* to) {
    const size_t end = std::min(text_.find_first_not_of("+-.0123456789eE", at_), text_.size());
    *to = text_.substr(at_, end - at_);
    at_ = end;
    return !to->empty();
  }
  bool End() {
    Skip();
    return at_ == text_.size() ? false : Fail();
  }
  bool Fail() {
    error_ = InvalidArgument("machine: no JSON object of strings and numbers at byte ", at_);
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
  bool first_ = true;
  Status error_;
};

struct NumberField {
  std::string_view key;
  int64_t Machine::*integer;
  double Machine::*real;
};
constexpr NumberField kNumbers[] = {
    {"l1_bytes", &Machine::l1_bytes, nullptr},
    {"l2_bytes", &Machine::l2_bytes, nullptr},
    {"l3_bytes", &Machine::l3_bytes, nullptr},
    {"cycles_per_ns", nullptr, &Machine::cycles_per_ns},
    {"vector_fmas_per_cycle", nullptr, &Machine::vector_fmas_per_cycle},
    {"cycles_to_read_vector", nullptr, &Machine::cycles_to_read_vector},
    {"handover_ns", nullptr, &Machine::handover_ns},
};

Status SetNumber(const NumberField& field, const std::string& value, Machine* m) {
  char* end = nullptr;
  const double number = std::strtod(value.c_str(), &end);
  if (value.empty() || *end != '\0' || !(number > 0) || number > 1e15)
    return InvalidArgument("machine: \"", std::string(field.key), "\" is ", value,
                           ", expected a number above 0");
  if (field.integer != nullptr)
    m->*field.integer = static_cast<int64_t>(number);
  else
    m->*field.real = number;
  return Status::Ok();
}

Status SetMember(const std::string& key, const std::string& value, Machine* m) {
  if (key == "name") {
    m->name = value;
    return Status::Ok();
  }
  if (key == "instructions") {
    HEDDLE_ASSIGN_OR_RETURN(m->instructions, ParseInstructions(value));
    return Status::Ok();
  }
  const auto* field = std::ranges::find(kNumbers, key, &NumberField::key);
  if (field == std::end(kNumbers)) return InvalidArgument("machine: there is no key \"", key, "\"");
  return SetNumber(*field, value, m);
}

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

InstructionSetNames ProcessorInstructionSets() {
  InstructionSetNames names;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const auto note = [&](const char* name, bool there, bool needed) {
    if (there) names.offered.emplace_back(name);
    if (needed && !there) names.missing.emplace_back(name);
  };
  note("avx2", __builtin_cpu_supports("avx2"), true);
  note("fma", __builtin_cpu_supports("fma"), true);
  note("bmi2", __builtin_cpu_supports("bmi2"), true);
  note("avx512f", __builtin_cpu_supports("avx512f"), false);
  note("avx512vl", __builtin_cpu_supports("avx512vl"), false);
  note("avx512_vnni", __builtin_cpu_supports("avx512vnni"), false);
  note("avx512_bf16", __builtin_cpu_supports("avx512bf16"), false);
#endif
  return names;
}

const Machine& ThisMachine() {
  static const Machine machine = Detect();
  return machine;
}

bool AmxIsBroken() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kEdxAmxTile) != 0 && !HasTiles();
#else
  return false;
#endif
}

Result<Machine> Machine::Parse(std::string_view json) {
  Machine m;
  m.name = "unnamed";
  FlatObject object(json);
  std::string key, value;
  while (object.Next(&key, &value)) HEDDLE_RETURN_IF_ERROR(SetMember(key, value, &m));
  HEDDLE_RETURN_IF_ERROR(object.error());
  return m;
}

std::string Machine::ToJson() const {
  std::ostringstream out;
  out << "{\n  \"name\": \"" << name << "\",\n  \"instructions\": \""
      << InstructionsText(instructions) << '"';
  for (const NumberField& field : kNumbers) {
    out << ",\n  \"" << field.key << "\": ";
    if (field.integer != nullptr)
      out << this->*field.integer;
    else
      out << this->*field.real;
  }
  out << "\n}\n";
  return std::move(out).str();
}

Result<ForcedImplementations> ForcedImplementations::Parse(std::string_view text) {
  ForcedImplementations forced;
  if (text.empty()) return forced;
  for (const std::string& part : Split(text, ',')) {
    const size_t at = part.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == part.size())
      return InvalidArgument("force: \"", part, "\" is not of the form family=implementation");
    const std::string family = part.substr(0, at);
    const auto known = ImplementationFamilies();
    if (std::ranges::find(known, family) == known.end()) {
      std::string names;
      for (const std::string_view name : known)
        names += (names.empty() ? "" : ", ") + std::string(name);
      return InvalidArgument("force: there is no family \"", family, "\"; there are ", names);
    }
    if (forced.Find(family) != nullptr)
      return InvalidArgument("force: the family \"", family, "\" is named twice");
    forced.families.emplace_back(family, Split(std::string_view(part).substr(at + 1), ':'));
  }
  return forced;
}

const std::vector<std::string>* ForcedImplementations::Find(std::string_view family) const {
  for (const auto& [name, implementations] : families)
    if (name == family) return &implementations;
  return nullptr;
}

}  // namespace heddle
