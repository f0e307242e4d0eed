#include "formats/paddle/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "core/error.h"
#include "core/memory/bytes.h"
#include "core/memory/truths.h"

namespace heddle::paddle {
namespace {

using Kind = PickleObject::Kind;

enum Callable : int64_t {
  kNdarray,
  kReconstruct,
  kScalar,
  kDTypeClass,
  kOrderedDict,
  kEncode,
  kBytes,
  kTuple,
  kEval
};
struct KnownCallable {
  std::string_view module, name;
  Callable callable;
};
// All callables that are accepted, by their names in NumPy 1, NumPy 2, Python 3 and Python 2.
constexpr KnownCallable kCallables[] = {
    {"numpy", "ndarray", kNdarray},
    {"numpy", "dtype", kDTypeClass},
    {"numpy.core.multiarray", "_reconstruct", kReconstruct},
    {"numpy._core.multiarray", "_reconstruct", kReconstruct},
    {"numpy.core.multiarray", "scalar", kScalar},
    {"numpy._core.multiarray", "scalar", kScalar},
    {"collections", "OrderedDict", kOrderedDict},
    {"_codecs", "encode", kEncode},
    {"builtins", "bytes", kBytes},
    {"__builtin__", "bytes", kBytes},
    {"builtins", "tuple", kTuple},
    {"__builtin__", "tuple", kTuple},
    {"builtins", "eval", kEval},
    {"__builtin__", "eval", kEval},
};

struct TypeCode {
  std::string_view code;
  DType dtype;
};
// NumPy has no bfloat16: Paddle stores its bits as uint16.
constexpr TypeCode kTypeCodes[] = {
    {"b1", DType::kBool}, {"u1", DType::kU8},  {"i1", DType::kI8},  {"i2", DType::kI16},
    {"i4", DType::kI32},  {"i8", DType::kI64}, {"f2", DType::kF16}, {"u2", DType::kBF16},
    {"f4", DType::kF32},  {"f8", DType::kF64}, {"c8", DType::kC64}, {"c16", DType::kC128},
};

bool Is(const PickleObject* o, Kind kind) { return o != nullptr && o->kind == kind; }

// Copies from column-major to row-major order.
void Transpose(const char* from, const Shape& shape, size_t item, char* to) {
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()), 0);
  for (int64_t n = shape.numel(); n > 0; --n, to += item) {
    int64_t at = 0;
    for (int i = shape.rank() - 1; i >= 0; --i) at = at * shape[i] + index[static_cast<size_t>(i)];
    std::memcpy(to, from + static_cast<size_t>(at) * item, item);
    for (int i = shape.rank() - 1; i >= 0; --i) {
      if (++index[static_cast<size_t>(i)] < shape[i]) break;
      index[static_cast<size_t>(i)] = 0;
    }
  }
}

}  // namespace

// The stack machine that executes a pickle's instructions, for the time of one Parse.
class PickleMachine {
 public:
  PickleMachine(Pickle& pickle, std::string_view bytes, const std::string& name)
      : pickle_(pickle), bytes_(bytes), name_(name) {}

  Status Run() {
    while (!stopped_) {
      uint64_t code = 0;
      HEDDLE_RETURN_IF_ERROR(Number(1, &code));
      HEDDLE_RETURN_IF_ERROR(Step(static_cast<uint8_t>(code)));
    }
    return Status::Ok();
  }

 private:
  Status Damaged(const std::string& why) const {
    return DataLoss(name_, ": damaged pickle at byte ", at_, ": ", why);
  }

