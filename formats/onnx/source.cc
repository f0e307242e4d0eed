#include "formats/onnx/source.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "formats/onnx/files/external_data.h"
#include "formats/onnx/format.h"
#include "formats/onnx/functions/library.h"
#include "formats/other_kinds.h"
#include "formats/wire_fields.h"
#include "heddle/bounds.h"

namespace heddle::onnx {
namespace {

using formats::DataFile;
using wire::Field;
using wire::Fields;

// Tensors of fewer bytes are read at once and stay in the skeleton.
constexpr size_t kLeastLater = formats::FileTensor::kLeastBytes;

// Kinds of messages on the way from a model to its tensors.
enum class Part : uint8_t {
  kModel,
  kGraph,
  kNode,
  kConstant,  // a node whose tensor is a parameter
  kAttribute,
  kValue,  // a Constant's attribute
  kFunction,
  kTensor,
  kOther
};

Part Inside(Part kind, uint32_t field) {
  switch (kind) {
    case Part::kModel:
      return field == 7 ? Part::kGraph : field == 25 ? Part::kFunction : Part::kOther;
    case Part::kGraph:
      return field == 1 ? Part::kNode : field == 5 ? Part::kTensor : Part::kOther;
    case Part::kFunction:
      return field == 7 ? Part::kNode : Part::kOther;
    case Part::kNode:
      return field == 5 ? Part::kAttribute : Part::kOther;
    case Part::kConstant:
      return field == 5 ? Part::kValue : Part::kOther;
    case Part::kAttribute:
      return field == 6 ? Part::kGraph : Part::kOther;
    case Part::kValue:
      return field == 5 ? Part::kTensor : Part::kOther;
    default:
      return Part::kOther;
  }
}

bool IsConstant(std::string_view node) {
  Fields fields(node);
  Field f;
  while (!fields.done() && fields.Next(&f))
    if (f.Is(4)) return f.payload == "Constant";
  return false;
}

// Whether a skeleton keeps a tensor's message with its contents.
bool StaysInSkeleton(std::string_view tensor) {
  if (tensor.size() < kLeastLater) return true;
  const auto data = ReadTensorData(tensor);
  return data.ok() && data->MayBeLookedInto();
}

// Copies a message without the contents of large tensors; of a damaged one, only its beginning.
// Messages nested deeper than the reader goes are copied as they are.
void Strip(std::string_view message, Part kind, int depth, std::string* out) {
  Fields fields(message);
  Field f;
  if (kind == Part::kNode && IsConstant(message)) kind = Part::kConstant;
  while (!fields.done() && fields.Next(&f)) {
    const Part inner = Inside(kind, f.number);
    if (f.wire_type != Field::kBytes || inner == Part::kOther || depth > kMostNestedGraphs) {
      out->append(f.whole);
    } else if (inner != Part::kTensor) {
      std::string stripped;
      Strip(f.payload, inner, depth + 1, &stripped);
      wire::AppendBytesField(f.number, stripped, out);
    } else if (StaysInSkeleton(f.payload)) {
      out->append(f.whole);
    } else {
      // Name, type and dimensions stay, and the contents are marked as external.
      std::string stripped;
      Fields parts(f.payload);
      Field part;
      while (!parts.done() && parts.Next(&part))
        if (part.number <= 2 || part.number == 8) stripped.append(part.whole);
      wire::AppendVarintField(14, 1, &stripped);
      wire::AppendBytesField(f.number, stripped, out);
    }
  }
}

// The file's skeleton, from which the program can be made again.
class Packed : public formats::PackedProgram {
 public:
  explicit Packed(const ir::Program& program)
      : name_(program.name), hash_(program.hash), source_(program.source) {}
  Result<std::shared_ptr<ir::Program>> Unpack() const override {
    ir::ProgramBuilder builder(name_, hash_);
    const auto& source = static_cast<const OnnxSource&>(*source_);
    HEDDLE_RETURN_IF_ERROR(LowerModel(source.skeleton(), &builder).status());
    return std::move(builder).Finish(source_);
  }

 private:
  const std::string name_;
  const uint64_t hash_;
  const std::shared_ptr<const formats::ProgramSource> source_;  // OnnxSource
};

// Whether several elements share a byte.
bool IsPacked(const formats::ElementType& element) { return element.bits > 0 && element.bits < 8; }

Result<size_t> NumberOf(std::string_view text, const char* what, const TensorData& data) {
  size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) return number;
  return InvalidArgument(data.What(), ": ", what, " '", text,
                         "' of its external data is no number");
}

}  // namespace

std::string Skeleton(std::string_view model) {
  std::string out;
  Strip(model, Part::kModel, 0, &out);
  return out;
}

const formats::Format& OnnxSource::format() const { return OnnxFormat(); }

std::string_view OnnxSource::NameOf(const std::vector<Type>& types, size_t k) {
  if (k >= types.size()) return {};
  const Type* type = &types[k];
  // For a sequence, an optional or a map, the type of what it holds: a map is fetched as its
  // values.
  while (!type->inner.empty()) type = type->inner.data();
  const std::string_view name = TypeName(type->element);
  return type->element == kUndefinedType || name == Name(StorageOf(type->element)) ? "" : name;
}

Result<FunctionLibrary> OnnxSource::Functions() const { return LibraryOf(skeleton_); }

