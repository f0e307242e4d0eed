#include "tools/values/pickled_strings.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <vector>

namespace heddle::tools {
namespace {

// Memory that the elements of one array may take together.
constexpr uint64_t kMostBytes = uint64_t{1} << 30;
// Of tuples in tuples, which are freed one within the other. An array's state has two.
constexpr int kMostDepth = 8;

struct Item;
using ItemPtr = std::shared_ptr<Item>;

// A value on the pickle machine's stack. Only lists and what BUILD completes change once made.
struct Item {
  enum class Kind : uint8_t {
    kMark,
    kNone,
    kNumber,  // bool and int
    kText,    // str, bytes and NumPy's scalars of them
    kTuple,
    kList,
    kName,   // a module's attribute, as "numpy.dtype"
    kDType,  // text: its code, as "U5"
    kArray,
  };
  Kind kind = Kind::kNone;
  int64_t number = 0;
  std::string text;
  std::vector<ItemPtr> items;
  bool big_endian = false;
  int depth = 0;              // of tuples
  std::vector<int64_t> dims;  // of an array
};

using ItemKind = Item::Kind;

ItemPtr MakeItem(ItemKind kind) {
  auto item = std::make_shared<Item>();
  item->kind = kind;
  return item;
}

ItemPtr NumberItem(int64_t number) {
  ItemPtr item = MakeItem(ItemKind::kNumber);
  item->number = number;
  return item;
}

ItemPtr TextItem(std::string_view text) {
  ItemPtr item = MakeItem(ItemKind::kText);
  item->text = text;
  return item;
}

class Machine {
 public:
  Machine(std::string_view pickle, const std::string& name) : rest_(pickle), name_(name) {}

  // The object that the pickle stands for, an array of objects.
  Result<ItemPtr> Run() {
    while (true) {
      if (rest_.empty()) return Damaged("the pickle is cut short");
      const auto op = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      if (op == '.') break;
      HEDDLE_RETURN_IF_ERROR(Step(op));
    }
    if (stack_.size() != 1 || stack_[0]->kind != ItemKind::kArray)
      return Status(StatusCode::kUnimplemented, name_ + ": holds a Python object that is no array");
    return stack_[0];
  }

 private:
  Status Damaged(const std::string& why) const {
    return Status(StatusCode::kDataLoss, name_ + ": " + why);
  }
  Status NoText(const std::string& what) const {
    return Status(StatusCode::kUnimplemented,
                  name_ + ": holds " + what + "; arrays of Python objects may hold texts alone");
  }

  // Takes a little-endian number of `width` bytes; false at the end.
  bool Take(int width, uint64_t* number) {
    if (rest_.size() < static_cast<size_t>(width)) return false;
    *number = 0;
    for (int i = width - 1; i >= 0; --i)
      *number = *number << 8 | static_cast<uint8_t>(rest_[static_cast<size_t>(i)]);
    rest_.remove_prefix(static_cast<size_t>(width));
    return true;
  }
  // A length of `width` bytes and as many bytes.
  bool TakeBytes(int width, std::string_view* bytes) {
    uint64_t length = 0;
    if (!Take(width, &length) || length > rest_.size()) return false;
    *bytes = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return true;
  }
  bool TakeLine(std::string_view* line) {
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos) return false;
    *line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return true;
  }

  Status Step(uint8_t op);
  Status PushNumber(int width, bool is_signed);
  Status PushText(int width);
  Status PushTuple(size_t count);
  Status PushTuple(std::vector<ItemPtr> items);
  Status PushName(std::string_view module, std::string_view attribute);
  Status Memorise(uint64_t at);
  Status Recall(int width);
  Status Append(bool one);
  Status Reduce();
  Status MakeScalar(const std::vector<ItemPtr>& arguments);
  Status Build();

  // The items above the last mark, which go with it.
  Status PopToMark(std::vector<ItemPtr>* items) {
    size_t at = stack_.size();
    while (at > 0 && stack_[at - 1]->kind != ItemKind::kMark) --at;
    if (at == 0) return Damaged("the pickle is damaged");
    items->assign(stack_.begin() + static_cast<std::ptrdiff_t>(at), stack_.end());
    stack_.resize(at - 1);
    return Status::Ok();
  }