  // Reads the next `width` bytes as a little-endian number.
  Status Number(int width, uint64_t* value) {
    std::string_view raw;
    HEDDLE_RETURN_IF_ERROR(Take(static_cast<uint64_t>(width), &raw));
    *value = 0;
    for (size_t i = raw.size(); i-- > 0;) *value = *value << 8 | static_cast<uint8_t>(raw[i]);
    return Status::Ok();
  }
  Status Take(uint64_t n, std::string_view* out) {
    if (n > bytes_.size() - at_)
      return DataLoss(name_, ": cut short: ", n, " bytes are expected at byte ", at_, ", ",
                      bytes_.size() - at_, " are left");
    *out = bytes_.substr(at_, n);
    at_ += n;
    return Status::Ok();
  }
  Status Line(std::string_view* out) {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) return DataLoss(name_, ": cut short at byte ", at_);
    *out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return Status::Ok();
  }

  PickleObject* New(Kind kind) {
    PickleObject& o = pickle_.objects_.emplace_back();
    o.kind = kind;
    return &o;
  }
  void Push(PickleObject* o) { stack_.push_back(o); }
  void PushNumber(Kind kind, int64_t number) {
    Push(New(kind));
    stack_.back()->number = number;
  }
  // The position of the innermost mark: instructions cannot take objects below it.
  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  Status Pop(PickleObject** out) {
    if (stack_.size() <= floor()) return Damaged("the stack is empty");
    *out = stack_.back();
    stack_.pop_back();
    return Status::Ok();
  }
  Status Top(Kind kind, const char* what, PickleObject** out) {
    if (stack_.size() <= floor() || stack_.back()->kind != kind)
      return Damaged(StrCat("there is no ", what, " to add to"));
    *out = stack_.back();
    return Status::Ok();
  }
  Status PopMark(std::vector<PickleObject*>* out) {
    if (marks_.empty()) return Damaged("there is no mark");
    out->assign(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return Status::Ok();
  }

  Status Step(uint8_t code);
  Status Header(uint8_t code, bool* done);
  Status Plain(uint8_t code, bool* done);
  Status Strings(uint8_t code, bool* done);
  Status Containers(uint8_t code, bool* done);
  Status Memo(uint8_t code, bool* done);

  Status String(Kind kind, int width);
  Status Long(int width);
  Status Tuple(size_t n);
  Status Add(Kind kind, const char* what, std::vector<PickleObject*> items);
  Status Find(std::string_view module, std::string_view name);
  Status FindOnStack();
  Status Call();
  Status Encode(const PickleObject& args, PickleObject** out);
  Status MakeDType(const PickleObject& args, PickleObject** out);
  Status Build();
  Status Fill(const PickleObject& dtype, const Shape& shape, bool fortran, std::string_view data,
              PickleObject* array);

  Pickle& pickle_;
  std::string_view bytes_;
  const std::string& name_;
  size_t at_ = 0;
  bool stopped_ = false;
  std::vector<PickleObject*> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PickleObject*> memo_;
};

Status PickleMachine::Step(uint8_t code) {
  bool done = false;
  HEDDLE_RETURN_IF_ERROR(Header(code, &done));
  if (!done) HEDDLE_RETURN_IF_ERROR(Plain(code, &done));
  if (!done) HEDDLE_RETURN_IF_ERROR(Strings(code, &done));
  if (!done) HEDDLE_RETURN_IF_ERROR(Containers(code, &done));
  if (!done) HEDDLE_RETURN_IF_ERROR(Memo(code, &done));
  if (done) return Status::Ok();
  return Unimplemented(name_, ": pickle instruction ", static_cast<int>(code), " at byte ", at_ - 1,
                       " is not one that plain arrays are written with");
}

Status PickleMachine::Header(uint8_t code, bool* done) {
  *done = true;
  uint64_t n = 0;
  switch (code) {
    case 0x80:  // PROTO
      HEDDLE_RETURN_IF_ERROR(Number(1, &n));
      if (n >= 2 && n <= 4) return Status::Ok();
      return Unimplemented(name_, ": pickle of protocol ", n, "; 2, 3 and 4 can be read");
    case 0x95:  // FRAME
      return Number(8, &n);
    case '.':  // STOP
      HEDDLE_RETURN_IF_ERROR(Pop(&pickle_.root_));
      stopped_ = true;
      return Status::Ok();
    case 'c': {  // GLOBAL
      std::string_view module, name;
      HEDDLE_RETURN_IF_ERROR(Line(&module));
      HEDDLE_RETURN_IF_ERROR(Line(&name));
      return Find(module, name);
    }
    case 0x93:  // STACK_GLOBAL
      return FindOnStack();
    case 'R':  // REDUCE
      return Call();
    case 'b':  // BUILD
      return Build();
    default:
      *done = false;
      return Status::Ok();
  }
}

