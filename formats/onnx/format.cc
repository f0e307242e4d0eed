#include "formats/onnx/format.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "formats/onnx/source.h"
#include "formats/paddle/format.h"
#include "formats/paddle/params.h"
#include "formats/wire_fields.h"

namespace heddle::onnx {
namespace {

std::string Label(const void* source) {
  if (source == nullptr) return "output of the graph";
  const Node& node = *static_cast<const Node*>(source);
  static constexpr size_t kMostShown = 32;
  const auto list = [](const std::vector<std::string_view>& names) {
    std::string text;
    for (size_t i = 0; i < std::min(names.size(), kMostShown); ++i)
      text += StrCat(i == 0 ? "" : ", ", names[i].empty() ? "-" : names[i]);
    if (names.size() > kMostShown) text += StrCat(", ... (", names.size(), " in all)");
    return text;
  };
  std::string text = node.FullName();
  if (!node.name.empty()) text += StrCat(" '", node.name, "'");
  return StrCat(text, " of ", list(node.inputs), " -> ", list(node.outputs));
}

class Onnx : public formats::Format {
 public:
  std::string_view name() const override { return "onnx"; }
  Status WriteTuned(const formats::TunedModel& tuned, const std::string& directory) const override {
    return onnx::WriteTuned(tuned, directory);
  }

  // A ModelProto begins with its ir_version (field 1, a varint), and goes on with another field of
  // ModelProto.
  bool Recognises(std::string_view bytes) const override {
    uint64_t version = 0, tag = 0;
    if (!bytes.starts_with('\x08')) return false;
    bytes.remove_prefix(1);
    if (!wire::TakeVarint(&bytes, &version) || version == 0 || version > 1000) return false;
    if (bytes.empty()) return true;
    if (!wire::TakeVarint(&bytes, &tag)) return false;
    static constexpr uint64_t kMessages[] = {2, 3, 4, 6, 7, 8, 14, 20, 25, 26};
    return tag == 5 << 3 || std::any_of(std::begin(kMessages), std::end(kMessages),
                                        [&](uint64_t field) { return tag == (field << 3 | 2); });
  }
  uint64_t Hash(std::string_view bytes) const override {
    return Format::Hash(bytes.size() < FileBytes::kLeastMapped ? bytes : Skeleton(bytes));
  }
  Result<std::shared_ptr<const formats::ProgramSource>> Parse(
      const formats::ParseRequest& request) const override {
    auto lowered = LowerModel(request.bytes, &request.builder);
    if (!lowered.ok()) return request.InFile(lowered.status());
    auto source = OnnxSource::Make(request, *std::move(lowered));
    if (!source.ok()) return request.InFile(source.status());
    return std::shared_ptr<const formats::ProgramSource>(*std::move(source));
  }
  bool CanWrite() const override { return false; }
  Result<std::string> Write(const ir::Program&) const override {
    return Unimplemented("heddle does not write ONNX models");
  }

  std::vector<std::string> FileNames() const override { return {"model.onnx"}; }
  std::string Extension() const override { return ".onnx"; }
  std::string DefaultParameters(const std::string& program_file) const override {
    return program_file;
  }
  // Loads the model's own parameters, or another file's in Paddle's layout.
  Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                        ParameterReading reading) const override {
    if (path == program.ir().name || path.empty())
      return static_cast<const OnnxSource&>(*program.ir().source).SetParameters(scope, reading);
    return paddle::LoadParameters(program, path, scope, reading, /*cast=*/true);
  }
  Status SetOwnParameters(const Program& program, Scope& scope) const override {
    return static_cast<const OnnxSource&>(*program.ir().source)
        .SetParameters(scope, ParameterReading::kNow);
  }
  Status ParseParameters(const Program& program, std::string_view bytes,
                         Scope& scope) const override {
    return paddle::ParseParameters(program, bytes, scope, /*cast=*/true);
  }
};

}  // namespace

Result<Lowered> LowerModel(std::string_view bytes, ir::ProgramBuilder* builder) {
  HEDDLE_ASSIGN_OR_RETURN(const Model model, ReadModel(bytes));
  Lowering lowering(model, builder);
  HEDDLE_ASSIGN_OR_RETURN(Lowered lowered, lowering.Run());
  if (builder->ok()) {
    formats::Emit(lowered.draft, &Label, builder);
  } else {  // Finish() reports the error
    builder->ReserveBlocks(1);
    builder->AddBlock(-1, -1);
  }
  return lowered;
}

const formats::Format& OnnxFormat() {
  static const Onnx format;
  return format;
}

}  // namespace heddle::onnx