  std::string_view rest_;
  const std::string& name_;
  std::vector<ItemPtr> stack_;
  std::map<uint64_t, ItemPtr> memo_;
};

Status Machine::PushNumber(int width, bool is_signed) {
  uint64_t number = 0;
  if (!Take(width, &number)) return Damaged("the pickle is cut short");
  if (is_signed) number = static_cast<uint64_t>(int64_t{static_cast<int32_t>(number)});
  stack_.push_back(NumberItem(static_cast<int64_t>(number)));
  return Status::Ok();
}

Status Machine::PushText(int width) {
  std::string_view bytes;
  if (!TakeBytes(width, &bytes)) return Damaged("the pickle is cut short");
  stack_.push_back(TextItem(bytes));
  return Status::Ok();
}

Status Machine::PushTuple(size_t count) {
  if (stack_.size() < count) return Damaged("the pickle is damaged");
  std::vector<ItemPtr> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
  stack_.resize(stack_.size() - count);
  return PushTuple(std::move(items));
}

Status Machine::PushTuple(std::vector<ItemPtr> items) {
  ItemPtr tuple = MakeItem(ItemKind::kTuple);
  for (const ItemPtr& item : items) tuple->depth = std::max(tuple->depth, item->depth + 1);
  if (tuple->depth > kMostDepth) return NoText("Python objects");
  tuple->items = std::move(items);
  stack_.push_back(std::move(tuple));
  return Status::Ok();
}

Status Machine::PushName(std::string_view module, std::string_view attribute) {
  // Modules of NumPy 1 and 2.
  const bool numpy = module == "numpy" || module.starts_with("numpy.");
  const bool known = numpy ? attribute == "_reconstruct" || attribute == "ndarray" ||
                                 attribute == "dtype" || attribute == "scalar"
                           : module == "_codecs" && attribute == "encode";
  if (!known) return NoText("an object of " + std::string(module) + "." + std::string(attribute));
  ItemPtr item = MakeItem(ItemKind::kName);
  item->text = attribute;
  stack_.push_back(std::move(item));
  return Status::Ok();
}

Status Machine::Memorise(uint64_t at) {
  if (stack_.empty() || stack_.back()->kind == ItemKind::kMark)
    return Damaged("the pickle is damaged");
  memo_[at] = stack_.back();
  return Status::Ok();
}

Status Machine::Recall(int width) {
  uint64_t at = 0;
  if (!Take(width, &at)) return Damaged("the pickle is cut short");
  const auto found = memo_.find(at);
  if (found == memo_.end()) return Damaged("the pickle is damaged");
  stack_.push_back(found->second);
  return Status::Ok();
}

Status Machine::Append(bool one) {
  std::vector<ItemPtr> items;
  if (one) {
    if (stack_.empty()) return Damaged("the pickle is damaged");
    items.push_back(stack_.back());
    stack_.pop_back();
  } else {
    HEDDLE_RETURN_IF_ERROR(PopToMark(&items));
  }
  if (stack_.empty() || stack_.back()->kind != ItemKind::kList)
    return Damaged("the pickle is damaged");
  // A list within itself would never be freed.
  for (const ItemPtr& item : items)
    if (item->kind == ItemKind::kList || item->kind == ItemKind::kTuple ||
        item->kind == ItemKind::kArray)
      return NoText("lists or arrays as elements");
  auto& to = stack_.back()->items;
  to.insert(to.end(), items.begin(), items.end());
  return Status::Ok();
}

// NAME(arguments): what is known of them replaces both on the stack.
Status Machine::Reduce() {
  if (stack_.size() < 2) return Damaged("the pickle is damaged");
  const ItemPtr arguments = stack_.back(), name = stack_[stack_.size() - 2];
  stack_.resize(stack_.size() - 2);
  if (arguments->kind != ItemKind::kTuple || name->kind != ItemKind::kName)
    return Damaged("the pickle is damaged");
  const auto& items = arguments->items;
  if (name->text == "_reconstruct") {
    stack_.push_back(MakeItem(ItemKind::kArray));
    return Status::Ok();
  }
  if (name->text == "dtype" && !items.empty() && items[0]->kind == ItemKind::kText) {
    ItemPtr dtype = MakeItem(ItemKind::kDType);
    dtype->text = items[0]->text;
    stack_.push_back(std::move(dtype));
    return Status::Ok();
  }
  if (name->text == "scalar") return MakeScalar(items);
  // bytes in the protocols before 3: encode(text, "latin1")
  if (name->text == "encode" && !items.empty() && items[0]->kind == ItemKind::kText) {
    std::string bytes;
    const std::string& text = items[0]->text;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto c = static_cast<uint8_t>(text[i]);
      if (c < 0x80) {
        bytes.push_back(text[i]);
      } else if ((c == 0xc2 || c == 0xc3) && i + 1 < text.size()) {
        bytes.push_back(static_cast<char>(c << 6 | (text[++i] & 0x3f)));
      } else {
        return Damaged("the pickle is damaged");
      }
    }
    stack_.push_back(TextItem(bytes));
    return Status::Ok();
  }
  return NoText("Python objects");
}

