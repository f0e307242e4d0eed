#include "offload/refused.h"

#include <algorithm>

#include "core/error.h"
#include "formats/wire_fields.h"
#include "offload/group_description.h"

namespace heddle::offload {
namespace {

class Asking {
 public:
  Asking(EngineLibrary& engine, const Group& group, OnnxWriter* onnx)
      : engine_(engine), group_(group), onnx_(engine.wants_onnx() ? onnx : nullptr) {}

  // Operators first .. last - 1.
  void Ask(size_t first, size_t last) {
    if (last - first > 1 && !engine_.takes_many()) return AskParts(first, last, last - first);
    const GroupDescription part(group_, {first, last}, onnx_);
    const Status takes = engine_.Takes(part);
    if (takes.ok()) return;
    if (last - first == 1) {
      certain_ = certain_ && takes.code() == StatusCode::kUnimplemented;
      std::string why = takes.message();
      if (!part.onnx_status().ok()) why = StrCat(why, ": ", part.onnx_status().message());
      refused_.emplace_back(first, std::move(why));
      return;
    }
    AskParts(first, last, kParts);
  }
  bool certain() const { return certain_; }
  Refusals refused() && { return std::move(refused_); }

 private:
  // Many, since each level writes all parameters anew.
  static constexpr size_t kParts = 16;

  void AskParts(size_t first, size_t last, size_t parts) {
    const size_t count = last - first;
    parts = std::min(parts, count);
    for (size_t k = 0; k < parts; ++k)
      Ask(first + count * k / parts, first + count * (k + 1) / parts);
  }

  EngineLibrary& engine_;
  const Group& group_;
  OnnxWriter* const onnx_;
  bool certain_ = true;
  Refusals refused_;
};

}  // namespace

Refusals RefusedBy(EngineLibrary& engine, const Group& group, OnnxWriter* onnx, bool* certain) {
  Asking asking(engine, group, onnx);
  asking.Ask(0, group.program->blocks[0].ops.size());
  *certain = asking.certain();
  return std::move(asking).refused();
}

Refusals RefusedBy(EngineLibrary& engine, const Group& group) {
  OnnxWriter onnx(*group.program, group.parameters);
  bool certain = true;
  return RefusedBy(engine, group, &onnx, &certain);
}

std::string BytesOf(const Refusals& refusals) {
  std::string bytes;
  for (const auto& [at, why] : refusals) {
    wire::AppendVarint(at, &bytes);
    wire::AppendVarint(why.size(), &bytes);
    bytes += why;
  }
  return bytes;
}

std::optional<Refusals> RefusalsOf(std::string_view bytes, size_t operators) {
  Refusals refusals;
  size_t from = 0;  // positions ascend
  while (!bytes.empty()) {
    uint64_t at = 0, count = 0;
    if (!wire::TakeVarint(&bytes, &at) || !wire::TakeVarint(&bytes, &count) || at < from ||
        at >= operators || count > bytes.size())
      return std::nullopt;
    refusals.emplace_back(at, bytes.substr(0, count));
    bytes.remove_prefix(count);
    from = at + 1;
  }
  return refusals;
}

}  // namespace heddle::offload
