#include "formats/tensorflow/lower.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/error.h"
#include "formats/tensorflow/blocks.h"
#include "formats/tensorflow/handlers.h"

namespace heddle::tensorflow {
namespace {

// The tensor "node:0" is called "node", too.
std::string_view WithoutZero(std::string_view name) {
  if (name.ends_with(":0")) name.remove_suffix(2);
  return name;
}

bool IsPlaceholder(const Node& node) {
  return node.op == "Placeholder" || node.op == "PlaceholderV2" ||
         node.op == "PlaceholderWithDefault";
}

bool IsVariableNode(const Node& node) {
  return node.op == "VariableV2" || node.op == "Variable" || node.op == "VarHandleOp";
}

// Operators whose outputs nobody asks for when the graph is run for its results.
bool IsEffect(std::string_view op) {
  for (std::string_view begin : {"InitializeTable", "LookupTableImport", "LookupTableInsert"})
    if (op.starts_with(begin)) return true;
  for (std::string_view name : {"NoOp", "Assert", "Assign", "AssignVariableOp", "SaveV2", "Const",
                                "RestoreV2", "MergeV2Checkpoints", "VariableV2", "VarHandleOp",
                                "Variable", "ControlTrigger", "Placeholder", "Print", "PrintV2"})
    if (op == name) return true;
  return false;
}

// The type of an output, where an attribute says so.
int TypeOfOutput(const Node& node) {
  // "T" is the type of their operands.
  for (std::string_view name : {"Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual",
                                "ApproximateEqual", "IsNan", "IsInf", "IsFinite"})
    if (node.op == name) return kBool;
  if (node.op == "Rank") return kInt32;
  for (std::string_view name : {"dtype", "DstT", "out_type", "output_type", "T"}) {
    const Attribute* a = node.Find(name);
    if (a != nullptr && a->kind == Attribute::kType) return BaseType(a->i);
  }
  return kNoType;
}

Shape ShapeOfNode(const Node& node) {
  const Attribute* a = node.Find("shape");
  return a != nullptr && a->kind == Attribute::kShape ? a->shape.shape : Shape::Unknown();
}

}  // namespace

Lowering::Lowering(const Model& model, const ProgramPart& part, ir::ProgramBuilder* builder)
    : model_(model), part_(part), builder_(*builder), graph_(model.graph.nodes) {
  draft_.blocks.resize(1);
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
  // Names that belong to what the user, or a variable, is called.
  for (const Wanted& port : feeds_) names_.insert(port.name);
  for (const Wanted& port : fetches_) names_.insert(port.name);
  for (const Node& node : model_.graph.nodes)
    if (IsVariableNode(node)) names_.insert(std::string(node.name));
  FindRestoredKeys();
  FindTables();
  FindWritten();
  main_.graph = &graph_;
  main_.values.resize(graph_.size());
  LowerFeeds();
  fetched_.assign(fetches_.size(), kNoDraft);
  LowerRegion(region, main_);
  HEDDLE_RETURN_IF_ERROR(UnknownOperators());
  Lowered made;
  LowerFetches();
  MergeConstants();
  DeclareShapes();
  formats::FinishDraft(&draft_);
  KeepParameters(&made);
  made.draft = std::move(draft_);
  made.inputs = std::move(inputs_);
  made.outputs = std::move(outputs_);
  return made;
}

// --- what is wanted

Status Lowering::AddFeed(const std::string& name, std::string_view tensor) {
  const Source source = graph_.Resolve(WithoutZero(tensor));
  if (!source.is_node())
    return NotFound("input '", name, "': the graph has no tensor '", tensor, "'");
  for (const Wanted& feed : feeds_)
    if (feed.source == source)
      return InvalidArgument("inputs '", feed.name, "' and '", name, "' are the same tensor");
  feeds_.push_back({name, source, TypeOfOutput(graph_.node(source.node))});
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
    // The only one need not be named.
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
  if (fetches_.empty() && targets_.empty()) {
    // Without fetches, the outputs are the values that nothing uses.
    std::vector<bool> used(graph_.size());
    for (int i = 0; i < static_cast<int>(graph_.size()); ++i) {
      for (const Source& input : graph_.links(i).inputs)
        if (input.is_node()) used[static_cast<size_t>(input.node)] = true;
      for (int control : graph_.links(i).controls)
        if (control >= 0) used[static_cast<size_t>(control)] = true;
    }
    for (int i = 0; i < static_cast<int>(graph_.size()); ++i)
      if (!used[static_cast<size_t>(i)] && !IsEffect(graph_.node(i).op))
        fetches_.push_back({std::string(graph_.node(i).name), {i, 0}, kNoType});
  }
  // A fed value replaces the graph's own; nodes no longer wait for a placeholder.
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
  // Placeholders that nobody named are inputs where something needs them.
  std::vector<Source> results;
  for (const Wanted& fetch : fetches_) results.push_back(fetch.source);
  const std::vector<bool> needed = graph_.Ancestors(results, targets_);
  const size_t named = feeds_.size();
  for (int i = 0; i < static_cast<int>(graph_.size()); ++i) {
    const Node& node = graph_.node(i);
    if (!needed[static_cast<size_t>(i)] ||
        (node.op != "Placeholder" && node.op != "PlaceholderV2") || TypeOfOutput(node) == kResource)
      continue;
    feeds_.push_back({std::string(node.name), {i, 0}, TypeOfOutput(node)});
  }
  replace(named);
  return Status::Ok();
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
      // Old files say no shape so.
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

// A fetched value is that of the time when its node runs: variables are copied then, and what
// branches make is handed out.
void Lowering::FetchNow(const Instance& instance, int node) {
  if (&instance != &main_) return;
  for (size_t k = 0; k < fetches_.size(); ++k) {
    if (fetches_[k].source.node != node) continue;
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
    if (is_free && taken.insert(v).second) {
      if (var(v).name != fetch.name) var(v).name = fetch.name;
    } else if (var(v).name != fetch.name) {
      const int copy = NewVar(fetch.name, var(v).dtype);
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
    draft_.fetches.emplace_back(v, static_cast<int>(draft_.fetches.size()));
    outputs_.push_back({fetch.name, facts(v).type});
  }
}

// --- variables

std::string Lowering::FreshName(std::string_view stem) {
  std::string name(stem);
  for (size_t n = draft_.vars.size(); name.empty() || !names_.insert(name).second; ++n)
    name = StrCat(stem, "/", n);
  return name;
}

int Lowering::NewVar(std::string name, DType dtype) {
  DraftVar& var = draft_.vars.emplace_back();
  var.name = std::move(name);
  var.block = block_;
  var.dtype = dtype;
  facts_.emplace_back();
  return static_cast<int>(draft_.vars.size() - 1);
}

int Lowering::AddConstant(const TensorData& data, std::string_view name) {
  const int v = NewVar(FreshName(name), StorageOf(data.type));
  var(v).block = 0;
  facts(v).type = data.type;
  facts(v).data = &data;
  facts(v).exact_name = true;
  const auto count = data.Count();
  if (!count.ok()) {
    builder_.Problem("constant '", name, "': ", count.status().message());
    facts(v).unreadable = true;
    return v;
  }
  facts(v).shape = Shape(std::span<const int64_t>(data.dims));
  if (data.type == kString) {
    var(v).kind = ir::VarKind::kRaw;
  } else {
    var(v).ranked = true;
    var(v).dims = data.dims;
  }
  return v;
}

int Lowering::AddConstant(Tensor value, std::string_view name) {
  TensorData& data = owned_.emplace_back();
  data.type = TypeOf(value.dtype());
  data.dims.assign(value.shape().begin(), value.shape().end());
  const int v = AddConstant(data, name);
  facts(v).value = std::make_shared<const Tensor>(value);
  made_constants_.emplace(v, std::move(value));
  return v;
}

int Lowering::VariableNamed(const std::string& name, int type, const Shape& shape) {
  const auto known = variables_.find(name);
  if (known != variables_.end()) return known->second;
  // The name was kept for it, unless a function makes it.
  names_.insert(name);
  const int v = NewVar(name, StorageOf(type));
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
  return v;
}

// A name that no variable of the graph has.
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

void Lowering::NoteUnknown(const Node& node, const Instance& instance) {
  Unknown& unknown = unknown_[std::string(node.op)];
  if (unknown.count++ == 0) unknown.first = Where(node, instance);
}

Status Lowering::UnknownOperators() const {
  if (unknown_.empty()) return Status::Ok();
  std::string text = StrCat(unknown_.size(), unknown_.size() == 1 ? " operator" : " operators",
                            " that heddle does not have, or not in this form:");
  for (const auto& [name, unknown] : unknown_)
    text += StrCat("\n  ", name, " (", unknown.count, unknown.count == 1 ? " time" : " times",
                   ", first: ", unknown.first, ")");
  return Unimplemented(text);
}

// --- the end

// Passes go by the shapes that variables are declared with. A variable that is written several
// times stays without: a loop may give it another shape.
void Lowering::DeclareShapes() {
  std::vector<int> writers(draft_.vars.size(), 0);
  for (const auto& block : draft_.blocks)
    for (const DraftOp& op : block.ops)
      for (const auto& [slot, vars] : op.outputs)
        for (int v : vars)
          if (v != kNoDraft) ++writers[static_cast<size_t>(v)];
  for (size_t v = 0; v < draft_.vars.size(); ++v) {
    DraftVar& var = draft_.vars[v];
    const Shape& shape = facts_[v].shape;
    if (var.ranked || var.kind != ir::VarKind::kTensor || writers[v] != 1 || !shape.known_rank() ||
        facts_[v].is_variable)
      continue;
    var.ranked = true;
    var.dims.assign(shape.begin(), shape.end());
  }
}

// Graphs have a constant for each of its readers. Where equal ones are one, equal operators are
// seen to be equal.
void Lowering::MergeConstants() {
  constexpr int64_t kMostElements = 1024;
  std::vector<bool> kept(draft_.vars.size());
  for (const auto& [v, column] : draft_.fetches) kept[static_cast<size_t>(v)] = true;
  for (const auto& block : draft_.blocks)
    for (const DraftOp& op : block.ops)
      for (const auto& [slot, vars] : op.outputs)
        for (int v : vars)
          if (v != kNoDraft) kept[static_cast<size_t>(v)] = true;
  std::unordered_map<std::string, int> first;
  std::vector<int> instead(draft_.vars.size());
  for (size_t v = 0; v < draft_.vars.size(); ++v) {
    instead[v] = static_cast<int>(v);
    const VarFacts& facts = facts_[v];
    if (!draft_.vars[v].persistable || kept[v] || facts.is_variable || facts.data == nullptr ||
        facts.unreadable || facts.type == kString)
      continue;
    const auto count = facts.data->Count();
    if (!count.ok() || *count > kMostElements) continue;
    auto made = facts.value ? Result<Tensor>(*facts.value) : MakeTensor(*facts.data);
    if (!made.ok()) continue;  // which is told when it is needed
    std::string key = StrCat(facts.data->What(), ":");
    key.append(static_cast<const char*>(made->raw()), made->bytes());
    instead[v] = first.emplace(std::move(key), static_cast<int>(v)).first->second;
  }
  for (auto& block : draft_.blocks)
    for (DraftOp& op : block.ops)
      for (auto* slots : {&op.inputs, &op.attributes_from})
        for (auto& [slot, vars] : *slots)
          for (int& v : vars)
            if (v != kNoDraft) v = instead[static_cast<size_t>(v)];
}

void Lowering::KeepParameters(Lowered* made) {
  std::vector<bool> used(draft_.vars.size());
  const auto note = [&](const auto& slots) {
    for (const auto& [slot, vars] : slots)
      for (int v : vars)
        if (v != kNoDraft) used[static_cast<size_t>(v)] = true;
  };
  for (const formats::DraftBlock& block : draft_.blocks)
    for (const DraftOp& op : block.ops) {
      note(op.inputs);
      note(op.outputs);
    }
  for (const auto& [v, column] : draft_.fetches) used[static_cast<size_t>(v)] = true;
  for (size_t v = 0; v < draft_.vars.size(); ++v) {
    DraftVar& var = draft_.vars[v];
    var.persistable = var.persistable && used[v];
    if (!var.persistable) continue;
    Parameter& p = made->parameters.emplace_back();
    p.name = var.name;
    p.is_variable = facts_[v].is_variable;
    if (p.is_variable) {
      if (const auto key = restored_.find(var.name); key != restored_.end()) p.key = key->second;
      const auto table = table_names_.find(static_cast<int>(v));
      if (table == table_names_.end()) continue;
      if (const auto found = tables_.find(table->second); found != tables_.end())
        p.table = std::move(found->second);
      else if (IsMutableTable(table->first))
        p.table.emplace().is_empty = true;
      continue;
    }
    p.data = *facts_[v].data;
    const auto own = made_constants_.find(static_cast<int>(v));
    if (own != made_constants_.end()) p.made = Value(own->second);
  }
}

}  // namespace heddle::tensorflow