// numpy.str_ and numpy.bytes_
Status Machine::MakeScalar(const std::vector<ItemPtr>& arguments) {
  if (arguments.size() != 2 || arguments[0]->kind != ItemKind::kDType ||
      arguments[1]->kind != ItemKind::kText)
    return NoText("NumPy scalars");
  const std::string& code = arguments[0]->text;
  std::string text = arguments[1]->text;
  if (code.starts_with('U')) {
    if (!FromUtf32(arguments[1]->text, arguments[0]->big_endian, &text))
      return Damaged("a text that is no Unicode");
  } else if (!code.starts_with('S')) {
    return NoText("NumPy scalars of type " + code);
  }
  stack_.push_back(TextItem(text));
  return Status::Ok();
}

// The state of an array, (version, shape, dtype, Fortran order, elements), or of a dtype.
Status Machine::Build() {
  if (stack_.size() < 2) return Damaged("the pickle is damaged");
  const ItemPtr state = stack_.back();
  stack_.pop_back();
  Item& object = *stack_.back();
  if (state->kind != ItemKind::kTuple) return Damaged("the pickle is damaged");
  const auto& parts = state->items;
  if (object.kind == ItemKind::kDType) {
    object.big_endian = parts.size() > 1 && parts[1]->text == ">";
    return Status::Ok();
  }
  if (object.kind != ItemKind::kArray || parts.size() != 5 || parts[1]->kind != ItemKind::kTuple)
    return Damaged("the pickle is damaged");
  if (parts[2]->kind != ItemKind::kDType || !parts[2]->text.starts_with('O') ||
      parts[4]->kind != ItemKind::kList)
    return NoText("an array that is not of objects");
  for (const ItemPtr& dim : parts[1]->items) object.dims.push_back(dim->number);
  object.items = parts[4]->items;
  return Status::Ok();
}

