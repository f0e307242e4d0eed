#include "formats/tensorflow/source.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/file.h"
#include "formats/leveldb_table.h"
#include "formats/model_folder.h"
#include "formats/tensorflow/files/reshaped.h"
#include "formats/tensorflow/format.h"
#include "formats/tensorflow/functions/library.h"
#include "formats/wire_fields.h"

namespace heddle::tensorflow {
namespace {

namespace fs = std::filesystem;
using formats::DataFile;
using wire::Field;
using wire::Fields;

// Tensors of fewer bytes are read at once and stay in the skeleton.
constexpr size_t kLeastConstLater = formats::FileTensor::kLeastBytes;

// Kinds of messages on the way from a file to its tensors.
enum class Part : uint8_t {
  kSavedModel,
  kMetaGraph,
  kGraph,
  kLibrary,
  kFunction,
  kNode,
  kEntry,  // an attribute of a node
  kAttribute,
  kTensor,
  kOther
};

Part Inside(Part kind, uint32_t field) {
  switch (kind) {
    case Part::kSavedModel:
      return field == 2 ? Part::kMetaGraph : Part::kOther;
    case Part::kMetaGraph:
      return field == 2 ? Part::kGraph : Part::kOther;
    case Part::kGraph:
      return field == 1 ? Part::kNode : field == 2 ? Part::kLibrary : Part::kOther;
    case Part::kLibrary:
      return field == 1 ? Part::kFunction : Part::kOther;
    case Part::kFunction:
      return field == 3 ? Part::kNode : Part::kOther;
    case Part::kNode:
      return field == 5 ? Part::kEntry : Part::kOther;
    case Part::kEntry:
      return field == 2 ? Part::kAttribute : Part::kOther;
    case Part::kAttribute:
      return field == 8 ? Part::kTensor : Part::kOther;
    default:
      return Part::kOther;
  }
}

bool MayBeLookedInto(std::string_view tensor) {
  const auto data = ReadTensorData(tensor);
  return data.ok() && data->MayBeLookedInto();
}

// Copies a message without the contents of large tensors; of a damaged one, only its beginning. A
// tensor without contents reads as zeros, which makes no difference where the reader does not look
// into it.
void Strip(std::string_view message, Part kind, std::string* out) {
  Fields fields(message);
  Field f;
  while (!fields.done() && fields.Next(&f)) {
    const Part inner = Inside(kind, f.number);
    if (kind == Part::kMetaGraph && f.number == 7) continue;  // the tree of Python objects
    if (f.wire_type != Field::kBytes || inner == Part::kOther ||
        f.payload.size() < kLeastConstLater ||
        (inner == Part::kTensor && MayBeLookedInto(f.payload))) {
      out->append(f.whole);
      continue;
    }
    std::string stripped;
    if (inner == Part::kTensor) {
      Fields parts(f.payload);
      Field part;
      while (!parts.done() && parts.Next(&part))
        if (part.number <= 2) stripped.append(part.whole);
    } else {
      Strip(f.payload, inner, &stripped);
    }
    wire::AppendBytesField(f.number, stripped, out);
  }
}

// A packed program: the file's skeleton.
class Packed : public formats::PackedProgram {
 public:
  explicit Packed(const ir::Program& program)
      : name_(program.name), hash_(program.hash), source_(program.source) {}
  Result<std::shared_ptr<ir::Program>> Unpack() const override {
    ir::ProgramBuilder builder(name_, hash_);
    const auto& source = static_cast<const TensorflowSource&>(*source_);
    HEDDLE_RETURN_IF_ERROR(LowerBytes(source.skeleton(), source.part(), &builder).status());
    return std::move(builder).Finish(source_);
  }

