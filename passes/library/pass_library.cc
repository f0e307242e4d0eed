// Passes of shared libraries: the only place that calls their functions, and gives them the editor.
#include "heddle/passes/pass_library.h"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <deque>
#include <filesystem>
#include <system_error>

#include "core/error.h"
#include "heddle/executor.h"
#include "heddle/passes/heddle_pass.h"
#include "heddle/passes/partitions.h"
#include "passes/library/c_operators.h"

namespace heddle {
namespace {

constexpr size_t kRoom = 1024;  // of a message

// What heddle_pass_program::handle points to.
struct Handle {
  ProgramEditor* editor = nullptr;
  PartitionProgram* part = nullptr;  // at POST_PARTITIONING
  // What was returned last.
  std::unique_ptr<passes::COperator> op;
  heddle_engine_value value = {};
  std::string name;
  Shape shape;
};

int Say(const Status& status, char* message, size_t room) {
  if (status.ok()) return HEDDLE_PASS_OK;
  if (message != nullptr && room > 0)
    std::snprintf(message, room, "%s", std::string(status.message()).c_str());
  return HEDDLE_PASS_FAILED;
}

// Nothing is thrown through a library's C code.
template <typename T, typename Fn>
T Safely(T otherwise, Fn&& fn) noexcept {
  try {
    return fn();
  } catch (...) {
    return otherwise;
  }
}

Handle& Of(void* program) { return *static_cast<Handle*>(program); }

// `end`: whether the index behind the last operator will do.
Status CheckIndex(const ProgramEditor& editor, int32_t block, int64_t index, bool end = false) {
  if (block < 0 || block >= editor.num_blocks())
    return OutOfRange("there is no block ", block, ", there are ", editor.num_blocks());
  const int count = editor.num_ops(block);
  if (index < 0 || index >= count + (end ? 1 : 0))
    return OutOfRange("there is no operator ", index, " in block ", block, ", which has ", count);
  return Status::Ok();
}

int32_t NumBlocks(void* program) { return Of(program).editor->num_blocks(); }

int64_t NumOperators(void* program, int32_t block) {
  const ProgramEditor& editor = *Of(program).editor;
  return block >= 0 && block < editor.num_blocks() ? editor.num_ops(block) : -1;
}

const heddle_pass_operator* Get(void* program, int32_t block, int64_t index) {
  return Safely<const heddle_pass_operator*>(nullptr, [&]() -> const heddle_pass_operator* {
    Handle& h = Of(program);
    if (!CheckIndex(*h.editor, block, index).ok()) return nullptr;
    h.op = std::make_unique<passes::COperator>(h.editor->op(block, static_cast<int>(index)));
    return &h.op->get();
  });
}

int Replace(void* program, int32_t block, int64_t index, const heddle_pass_operator* op,
            char* message, size_t room) {
  return Safely<int>(HEDDLE_PASS_FAILED, [&] {
    ProgramEditor& editor = *Of(program).editor;
    if (Status s = CheckIndex(editor, block, index); !s.ok()) return Say(s, message, room);
    auto spec = passes::SpecOf(op);
    if (!spec.ok()) return Say(spec.status(), message, room);
    const OpSpec was = editor.op(block, static_cast<int>(index));
    if (was.type == spec->type)  // the blocks that it runs stay
      for (const auto& attribute : was.attributes)
        if (std::holds_alternative<BlockId>(attribute.second) ||
            std::holds_alternative<std::vector<BlockId>>(attribute.second))
          spec->attributes.push_back(attribute);
    return Say(editor.Replace(block, static_cast<int>(index), *spec), message, room);
  });
}

int Insert(void* program, int32_t block, int64_t index, const heddle_pass_operator* op,
           char* message, size_t room) {
  return Safely<int>(HEDDLE_PASS_FAILED, [&] {
    ProgramEditor& editor = *Of(program).editor;
    if (Status s = CheckIndex(editor, block, index, true); !s.ok()) return Say(s, message, room);
    const auto spec = passes::SpecOf(op);
    if (!spec.ok()) return Say(spec.status(), message, room);
    return Say(editor.Insert(block, static_cast<int>(index), *spec), message, room);
  });
}

int Erase(void* program, int32_t block, int64_t index, char* message, size_t room) {
  return Safely<int>(HEDDLE_PASS_FAILED, [&] {
    ProgramEditor& editor = *Of(program).editor;
    if (Status s = CheckIndex(editor, block, index); !s.ok()) return Say(s, message, room);
    editor.Erase(block, static_cast<int>(index));
    return static_cast<int>(HEDDLE_PASS_OK);
  });
}

const heddle_engine_value* Variable(void* program, const char* name) {
  return Safely<const heddle_engine_value*>(nullptr, [&]() -> const heddle_engine_value* {
    Handle& h = Of(program);
    const auto info = name != nullptr ? h.editor->var(name) : NotFound("no name");
    if (!info.ok()) return nullptr;
    h.name = info->name;
    h.shape = info->shape;
    h.value = {};
    h.value.size = sizeof(h.value);
    h.value.name = h.name.c_str();
    h.value.dtype = static_cast<int32_t>(info->dtype);
    if (const Tensor* constant = h.editor->constant(h.name); constant != nullptr) {
      h.shape = constant->shape();
      h.value.data = constant->raw();
      h.value.bytes = constant->bytes();
    }
    h.value.rank = h.shape.known_rank() ? h.shape.rank() : -1;
    h.value.dims = h.shape.begin();
    return &h.value;
  });
}

int32_t Readers(void* program, const char* name) {
  return Safely<int32_t>(-1, [&] { return name ? Of(program).editor->readers(name) : -1; });
}
int32_t Writers(void* program, const char* name) {
  return Safely<int32_t>(-1, [&] { return name ? Of(program).editor->writers(name) : -1; });
}
int32_t Fetched(void* program, const char* name) {
  return Safely<int32_t>(-1, [&] { return name ? Of(program).editor->fetched(name) : -1; });
}

const char* AddVariable(void* program, const heddle_engine_value* like) {
  return Safely<const char*>(nullptr, [&]() -> const char* {
    Handle& h = Of(program);
    if (like == nullptr || like->size < sizeof(*like) || like->name == nullptr || like->dtype < 0 ||
        like->dtype > static_cast<int32_t>(DType::kUnknown) ||
        like->rank > HEDDLE_ENGINE_MAX_RANK || (like->rank > 0 && like->dims == nullptr))
      return nullptr;
    const auto dtype = static_cast<DType>(like->dtype);
    const Shape shape = like->rank < 0
                            ? Shape::Unknown()
                            : Shape(std::span(like->dims, static_cast<size_t>(like->rank)));
    if (like->data == nullptr) {
      h.name = h.editor->AddVar(like->name, dtype, shape);
      return h.name.c_str();
    }
    bool whole = dtype != DType::kUnknown && shape.known_rank();
    for (int32_t i = 0; whole && i < like->rank; ++i) whole = like->dims[i] >= 0;
    if (!whole) return nullptr;
    Tensor value = Tensor::Empty(dtype, shape);
    if (!value.initialized() || value.bytes() != like->bytes) return nullptr;
    if (value.bytes() > 0) std::memcpy(value.mutable_raw(), like->data, value.bytes());
    h.name = h.editor->AddConstant(like->name, std::move(value));
    return h.name.c_str();
  });
}

double CostNs(void* program, int32_t block, int64_t index) {
  return Safely<double>(-1, [&] {
    const ProgramEditor& editor = *Of(program).editor;
    if (!CheckIndex(editor, block, index).ok()) return -1.0;
    return editor.cost_ns(block, static_cast<int>(index));
  });
}

int TargetCost(void* program, double* cost, char* message, size_t room) {
  return Safely<int>(HEDDLE_PASS_FAILED, [&] {
    const Handle& h = Of(program);
    const Result<double> found = h.part != nullptr
                                     ? h.part->TargetCost()
                                     : Unimplemented("there is no partition before it is made");
    if (found.ok() && cost != nullptr) *cost = *found;
    return Say(found.status(), message, room);
  });
}

constexpr heddle_pass_editor kEditor = {sizeof(heddle_pass_editor),
                                        NumBlocks,
                                        NumOperators,
                                        Get,
                                        Replace,
                                        Insert,
                                        Erase,
                                        Variable,
                                        Readers,
                                        Writers,
                                        Fetched,
                                        AddVariable,
                                        CostNs,
                                        TargetCost};

// One call of a library's pass.
class CPassCall {
 public:
  explicit CPassCall(const heddle_pass& pass) : pass_(pass) {}

