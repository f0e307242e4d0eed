#include "partition/target.h"

#include <algorithm>
#include <charconv>

namespace heddle::partition {
namespace {

std::string NumberText(const Scalar& scalar) {
  char text[40];
  const auto end = scalar.is_integer
                       ? std::to_chars(std::begin(text), std::end(text), scalar.integer)
                       : std::to_chars(std::begin(text), std::end(text), scalar.number);
  return std::string(text, end.ptr);
}

std::string ScalarText(const Scalar& scalar) {
  return scalar.is_text ? "'" + scalar.text + "'" : NumberText(scalar);
}

// Whether `holds` is true of each element. False for texts, which have no order.
template <typename Fn>
bool EachNumber(const Literal& value, Fn&& holds) {
  return std::all_of(value.items.begin(), value.items.end(),
                     [&](const Scalar& s) { return !s.is_text && holds(s); });
}

int Compare(const Scalar& a, const Scalar& b) {
  if (a.is_integer && b.is_integer) return a.integer < b.integer ? -1 : a.integer > b.integer;
  return a.number < b.number ? -1 : a.number > b.number;
}

}  // namespace

bool operator==(const Scalar& a, const Scalar& b) {
  if (a.is_text || b.is_text) return a.is_text == b.is_text && a.text == b.text;
  if (a.is_integer && b.is_integer) return a.integer == b.integer;
  return a.number == b.number;
}

std::string ToString(const Literal& literal) {
  if (!literal.is_list) return literal.items.empty() ? "nothing" : ScalarText(literal.items[0]);
  std::string text = "[";
  for (const Scalar& item : literal.items) {
    if (text.size() > 60) return text + ", …]";
    text += (text.size() > 1 ? ", " : "") + ScalarText(item);
  }
  return text + "]";
}

bool Test::Holds(const Literal& value) const {
  const auto is_one = [&] {
    return std::find(values.begin(), values.end(), value) != values.end();
  };
  const auto bound = [&]() -> const Scalar& { return values[0].items[0]; };
  switch (kind) {
    case Kind::kEqual:
    case Kind::kIn:
      return is_one();
    case Kind::kNotEqual:
    case Kind::kNotIn:
      return !is_one();
    case Kind::kMin:
      return EachNumber(value, [&](const Scalar& s) { return Compare(s, bound()) >= 0; });
    case Kind::kMax:
      return EachNumber(value, [&](const Scalar& s) { return Compare(s, bound()) <= 0; });
    case Kind::kAll:
      return std::all_of(value.items.begin(), value.items.end(),
                         [&](const Scalar& s) { return s == bound(); });
    case Kind::kLength:
      return static_cast<int64_t>(value.items.size()) == bound().integer;
  }
  return false;
}

std::string Test::ToString() const {
  std::string list;
  for (const Literal& value : values)
    list += (list.empty() ? "" : ", ") + partition::ToString(value);
  switch (kind) {
    case Kind::kEqual:
      return list;
    case Kind::kNotEqual:
      return "anything but " + list;
    case Kind::kIn:
      return "one of " + list;
    case Kind::kNotIn:
      return "none of " + list;
    case Kind::kMin:
      return "at least " + list;
    case Kind::kMax:
      return "at most " + list;
    case Kind::kAll:
      return list + " throughout";
    case Kind::kLength:
      return list + " elements";
  }
  return list;
}

}  // namespace heddle::partition