 private:
  const std::string name_;
  const uint64_t hash_;
  const std::shared_ptr<const formats::ProgramSource> source_;  // TensorflowSource
};

// The prefix of the files with the variables of the graph in file `path`.
std::string VariablesBeside(const std::string& path, std::string_view bytes) {
  const fs::path file(path), folder = file.parent_path();
  if (!LooksLikeMetaGraph(bytes)) return (folder / "variables" / "variables").string();
  const std::string name = file.filename().string();
  if (name.ends_with(kMetaEnding)) return path.substr(0, path.size() - kMetaEnding.size());
  // A meta graph that was renamed: the folder's checkpoint.
  const std::string beside = (folder / file.stem()).string();
  std::error_code error;
  if (fs::exists(beside + ".index", error)) return beside;
  const std::string newest = NewestCheckpoint(folder.string());
  return newest.empty() ? beside : newest;
}

// SavedModel.meta_graphs (2) has an object graph (7), whose nodes (1) may be variables (7) with
// trainable (3) and a name (6); older files list trainable variables in a collection (4), as
// VariableDefs with a name (1).
formats::TrainingMarks MarksOf(std::string_view file) {
  formats::TrainingMarks marks;
  const auto each = [](std::string_view message, uint32_t number, auto&& fn) {
    Fields fields(message);
    for (Field f; !fields.done() && fields.Next(&f);)
      if (f.Is(number)) fn(f.payload);
  };
  const auto of_variable = [&](std::string_view variable) {
    marks.says_trainable = true;
    std::string name;
    bool trainable = false;
    Fields fields(variable);
    for (Field f; !fields.done() && fields.Next(&f);) {
      if (f.IsVarint(3)) trainable = f.varint != 0;
      if (f.Is(6)) name = std::string(f.payload);
    }
    if (trainable) marks.trainable.insert(name);
  };
  const auto of_collection = [&](std::string_view entry) {
    std::string_view key;
    each(entry, 1, [&](std::string_view text) { key = text; });
    if (key != "trainable_variables") return;
    marks.says_trainable = true;
    each(entry, 2, [&](std::string_view collection) {
      each(collection, 2, [&](std::string_view bytes_list) {
        each(bytes_list, 1, [&](std::string_view variable) {
          each(variable, 1, [&](std::string_view name) {
            marks.trainable.emplace(name.substr(0, name.find(':')));
          });
        });
      });
    });
  };
  const auto of_meta_graph = [&](std::string_view meta_graph) {
    each(meta_graph, 7, [&](std::string_view objects) {
      each(objects, 1, [&](std::string_view object) { each(object, 7, of_variable); });
    });
    each(meta_graph, 4, of_collection);
  };
  if (LooksLikeSavedModel(file)) each(file, 2, of_meta_graph);
  if (LooksLikeMetaGraph(file)) of_meta_graph(file);
  return marks;
}

// Adds the table's name to an error.
Result<Value> TableOf(const std::string& name, Result<Value> table) {
  if (table.ok()) return table;
  return Status(table.status().code(),
                StrCat("hash table '", name, "': ", table.status().message()));
}

}  // namespace

std::string NewestCheckpoint(const std::string& folder) {
  auto text = ReadFile((fs::path(folder) / "checkpoint").string());
  constexpr std::string_view kField = "model_checkpoint_path:";
  const size_t at = text.ok() ? text->find(kField) : std::string::npos;
  if (at == std::string::npos) return {};
  const size_t begin = text->find('"', at + kField.size());
  const size_t end = begin == std::string::npos ? begin : text->find('"', begin + 1);
  if (end == std::string::npos) return {};
  std::string name = text->substr(begin + 1, end - begin - 1);
  name = name.substr(0, name.find("-?????"
                                  "-of-"));  // any number of files of an old checkpoint
  const fs::path named = name;
  std::error_code error;
  // An absolute path is one of the machine that wrote the file: its last part is tried too.
  for (const fs::path& prefix : {fs::path(folder) / named, fs::path(folder) / named.filename()})
    for (const char* ending : {".index", ".meta", ""})
      if (fs::is_regular_file(prefix.string() + ending, error)) return prefix.string();
  return {};
}

std::string CheckpointAt(const std::string& path) {
  std::error_code error;
  const auto is_file = [&](const std::string& file) { return fs::is_regular_file(file, error); };
  if (fs::is_directory(path, error)) {
    if (const std::string newest = NewestCheckpoint(path); !newest.empty()) return newest;
    const std::string variables = (fs::path(path) / "variables" / "variables").string();
    if (is_file(variables + ".index")) return variables;
    std::string found;
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
      if (it->path().extension() != ".index") continue;
      if (!found.empty()) return {};
      found = (it->path().parent_path() / it->path().stem()).string();
    }
    return found;
  }
  // A checkpoint in several files from before bundles has no index.
  const auto is_prefix = [&](const std::string& prefix) {
    const std::string begin = fs::path(prefix).filename().string() + "-00000-of-";
    const fs::path folder = fs::path(prefix).parent_path();
    if (is_file(prefix + ".index")) return true;
    for (fs::directory_iterator it(folder.empty() ? "." : folder, error), end; !error && it != end;
         it.increment(error))
      if (it->path().filename().string().starts_with(begin)) return true;
    return false;
  };
  if (is_prefix(path)) return path;
  for (const std::string_view part :
       {std::string_view(".index"), kMetaEnding, std::string_view(".data-")}) {
    const size_t at = path.rfind(part);
    if (at == std::string::npos || (part != ".data-" && at + part.size() != path.size())) continue;
    const std::string prefix = path.substr(0, at);
    if (is_prefix(prefix) || is_file(prefix)) return prefix;
  }
  // A checkpoint in one file from before bundles is a table, which ends with kTableMagic.
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  char end[formats::kTableMagic.size()] = {};
  if (!is_file(path) || file.tellg() < static_cast<std::streamoff>(sizeof(end))) return {};
  file.seekg(-static_cast<std::streamoff>(sizeof(end)), std::ios::end).read(end, sizeof(end));
  return std::string_view(end, sizeof(end)) == formats::kTableMagic ? path : "";
}

