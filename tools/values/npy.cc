#include "tools/values/npy.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <system_error>

namespace heddle::tools {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
// Longer headers belong to structured types, which are of no use here.
constexpr uint32_t kMaxHeader = 1 << 20;

// Copies the next `n` bytes of a file to `to`; false when they cannot be read.
using ReadBytes = std::function<bool(void* to, size_t n)>;

Status Damaged(const std::string& name, const std::string& why) {
  return Status(StatusCode::kDataLoss, name + ": " + why);
}

struct TypeCode {
  std::string_view code;  // kind and size, as behind the byte order in `descr`
  DType dtype;
};
constexpr TypeCode kTypeCodes[] = {
    {"b1", DType::kBool},  {"u1", DType::kU8},  {"i1", DType::kI8},  {"i2", DType::kI16},
    {"i4", DType::kI32},   {"i8", DType::kI64}, {"f2", DType::kF16}, {"u2", DType::kBF16},
    {"V2", DType::kBF16},  {"f4", DType::kF32}, {"f8", DType::kF64}, {"c8", DType::kC64},
    {"c16", DType::kC128}, {"u4", DType::kI32}, {"u8", DType::kI64},
};

// Unsigned types that heddle holds in other dtypes.
struct UnsignedType {
  std::string_view name, code;
  DType read, held;
};
constexpr UnsignedType kUnsignedTypes[] = {
    {"uint16", "u2", DType::kBF16, DType::kI32},
    {"uint32", "u4", DType::kI32, DType::kI64},
    {"uint64", "u8", DType::kI64, DType::kI64},
};

Result<DType> DTypeOf(const std::string& descr, const std::string& name) {
  if (descr.size() >= 2) {
    for (const TypeCode& t : kTypeCodes) {
      if (t.code != std::string_view(descr).substr(1)) continue;
      if (descr[0] == '<' || descr[0] == '|' || SizeOf(t.dtype) == 1) return t.dtype;
      return Status(StatusCode::kUnimplemented, name + ": big-endian data ('" + descr +
                                                    "'); convert with .astype('<" +
                                                    std::string(t.code) + "')");
    }
    if (descr[1] == 'O')
      return Status(StatusCode::kUnimplemented, name + ": holds Python objects, not numbers");
  }
  return Status(StatusCode::kUnimplemented, name + ": unsupported data type '" + descr + "'");
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
  if (size < 10 || !read(start, 8) || std::memcmp(start, kMagic.data(), kMagic.size()) != 0)
    return Damaged(name, "not a .npy file");
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
bool DataBytes(const Header& header, DType dtype, uint64_t* bytes) {
  uint64_t n = SizeOf(dtype);
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

Result<Tensor> ReadTensor(const ReadBytes& read, uint64_t size, const std::string& name,
                          std::string* type = nullptr) {
  uint64_t used = 0, bytes = 0;
  HEDDLE_ASSIGN_OR_RETURN(const Header header, ReadHeader(read, size, name, &used));
  HEDDLE_ASSIGN_OR_RETURN(const DType dtype, DTypeOf(header.descr, name));
  for (const UnsignedType& t : kUnsignedTypes)
    if (type != nullptr && header.descr.substr(1) == t.code) *type = t.name;
  if (header.shape.size() > static_cast<size_t>(Shape::kMaxRank))
    return Status(StatusCode::kUnimplemented,
                  name + ": " + std::to_string(header.shape.size()) + " dimensions; at most " +
                      std::to_string(Shape::kMaxRank) + " are supported");
  if (!DataBytes(header, dtype, &bytes)) return Damaged(name, "the shape is too large");
  if (bytes != size - used)
    return Damaged(name, "holds " + std::to_string(size - used) +
                             " bytes of data, its header says " + std::to_string(bytes));
  const Shape shape{std::span<const int64_t>(header.shape)};
  Tensor tensor = Tensor::Empty(dtype, shape);
  if (!tensor.initialized())
    return Status(StatusCode::kResourceExhausted, name + ": out of memory");
  if (bytes > 0 && !read(tensor.mutable_raw(), bytes))
    return Damaged(name, "the data cannot be read");
  if (dtype == DType::kBool) {  // any other bit pattern in a bool is undefined behaviour
    auto* p = tensor.mutable_data<uint8_t>();
    for (int64_t i = 0; i < tensor.numel(); ++i) p[i] = p[i] != 0;
  }
  if (!header.fortran_order || shape.rank() < 2 || bytes == 0) return tensor;
  Tensor transposed = Tensor::Empty(dtype, shape);
  if (!transposed.initialized())
    return Status(StatusCode::kResourceExhausted, name + ": out of memory");
  Transpose(tensor.data<std::byte>(), shape, SizeOf(dtype), transposed.mutable_data<std::byte>());
  return transposed;
}

Result<Tensor> ReadTensor(std::string_view bytes, const std::string& name,
                          std::string* type = nullptr) {
  size_t at = 0;
  const auto read = [&](void* to, size_t n) {
    if (n > bytes.size() - at) return false;
    std::memcpy(to, bytes.data() + at, n);
    at += n;
    return true;
  };
  return ReadTensor(read, bytes.size(), name, type);
}

std::string HeaderText(const Tensor& tensor, std::string_view code) {
  std::string text = "{'descr': '";
  text += SizeOf(tensor.dtype()) == 1 ? '|' : '<';
  text += code;
  text += "', 'fortran_order': False, 'shape': (";
  for (int64_t d : tensor.shape()) text += std::to_string(d) + ", ";
  if (tensor.rank() > 1) text.resize(text.size() - 2);
  if (tensor.rank() == 1) text.pop_back();
  text += "), }";
  // Magic, version, length and header fill whole blocks of 64 bytes and end with a newline.
  text.append(63 - (10 + text.size()) % 64, ' ');
  return text + '\n';
}

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};

}  // namespace

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

Result<Tensor> ReadNpy(const std::string& path, std::string* type) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return Status(StatusCode::kNotFound, path + ": no such file");
  if (IsPipe(path)) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string bytes, Receive(path));
    return ReadTensor(bytes, path, type);
  }
  if (!std::filesystem::is_regular_file(status))
    return Status(StatusCode::kInvalidArgument, path + ": not a file");
  const uint64_t size = std::filesystem::file_size(path, error);
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path.c_str(), "rb"));
  if (error || !file) return Status(StatusCode::kNotFound, path + ": " + std::strerror(errno));
  return ReadTensor([&](void* to, size_t n) { return std::fread(to, 1, n, file.get()) == n; }, size,
                    path, type);
}

