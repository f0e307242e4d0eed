#include "tools/values/npy.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>

#include "heddle/model_files.h"
#include "tools/values/element_types.h"
#include "tools/values/pickled_strings.h"

namespace heddle::tools {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// As much of a file that is none as tells what else it is.
constexpr uint64_t kLooked = 4096;
// Longer headers belong to structured types, which are of no use here.
constexpr uint32_t kMaxHeader = 1 << 20;
// Characters of a text of fixed width.
constexpr uint64_t kMaxItem = uint64_t{1} << 31;

// Copies the next `n` bytes of a file to `to`; false when they cannot be read.
using ReadBytes = std::function<bool(void* to, size_t n)>;

Status Damaged(const std::string& name, const std::string& why) {
  return Status(StatusCode::kDataLoss, name + ": " + why);
}

// How the elements of an array are stored.
struct TypeCode {
  std::string_view code;  // kind and size, as behind the byte order in `descr`
  DType dtype;            // of the tensor that they are read into
  std::string_view name;  // as NpyArray::type has it; empty: the dtype's
};
constexpr TypeCode kTypeCodes[] = {
    {"b1", DType::kBool, ""},    {"u1", DType::kU8, ""},         {"i1", DType::kI8, ""},
    {"i2", DType::kI16, ""},     {"i4", DType::kI32, ""},        {"i8", DType::kI64, ""},
    {"f2", DType::kF16, ""},     {"u2", DType::kBF16, "uint16"}, {"V2", DType::kBF16, "void2"},
    {"f4", DType::kF32, ""},     {"f8", DType::kF64, ""},        {"c8", DType::kC64, ""},
    {"c16", DType::kC128, ""},   {"u4", DType::kI32, "uint32"},  {"u8", DType::kI64, "uint64"},
    {"V1", DType::kU8, "void1"}, {"f1", DType::kU8, "float8"},
};

// Elements as a header's `descr` says.
struct Elements {
  enum class Kind : uint8_t { kNumbers, kBytes, kUnicode, kObjects };
  Kind kind = Kind::kNumbers;
  DType dtype = DType::kUnknown;
  std::string_view type = "string";
  bool big_endian = false;
  uint64_t size = 0;  // bytes of one
};

Result<Elements> ElementsOf(const std::string& descr, const std::string& name) {
  const auto unsupported = [&] {
    return Status(StatusCode::kUnimplemented, name + ": unsupported data type '" + descr + "'");
  };
  if (descr.size() < 2) return unsupported();
  Elements e;
  e.big_endian = descr[0] == '>';
  const std::string_view code = std::string_view(descr).substr(1);
  if (std::string_view("<>|=").find(descr[0]) == std::string_view::npos) return unsupported();
  for (const TypeCode& t : kTypeCodes) {
    if (t.code != code) continue;
    e.dtype = t.dtype;
    e.type = t.name.empty() ? Name(t.dtype) : t.name;
    e.size = SizeOf(t.dtype);
    return e;
  }
  if (code == "O") {
    e.kind = Elements::Kind::kObjects;
    return e;
  }
  if (code[0] != 'S' && code[0] != 'U') return unsupported();
  const char* const end = descr.data() + descr.size();
  const auto [next, error] = std::from_chars(descr.data() + 2, end, e.size);
  if (error != std::errc() || next != end || e.size == 0 || e.size > kMaxItem) return unsupported();
  e.kind = code[0] == 'S' ? Elements::Kind::kBytes : Elements::Kind::kUnicode;
  if (code[0] == 'U') e.size *= 4;
  return e;
}

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Parses the header's Python literal: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  bool Parse(Header* header) {
    bool descr = false, order = false, shape = false;
    if (!Eat('{')) return false;
    while (!Eat('}')) {
      std::string key;
      if (!String(&key) || !Eat(':')) return false;
      if (key == "descr" && !descr) {
        descr = String(&header->descr);
        if (!descr) return false;
      } else if (key == "fortran_order" && !order) {
        order = Bool(&header->fortran_order);
        if (!order) return false;
      } else if (key == "shape" && !shape) {
        shape = Tuple(&header->shape);
        if (!shape) return false;
      } else {
        return false;
      }
      if (!Eat(',') && Peek() != '}') return false;
    }
    Peek();  // skips the padding
    return descr && order && shape && at_ == text_.size();
  }

 private:
  // The next character that is not a space; '\0' at the end.
  char Peek() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Eat(char c) {
    if (Peek() != c) return false;
    ++at_;
    return true;
  }
  bool String(std::string* value) {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return false;
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) return false;
    *value = text_.substr(at_, end - at_);
    at_ = end + 1;
    return true;
  }
  bool Bool(bool* value) {
    Peek();
    for (bool b : {false, true}) {
      const std::string_view word = b ? "True" : "False";
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      *value = b;
      return true;
    }
    return false;
  }
  bool Tuple(std::vector<int64_t>* values) {
    if (!Eat('(')) return false;
    while (!Eat(')')) {
      int64_t n = 0;
      if (!std::isdigit(static_cast<unsigned char>(Peek()))) return false;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
        if (__builtin_mul_overflow(n, int64_t{10}, &n) ||
            __builtin_add_overflow(n, int64_t{text_[at_] - '0'}, &n))
          return false;
        ++at_;
      }
      Eat('L');  // written by Python 2
      values->push_back(n);
      if (!Eat(',') && Peek() != ')') return false;
    }
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