std::string Skeleton(std::string_view bytes) {
  std::string out;
  Strip(bytes,
        LooksLikeSavedModel(bytes)  ? Part::kSavedModel
        : LooksLikeMetaGraph(bytes) ? Part::kMetaGraph
                                    : Part::kGraph,
        &out);
  return out;
}

const formats::Format& TensorflowSource::format() const { return TensorflowFormat(); }

Result<FunctionLibrary> TensorflowSource::Functions() const {
  return LibraryOf(skeleton_, part_.signature);
}

Result<formats::TrainingMarks> TensorflowSource::Marks(const ir::Program&) const { return marks_; }

// Copies the files of a SavedModel's folder but for its variables. They are listed before the first
// is copied, without those below `to`, which may lie in the folder.
Status CopyBeside(const fs::path& from, const fs::path& to) {
  std::error_code ec;
  const fs::path target = fs::weakly_canonical(to, ec);
  std::vector<fs::path> parts;
  fs::recursive_directory_iterator at(from, ec), end;
  for (; !ec && at != end; at.increment(ec)) {
    if (at->is_directory(ec) && fs::weakly_canonical(at->path(), ec) == target)
      at.disable_recursion_pending();
    const fs::path part = at->path().lexically_relative(from);
    if (at->is_regular_file(ec) && part.begin()->string() != "variables") parts.push_back(part);
    ec.clear();
  }
  if (ec) return NotFound("cannot list ", from.string(), ": ", ec.message());
  for (const fs::path& part : parts) {
    if (fs::equivalent(from / part, to / part, ec)) continue;  // the model is written over itself
    fs::create_directories((to / part).parent_path(), ec);
    fs::copy_file(from / part, to / part, fs::copy_options::overwrite_existing, ec);
    if (ec) return NotFound("cannot copy ", (from / part).string(), ": ", ec.message());
  }
  return Status::Ok();
}

// Writes the graph's file again where shapes differ.
Status TensorflowSource::WriteShapes(const formats::TunedModel& tuned,
                                     const std::string& directory) const {
  if (tuned.reshaped.empty()) return Status::Ok();
  std::map<std::string, Shape> variables, outputs;
  const auto is_reshaped = [&](const std::string& name) {
    return std::find(tuned.reshaped.begin(), tuned.reshaped.end(), name) != tuned.reshaped.end();
  };
  for (const TensorInfo& variable : tuned.program.persistables())
    if (is_reshaped(variable.name)) variables.emplace(variable.name, variable.shape);
  for (const TensorInfo& output : tuned.program.outputs())
    if (is_reshaped(output.name)) outputs.emplace(output.name, output.shape);
  HEDDLE_ASSIGN_OR_RETURN(const std::string file, ReadFile(tuned.program_file));
  HEDDLE_ASSIGN_OR_RETURN(const std::string bytes,
                          WithShapes(file, part_.signature, variables, outputs));
  FileReplacement to((fs::path(directory) / fs::path(tuned.program_file).filename()).string());
  HEDDLE_RETURN_IF_ERROR(to.Open());
  HEDDLE_RETURN_IF_ERROR(to.Append(bytes));
  return to.Commit();
}

