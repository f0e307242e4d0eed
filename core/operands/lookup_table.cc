#include "core/operands/lookup_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace heddle {

// The values of new keys, one row per key.
struct LookupTable::Rows {
  std::shared_ptr<const StringTensor> texts;  // null: numbers
  Tensor numbers;
  Shape row;  // shape of a row
  int64_t count = 0;
};

namespace {

// The dimensions of values after those of keys; kInvalidArgument: the values' dimensions do not
// begin with the keys'.
Result<Shape> RowShape(const Shape& keys, const Shape& values) {
  bool fits = values.rank() >= keys.rank();
  for (int i = 0; fits && i < keys.rank(); ++i) fits = values[i] == keys[i];
  if (!fits)
    return InvalidArgument("values ", values.ToString(), " do not fit keys ", keys.ToString());
  Shape row;
  for (int i = keys.rank(); i < values.rank(); ++i) row.push_back(values[i]);
  return row;
}

}  // namespace

// Checks that the new rows have the type and shape of the table's, and makes room for them.
Status LookupTable::Fit(const Rows& rows) {
  if (size() == 0) {
    values_are_texts_ = rows.texts != nullptr;
    values_ = Tensor();
    value_texts_.clear();
  }
  if (values_are_texts_ != (rows.texts != nullptr))
    return InvalidArgument("values are ", values_are_texts_ ? "texts" : "numbers",
                           "; new ones are not");
  if (values_are_texts_) return Status::Ok();
  Shape shape = rows.row;
  shape.insert(0, size() + rows.count);
  if (size() > 0) {
    Shape has = values_.shape();
    has[0] = shape[0];
    if (has != shape || values_.dtype() != rows.numbers.dtype())
      return InvalidArgument("values are ", Name(values_.dtype()), " ", values_.shape().ToString(),
                             "; new ones are ", Name(rows.numbers.dtype()), " rows of ",
                             rows.row.ToString());
    // Copies of a table share rows until one of them gets other rows.
    const bool fits = values_.dim(0) >= shape[0];
    if (fits && values_.buffer()->unique()) return Status::Ok();
    shape[0] = fits ? values_.dim(0) : std::max(shape[0], 2 * values_.dim(0));
  }
  Tensor grown = Tensor::Empty(rows.numbers.dtype(), shape);
  if (!grown.initialized() && grown.bytes() > 0)
    return ResourceExhausted("no memory for a table of ", shape[0], " rows");
  if (size() > 0) std::memcpy(grown.mutable_raw(), values_.raw(), values_.bytes());
  values_ = std::move(grown);
  return Status::Ok();
}

Status LookupTable::Put(int64_t row, const Rows& rows, int64_t from, bool known, bool replaces) {
  const auto at = static_cast<size_t>(row), source = static_cast<size_t>(from);
  if (values_are_texts_) {
    if (!known) value_texts_.emplace_back();
    const std::string& text = rows.texts->elements[source];
    if (known && !replaces && value_texts_[at] != text)
      return InvalidArgument("two values for one key: '", value_texts_[at], "' and '", text, "'");
    value_texts_[at] = text;
    return Status::Ok();
  }
  const size_t bytes = static_cast<size_t>(rows.row.numel()) * SizeOf(values_.dtype());
  if (bytes == 0) return Status::Ok();
  std::byte* to = static_cast<std::byte*>(values_.mutable_raw()) + at * bytes;
  const std::byte* value = static_cast<const std::byte*>(rows.numbers.raw()) + source * bytes;
  if (known && !replaces && std::memcmp(to, value, bytes) != 0)
    return InvalidArgument("two values for one key");
  std::memcpy(to, value, bytes);
  return Status::Ok();
}

Status LookupTable::Insert(const Value& keys, const Value& values, bool replaces) {
  const auto texts = StringsIn(keys);
  if (texts == nullptr && (!keys.is_tensor() || (keys.tensor().dtype() != DType::kI64 &&
                                                 keys.tensor().dtype() != DType::kI32)))
    return InvalidArgument("keys are neither texts nor integers");
  const Shape& shape = texts != nullptr ? texts->shape : keys.tensor().shape();
  Rows rows;
  rows.texts = StringsIn(values);
  rows.count = shape.numel();
  if (rows.texts == nullptr && !values.is_tensor())
    return InvalidArgument("values are neither texts nor numbers");
  if (rows.texts == nullptr) rows.numbers = values.tensor();
  HEDDLE_ASSIGN_OR_RETURN(
      rows.row, RowShape(shape, rows.texts != nullptr ? rows.texts->shape : rows.numbers.shape()));
  if (rows.row.rank() == Shape::kMaxRank)  // the table's tensor has one dimension more
    return InvalidArgument("values have too many dimensions: ", rows.row.ToString());
  if (rows.texts != nullptr && rows.row.rank() > 0)
    return InvalidArgument("texts as values are one for each key");
  if (size() > 0 && has_texts() != (texts != nullptr))
    return InvalidArgument("keys are ", has_texts() ? "texts" : "integers", "; new ones are not");
  HEDDLE_RETURN_IF_ERROR(Fit(rows));
  const auto put = [&](auto& table, auto key, int64_t i) {
    const int64_t next = size();
    const auto [place, added] = table.try_emplace(std::move(key), next);
    return Put(place->second, rows, i, !added, replaces);
  };
  for (int64_t i = 0; i < rows.count; ++i) {
    const auto at = static_cast<size_t>(i);
    if (texts != nullptr)
      HEDDLE_RETURN_IF_ERROR(put(texts_, texts->elements[at], i));
    else
      HEDDLE_RETURN_IF_ERROR(put(numbers_,
                                 keys.tensor().dtype() == DType::kI64
                                     ? keys.tensor().data<int64_t>()[at]
                                     : int64_t{keys.tensor().data<int32_t>()[at]},
                                 i));
  }
  return Status::Ok();
}

SharedTable TableIn(const Value& value) {
  if (value.kind() != Value::Kind::kOther || !value.initialized()) return nullptr;
  Value copy = value;
  const auto* table = std::any_cast<SharedTable>(&copy.mutable_other());
  return table == nullptr ? nullptr : *table;
}

Value ValueOf(LookupTable table) {
  Value value;
  value.mutable_other() = std::make_shared<const LookupTable>(std::move(table));
  return value;
}

}  // namespace heddle