// Reads magic, version and header text; sets how many bytes they took.
Result<Header> ReadHeader(const ReadBytes& read, uint64_t size, const std::string& name,
                          uint64_t* used) {
  unsigned char start[12];
  const size_t first = std::min<uint64_t>(size, 8);
  if (!read(start, first)) return Damaged(name, "cannot be read");
  std::string begin(reinterpret_cast<const char*>(start), first);
  if (!begin.starts_with(kMagic)) {
    std::string more(std::min<uint64_t>(size - first, kLooked), '\0');
    if (read(more.data(), more.size())) begin += more;
    return NotA("a .npy file", name, begin);
  }
  if (size < 10) return Damaged(name, "the header is cut short");
  const int major = start[6];
  if (major < 1 || major > 3)
    return Status(StatusCode::kUnimplemented,
                  name + ": .npy format " + std::to_string(major) + " is not known");
  const size_t width = major == 1 ? 2 : 4;
  if (size < 8 + width || !read(start + 8, width)) return Damaged(name, "the header is cut short");
  uint32_t length = 0;
  for (size_t i = 0; i < width; ++i) length |= uint32_t{start[8 + i]} << (8 * i);
  *used = 8 + width + length;
  if (*used > size) return Damaged(name, "the header is cut short");
  if (length > kMaxHeader) return Damaged(name, "the header is too long");
  std::string text(length, '\0');
  Header header;
  if (!read(text.data(), length)) return Damaged(name, "the header cannot be read");
  if (!HeaderParser(text).Parse(&header)) return Damaged(name, "the header is not understood");
  return header;
}

// The bytes that a header announces; false when there is no such size.
bool DataBytes(const Header& header, uint64_t item, uint64_t* bytes) {
  uint64_t n = item;
  const bool empty = std::count(header.shape.begin(), header.shape.end(), 0) > 0;
  for (int64_t d : header.shape)
    if (__builtin_mul_overflow(n, empty ? uint64_t{1} : static_cast<uint64_t>(d), &n)) return false;
  *bytes = empty ? 0 : n;
  return *bytes <= static_cast<uint64_t>(INT64_MAX);
}

// Row-major order from column-major order.
void Transpose(const std::byte* from, const Shape& shape, size_t item, std::byte* to) {
  const int rank = shape.rank();
  std::vector<int64_t> stride(rank, 1), index(rank, 0);
  for (int i = 1; i < rank; ++i) stride[i] = stride[i - 1] * shape[i - 1];
  int64_t offset = 0;
  for (int64_t n = shape.numel(); n > 0; --n, to += item) {
    std::memcpy(to, from + offset * item, item);
    for (int i = rank - 1; i >= 0; --i) {
      offset += stride[i];
      if (++index[i] < shape[i]) break;
      offset -= stride[i] * shape[i];
      index[i] = 0;
    }
  }
}

// Turns the bytes of each number round.
void SwapBytes(Tensor* tensor) {
  const size_t item = SizeOf(tensor->dtype()) / (IsComplex(tensor->dtype()) ? 2 : 1);
  auto* bytes = static_cast<char*>(tensor->mutable_raw());
  for (size_t at = 0; at < tensor->bytes(); at += item) std::reverse(bytes + at, bytes + at + item);
}