Status PickleMachine::Plain(uint8_t code, bool* done) {
  *done = true;
  uint64_t n = 0;
  switch (code) {
    case 'N':
      Push(New(Kind::kNone));
      return Status::Ok();
    case 0x88:
    case 0x89:  // NEWTRUE, NEWFALSE
      PushNumber(Kind::kBool, code == 0x88);
      return Status::Ok();
    case 'J':  // BININT
      HEDDLE_RETURN_IF_ERROR(Number(4, &n));
      PushNumber(Kind::kInt, static_cast<int32_t>(n));
      return Status::Ok();
    case 'K':
    case 'M':  // BININT1, BININT2
      HEDDLE_RETURN_IF_ERROR(Number(code == 'K' ? 1 : 2, &n));
      PushNumber(Kind::kInt, static_cast<int64_t>(n));
      return Status::Ok();
    case 0x8a:
      return Long(1);
    case 0x8b:
      return Long(4);
    case 'G': {  // BINFLOAT, the only big-endian number
      HEDDLE_RETURN_IF_ERROR(Number(8, &n));
      Push(New(Kind::kFloat));
      stack_.back()->real = std::bit_cast<double>(__builtin_bswap64(n));
      return Status::Ok();
    }
    default:
      *done = false;
      return Status::Ok();
  }
}

Status PickleMachine::Strings(uint8_t code, bool* done) {
  *done = true;
  switch (code) {
    case 0x8c:
      return String(Kind::kText, 1);
    case 'X':
      return String(Kind::kText, 4);
    case 0x8d:
      return String(Kind::kText, 8);
    case 'C':
      return String(Kind::kBytes, 1);
    case 'B':
      return String(Kind::kBytes, 4);
    case 0x8e:
      return String(Kind::kBytes, 8);
    case 'U':  // Python 2's str, read as text or as bytes
      return String(Kind::kBytes, 1);
    case 'T':
      return String(Kind::kBytes, 4);
    default:
      *done = false;
      return Status::Ok();
  }
}

Status PickleMachine::Containers(uint8_t code, bool* done) {
  *done = true;
  std::vector<PickleObject*> items;
  switch (code) {
    case '(':
      marks_.push_back(stack_.size());
      return Status::Ok();
    case ']':
      Push(New(Kind::kList));
      return Status::Ok();
    case '}':
      Push(New(Kind::kDict));
      return Status::Ok();
    case ')':
      return Tuple(0);
    case 0x85:
    case 0x86:
    case 0x87:
      return Tuple(code - 0x84u);
    case 't':
      HEDDLE_RETURN_IF_ERROR(PopMark(&items));
      Push(New(Kind::kTuple));
      stack_.back()->items = std::move(items);
      return Status::Ok();
    case 'a':
    case 's':  // APPEND, SETITEM
      items.resize(code == 'a' ? 1 : 2);
      for (size_t i = items.size(); i-- > 0;) HEDDLE_RETURN_IF_ERROR(Pop(&items[i]));
      break;
    case 'e':
    case 'u':  // APPENDS, SETITEMS
      HEDDLE_RETURN_IF_ERROR(PopMark(&items));
      break;
    default:
      *done = false;
      return Status::Ok();
  }
  if (code == 'a' || code == 'e') return Add(Kind::kList, "list", std::move(items));
  if (items.size() % 2 != 0) return Damaged("a key without a value");
  return Add(Kind::kDict, "dict", std::move(items));
}

Status PickleMachine::Memo(uint8_t code, bool* done) {
  *done = true;
  uint64_t n = memo_.size();
  switch (code) {
    case 'q':
    case 'h':
      HEDDLE_RETURN_IF_ERROR(Number(1, &n));
      break;
    case 'r':
    case 'j':
      HEDDLE_RETURN_IF_ERROR(Number(4, &n));
      break;
    case 0x94:  // MEMOIZE
      break;
    default:
      *done = false;
      return Status::Ok();
  }
  if (code == 'h' || code == 'j') {
    const auto it = memo_.find(n);
    if (it == memo_.end()) return Damaged(StrCat("object ", n, " is used before it is made"));
    Push(it->second);
    return Status::Ok();
  }
  if (stack_.size() <= floor()) return Damaged("the stack is empty");
  memo_[n] = stack_.back();
  return Status::Ok();
}

Status PickleMachine::String(Kind kind, int width) {
  uint64_t n = 0;
  std::string_view raw;
  HEDDLE_RETURN_IF_ERROR(Number(width, &n));
  HEDDLE_RETURN_IF_ERROR(Take(n, &raw));
  Push(New(kind));
  stack_.back()->bytes = raw;
  return Status::Ok();
}