  Result<bool> Run(ProgramEditor& editor) {
    AddProgram(PartitionProgram::kHost, "", {}, {}, &editor, nullptr);
    AddOptions(editor.options());
    for (std::string& place : editor.places()) places_.push_back(std::move(place));
    return Call();
  }

  Result<bool> Run(Partitions& partitions) {
    partitions_ = &partitions;
    PartitionProgram& host = partitions.host();
    AddOptions(host.editor().options());
    Add(host);
    for (const auto& [target, programs] : partitions.programs())
      for (PartitionProgram* program : programs)
        if (program != &host) Add(*program);
    for (PartitionPlace& place : partitions.places()) places_.push_back(std::move(place.name));
    AddOption("opt_level", std::to_string(partitions.opt_level()));
    if (const ExecutorOptions* options = partitions.executor_options()) {
      AddOption("threads", std::to_string(options->threads));
      AddOption("memory_limit", std::to_string(options->memory_limit));
    }
    if (const CompileOptions* options = partitions.compile_options())
      AddOption("lean", options->lean ? "1" : "0");
    return Call();
  }

 private:
  void Add(PartitionProgram& program) {
    AddProgram(program.target(), program.symbol(), program.feeds(), program.fetches(),
               &program.editor(), &program);
  }

  void AddProgram(const std::string& target, const std::string& symbol,
                  const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
                  ProgramEditor* editor, PartitionProgram* part) {
    Handle& handle = handles_.emplace_back();
    handle.editor = editor;
    handle.part = part;
    const auto& in = Pointers(feeds);
    const auto& out = Pointers(fetches);
    programs_.push_back({sizeof(heddle_pass_program), Keep(target), Keep(symbol), in.size(),
                         in.data(), out.size(), out.data(), &handle});
    program_list_.push_back(&programs_.back());
  }