Result<Tensor> ReadNumbers(const ReadBytes& read, const Elements& e, const Header& header,
                           const Shape& shape, const std::string& name) {
  Tensor tensor = Tensor::Empty(e.dtype, shape);
  if (!tensor.initialized())
    return Status(StatusCode::kResourceExhausted, name + ": out of memory");
  if (tensor.bytes() > 0 && !read(tensor.mutable_raw(), tensor.bytes()))
    return Damaged(name, "the data cannot be read");
  if (e.big_endian) SwapBytes(&tensor);
  if (e.dtype == DType::kBool) {  // any other bit pattern in a bool is undefined behaviour
    auto* p = tensor.mutable_data<uint8_t>();
    for (int64_t i = 0; i < tensor.numel(); ++i) p[i] = p[i] != 0;
  }
  if (!header.fortran_order || shape.rank() < 2 || tensor.bytes() == 0) return tensor;
  Tensor transposed = Tensor::Empty(e.dtype, shape);
  if (!transposed.initialized())
    return Status(StatusCode::kResourceExhausted, name + ": out of memory");
  Transpose(tensor.data<std::byte>(), shape, SizeOf(e.dtype), transposed.mutable_data<std::byte>());
  return transposed;
}

// `S` and `U`: texts of one width, zeros behind shorter ones.
Result<StringTensor> ReadTexts(const ReadBytes& read, const Elements& e, const Header& header,
                               const Shape& shape, const std::string& name) {
  std::string data(static_cast<size_t>(shape.numel()) * e.size, '\0');
  if (!data.empty() && !read(data.data(), data.size()))
    return Damaged(name, "the data cannot be read");
  if (header.fortran_order && shape.rank() > 1 && !data.empty()) {
    std::string moved(data.size(), '\0');
    Transpose(reinterpret_cast<const std::byte*>(data.data()), shape, e.size,
              reinterpret_cast<std::byte*>(moved.data()));
    data.swap(moved);
  }
  StringTensor strings{shape, {}};
  for (size_t at = 0; at < data.size(); at += e.size) {
    std::string_view item = std::string_view(data).substr(at, e.size);
    std::string text;
    if (e.kind == Elements::Kind::kUnicode) {
      if (!FromUtf32(item, e.big_endian, &text)) return Damaged(name, "a text that is no Unicode");
    } else {
      while (item.ends_with('\0')) item.remove_suffix(1);
      text = item;
    }
    strings.elements.push_back(std::move(text));
  }
  return strings;
}

Result<NpyArray> ReadArray(const ReadBytes& read, uint64_t size, const std::string& name) {
  uint64_t used = 0, bytes = 0;
  HEDDLE_ASSIGN_OR_RETURN(const Header header, ReadHeader(read, size, name, &used));
  HEDDLE_ASSIGN_OR_RETURN(const Elements e, ElementsOf(header.descr, name));
  if (header.shape.size() > static_cast<size_t>(Shape::kMaxRank))
    return Status(StatusCode::kUnimplemented,
                  name + ": " + std::to_string(header.shape.size()) + " dimensions; at most " +
                      std::to_string(Shape::kMaxRank) + " are supported");
  const bool objects = e.kind == Elements::Kind::kObjects;
  if (!DataBytes(header, objects ? 1 : e.size, &bytes))
    return Damaged(name, "the shape is too large");
  if (!objects && bytes != size - used)
    return Damaged(name, "holds " + std::to_string(size - used) +
                             " bytes of data, its header says " + std::to_string(bytes));
  const Shape shape{std::span<const int64_t>(header.shape)};
  if (e.kind == Elements::Kind::kNumbers) {
    HEDDLE_ASSIGN_OR_RETURN(Tensor tensor, ReadNumbers(read, e, header, shape, name));
    return NpyArray{Value(std::move(tensor)), std::string(e.type)};
  }
  if (!objects) {
    HEDDLE_ASSIGN_OR_RETURN(StringTensor strings, ReadTexts(read, e, header, shape, name));
    return NpyArray{ValueOf(std::move(strings)), std::string(e.type)};
  }
  std::string pickle(size - used, '\0');
  if (!read(pickle.data(), pickle.size())) return Damaged(name, "the data cannot be read");
  HEDDLE_ASSIGN_OR_RETURN(StringTensor strings, ParsePickledStrings(pickle, shape, name));
  return NpyArray{ValueOf(std::move(strings)), std::string(e.type)};
}

