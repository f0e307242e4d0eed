// ProgramDescs put together by hand.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/wire_fields.h"

namespace heddle::partition {

using Slots = std::vector<std::pair<std::string, std::vector<std::string>>>;

inline std::string SlotsText(uint32_t field, const Slots& slots) {
  std::string text;
  for (const auto& [slot, names] : slots) {
    std::string one;
    wire::AppendBytesField(1, slot, &one);
    for (const std::string& name : names) wire::AppendBytesField(2, name, &one);
    wire::AppendBytesField(field, one, &text);
  }
  return text;
}

// OpDesc.Attr of an integer type (AttrType 0, 6 or 8), of a list of integers (3), a float (1) or a
// text (2).
inline std::string AttrText(const std::string& name, uint32_t type,
                            const std::vector<int64_t>& integers) {
  constexpr std::pair<uint32_t, uint32_t> kFields[] = {{0, 3}, {3, 6}, {6, 10}, {8, 12}};
  std::string text;
  wire::AppendBytesField(1, name, &text);
  wire::AppendVarintField(2, type, &text);
  for (const auto& [t, field] : kFields)
    if (t == type)
      for (const int64_t value : integers)
        wire::AppendVarintField(field, static_cast<uint64_t>(value), &text);
  return text;
}
inline std::string TextAttr(const std::string& name, const std::string& value) {
  std::string text;
  wire::AppendBytesField(1, name, &text);
  wire::AppendVarintField(2, 2, &text);
  wire::AppendBytesField(5, value, &text);
  return text;
}

inline std::string OpText(const std::string& type, const Slots& in, const Slots& out,
                          const std::vector<std::string>& attrs = {}) {
  std::string text = SlotsText(1, in) + SlotsText(2, out);
  wire::AppendBytesField(3, type, &text);
  for (const std::string& attr : attrs) wire::AppendBytesField(4, attr, &text);
  return text;
}

inline constexpr uint64_t kFloat32 = 5, kInt64 = 3;  // VarType.Type

inline std::string VarText(const std::string& name, const std::vector<int64_t>& dims,
                           bool persistable = false, uint64_t dtype = kFloat32) {
  std::string tensor, lod, type, text;
  wire::AppendVarintField(1, dtype, &tensor);
  for (const int64_t dim : dims) wire::AppendVarintField(2, static_cast<uint64_t>(dim), &tensor);
  wire::AppendBytesField(1, tensor, &lod);
  wire::AppendVarintField(1, 7, &type);
  wire::AppendBytesField(3, lod, &type);
  wire::AppendBytesField(1, name, &text);
  wire::AppendBytesField(2, type, &text);
  if (persistable) wire::AppendVarintField(3, 1, &text);
  return text;
}

inline std::string HolderVarText(const std::string& name, uint64_t kind) {
  std::string type, text;
  wire::AppendVarintField(1, kind, &type);
  wire::AppendBytesField(1, name, &text);
  wire::AppendBytesField(2, type, &text);
  wire::AppendVarintField(3, 1, &text);
  return text;
}

// Blocks that are built operator by operator; the first is block 0.
class ProgramText {
 public:
  explicit ProgramText(size_t blocks = 1) : blocks_(blocks), parents_(blocks, 0) {
    parents_[0] = -1;
    Var(HolderVarText("feed", 9));
    Var(HolderVarText("fetch", 10));
  }
  void Var(const std::string& text, size_t block = 0) {
    wire::AppendBytesField(3, text, &blocks_[block].vars);
  }
  void Tensor(const std::string& name, const std::vector<int64_t>& dims = {1, 4, 8, 8}) {
    Var(VarText(name, dims));
  }
  void Parameter(const std::string& name, const std::vector<int64_t>& dims) {
    Var(VarText(name, dims, /*persistable=*/true));
  }
  // Its index.
  int Op(const std::string& type, const Slots& in, const Slots& out,
         const std::vector<std::string>& attrs = {}, size_t block = 0) {
    wire::AppendBytesField(4, OpText(type, in, out, attrs), &blocks_[block].ops);
    return blocks_[block].count++;
  }
  int Feed(const std::string& name) {
    Tensor(name);
    return Op("feed", {{"X", {"feed"}}}, {{"Out", {name}}}, {AttrText("col", 0, {feeds_++})});
  }
  int Fetch(const std::string& name) {
    return Op("fetch", {{"X", {name}}}, {{"Out", {"fetch"}}}, {AttrText("col", 0, {fetches_++})});
  }
  std::string Text() const {
    std::string text;
    for (size_t b = 0; b < blocks_.size(); ++b) {
      std::string block;
      wire::AppendVarintField(1, b, &block);
      wire::AppendVarintField(2, static_cast<uint64_t>(parents_[b]), &block);
      wire::AppendBytesField(1, block + blocks_[b].vars + blocks_[b].ops, &text);
    }
    return text;
  }

 private:
  struct BlockText {
    std::string vars, ops;
    int count = 0;
  };
  std::vector<BlockText> blocks_;
  std::vector<int64_t> parents_;
  int64_t feeds_ = 0, fetches_ = 0;
};

}  // namespace heddle::partition