  void AddOptions(const PassOptions& options) {
    static constexpr const char* kNames[] = {"f32", "bf16", "int8", "int8-products"};
    AddOption("precision", kNames[static_cast<int>(options.precision)]);
  }
  void AddOption(const char* key, const std::string& text) {
    keys_.push_back(key);
    texts_.push_back(Keep(text));
  }

  const char* Keep(const std::string& text) { return kept_.emplace_back(text).c_str(); }
  const std::vector<const char*>& Pointers(const std::vector<std::string>& texts) {
    auto& list = lists_.emplace_back();
    for (const std::string& text : texts) list.push_back(Keep(text));
    return list;
  }

  // A library's index is looked up as it comes, since reading a function may take time.
  static const char* Function(void* host, size_t index) {
    return Safely<const char*>(nullptr, [&]() -> const char* {
      auto& call = *static_cast<CPassCall*>(host);
      if (call.partitions_ == nullptr) return nullptr;
      const auto library = call.partitions_->functions();
      if (!library.ok() || index >= (*library)->names().size()) return nullptr;
      return call.Keep((*library)->Signature((*library)->names()[index]));
    });
  }

  Result<bool> Call() {
    const auto& places = Pointers(places_);
    const heddle_pass_context context = {
        sizeof(context), HEDDLE_PASS_VERSION, program_list_.size(), program_list_.data(),
        &kEditor,        places.size(),       places.data(),        this,
        Function,        keys_.size(),        keys_.data(),         texts_.data()};
    std::array<char, kRoom> message{};
    int32_t changed = 0;
    const int status = pass_.run(&context, &changed, message.data(), message.size());
    if (status == HEDDLE_PASS_OK) return changed != 0;
    std::string text(message.data(), strnlen(message.data(), message.size()));
    if (text.empty()) text = "the pass does not say why it failed";
    return Internal(text);
  }