// What stands before the data of an array whose elements `descr` describes.
std::string StartText(const Shape& shape, const std::string& descr) {
  std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t d : shape) text += std::to_string(d) + ", ";
  if (shape.rank() > 1) text.resize(text.size() - 2);
  if (shape.rank() == 1) text.pop_back();
  text += "), }";
  // Magic, version, length and header fill whole blocks of 64 bytes and end with a newline.
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  std::string start(kMagic);
  start += {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return start + text;
}

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};

}  // namespace

Status NotA(const std::string& what, const std::string& name, std::string_view begin) {
  const std::string kind = begin.empty() ? "an empty file" : KindOfBytes(begin);
  return Damaged(name, "not " + what + (kind.empty() ? "" : ", but " + kind));
}

bool IsPipe(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_fifo(path, error);
}

Result<std::string> Receive(const std::string& path) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (!file) return Status(StatusCode::kNotFound, path + ": " + std::strerror(errno));
  std::string bytes;
  char part[1 << 16];
  for (size_t n; (n = std::fread(part, 1, sizeof(part), file.get())) > 0;) bytes.append(part, n);
  if (std::ferror(file.get()) != 0) return Damaged(path, std::strerror(errno));
  return bytes;
}

Result<NpyArray> ReadNpyArray(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return Status(StatusCode::kNotFound, path + ": no such file");
  if (IsPipe(path)) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, Receive(path));
    return ParseNpyArray(bytes, path);
  }
  if (!std::filesystem::is_regular_file(status))
    return Status(StatusCode::kInvalidArgument, path + ": not a file");
  const uint64_t size = std::filesystem::file_size(path, error);
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (error || !file) return Status(StatusCode::kNotFound, path + ": " + std::strerror(errno));
  return ReadArray([&](void* to, size_t n) { return std::fread(to, 1, n, file.get()) == n; }, size,
                   path);
}

Result<NpyArray> ParseNpyArray(std::string_view bytes, const std::string& name) {
  size_t at = 0;
  return ReadArray(
      [&](void* to, size_t n) {
        if (n > bytes.size() - at) return false;
        std::memcpy(to, bytes.data() + at, n);
        at += n;
        return true;
      },
      bytes.size(), name);
}

namespace {

Result<Tensor> NumbersOf(Result<NpyArray> array, const std::string& name) {
  HEDDLE_RETURN_IF_ERROR(array.status());
  if (array->value.is_tensor()) return array->value.tensor();
  return Status(StatusCode::kUnimplemented, name + ": holds texts, not numbers");
}

}  // namespace

Result<Tensor> ReadNpy(const std::string& path) { return NumbersOf(ReadNpyArray(path), path); }

Result<Tensor> ParseNpy(std::string_view bytes, const std::string& name) {
  return NumbersOf(ParseNpyArray(bytes, name), name);
}

