#include "formats/paddle/attr_convert.h"

#include <type_traits>

#include "core/error.h"
#include "proto/framework.pb.h"

namespace heddle::paddle {
namespace {

using proto::OpDesc_Attr;

template <typename T>
T FromScalar(const proto::Scalar& s) {
  switch (s.type()) {
    case proto::Scalar::BOOLEAN:
      return static_cast<T>(s.b());
    case proto::Scalar::LONG:
      return static_cast<T>(s.i());
    case proto::Scalar::COMPLEX128:
      return static_cast<T>(s.c().r());
    default:
      return static_cast<T>(s.r());
  }
}

// Complex numbers become pairs.
template <typename T, typename Source>
std::vector<T> Copy(const Source& source) {
  std::vector<T> out;
  out.reserve(source.size());
  for (const auto& x : source) {
    if constexpr (std::is_same_v<std::decay_t<decltype(x)>, proto::Scalar>) {
      out.push_back(FromScalar<T>(x));
      if (x.type() == proto::Scalar::COMPLEX128) out.push_back(static_cast<T>(x.c().i()));
    } else {
      out.push_back(static_cast<T>(x));
    }
  }
  return out;
}

// Reads a list of numbers of any type in the file; false when the attribute holds none.
template <typename T>
bool Numbers(const OpDesc_Attr& a, std::vector<T>* out) {
  switch (a.type()) {
    case proto::INT:
      *out = {static_cast<T>(a.i())};
      return true;
    case proto::LONG:
      *out = {static_cast<T>(a.l())};
      return true;
    case proto::BOOLEAN:
      *out = {static_cast<T>(a.b())};
      return true;
    case proto::FLOAT:
      *out = {static_cast<T>(a.f())};
      return true;
    case proto::FLOAT64:
      *out = {static_cast<T>(a.float64())};
      return true;
    case proto::SCALAR:
      *out = {FromScalar<T>(a.scalar())};
      return true;
    case proto::INTS:
      *out = Copy<T>(a.ints());
      return true;
    case proto::LONGS:
      *out = Copy<T>(a.longs());
      return true;
    case proto::BOOLEANS:
      *out = Copy<T>(a.bools());
      return true;
    case proto::FLOATS:
      *out = Copy<T>(a.floats());
      return true;
    case proto::FLOAT64S:
      *out = Copy<T>(a.float64s());
      return true;
    case proto::SCALARS:
      *out = Copy<T>(a.scalars());
      return true;
    default:
      return false;
  }
}

Status WrongType(const OpDesc_Attr& a, const char* want) {
  return InvalidArgument("attribute '", a.name(), "' is of type ", static_cast<int>(a.type()),
                         " of the file format; ", want, " is expected");
}

template <typename T>
Result<AttrValue> OneNumber(const OpDesc_Attr& a, const char* want) {
  std::vector<T> list;
  if (!Numbers(a, &list) || list.size() != 1) return WrongType(a, want);
  return AttrValue(list[0]);
}

Result<AttrValue> Blocks(const OpDesc_Attr& a, bool list) {
  if (a.type() == proto::BLOCK && !list) return AttrValue(BlockRef{a.block_idx()});
  std::vector<BlockRef> refs;
  if (a.type() == proto::BLOCKS)
    for (int id : a.blocks_idx()) refs.push_back({id});
  else if (a.type() == proto::BLOCK)
    refs.push_back({a.block_idx()});
  else
    return WrongType(a, "a block");
  if (!list) return WrongType(a, "one block");
  return AttrValue(std::move(refs));
}

}  // namespace

Result<AttrValue> ConvertAttr(const OpDesc_Attr& a, const AttrValue& like) {
  if (std::holds_alternative<int64_t>(like)) return OneNumber<int64_t>(a, "an integer");
  if (std::holds_alternative<double>(like)) return OneNumber<double>(a, "a number");
  if (std::holds_alternative<bool>(like)) {
    auto n = OneNumber<int64_t>(a, "true or false");
    if (!n.ok()) return n.status();
    return AttrValue(std::get<int64_t>(*n) != 0);
  }
  if (std::holds_alternative<Ints>(like)) {
    Ints list;
    if (!Numbers(a, &list)) return WrongType(a, "a list of integers");
    return AttrValue(std::move(list));
  }
  if (std::holds_alternative<Floats>(like)) {
    Floats list;
    if (!Numbers(a, &list)) return WrongType(a, "a list of numbers");
    return AttrValue(std::move(list));
  }
  if (std::holds_alternative<std::string>(like)) {
    if (a.type() != proto::STRING) return WrongType(a, "a text");
    return AttrValue(a.s());
  }
  if (std::holds_alternative<Strings>(like)) {
    if (a.type() == proto::STRING) return AttrValue(Strings{a.s()});
    if (a.type() != proto::STRINGS) return WrongType(a, "a list of texts");
    return AttrValue(Strings(a.strings().begin(), a.strings().end()));
  }
  return Blocks(a, std::holds_alternative<std::vector<BlockRef>>(like));
}

}  // namespace heddle::paddle