Result<Tensor> ParseNpy(std::string_view bytes, const std::string& name) {
  return ReadTensor(bytes, name);
}

Tensor Widened(const Tensor& read, const std::string& type) {
  for (const UnsignedType& t : kUnsignedTypes) {
    if (t.name != type || t.read != read.dtype() || t.read == t.held) continue;
    Tensor made = Tensor::Empty(t.held, read.shape());
    for (int64_t i = 0; i < read.numel(); ++i) {
      if (t.held == DType::kI32)
        made.mutable_data<int32_t>()[i] = static_cast<const uint16_t*>(read.raw())[i];
      else
        made.mutable_data<int64_t>()[i] = static_cast<const uint32_t*>(read.raw())[i];
    }
    return made;
  }
  return read;
}

namespace {

// The reverse. Precondition: the tensor is held in that type's dtype.
Tensor Narrowed(const Tensor& held, const UnsignedType& type) {
  if (type.read == type.held) return held;
  Tensor made = Tensor::Empty(type.read, held.shape());
  for (int64_t i = 0; i < held.numel(); ++i) {
    if (type.held == DType::kI32)
      static_cast<uint16_t*>(made.mutable_raw())[i] =
          static_cast<uint16_t>(held.data<int32_t>()[i]);
    else
      static_cast<uint32_t*>(made.mutable_raw())[i] =
          static_cast<uint32_t>(held.data<int64_t>()[i]);
  }
  return made;
}

// The header of the file, and the tensor whose bytes follow it.
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
  for (const UnsignedType& t : kUnsignedTypes) {
    if (t.name != type || t.held != data->dtype()) continue;
    *data = Narrowed(*data, t);
    code = t.code;
  }
  const std::string text = HeaderText(*data, code);
  std::string start(kMagic);
  start += {'\1', '\0', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return start + text;
}

}  // namespace

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