// An integer in two's complement of any length; one that does not fit 64 bits is an error.
Status PickleMachine::Long(int width) {
  uint64_t n = 0;
  std::string_view raw;
  HEDDLE_RETURN_IF_ERROR(Number(width, &n));
  HEDDLE_RETURN_IF_ERROR(Take(n, &raw));
  if (n > 8) return Unimplemented(name_, ": an integer of ", n, " bytes");
  uint64_t value = n > 0 && static_cast<uint8_t>(raw.back()) >= 0x80 ? ~uint64_t{0} : 0;
  for (size_t i = raw.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(raw[i]);
  PushNumber(Kind::kInt, static_cast<int64_t>(value));
  return Status::Ok();
}

Status PickleMachine::Tuple(size_t n) {
  std::vector<PickleObject*> items(n);
  for (size_t i = n; i-- > 0;) HEDDLE_RETURN_IF_ERROR(Pop(&items[i]));
  Push(New(Kind::kTuple));
  stack_.back()->items = std::move(items);
  return Status::Ok();
}

Status PickleMachine::Add(Kind kind, const char* what, std::vector<PickleObject*> items) {
  PickleObject* to = nullptr;
  HEDDLE_RETURN_IF_ERROR(Top(kind, what, &to));
  to->items.insert(to->items.end(), items.begin(), items.end());
  return Status::Ok();
}

Status PickleMachine::Find(std::string_view module, std::string_view name) {
  for (const KnownCallable& known : kCallables) {
    if (known.module != module || known.name != name) continue;
    PushNumber(Kind::kCallable, known.callable);
    return Status::Ok();
  }
  return Unimplemented(name_, ": the pickle wants to call ", module, ".", name,
                       "; only plain NumPy arrays, numbers, texts, lists and dicts are read");
}

Status PickleMachine::FindOnStack() {
  PickleObject *name = nullptr, *module = nullptr;
  HEDDLE_RETURN_IF_ERROR(Pop(&name));
  HEDDLE_RETURN_IF_ERROR(Pop(&module));
  if (name->kind != Kind::kText || module->kind != Kind::kText) return Damaged("a name is no text");
  return Find(module->bytes, name->bytes);
}

// REDUCE: computes what a known callable returns for arguments of the expected form.
Status PickleMachine::Call() {
  PickleObject *args = nullptr, *callable = nullptr, *result = nullptr;
  HEDDLE_RETURN_IF_ERROR(Pop(&args));
  HEDDLE_RETURN_IF_ERROR(Pop(&callable));
  if (callable->kind != Kind::kCallable || args->kind != Kind::kTuple)
    return Damaged("what is called is not callable");
  const auto& a = args->items;
  switch (callable->number) {
    case kReconstruct:  // (ndarray, (0,), b'b'): shape, dtype and data come with BUILD
      if (a.size() == 3 && Is(a[0], Kind::kCallable) && a[0]->number == kNdarray)
        result = New(Kind::kArray);
      break;
    case kScalar:  // (dtype, bytes)
      if (a.size() == 2 && Is(a[0], Kind::kDType) && Is(a[1], Kind::kBytes)) {
        result = New(Kind::kArray);
        HEDDLE_RETURN_IF_ERROR(Fill(*a[0], Shape{}, false, a[1]->bytes, result));
      }
      break;
    case kDTypeClass:
      HEDDLE_RETURN_IF_ERROR(MakeDType(*args, &result));
      break;
    case kOrderedDict:
      if (a.empty()) result = New(Kind::kDict);
      break;
    case kEncode:
      HEDDLE_RETURN_IF_ERROR(Encode(*args, &result));
      break;
    case kBytes:  // (): protocol 2's form of empty bytes
      if (a.empty()) result = New(Kind::kBytes);
      break;
    case kTuple:  // (sequence,)
      if (a.size() == 1 && (Is(a[0], Kind::kTuple) || Is(a[0], Kind::kList))) {
        result = New(Kind::kTuple);
        result->items = a[0]->items;
      }
      break;
    case kEval:  // Paddle writes a static tensor as eval('data', {'data': array})
      if (a.size() == 2 && Is(a[0], Kind::kText) && a[0]->bytes == "data" &&
          Is(a[1], Kind::kDict) && a[1]->items.size() == 2 && Is(a[1]->items[1], Kind::kArray))
        result = const_cast<PickleObject*>(a[1]->Get("data"));
      if (result == nullptr)
        return Unimplemented(name_,
                             ": the pickle wants to call builtins.eval with an expression of "
                             "its own");
      break;
    default:
      break;
  }
  if (result == nullptr) return Damaged("a call with arguments of an unexpected form");
  Push(result);
  return Status::Ok();
}

// Protocol 2 has no bytes: they are written as a text of the same code points.
Status PickleMachine::Encode(const PickleObject& args, PickleObject** out) {
  const auto& a = args.items;
  if (a.size() != 2 || !Is(a[0], Kind::kText) || !Is(a[1], Kind::kText) || a[1]->bytes != "latin1")
    return Status::Ok();
  std::string& plain = pickle_.texts_.emplace_back();
  const std::string_view text = a[0]->bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    if (c < 0x80) {
      plain += static_cast<char>(c);
    } else if ((c == 0xc2 || c == 0xc3) && i + 1 < text.size()) {
      plain += static_cast<char>((c & 3) << 6 | (static_cast<uint8_t>(text[++i]) & 0x3f));
    } else {
      return Damaged("bytes outside of latin1");
    }
  }
  *out = New(Kind::kBytes);
  (*out)->bytes = plain;
  return Status::Ok();
}

