#include "tools/values/sequences.h"

#include <algorithm>
#include <cstring>

#include "tools/values/values.h"

namespace heddle::tools {
namespace {

Status Wrong(const std::string& why) { return Status(StatusCode::kInvalidArgument, why); }

Result<std::vector<size_t>> Numbers(const Tensor& t, const std::string& where) {
  if (t.rank() != 1 || (t.dtype() != DType::kI64 && t.dtype() != DType::kI32))
    return Wrong(where + ": sequence offsets must be int64 along one axis, not " +
                 std::string(Name(t.dtype())) + " " + t.shape().ToString());
  std::vector<size_t> numbers;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const int64_t x = t.dtype() == DType::kI64 ? t.data<int64_t>()[i] : t.data<int32_t>()[i];
    if (x < 0) return Wrong(where + ": offset " + std::to_string(x) + " is negative");
    numbers.push_back(static_cast<size_t>(x));
  }
  return numbers;
}

// The array of that name is taken out of `arrays`; false when there is none.
bool Take(const std::string& name, NamedTensors* arrays, Tensor* out) {
  const auto at = std::find_if(arrays->begin(), arrays->end(),
                               [&](const auto& array) { return array.first == name; });
  if (at == arrays->end()) return false;
  *out = std::move(at->second);
  arrays->erase(at);
  return true;
}

Status CheckNested(const LoD& lod, int64_t rows, const std::string& where) {
  for (size_t l = 0; l < lod.size(); ++l) {
    const size_t inner = l + 1 < lod.size() ? lod[l + 1].size() - 1 : static_cast<size_t>(rows);
    if (lod[l].back() != inner)
      return Wrong(where + ": the sequence offsets of level " + std::to_string(l) + " end with " +
                   std::to_string(lod[l].back()) + "; there are " + std::to_string(inner) +
                   (l + 1 < lod.size() ? " sequences in the next level" : " rows"));
  }
  return Status::Ok();
}

}  // namespace

Status AttachOffsets(const std::string& path, NamedTensors* arrays) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : *arrays) names.push_back(name);
  for (const std::string& name : names) {
    const std::string where = path + ": array '" + name + "'";
    LoD lod;
    Tensor level;
    for (std::string key = name + ".lod"; Take(key, arrays, &level);
         key = name + ".lod." + std::to_string(lod.size())) {
      HEDDLE_ASSIGN_OR_RETURN(auto numbers, Numbers(level, path + ": array '" + key + "'"));
      lod.push_back(std::move(numbers));
    }
    if (lod.empty()) continue;
    // NAME.lod may have been the offsets of another array, and have offsets of its own.
    const auto array = std::find_if(arrays->begin(), arrays->end(),
                                    [&](const auto& a) { return a.first == name; });
    if (array == arrays->end()) return Wrong(where + ": offsets cannot have offsets of their own");
    if (array->second.rank() == 0) return Wrong(where + " has no rows that offsets could count");
    const Status offsets = CheckOffsets(lod);
    if (!offsets.ok()) return Wrong(where + ": " + offsets.message());
    HEDDLE_RETURN_IF_ERROR(CheckNested(lod, array->second.dim(0), where));
    array->second.set_lod(std::move(lod));
  }
  return Status::Ok();
}

Tensor GatherRows(const Tensor& t, const int64_t* rows, int64_t count) {
  Shape shape = t.shape();
  shape[0] = count;
  Tensor out = Tensor::Empty(t.dtype(), shape);
  if (!out.initialized()) return out;
  const size_t bytes = t.dim(0) > 0 ? t.bytes() / static_cast<size_t>(t.dim(0)) : 0;
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out.mutable_data<char>() + bytes * static_cast<size_t>(i),
                t.data<char>() + bytes * static_cast<size_t>(rows[i]), bytes);
  return out;
}

Tensor TakeSequences(const Tensor& t, std::vector<int64_t> sequences, bool keep_outermost) {
  LoD lod;
  std::vector<int64_t> at = std::move(sequences);
  for (const auto& level : t.lod()) {
    std::vector<size_t> offsets{0};
    std::vector<int64_t> inner;
    for (const int64_t i : at) {
      const auto k = static_cast<size_t>(i);
      for (size_t item = level[k]; item < level[k + 1]; ++item)
        inner.push_back(static_cast<int64_t>(item));
      offsets.push_back(inner.size());
    }
    lod.push_back(std::move(offsets));
    at.swap(inner);
  }
  if (!keep_outermost) lod.erase(lod.begin());
  Tensor out = GatherRows(t, at.data(), std::ssize(at));
  if (out.initialized() && !lod.empty()) out.set_lod(std::move(lod));
  return out;
}

}  // namespace heddle::tools