namespace {

// The elements of an unsigned type as NumPy stores them; without a value where memory is short.
// Precondition: the tensor is held in the type's dtype, and is contiguous.
Tensor Narrowed(const Tensor& held, const ElementType& type) {
  if (type.bits == 64 || !held.initialized()) return held;
  Tensor made = Tensor::Empty(type.bits == 16 ? DType::kBF16 : DType::kI32, held.shape());
  if (!made.initialized()) return made;
  for (int64_t i = 0; i < held.numel(); ++i) {
    if (type.bits == 16)
      static_cast<uint16_t*>(made.mutable_raw())[i] =
          static_cast<uint16_t>(held.data<int32_t>()[i]);
    else
      static_cast<uint32_t*>(made.mutable_raw())[i] =
          static_cast<uint32_t>(held.data<int64_t>()[i]);
  }
  return made;
}

// What precedes the data in the file, and the tensor whose bytes follow it.
Result<std::string> NpyStart(const std::string& name, const Tensor& tensor, const std::string& type,
                             Tensor* data) {
  if (SizeOf(tensor.dtype()) == 0)
    return Status(StatusCode::kInvalidArgument, name + ": the tensor has no data type");
  if (!tensor.initialized() && tensor.numel() != 0)
    return Status(StatusCode::kInvalidArgument, name + ": the tensor holds no data");
  *data = tensor.Contiguous();
  std::string_view code;
  for (const TypeCode& t : kTypeCodes)
    if (t.dtype == tensor.dtype() && code.empty()) code = t.code;
  const ElementType* wide = FindElementType(type);
  if (wide != nullptr && wide->kind == ElementType::Kind::kWide && wide->held == data->dtype()) {
    *data = Narrowed(*data, *wide);
    for (const TypeCode& t : kTypeCodes)
      if (t.name == type) code = t.code;
  }
  if (!data->initialized() && tensor.numel() != 0)
    return Status(StatusCode::kResourceExhausted, name + ": out of memory");
  return StartText(data->shape(), (SizeOf(data->dtype()) == 1 ? '|' : '<') + std::string(code));
}

// The code points of UTF-8; false where it is none, or ends with a NUL.
bool ToCodes(std::string_view text, std::vector<uint32_t>* codes) {
  codes->clear();
  std::string again;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<uint8_t>(text[at]);
    const size_t more = first < 0x80 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    if (more > text.size() - at - 1) return false;
    uint32_t code = more == 0 ? first : first & (0x3fu >> more);
    for (size_t i = 1; i <= more; ++i)
      code = code << 6 | (static_cast<uint8_t>(text[at + i]) & 0x3f);
    codes->push_back(code);
    if (!AppendUtf8(code, &again)) return false;
    at += more + 1;
  }
  // Only what is said in the one right way gives the same bytes again.
  return again == text;
}

}  // namespace

Result<std::string> NpyBytes(const StringTensor& strings, const std::string& name) {
  std::vector<std::vector<uint32_t>> codes(strings.elements.size());
  bool unicode = true;
  size_t width = 1, bytes = 1;
  for (size_t i = 0; i < codes.size(); ++i) {
    const std::string& text = strings.elements[i];
    if (text.ends_with('\0'))
      return Status(StatusCode::kUnimplemented,
                    name + ": element " + std::to_string(i) +
                        " ends with a NUL, which NumPy's types of texts would drop");
    unicode = unicode && ToCodes(text, &codes[i]);
    width = std::max(width, codes[i].size());
    bytes = std::max(bytes, text.size());
  }
  if (!unicode) width = bytes;
  const size_t item = unicode ? 4 * width : width;
  std::string file = StartText(strings.shape, (unicode ? "<U" : "|S") + std::to_string(width));
  const size_t start = file.size();
  file.resize(start + item * codes.size(), '\0');
  for (size_t i = 0; i < codes.size(); ++i) {
    char* to = file.data() + start + i * item;
    if (!unicode) {
      std::copy(strings.elements[i].begin(), strings.elements[i].end(), to);
      continue;
    }
    for (const uint32_t code : codes[i])
      for (int shift = 0; shift < 32; shift += 8) *to++ = static_cast<char>(code >> shift & 0xff);
  }
  return file;
}

Result<std::string> NpyBytes(const Tensor& tensor, const std::string& type) {
  Tensor data;
  HEDDLE_ASSIGN_OR_RETURN(std::string bytes, NpyStart("an array", tensor, type, &data));
  if (data.bytes() > 0) bytes.append(static_cast<const char*>(data.raw()), data.bytes());
  return bytes;
}

Status WriteNpy(const std::string& path, const Tensor& tensor, const std::string& type) {
  Tensor plain;
  HEDDLE_ASSIGN_OR_RETURN(const std::string start, NpyStart(path, tensor, type, &plain));
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr)
    return Status(StatusCode::kNotFound, path + ": cannot be written: " + std::strerror(errno));
  bool ok = std::fwrite(start.data(), 1, start.size(), file) == start.size();
  const size_t bytes = plain.bytes();
  ok = ok && (bytes == 0 || std::fwrite(plain.raw(), 1, bytes, file) == bytes);
  if (std::fclose(file) != 0 || !ok)
    return Status(StatusCode::kResourceExhausted,
                  path + ": cannot be written: " + std::strerror(errno));
  return Status::Ok();
}

}  // namespace heddle::tools