Status PickleMachine::MakeDType(const PickleObject& args, PickleObject** out) {
  if (args.items.empty()) return Status::Ok();
  const PickleObject& code = *args.items[0];
  if (code.kind != Kind::kText && code.kind != Kind::kBytes) return Status::Ok();
  *out = New(Kind::kDType);
  (*out)->bytes = code.bytes;
  return Status::Ok();
}

// State of a dtype: (3, byte order, …). State of an array: (1, shape, dtype, column-major, bytes).
Status PickleMachine::Build() {
  PickleObject* state = nullptr;
  HEDDLE_RETURN_IF_ERROR(Pop(&state));
  if (stack_.size() <= floor() || state->kind != Kind::kTuple)
    return Damaged("a state that is not known");
  PickleObject& object = *stack_.back();
  const auto& s = state->items;
  if (object.kind == Kind::kDType && s.size() >= 2) {
    if (s[1]->bytes == ">")
      return Unimplemented(name_, ": holds big-endian data ('>", object.bytes, "')");
    return Status::Ok();
  }
  if (object.kind != Kind::kArray || s.size() != 5 || !Is(s[1], Kind::kTuple) ||
      !Is(s[2], Kind::kDType))
    return Damaged("a state that is not known");
  if (!Is(s[4], Kind::kBytes))
    return Unimplemented(name_, ": an array of Python objects, not of numbers");
  Shape shape;
  if (s[1]->items.size() > Shape::kMaxRank)
    return Unimplemented(name_, ": an array of ", s[1]->items.size(), " dimensions; at most ",
                         Shape::kMaxRank, " are supported");
  for (const PickleObject* d : s[1]->items) {
    if (!Is(d, Kind::kInt) || d->number < 0) return Damaged("a dimension that is none");
    shape.push_back(d->number);
  }
  return Fill(*s[2], shape, s[3]->number != 0, s[4]->bytes, &object);
}

Status PickleMachine::Fill(const PickleObject& dtype, const Shape& shape, bool fortran,
                           std::string_view data, PickleObject* array) {
  DType type = DType::kUnknown;
  for (const TypeCode& t : kTypeCodes)
    if (t.code == dtype.bytes) type = t.dtype;
  if (type == DType::kUnknown)
    return Unimplemented(name_, ": an array of data type '", dtype.bytes, "'");
  if (BytesFor(type, shape) != data.size())
    return Damaged(StrCat("an array of ", Name(type), " ", shape.ToString(), " with ", data.size(),
                          " bytes of data"));
  auto tensor = std::make_unique<Tensor>(Tensor::Empty(type, shape));
  if (!tensor->initialized())
    return ResourceExhausted(name_, ": no memory for an array of ", data.size(), " bytes");
  auto* to = static_cast<char*>(tensor->mutable_raw());
  if (fortran && shape.rank() > 1)
    Transpose(data.data(), shape, SizeOf(type), to);
  else if (!data.empty())
    std::memcpy(to, data.data(), data.size());
  if (type == DType::kBool) MakeTruths(to, data.size());
  array->tensor = std::move(tensor);
  return Status::Ok();
}

const PickleObject* PickleObject::Get(std::string_view key) const {
  const PickleObject* found = nullptr;
  for (size_t i = 0; kind == Kind::kDict && i + 1 < items.size(); i += 2)
    if (items[i]->kind == Kind::kText && items[i]->bytes == key) found = items[i + 1];
  return found;
}

Status Pickle::Parse(std::string_view bytes, const std::string& name) {
  return PickleMachine(*this, bytes, name).Run();
}

}  // namespace heddle::paddle