Status Machine::Step(uint8_t op) {
  uint64_t number = 0;
  std::string_view line, other;
  switch (op) {
    case 0x80:  // PROTO
      return Take(1, &number) ? Status::Ok() : Damaged("the pickle is cut short");
    case 0x95:  // FRAME
      return Take(8, &number) ? Status::Ok() : Damaged("the pickle is cut short");
    case '(':
      stack_.push_back(MakeItem(ItemKind::kMark));
      return Status::Ok();
    case 'N':
      stack_.push_back(MakeItem(ItemKind::kNone));
      return Status::Ok();
    case 0x88:
    case 0x89:
      stack_.push_back(NumberItem(op == 0x88));
      return Status::Ok();
    case 'K':
      return PushNumber(1, false);
    case 'M':
      return PushNumber(2, false);
    case 'J':
      return PushNumber(4, true);
    case 0x8a:  // LONG1: of which a dimension needs eight bytes
      if (!Take(1, &number) || number > 8) return Damaged("the pickle is damaged");
      return PushNumber(static_cast<int>(number), false);
    case 'C':   // SHORT_BINBYTES
    case 0x8c:  // SHORT_BINUNICODE
    case 'U':   // SHORT_BINSTRING
      return PushText(1);
    case 'B':  // BINBYTES
    case 'X':  // BINUNICODE
    case 'T':  // BINSTRING
      return PushText(4);
    case 0x8d:  // BINUNICODE8
    case 0x8e:  // BINBYTES8
      return PushText(8);
    case ')':
      return PushTuple(0);
    case 0x85:
    case 0x86:
    case 0x87:
      return PushTuple(op - 0x84);
    case 't': {
      std::vector<ItemPtr> items;
      HEDDLE_RETURN_IF_ERROR(PopToMark(&items));
      return PushTuple(std::move(items));
    }
    case ']':
      stack_.push_back(MakeItem(ItemKind::kList));
      return Status::Ok();
    case 'a':
    case 'e':
      return Append(op == 'a');
    case 'c':  // GLOBAL
      if (!TakeLine(&line) || !TakeLine(&other)) return Damaged("the pickle is cut short");
      return PushName(line, other);
    case 0x93: {  // STACK_GLOBAL
      if (stack_.size() < 2) return Damaged("the pickle is damaged");
      const ItemPtr attribute = stack_.back(), module = stack_[stack_.size() - 2];
      stack_.resize(stack_.size() - 2);
      return PushName(module->text, attribute->text);
    }
    case 'R':
      return Reduce();
    case 'b':
      return Build();
    case 0x94:  // MEMOIZE
      return Memorise(memo_.size());
    case 'q':  // BINPUT
    case 'r':  // LONG_BINPUT
      if (!Take(op == 'q' ? 1 : 4, &number)) return Damaged("the pickle is cut short");
      return Memorise(number);
    case 'h':
      return Recall(1);
    case 'j':
      return Recall(4);
    default:
      return NoText("Python objects");
  }
}

}  // namespace

bool AppendUtf8(uint32_t code, std::string* to) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  if (code < 0x80) {
    to->push_back(static_cast<char>(code));
    return true;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes behind the first
  constexpr uint32_t kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  to->push_back(static_cast<char>(kFirst[more] | code >> (6 * more)));
  for (int i = more - 1; i >= 0; --i)
    to->push_back(static_cast<char>(0x80 | (code >> (6 * i) & 0x3f)));
  return true;
}

bool FromUtf32(std::string_view bytes, bool big_endian, std::string* to) {
  to->clear();
  std::vector<uint32_t> codes(bytes.size() / 4);
  for (size_t i = 0; i < codes.size(); ++i)
    for (size_t b = 0; b < 4; ++b)
      codes[i] = codes[i] << 8 | static_cast<uint8_t>(bytes[i * 4 + (big_endian ? b : 3 - b)]);
  while (!codes.empty() && codes.back() == 0) codes.pop_back();
  for (const uint32_t code : codes)
    if (!AppendUtf8(code, to)) return false;
  return bytes.size() % 4 == 0;
}

Result<StringTensor> ParsePickledStrings(std::string_view pickle, const Shape& shape,
                                         const std::string& name) {
  HEDDLE_ASSIGN_OR_RETURN(const ItemPtr array, Machine(pickle, name).Run());
  if (std::vector<int64_t>(shape.begin(), shape.end()) != array->dims ||
      static_cast<uint64_t>(shape.numel()) != array->items.size())
    return Status(StatusCode::kDataLoss, name + ": the pickled array is not of the shape " +
                                             shape.ToString() + " that the header says");
  StringTensor strings{shape, {}};
  uint64_t bytes = 0;
  for (const ItemPtr& item : array->items) {
    if (item->kind != ItemKind::kText)
      return Status(StatusCode::kUnimplemented,
                    name + ": element " + std::to_string(strings.elements.size()) +
                        " is no text; arrays of Python objects may hold texts alone");
    bytes += item->text.size() + sizeof(std::string);
    if (bytes > kMostBytes)
      return Status(StatusCode::kResourceExhausted, name + ": the texts take more than 1 GiB");
    strings.elements.push_back(item->text);
  }
  return strings;
}

}  // namespace heddle::tools