// ModelProto.graph (7), GraphProto.initializer (5), TensorProto.dims (1) and name (8).
Result<formats::TrainingMarks> OnnxSource::Marks(const ir::Program&) const {
  formats::TrainingMarks marks;
  marks.says_trainable = true;
  Fields model(skeleton_);
  for (Field graph; !model.done() && model.Next(&graph);) {
    if (!graph.Is(7)) continue;
    Fields fields(graph.payload);
    for (Field tensor; !fields.done() && fields.Next(&tensor);) {
      if (!tensor.Is(5)) continue;
      std::string name;
      bool ranked = false;
      Fields said(tensor.payload);
      for (Field f; !said.done() && said.Next(&f);) {
        if (f.number == 1) ranked = true;
        if (f.Is(8)) name = std::string(f.payload);
      }
      if (ranked) marks.trainable.insert(name);
    }
  }
  return marks;
}

std::unique_ptr<const formats::PackedProgram> OnnxSource::Pack(const ir::Program& program) const {
  return std::make_unique<Packed>(program);
}

Result<std::shared_ptr<const OnnxSource>> OnnxSource::Make(const formats::ParseRequest& request,
                                                           Lowered lowered) {
  auto source = std::make_shared<OnnxSource>();
  const std::string_view bytes = request.bytes;
  std::shared_ptr<const DataFile> file;
  if (!request.path.empty()) file = DataFile::OpenIfIs(request.path, bytes);
  ExternalFiles external(request.folder, request.path);
  for (const Parameter& p : lowered.parameters) {
    const bool elsewhere = p.data.external && !p.made;
    HEDDLE_RETURN_IF_ERROR(elsewhere ? source->StoreExternal(p, &external)
                                     : source->Store(p, bytes, file));
  }
  source->skeleton_ = Skeleton(bytes);
  source->inputs_ = std::move(lowered.inputs);
  source->outputs_ = std::move(lowered.outputs);
  source->keys_ = std::move(lowered.keys);
  return std::shared_ptr<const OnnxSource>(std::move(source));
}

Status OnnxSource::Store(const Parameter& p, std::string_view bytes,
                         const std::shared_ptr<const DataFile>& file) {
  Stored& stored = parameters_.emplace_back();
  stored.name = p.name;
  if (p.made) {
    stored.value = Value(*p.made);
    return Status::Ok();
  }
  const std::string_view raw = p.data.raw;
  if (file == nullptr || p.data.element == nullptr || !p.data.has_raw || raw.size() < kLeastLater ||
      !(p.data.element->IsRawStorage() || IsPacked(*p.data.element))) {
    HEDDLE_ASSIGN_OR_RETURN(stored.value, MakeValue(p.data));
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, p.data.Count());
  const size_t wanted = p.data.element->RawBytes(count);
  if (wanted != raw.size())
    return InvalidArgument(p.data.What(), ": ", raw.size(), " bytes are stored, ", wanted,
                           " are expected");
  stored.in_file = {.file = file,
                    .offset = static_cast<size_t>(raw.data() - bytes.data()),
                    .bytes = raw.size(),
                    .element = p.data.element,
                    .shape = Shape(std::span<const int64_t>(p.data.dims))};
  return Status::Ok();
}

Status OnnxSource::StoreExternal(const Parameter& p, ExternalFiles* files) {
  if (p.data.element == nullptr || p.data.element->bits == 0)
    return MakeTensor(p.data).status();  // its status says why
  HEDDLE_ASSIGN_OR_RETURN(const std::shared_ptr<const DataFile> data, files->Open(p.data));
  Stored& stored = parameters_.emplace_back();
  stored.name = p.name;
  formats::FileTensor& in_file = stored.in_file;
  in_file.file = data;
  in_file.element = p.data.element;
  HEDDLE_ASSIGN_OR_RETURN(const int64_t count, p.data.Count());
  in_file.bytes = p.data.element->RawBytes(count);
  if (!p.data.offset.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(in_file.offset, NumberOf(p.data.offset, "offset", p.data));
  }
  if (!p.data.length.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(const size_t length, NumberOf(p.data.length, "length", p.data));
    if (length != in_file.bytes)
      return InvalidArgument(p.data.What(), ": its external data has ", length, " bytes, ",
                             in_file.bytes, " are expected");
  }
  if (in_file.offset > data->size() || in_file.bytes > data->size() - in_file.offset)
    return DataLoss(p.data.What(), ": ", in_file.bytes, " bytes from byte ", in_file.offset, " of ",
                    data->path(), " are expected, which has ", data->size(),
                    formats::OtherKindNote(*data));
  in_file.shape = Shape(std::span<const int64_t>(p.data.dims));
  return Status::Ok();
}

Status OnnxSource::SetParameters(Scope& scope, ParameterReading reading) const {
  std::vector<Value> values;
  for (const Stored& stored : parameters_) {
    if (stored.in_file.file == nullptr) {
      values.push_back(stored.value);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Tensor t,
                            stored.in_file.Read(reading, StrCat("parameter '", stored.name, "'")));
    values.emplace_back(std::move(t));
  }
  for (size_t i = 0; i < values.size(); ++i) scope.Set(parameters_[i].name, std::move(values[i]));
  return Status::Ok();
}

}  // namespace heddle::onnx
