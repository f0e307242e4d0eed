#include "formats/tensorflow/lower.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "formats/tensorflow/blocks.h"
#include "formats/tensorflow/functions/library.h"
#include "formats/tensorflow/handlers.h"
#include "formats/tensorflow/types/op_types.h"

namespace heddle::tensorflow {
namespace {

// The name without ":0": "node:0" and "node" are the same tensor.
std::string_view WithoutZero(std::string_view name) {
  if (name.ends_with(":0")) name.remove_suffix(2);
  return name;
}

bool IsPlaceholder(const Node& node) {
  return node.op == "Placeholder" || node.op == "PlaceholderV2" ||
         node.op == "PlaceholderWithDefault";
}

// Whether the operator has an effect, so that its outputs are no results of the graph.
bool IsEffect(std::string_view op) {
  for (std::string_view begin : {"InitializeTable", "LookupTableImport", "LookupTableInsert"})
    if (op.starts_with(begin)) return true;
  for (std::string_view begin : {"ResourceApply", "ResourceSparseApply", "ResourceScatter"})
    if (op.starts_with(begin)) return true;
  for (std::string_view name : {"NoOp",
                                "Assert",
                                "Assign",
                                "AssignVariableOp",
                                "AssignAddVariableOp",
                                "AssignSubVariableOp",
                                "Const",
                                "RestoreV2",
                                "Restore",
                                "RestoreSlice",
                                "VariableV2",
                                "VarHandleOp",
                                "Variable",
                                "ControlTrigger",
                                "Placeholder",
                                "Print",
                                "PrintV2",
                                "DisableCopyOnRead",
                                "DestroyResourceOp",
                                "VarIsInitializedOp",
                                "IsVariableInitialized"})
    if (op == name) return true;
  return false;
}

// Whether the operator writes a checkpoint.
bool IsSave(std::string_view op) {
  for (std::string_view name :
       {"Save", "SaveSlices", "SaveV2", "ShardedFilename", "MergeV2Checkpoints"})
    if (op == name) return true;
  return false;
}

int TypeOfOutput(const Node& node, int port) {
  return DefinedType(node.op, static_cast<size_t>(port),
                     [&](std::string_view name) { return node.Find(name); });
}

Shape ShapeOfNode(const Node& node) {
  const Attribute* a = node.Find("shape");
  return a != nullptr && a->kind == Attribute::kShape ? a->shape.shape : Shape::Unknown();
}

}  // namespace

Lowering::Lowering(const Model& model, const ProgramPart& part, ir::ProgramBuilder* builder,
                   Revisions* revisions)
    : GraphLoweringOf(Types(), builder),
      model_(model),
      part_(part),
      revisions_(*revisions),
      graph_(model.graph.nodes),
      library_(LibraryOf(model)) {}

VarFacts VarFacts::Alike() const {
  VarFacts facts;
  static_cast<ValueFacts&>(facts) = ValueFacts::Alike();
  facts.kind = kind;
  facts.target = target;
  facts.has_items = has_items;
  facts.says_shape = says_shape;
  return facts;
}

Result<Lowered> Lowering::Run() {
  for (const Function& f : model_.graph.functions) functions_.emplace(f.name, &f);
  if (!graph_.duplicate().empty())
    return InvalidArgument("two nodes are called '", graph_.duplicate(), "'");
  HEDDLE_RETURN_IF_ERROR(Select());
  std::vector<Source> results;
  for (const Wanted& fetch : fetches_) results.push_back(fetch.source);
  needed_ = graph_.Ancestors(results, targets_);
  graph_.NoteUses(needed_, results);
  FindWritingFunctions();
  HEDDLE_ASSIGN_OR_RETURN(const Region region, Structure(graph_, needed_, may_write_));
  KeepNames();
  FindRestoredKeys();
  FindTables();
  FindWritten();
  main_.graph = &graph_;
  main_.values.resize(graph_.size());
  LowerFeeds();
  MakeTextPool();
  fetched_.assign(fetches_.size(), kNoDraft);
  for (size_t k = 0; k < fetches_.size(); ++k) fetches_of_[fetches_[k].source.node].push_back(k);
  LowerRegion(region, main_);
  HEDDLE_RETURN_IF_ERROR(UnknownOperators());
  Lowered made;
  LowerFetches();
  MergeConstants();
  DeclareShapes();
  formats::FinishDraft(&draft_);
  KeepParameters(&made);
  for (GradientNode& node : gradients_) {
    formats::GradientCall& call = made.gradient_calls.emplace_back();
    for (const int v : node.losses) call.losses.push_back(var(v).name);
    for (const int v : node.arguments) call.arguments.push_back(var(v).name);
    for (const int v : node.gradients) call.gradients.push_back(var(v).name);
    call.where = std::move(node.where);
  }
  MoveTo(&made);
  made.inputs = std::move(inputs_);
  made.outputs = std::move(outputs_);
  made.output_names = std::move(output_names_);
  return made;
}

// Reserves the names of inputs, outputs and variables. Of two with the same name, an input keeps it
// rather than a variable, and a variable rather than an output. The user still sees an output under
// its name in the graph (output_names_), whatever its variable is called.
void Lowering::KeepNames() {
  const auto keep = [this](const Node& node) {
    if (!IsVariableOp(node.op)) return;
    KeepName(std::string(node.name));
    const std::string kept = KeptName(node);
    KeepName(kept);
    variable_names_.insert(kept);
  };
  for (const Node& node : model_.graph.nodes) keep(node);
  for (const Function& function : model_.graph.functions)
    for (const Node& node : function.nodes) keep(node);
  for (const Wanted& port : fetches_) KeepName(port.name);
  for (const Wanted& port : feeds_) {
    KeepName(port.name);
    variable_names_.erase(port.name);
  }
}

// --- feeds and fetches

Status Lowering::AddFeed(const std::string& name, std::string_view tensor) {
  const Source source = graph_.Resolve(WithoutZero(tensor));
  if (!source.is_node())
    return NotFound("input '", name, "': the graph has no tensor '", tensor, "'");
  for (const Wanted& feed : feeds_)
    if (feed.source == source)
      return InvalidArgument("inputs '", feed.name, "' and '", name, "' are the same tensor");
  feeds_.push_back({name, source, TypeOfOutput(graph_.node(source.node), source.port)});
  return Status::Ok();
}

Status Lowering::AddFetch(const std::string& name, std::string_view tensor) {
  const Source source = graph_.Resolve(WithoutZero(tensor));
  if (!source.is_node())
    return NotFound("output '", name, "': the graph has no tensor '", tensor, "'");
  fetches_.push_back({name, source, kNoType});
  return Status::Ok();
}

Status Lowering::SelectSignature(const std::string& key) {
  const Signature* signature = nullptr;
  std::string keys;
  for (const Signature& s : model_.signatures) {
    if (s.key.starts_with("__")) continue;
    if (s.key == key) signature = &s;
    keys += StrCat(keys.empty() ? "" : ", ", s.key);
  }
  if (signature == nullptr) return NotFound("there is no signature '", key, "'; there is ", keys);
  const auto tensor_of = [](const std::vector<SignatureValue>& values, const std::string& name) {
    for (const SignatureValue& v : values)
      if (v.key == name) return v.tensor;
    return std::string_view(name);
  };
  if (part_.feeds.empty()) {
    for (const SignatureValue& v : signature->inputs)
      HEDDLE_RETURN_IF_ERROR(AddFeed(std::string(v.key), v.tensor));
  }
  for (const std::string& name : part_.feeds)
    HEDDLE_RETURN_IF_ERROR(AddFeed(name, tensor_of(signature->inputs, name)));
  if (part_.fetches.empty() && part_.targets.empty()) {
    for (const SignatureValue& v : signature->outputs)
      HEDDLE_RETURN_IF_ERROR(AddFetch(std::string(v.key), v.tensor));
  }
  for (const std::string& name : part_.fetches)
    HEDDLE_RETURN_IF_ERROR(AddFetch(name, tensor_of(signature->outputs, name)));
  return Status::Ok();
}

Status Lowering::Select() {
  const bool has_signatures =
      std::any_of(model_.signatures.begin(), model_.signatures.end(),
                  [](const Signature& s) { return !s.key.starts_with("__"); });
  if (!part_.signature.empty() && !has_signatures)
    return NotFound("there is no signature '", part_.signature, "'; the file has none");
  if (has_signatures) {
    std::string key = part_.signature.empty() ? "serving_default" : part_.signature;
    const auto known = std::count_if(model_.signatures.begin(), model_.signatures.end(),
                                     [&](const Signature& s) { return s.key == key; });
    // The only signature need not be named.
    if (known == 0 && part_.signature.empty())
      for (const Signature& s : model_.signatures)
        if (!s.key.starts_with("__")) key = std::string(s.key);
    HEDDLE_RETURN_IF_ERROR(SelectSignature(key));
  } else {
    for (const std::string& name : part_.feeds) HEDDLE_RETURN_IF_ERROR(AddFeed(name, name));
    for (const std::string& name : part_.fetches) HEDDLE_RETURN_IF_ERROR(AddFetch(name, name));
  }
  for (const std::string& name : part_.targets) {
    const Source source = graph_.Resolve(WithoutZero(name));
    if (!source.is_node()) return NotFound("the graph has no operator '", name, "'");
    targets_.push_back(source.node);
  }
  if (fetches_.empty() && targets_.empty()) FetchResults();
  // A fed value replaces the graph's own, so nodes no longer depend on the placeholder.
  const auto replace = [&](size_t begin) {
    std::map<Source, int> fed;
    std::unordered_set<int> placeholders;
    for (size_t k = begin; k < feeds_.size(); ++k) {
      const Source source = feeds_[k].source;
      fed.emplace(source, static_cast<int>(k));
      if (IsPlaceholder(graph_.node(source.node))) placeholders.insert(source.node);
    }
    graph_.Replace(fed);
    for (Wanted& fetch : fetches_)
      if (const auto to = fed.find(fetch.source); to != fed.end())
        fetch.source = {Source::kArgument, to->second};
    for (int i = 0; i < static_cast<int>(graph_.size()); ++i) {
      Links& links = graph_.links(i);
      for (size_t c = links.controls.size(); c-- > 0;) {
        if (!placeholders.contains(links.controls[c])) continue;
        links.controls.erase(links.controls.begin() + static_cast<int64_t>(c));
        links.control_names.erase(links.control_names.begin() + static_cast<int64_t>(c));
      }
    }
  };
  replace(0);
  // Placeholders that were not named become inputs if a result depends on them.
  std::vector<Source> results;
  for (const Wanted& fetch : fetches_) results.push_back(fetch.source);
  const std::vector<bool> needed = graph_.Ancestors(results, targets_);
  const size_t named = feeds_.size();
  for (int i = 0; i < static_cast<int>(graph_.size()); ++i) {
    const Node& node = graph_.node(i);
    if (!needed[static_cast<size_t>(i)] ||
        (node.op != "Placeholder" && node.op != "PlaceholderV2") ||
        TypeOfOutput(node, 0) == kResource)
      continue;
    feeds_.push_back({std::string(node.name), {i, 0}, TypeOfOutput(node, 0)});
  }
  replace(named);
  return Status::Ok();
}

// Without fetches, the outputs are the values that no node uses, except those of the saver. If that
// leaves others, plain reads of variables are left out too, since TensorFlow adds one to each
// variable, and so are nodes that write variables: training steps and their counters.
void Lowering::FetchResults() {
  const auto size = static_cast<int>(graph_.size());
  std::vector<std::vector<int>> readers(graph_.size());
  for (int i = 0; i < size; ++i) {
    for (const Source& input : graph_.links(i).inputs)
      if (input.is_node()) readers[static_cast<size_t>(input.node)].push_back(i);
    for (int control : graph_.links(i).controls)
      if (control >= 0) readers[static_cast<size_t>(control)].push_back(i);
  }
  // The saver: its named first and last nodes, all nodes that write a checkpoint, and whatever
  // depends on them.
  std::vector<bool> saves(graph_.size());
  std::vector<int> open;
  const auto note = [&](int node) {
    if (node < 0 || saves[static_cast<size_t>(node)]) return;
    saves[static_cast<size_t>(node)] = true;
    open.push_back(node);
  };
  for (std::string_view name : {model_.filename_tensor, model_.save_tensor, model_.restore_op})
    if (!name.empty()) note(graph_.Find(WithoutZero(name)));
  for (int i = 0; i < size; ++i)
    if (IsSave(graph_.node(i).op)) note(i);
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    for (int reader : readers[static_cast<size_t>(node)]) note(reader);
  }
  const auto is_read = [&](int i) {
    const std::string_view op = graph_.node(i).op;
    const auto& inputs = graph_.links(i).inputs;
    return (op == "ReadVariableOp" || op == "Identity") && !inputs.empty() && inputs[0].is_node() &&
           IsVariableOp(graph_.node(inputs[0].node).op);
  };
  std::vector<int> results, reads, writes;
  for (int i = 0; i < size; ++i) {
    const std::string_view op = graph_.node(i).op;
    if (!readers[static_cast<size_t>(i)].empty() || saves[static_cast<size_t>(i)] || IsEffect(op))
      continue;
    (WritesVariable(op) ? writes : is_read(i) ? reads : results).push_back(i);
  }
  for (int i : !results.empty() ? results : !reads.empty() ? reads : writes)
    fetches_.push_back({std::string(graph_.node(i).name), {i, 0}, kNoType});
}