  const heddle_pass& pass_;
  Partitions* partitions_ = nullptr;
  std::deque<Handle> handles_;
  std::deque<heddle_pass_program> programs_;
  std::vector<const heddle_pass_program*> program_list_;
  std::vector<std::string> places_;
  std::vector<const char*> keys_, texts_;
  std::deque<std::string> kept_;
  std::deque<std::vector<const char*>> lists_;
};

Result<CustomPass> PassOf(const heddle_pass* pass, size_t index, const std::string& where) {
  if (pass == nullptr || pass->size < sizeof(heddle_pass))
    return InvalidArgument(where, ": pass ", index, " is missing, or smaller than a heddle_pass");
  if (pass->name == nullptr || *pass->name == '\0')
    return InvalidArgument(where, ": pass ", index, " has no name");
  if (pass->run == nullptr)
    return InvalidArgument(where, ": pass '", pass->name, "' has no function");
  if (pass->grouping < HEDDLE_PASS_PRE_PLACEMENT || pass->grouping > HEDDLE_PASS_POST_PARTITIONING)
    return InvalidArgument(where, ": pass '", pass->name, "' runs in grouping ", pass->grouping,
                           ", and there are 0 to ", HEDDLE_PASS_POST_PARTITIONING);
  CustomPass made;
  made.name = pass->name;
  if (pass->doc != nullptr) made.doc = pass->doc;
  if (pass->before != nullptr) made.before = pass->before;
  if (pass->after != nullptr) made.after = pass->after;
  made.grouping = static_cast<PassGrouping>(pass->grouping);
  made.level = pass->level;
  made.repeat = pass->repeat != 0;
  if (made.grouping == PassGrouping::kPostPartitioning)
    made.run_partitions = [pass](Partitions& partitions) {
      return CPassCall(*pass).Run(partitions);
    };
  else
    made.run = [pass](ProgramEditor& editor) { return CPassCall(*pass).Run(editor); };
  return made;
}

}  // namespace

Result<std::vector<CustomPass>> PassesOf(const heddle_pass_table* table, const std::string& where) {
  if (table == nullptr)
    return InvalidArgument(where, ": has no passes for version ", HEDDLE_PASS_VERSION,
                           " of the interface");
  if (table->size >= offsetof(heddle_pass_table, version) + sizeof(table->version) &&
      table->version != HEDDLE_PASS_VERSION)
    return InvalidArgument(where, ": the passes are made for version ", table->version,
                           " of the interface, and this heddle has version ", HEDDLE_PASS_VERSION);
  if (table->size < sizeof(*table) || (table->passes == nullptr && table->count > 0))
    return InvalidArgument(where, ": the table of passes is not whole");
  std::vector<CustomPass> passes;
  for (size_t k = 0; k < table->count; ++k) {
    HEDDLE_ASSIGN_OR_RETURN(CustomPass pass, PassOf(table->passes[k], k, where));
    passes.push_back(std::move(pass));
  }
  return passes;
}

Result<std::vector<CustomPass>> LoadPasses(const std::string& path) {
  // The loader looks for a bare name in folders that the environment names.
  if (path.find('/') == std::string::npos)
    return InvalidArgument("'", path, "': name the library of passes with its folder, as in ./",
                           path);
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    return NotFound(path, ": there is no such library of passes");
  // Never closed: programs may be compiled anew with its passes at any time.
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return InvalidArgument(path, ": cannot be loaded as a library of passes: ",
                           why != nullptr ? why : "the loader does not say why");
  }
  const auto get = reinterpret_cast<heddle_pass_get_function>(dlsym(library, HEDDLE_PASS_GET));
  if (get == nullptr)
    return InvalidArgument(path, ": holds no passes: it exports no function " HEDDLE_PASS_GET);
  const heddle_pass_table* table = nullptr;
  try {
    table = get(HEDDLE_PASS_VERSION);
  } catch (const std::exception& e) {
    return Internal(path, ": " HEDDLE_PASS_GET " threw: ", e.what());
  } catch (...) {
    return Internal(path, ": " HEDDLE_PASS_GET " threw something that is no std::exception");
  }
  return PassesOf(table, path);
}

}  // namespace heddle