Status TensorflowSource::WriteTuned(const formats::TunedModel& tuned,
                                    const std::string& directory) const {
  const std::string& program_file = tuned.program_file;
  if (!LooksLikeSavedModel(skeleton_))
    return Unimplemented(program_file,
                         ": only SavedModels are written with other values of variables");
  std::map<std::string, Tensor> tensors;
  std::set<std::string> reshaped;  // keys
  for (const std::string& name : tuned.changed) {
    const auto stored = std::find_if(parameters_.begin(), parameters_.end(),
                                     [&](const Stored& s) { return s.name == name; });
    if (stored == parameters_.end() || stored->key.empty())
      return InvalidArgument(program_file, ": '", name, "' is no variable of the SavedModel");
    const Value* value = tuned.scope.Find(name);
    if (value == nullptr || !value->is_tensor() || !value->initialized())
      return InvalidArgument("variable '", name, "' has no value");
    tensors.emplace(stored->key, value->tensor());
    if (std::find(tuned.reshaped.begin(), tuned.reshaped.end(), name) != tuned.reshaped.end())
      reshaped.insert(stored->key);
  }
  const fs::path from = fs::absolute(program_file).parent_path();
  HEDDLE_RETURN_IF_ERROR(CopyBeside(from, directory));
  std::error_code ec;
  const fs::path variables = fs::path(directory) / "variables";
  fs::create_directories(variables, ec);
  if (ec) return NotFound("cannot make the directory ", variables.string(), ": ", ec.message());
  HEDDLE_RETURN_IF_ERROR(WriteShapes(tuned, directory));
  return Bundle::Rewrite((from / "variables" / "variables").string(),
                         (variables / "variables").string(), tensors, reshaped);
}

std::unique_ptr<const formats::PackedProgram> TensorflowSource::Pack(
    const ir::Program& program) const {
  return std::make_unique<Packed>(program);
}

Result<std::shared_ptr<const TensorflowSource>> TensorflowSource::Make(
    const formats::ParseRequest& request, Lowered lowered) {
  auto source = std::make_shared<TensorflowSource>();
  const std::string_view bytes = request.bytes;
  const fs::path folder(request.folder);
  source->part_ = request.part;
  const std::string assets = folder.empty() ? "" : (folder / "assets").string();
  const std::string behind = formats::FolderBehindLink(request.path);
  std::shared_ptr<const DataFile> file;
  if (!request.path.empty()) file = DataFile::OpenIfIs(request.path, bytes);
  for (const Parameter& p : lowered.parameters) {
    const bool in_bundle = !p.key.empty() || (p.table && p.table->in_bundle());
    if (p.is_variable && in_bundle && source->bundle_ == nullptr) {
      if (folder.empty())
        return InvalidArgument("variable '", p.name,
                               "': its value is in a file beside the graph, which was not read "
                               "from a file");
      const std::string path = request.path.empty() ? (folder / "").string() : request.path;
      // Not an error yet: the user may name another checkpoint.
      if (source->bundle_error_.ok()) {
        auto bundle = Bundle::Open(VariablesBeside(path, bytes));
        if (bundle.ok())
          source->bundle_ = *std::move(bundle);
        else
          source->bundle_error_ = request.InFile(bundle.status());
      }
    }
    HEDDLE_RETURN_IF_ERROR(p.table ? source->StoreTable(p, assets, behind)
                                   : source->Store(p, bytes, file));
  }
  source->skeleton_ = Skeleton(bytes);
  source->marks_ = MarksOf(bytes);
  // Constants are not trained; a file that says no more means all variables.
  if (!source->marks_.says_trainable)
    for (const Parameter& p : lowered.parameters)
      if (p.is_variable) source->marks_.trainable.insert(p.name);
  source->marks_.says_trainable = true;
  source->inputs_ = std::move(lowered.inputs);
  source->outputs_ = std::move(lowered.outputs);
  source->output_names_ = std::move(lowered.output_names);
  source->gradient_calls_ = std::move(lowered.gradient_calls);
  return std::shared_ptr<const TensorflowSource>(std::move(source));
}