void Lowering::LowerFeeds() {
  for (const Wanted& feed : feeds_) {
    const Node& node = graph_.node(feed.source.node);
    const int v = NewVar(feed.name, StorageOf(feed.type));
    var(v).fed = true;
    facts(v).type = feed.type;
    facts(v).exact_name = true;
    if (feed.type == kString) var(v).kind = ir::VarKind::kRaw;
    if (IsPlaceholder(node)) {
      Shape shape = ShapeOfNode(node);
      // In older files a shape of rank 0 means that none is given.
      constexpr int64_t kShapesSinceProducer = 24;
      if (shape.rank() == 0 && model_.graph.producer < kShapesSinceProducer &&
          model_.graph.producer > 0)
        shape = Shape::Unknown();
      facts(v).shape = shape;
      if (shape.known_rank() && feed.type != kString) {
        var(v).ranked = true;
        var(v).dims.assign(shape.begin(), shape.end());
      }
    }
    draft_.feeds.emplace_back(v, static_cast<int>(draft_.feeds.size()));
    inputs_.push_back({feed.name, feed.type});
    main_.arguments.push_back(v);
  }
}

// A fetched value is the one at the time when its node runs: variables are copied then, and values
// of inner blocks are assigned to variables of block 0.
void Lowering::FetchNow(const Instance& instance, int node) {
  if (&instance != &main_) return;
  const auto found = fetches_of_.find(node);
  if (found == fetches_of_.end()) return;
  for (const size_t k : found->second) {
    const std::vector<int>& values = main_.values[static_cast<size_t>(node)];
    const auto port = static_cast<size_t>(fetches_[k].source.port);
    if (port >= values.size() || values[port] == kNoDraft) continue;
    const int v = values[port];
    fetched_[k] = v;
    if (!facts(v).is_variable && var(v).block == 0) continue;
    NodeLowering n(*this, graph_.node(node), main_, node);
    const int made = LikeVar(n, v, 0);
    Assign(n, v, made);
    fetched_[k] = made;
  }
}

