#include "offload/refused.h"

#include <algorithm>

#include "core/error.h"
#include "offload/group_description.h"

namespace heddle::offload {
namespace {

class Asking {
 public:
  Asking(EngineLibrary& engine, const Group& group)
      : engine_(engine), group_(group), onnx_(*group.program, group.parameters) {}

  // Operators first .. last - 1.
  void Ask(size_t first, size_t last) {
    if (last - first > 1 && !engine_.takes_many()) return AskParts(first, last, last - first);
    const GroupDescription part(group_, {first, last}, engine_.wants_onnx() ? &onnx_ : nullptr);
    const Status takes = engine_.Takes(part);
    if (takes.ok()) return;
    if (last - first == 1) {
      std::string why = takes.message();
      if (!part.onnx_status().ok()) why = StrCat(why, ": ", part.onnx_status().message());
      refused_.emplace_back(first, std::move(why));
      return;
    }
    AskParts(first, last, kParts);
  }
  std::vector<std::pair<size_t, std::string>> refused() && { return std::move(refused_); }

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
  OnnxWriter onnx_;
  std::vector<std::pair<size_t, std::string>> refused_;
};

}  // namespace

std::vector<std::pair<size_t, std::string>> RefusedBy(EngineLibrary& engine, const Group& group) {
  Asking asking(engine, group);
  asking.Ask(0, group.program->blocks[0].ops.size());
  return std::move(asking).refused();
}

}  // namespace heddle::offload
