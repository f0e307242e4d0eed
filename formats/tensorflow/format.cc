#include "formats/tensorflow/format.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "formats/paddle/format.h"
#include "formats/paddle/params.h"
#include "formats/tensorflow/source.h"
#include "formats/tensorflow/text/form.h"

namespace heddle::tensorflow {
namespace {

namespace fs = std::filesystem;

std::string Label(const void* source) {
  if (source == nullptr) return "output of the graph";
  const Node& node = *static_cast<const Node*>(source);
  std::string inputs;
  // Bounded, since a node may become as many operators as it has inputs, each with this text.
  constexpr size_t kMostShown = 16;
  for (size_t i = 0; i < std::min(node.inputs.size(), kMostShown); ++i)
    inputs += StrCat(i == 0 ? "" : ", ", node.inputs[i]);
  if (node.inputs.size() > kMostShown) inputs += ", ...";
  return StrCat(node.op, " '", node.name, "' of ", inputs);
}

class Tensorflow : public formats::Format {
 public:
  std::string_view name() const override { return "tensorflow"; }
  Status WriteTuned(const formats::TunedModel& tuned, const std::string& directory) const override {
    const auto* source = dynamic_cast<const TensorflowSource*>(tuned.program.ir().source.get());
    if (source == nullptr) return Unimplemented("the program came from no TensorFlow graph");
    return source->WriteTuned(tuned, directory);
  }

  bool Recognises(std::string_view bytes) const override {
    return LooksLikeGraph(bytes) || LooksLikeSavedModel(bytes) || LooksLikeMetaGraph(bytes) ||
           LooksLikeText(bytes);
  }
  uint64_t Hash(std::string_view bytes) const override {
    const bool whole = bytes.size() < FileBytes::kLeastMapped || LooksLikeText(bytes);
    return Format::Hash(whole ? bytes : Skeleton(bytes));
  }
  Result<std::shared_ptr<const formats::ProgramSource>> Parse(
      const formats::ParseRequest& request) const override {
    formats::ParseRequest binary = request;
    std::string made;
    if (const Status status = MakeBinary(&binary.bytes, &made); !status.ok())
      return request.InFile(status);
    // a file in text form does not have the contents in raw form.
    if (!made.empty()) binary.path.clear();
    auto lowered = LowerBytes(binary.bytes, request.part, &request.builder);
    if (!lowered.ok()) return request.InFile(lowered.status());
    if (!request.builder.ok()) return std::shared_ptr<const formats::ProgramSource>();
    auto source = TensorflowSource::Make(binary, *std::move(lowered));
    if (!source.ok()) return request.InFile(source.status());
    return std::shared_ptr<const formats::ProgramSource>(*std::move(source));
  }
  bool HasParts() const override { return true; }
  Result<std::vector<std::string>> Signatures(std::string_view bytes) const override {
    std::string binary;
    HEDDLE_RETURN_IF_ERROR(MakeBinary(&bytes, &binary));
    HEDDLE_ASSIGN_OR_RETURN(const Model model, ReadModel(bytes));
    std::vector<std::string> keys;
    for (const Signature& s : model.signatures)
      if (!s.key.starts_with("__")) keys.emplace_back(s.key);
    std::sort(keys.begin(), keys.end());
    return keys;
  }
  bool CanWrite() const override { return false; }
  Result<std::string> Write(const ir::Program&) const override {
    return Unimplemented("heddle does not write TensorFlow graphs");
  }

  std::vector<std::string> FileNames() const override {
    return {"saved_model.pb", "saved_model.pbtxt"};
  }
  std::string Extension() const override { return ".pb"; }
  // The meta graph of a checkpoint: of the newest one, or of the only one.
  std::string ProgramIn(const std::string& directory) const override {
    if (const std::string prefix = NewestCheckpoint(directory); !prefix.empty()) {
      std::string meta = prefix + std::string(kMetaEnding);
      if (IsRegularFile(meta)) return meta;
    }
    const auto names = NamesIn(directory);
    std::string found;
    for (const std::string& name : names.ok() ? *names : std::vector<std::string>()) {
      if (!name.ends_with(kMetaEnding)) continue;
      if (!found.empty()) return {};
      found = (fs::path(directory) / name).string();
    }
    return found;
  }
  std::string DefaultParameters(const std::string& program_file) const override {
    return program_file;
  }
  bool HasParameters(const std::string& path) const override {
    return Format::HasParameters(path) || !CheckpointAt(path).empty();
  }
  // Loads the graph's own parameters, with the variables of another checkpoint if `path` names one,
  // or another file's in Paddle's layout.
  Status LoadParameters(const Program& program, const std::string& path, Scope& scope,
                        ParameterReading reading) const override {
    if (path == program.ir().name || path.empty())
      return SourceOf(program).SetParameters(scope, reading);
    if (const std::string prefix = CheckpointAt(path); !prefix.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(const auto bundle, Bundle::Open(prefix));
      return SourceOf(program).SetParameters(scope, reading, bundle.get());
    }
    return paddle::LoadParameters(program, path, scope, reading, /*cast=*/true);
  }
  Status SetOwnParameters(const Program& program, Scope& scope) const override {
    return SourceOf(program).SetParameters(scope, ParameterReading::kNow);
  }
  Status ParseParameters(const Program& program, std::string_view bytes,
                         Scope& scope) const override {
    return paddle::ParseParameters(program, bytes, scope, /*cast=*/true);
  }

 private:
  static const TensorflowSource& SourceOf(const Program& program) {
    return static_cast<const TensorflowSource&>(*program.ir().source);
  }
  // If the bytes are in text form, converts them to `binary` and lets them refer to it.
  static Status MakeBinary(std::string_view* bytes, std::string* binary) {
    if (!LooksLikeText(*bytes)) return Status::Ok();
    HEDDLE_ASSIGN_OR_RETURN(*binary, BinaryFromText(*bytes));
    *bytes = *binary;
    return Status::Ok();
  }
};

}  // namespace

Result<Lowered> LowerBytes(std::string_view bytes, const ProgramPart& part,
                           ir::ProgramBuilder* builder) {
  HEDDLE_ASSIGN_OR_RETURN(const Model model, ReadModel(bytes, part.signature));
  // Each reading but the last finds assumptions about loops and lists that do not hold.
  Revisions revisions;
  const size_t problems = builder->problems();
  Result<Lowered> read = Lowered();
  do {
    builder->ForgetProblems(problems);
    Lowering lowering(model, part, builder, &revisions);
    read = lowering.Run();
  } while (revisions.TakeNeeded());
  HEDDLE_ASSIGN_OR_RETURN(Lowered lowered, std::move(read));
  if (builder->ok()) {
    formats::Emit(lowered.draft, &Label, builder);
  } else {  // Finish() reports the errors
    builder->ReserveBlocks(1);
    builder->AddBlock(-1, -1);
  }
  return lowered;
}

const formats::Format& TensorflowFormat() {
  static const Tensorflow format;
  return format;
}

}  // namespace heddle::tensorflow