void Lowering::LowerFetches() {
  std::unordered_set<int> taken;
  std::unordered_set<std::string> names;  // names that no output may take
  for (const Wanted& feed : feeds_) names.insert(feed.name);
  for (const auto& [name, v] : variables_) names.insert(var(v).name);
  for (size_t k = 0; k < fetches_.size(); ++k) {
    const Wanted& fetch = fetches_[k];
    int v = fetched_[k];
    if (v == kNoDraft && fetch.source.node == Source::kArgument)
      v = main_.arguments[static_cast<size_t>(fetch.source.port)];
    if (v == kNoDraft) {
      builder_.Problem("output '", fetch.name, "': node '", graph_.node(fetch.source.node).name,
                       "' (", graph_.node(fetch.source.node).op, ") has no output ",
                       fetch.source.port);
      continue;
    }
    if (IsHandle(facts(v).kind)) {
      builder_.Problem("output '", fetch.name, "' is a handle, which holds no values");
      continue;
    }
    const bool is_free = !var(v).fed && !var(v).persistable && facts(v).data == nullptr;
    const auto own_name = [&] {
      return names.insert(fetch.name).second ? fetch.name : FreshName(fetch.name);
    };
    if (is_free && taken.insert(v).second) {
      var(v).name = own_name();
    } else if (var(v).name != fetch.name) {
      const int copy = NewVar(own_name(), var(v).dtype);
      var(copy).kind = var(v).kind;
      const VarFacts like = facts(v);
      facts(copy).type = like.type;
      facts(copy).shape = like.shape;
      if (like.data != nullptr) var(v).persistable = true;
      DraftOp& assign = draft_.blocks[0].ops.emplace_back();
      assign.type = "assign";
      assign.inputs = {{"X", {v}}};
      assign.outputs = {{"Out", {copy}}};
      v = copy;
    } else if (facts(v).data != nullptr) {
      var(v).persistable = true;
    }
    var(v).named = true;
    if (var(v).name != fetch.name) output_names_.emplace(var(v).name, fetch.name);
    draft_.fetches.emplace_back(v, static_cast<int>(draft_.fetches.size()));
    outputs_.push_back({fetch.name, facts(v).type});
  }
}