Status TensorflowSource::Store(const Parameter& p, std::string_view bytes,
                               const std::shared_ptr<const DataFile>& file) {
  if (p.is_variable && p.key.empty()) return Status::Ok();  // an operator writes it
  Stored& stored = parameters_.emplace_back();
  stored.name = p.name;
  if (p.is_variable) {
    stored.key = p.key;
    stored.guessed_key = p.guessed_key;
    return Status::Ok();
  }
  if (p.made) {
    stored.value = Value(*p.made);
    return Status::Ok();
  }
  const std::string_view raw = p.data.raw;
  const auto in_constant = [&](const Status& status) {
    return Status(status.code(), StrCat("constant '", p.name, "': ", status.message()));
  };
  // The bytes may lie outside of the file, for an argument of a function.
  const bool in_file = file != nullptr && !std::less<>()(raw.data(), bytes.data()) &&
                       !std::less<>()(bytes.data() + bytes.size(), raw.data() + raw.size());
  if (!in_file || raw.size() < kLeastConstLater || p.data.element == nullptr ||
      !p.data.element->IsRawStorage()) {
    auto value = MakeValue(p.data);
    if (!value.ok()) return in_constant(value.status());
    stored.value = *std::move(value);
    return Status::Ok();
  }
  const auto wanted = p.data.StoredBytes();
  if (!wanted.ok()) return in_constant(wanted.status());
  if (*wanted != raw.size())
    return InvalidArgument("constant '", p.name, "': ", p.data.What(), " has ", raw.size(),
                           " bytes; ", *wanted, " are expected");
  stored.in_file = {.file = file,
                    .offset = static_cast<size_t>(raw.data() - bytes.data()),
                    .bytes = raw.size(),
                    .element = p.data.element,
                    .shape = Shape(std::span<const int64_t>(p.data.dims))};
  return Status::Ok();
}

Status TensorflowSource::StoreTable(const Parameter& p, const std::string& assets,
                                    const std::string& behind) {
  Stored& stored = parameters_.emplace_back();
  stored.name = p.name;
  if (p.table->in_bundle()) {
    stored.key = p.table->keys_entry;
    stored.values_key = p.table->values_entry;
    return Status::Ok();
  }
  HEDDLE_ASSIGN_OR_RETURN(stored.value, TableOf(p.name, MakeTable(*p.table, assets, behind)));
  return Status::Ok();
}

Status TensorflowSource::SetParameters(Scope& scope, ParameterReading reading,
                                       const Bundle* bundle) const {
  if (bundle == nullptr) {
    HEDDLE_RETURN_IF_ERROR(bundle_error_);
    bundle = bundle_.get();
  }
  std::vector<std::pair<const std::string*, Value>> values;
  std::set<std::string> read;
  for (const Stored& stored : parameters_) {
    const auto set = [&](Value value) { values.emplace_back(&stored.name, std::move(value)); };
    if (!stored.key.empty()) read.insert(stored.key);
    if (!stored.values_key.empty()) {
      read.insert(stored.values_key);
      HEDDLE_ASSIGN_OR_RETURN(const Value keys, bundle->Read(stored.key, ParameterReading::kNow));
      HEDDLE_ASSIGN_OR_RETURN(const Value rows,
                              bundle->Read(stored.values_key, ParameterReading::kNow));
      HEDDLE_ASSIGN_OR_RETURN(Value table, TableOf(stored.name, MakeTable(keys, rows)));
      set(std::move(table));
      continue;
    }
    if (!stored.key.empty()) {
      // A variable that the checkpoint lacks is written by an operator.
      if (stored.guessed_key && !bundle->Has(stored.key)) continue;
      HEDDLE_ASSIGN_OR_RETURN(Value value, bundle->Read(stored.key, reading));
      set(std::move(value));
      continue;
    }
    if (stored.in_file.file == nullptr) {
      set(stored.value);
      continue;
    }
    HEDDLE_ASSIGN_OR_RETURN(Tensor t,
                            stored.in_file.Read(reading, StrCat("constant '", stored.name, "'")));
    set(Value(std::move(t)));
  }
  if (bundle != nullptr) HEDDLE_RETURN_IF_ERROR(bundle->CheckOthers(read));
  for (auto& [name, value] : values) scope.Set(*name, std::move(value));
  return Status::Ok();
}

}  // namespace heddle::tensorflow
