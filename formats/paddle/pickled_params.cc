#include "formats/paddle/pickled_params.h"

#include <cstring>
#include <new>
#include <set>

#include "core/error.h"
#include "formats/paddle/pickle.h"
#include "heddle/params.h"

namespace heddle {
namespace {

using paddle::Pickle;
using paddle::PickleObject;
using Kind = PickleObject::Kind;

// Entries that Paddle adds to a state dict.
constexpr std::string_view kNames = "StructuredToParameterName@@";  // structured name -> variable
constexpr std::string_view kParts = "UnpackBigParamInfor@@";  // array -> its shape and its parts

// The array of an object that is an array or a pair (name, array), as tensors outside of a state
// dict are written; else null.
const Tensor* ArrayOf(const PickleObject& o) {
  if (o.kind == Kind::kArray) return o.tensor.get();
  if (o.kind != Kind::kTuple || o.items.size() != 2 || o.items[0]->kind != Kind::kText)
    return nullptr;
  return o.items[1]->kind == Kind::kArray ? o.items[1]->tensor.get() : nullptr;
}

std::string VariableName(const PickleObject* names, std::string_view key) {
  const PickleObject* name = names != nullptr ? names->Get(key) : nullptr;
  return std::string(name != nullptr && name->kind == Kind::kText ? name->bytes : key);
}

// Joins the parts of a large array; protocols 2 and 3 cannot hold it in one piece.
Result<Tensor> Join(const PickleObject& state, std::string_view key, const PickleObject& info,
                    const std::string& path, std::set<std::string_view>* used) {
  const PickleObject *dims = info.Get("OriginShape"), *parts = info.Get("slices");
  if (dims == nullptr || parts == nullptr || dims->items.size() > Shape::kMaxRank)
    return DataLoss(path, ": '", key, "' is in parts, but its shape or its parts are not named");
  Shape shape;
  for (const PickleObject* d : dims->items) {
    if (d->kind != Kind::kInt || d->number < 0)
      return DataLoss(path, ": '", key, "' has a dimension that is none");
    shape.push_back(d->number);
  }
  std::vector<Tensor> found;
  size_t bytes = 0;
  for (const PickleObject* name : parts->items) {
    const PickleObject* part = state.Get(name->bytes);
    const Tensor* tensor = part != nullptr ? ArrayOf(*part) : nullptr;
    if (tensor == nullptr || (!found.empty() && tensor->dtype() != found[0].dtype()))
      return DataLoss(path, ": '", key, "': its part '", name->bytes, "' is missing");
    used->insert(name->bytes);
    found.push_back(*tensor);
    bytes += tensor->bytes();
  }
  Tensor whole = Tensor::Empty(found.empty() ? DType::kF32 : found[0].dtype(), shape);
  if (!whole.initialized()) return ResourceExhausted(path, ": no memory for '", key, "'");
  if (whole.bytes() != bytes)
    return DataLoss(path, ": '", key, "' of shape ", shape.ToString(), " should have ",
                    whole.bytes(), " bytes; its parts have ", bytes);
  auto* to = static_cast<char*>(whole.mutable_raw());
  for (const Tensor& part : found) {
    std::memcpy(to, part.raw(), part.bytes());
    to += part.bytes();
  }
  return whole;
}

Result<NamedTensors> CollectPickled(const PickleObject& state, const std::string& path) {
  if (state.kind != Kind::kDict)
    return InvalidArgument(path, ": the pickle holds no dict of arrays");
  const PickleObject *names = state.Get(kNames), *big = state.Get(kParts);
  NamedTensors tensors;
  std::set<std::string_view> used;
  for (size_t i = 0; big != nullptr && i + 1 < big->items.size(); i += 2) {
    const std::string_view key = big->items[i]->bytes;
    HEDDLE_ASSIGN_OR_RETURN(Tensor whole, Join(state, key, *big->items[i + 1], path, &used));
    tensors.emplace_back(VariableName(names, key), std::move(whole));
  }
  for (size_t i = 0; i + 1 < state.items.size(); i += 2) {
    const PickleObject &key = *state.items[i], &value = *state.items[i + 1];
    const Tensor* tensor = ArrayOf(value);
    // Entries that are no arrays, such as those of a learning rate scheduler, are skipped.
    if (key.kind != Kind::kText || tensor == nullptr || used.contains(key.bytes)) continue;
    tensors.emplace_back(VariableName(names, key.bytes), *tensor);
  }
  return tensors;
}

}  // namespace

bool paddle::LooksPickled(const formats::DataFile& file) {
  uint8_t first = 0;
  return file.size() > 0 && file.Fill(&first, 1, 0).ok() && first == 0x80;
}

Result<NamedTensors> paddle::ReadPickledTensors(const formats::DataFile& file) {
  try {
    std::string bytes(file.size(), '\0');
    HEDDLE_RETURN_IF_ERROR(file.Fill(bytes.data(), bytes.size(), 0));
    Pickle pickle;
    HEDDLE_RETURN_IF_ERROR(pickle.Parse(bytes, file.path()));
    return CollectPickled(*pickle.root(), file.path());
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(file.path(), ": no memory to read it");
  }
}

Result<NamedTensors> ReadPickledTensors(const std::string& path) {
  HEDDLE_ASSIGN_OR_RETURN(const auto file, formats::DataFile::OpenOrRead(path));
  return paddle::ReadPickledTensors(*file);
}

}  // namespace heddle