// --- variables

int Lowering::VariableNamed(const std::string& name, int type, const Shape& shape) {
  const auto known = variables_.find(name);
  if (known != variables_.end()) return known->second;
  // The name was reserved for the variable, unless an input has it.
  const int v = NewVar(variable_names_.contains(name) ? name : FreshName(name), StorageOf(type));
  var(v).block = 0;
  var(v).persistable = true;
  facts(v).type = type;
  facts(v).shape = shape;
  facts(v).is_variable = true;
  facts(v).exact_name = true;
  if (shape.known_rank()) {
    var(v).ranked = true;
    var(v).dims.assign(shape.begin(), shape.end());
  }
  variables_.emplace(name, v);
  kept_names_.emplace(v, name);
  return v;
}

// No variable of the graph can have this name.
int Lowering::TableNamed(const std::string& name, bool is_mutable) {
  const int v = VariableNamed(name + "@table", kNoType, Shape::Unknown());
  var(v).kind = ir::VarKind::kRaw;
  table_names_.emplace(v, name);
  if (is_mutable) mutable_tables_.insert(v);
  return v;
}

// --- messages

std::string Lowering::Where(const Node& node, const Instance& instance) const {
  std::string text = StrCat("op ", node.index, " (", node.op, " '", node.name, "')");
  if (!instance.function.empty()) text += StrCat(" of function '", instance.function, "'");
  return text;
}

void Lowering::KeepParameters(Lowered* made) {
  for (int v : KeptVariables()) {
    Parameter& p = made->parameters.emplace_back();
    static_cast<formats::Parameter&>(p) = ParameterOf(v);
    p.is_variable = facts(v).is_variable;
    if (!p.is_variable) continue;
    p.guessed_key = model_.restore_op.empty();
    if (const auto name = kept_names_.find(v); name != kept_names_.end())
      if (const auto key = restored_.find(name->second); key != restored_.end())
        p.key = key->second;
    const auto table = table_names_.find(v);
    if (table == table_names_.end()) continue;
    if (const auto found = tables_.find(table->second); found != tables_.end())
      p.table = std::move(found->second);
    else if (IsMutableTable(v))
      p.table.emplace().is_empty = true;
  }
}

}  // namespace heddle::tensorflow
