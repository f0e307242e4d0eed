// Reads checkpoints in the layout before bundles: a table that has a description of all tensors,
// then their slices, each with its values in a message.
#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "formats/tensorflow/bundle/bundle.h"
#include "formats/tensorflow/tensor_data.h"
#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

namespace fs = std::filesystem;
using wire::Field;
using wire::Fields;

// Fields of SavedTensorSlices: the description, and a slice.
constexpr uint32_t kMeta = 1, kSlice = 2;

}  // namespace

std::vector<std::string> Bundle::OldFiles(const std::string& prefix) {
  if (IsRegularFile(prefix + ".index")) return {};
  if (IsRegularFile(prefix)) return {prefix};
  const fs::path path(prefix);
  const std::string folder = path.has_parent_path() ? path.parent_path().string() : ".";
  const std::string begin = path.filename().string() + "-";
  const auto names = NamesIn(folder);
  std::vector<std::string> found;
  constexpr size_t kNumbers = 14;  // length of "00000-of-00001"
  for (const std::string& name : names.ok() ? *names : std::vector<std::string>())
    if (name.starts_with(begin) && name.size() == begin.size() + kNumbers &&
        name.find("-of-", begin.size()) == begin.size() + 5)
      found.push_back((fs::path(folder) / name).string());
  std::sort(found.begin(), found.end());
  return found;
}

Status Bundle::AddOldEntry(std::string_view message) {
  const auto damaged = [&] { return DataLoss(name_, ": the description of a tensor is damaged"); };
  std::string name;
  Entry entry;
  Fields fields(message);
  Field f;
  while (!fields.done()) {
    if (!fields.Next(&f)) return damaged();
    if (f.Is(1)) name = std::string(f.payload);
    if (f.Is(2) && !ReadDims(f.payload, &entry.dims)) return damaged();
    if (f.IsVarint(3)) entry.type = static_cast<int>(f.integer());
    if (f.Is(4) && !ReadSlice(f.payload, &entry.slices.emplace_back())) return damaged();
  }
  // Further slices may be in another file.
  const auto [found, is_new] = entries_.emplace(name, entry);
  if (!is_new)
    found->second.slices.insert(found->second.slices.end(), entry.slices.begin(),
                                entry.slices.end());
  return Status::Ok();
}

Status Bundle::AddOldSlice(std::string_view message) {
  std::string name;
  std::string_view data;
  Slice slice;
  Fields fields(message);
  Field f;
  while (!fields.done()) {
    if (!fields.Next(&f) || (f.Is(2) && !ReadSlice(f.payload, &slice)))
      return DataLoss(name_, ": a slice of '", name, "' is damaged");
    if (f.Is(1)) name = std::string(f.payload);
    if (f.Is(3)) data = f.payload;
  }
  const auto whole = entries_.find(name);
  if (whole == entries_.end() || whole->second.dims.size() != slice.length.size())
    return DataLoss(name_, ": a slice of '", name, "' is of no tensor that the file describes");
  // A slice's message has neither type nor shape; the description has them.
  Entry entry;
  entry.type = whole->second.type;
  for (size_t i = 0; i < slice.length.size(); ++i)
    entry.dims.push_back(slice.length[i] < 0 ? whole->second.dims[i] : slice.length[i]);
  std::string typed;
  wire::AppendVarintField(1, static_cast<uint64_t>(entry.type), &typed);
  typed += data;
  HEDDLE_ASSIGN_OR_RETURN(TensorData values, ReadTensorData(typed));
  values.dims = entry.dims;
  auto made = MakeValue(values);
  if (!made.ok())
    return Status(made.status().code(), StrCat(name_, ": '", name, "': ", made.status().message()));
  entry.made = *std::move(made);
  entries_.insert_or_assign(SliceKey(name, slice), std::move(entry));
  return Status::Ok();
}

Status Bundle::ReadOldFile(const std::string& path) {
  name_ = path;
  HEDDLE_ASSIGN_OR_RETURN(const FileBytes bytes, FileBytes::Read(path));
  std::deque<std::string> uncompressed;
  std::vector<std::pair<std::string, std::string_view>> entries;
  HEDDLE_RETURN_IF_ERROR(ReadTable(bytes.view(), &uncompressed, &entries));
  const auto damaged = [&] { return DataLoss(name_, ": an entry of the checkpoint is damaged"); };
  for (size_t i = 0; i < entries.size(); ++i) {
    Fields fields(entries[i].second);
    Field f;
    while (!fields.done()) {
      if (!fields.Next(&f)) return damaged();
      if (i > 0 && f.Is(kSlice)) HEDDLE_RETURN_IF_ERROR(AddOldSlice(f.payload));
      if (i > 0 || !f.Is(kMeta)) continue;
      Fields tensors(f.payload);
      Field t;
      while (!tensors.done()) {
        if (!tensors.Next(&t)) return damaged();
        if (t.Is(1)) HEDDLE_RETURN_IF_ERROR(AddOldEntry(t.payload));
      }
    }
  }
  return Status::Ok();
}

}  // namespace heddle::tensorflow
