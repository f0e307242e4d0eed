#include "formats/onnx/lower.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "formats/onnx/definitions/definitions.h"
#include "formats/onnx/functions/library.h"
#include "formats/onnx/handlers.h"
#include "formats/onnx/unsigned.h"

namespace heddle::onnx {
namespace {

// The most nodes in all, calls of local functions expanded: functions in a file of a few bytes can
// call each other so that no memory holds the result.
constexpr size_t kMostNodes = 1'000'000;

bool IsKnownDomain(std::string_view domain) {
  return domain.empty() || domain == "ai.onnx.ml" || domain == "com.microsoft" ||
         domain == "ai.onnx.preview" || domain == "ai.onnx.preview.training";
}

// Whether a handler has made the node, with the names of Lowering::OwnName.
bool IsOwn(const Node& node) { return !node.outputs.empty() && node.outputs[0].starts_with('\n'); }

}  // namespace

VarFacts VarFacts::Alike() const {
  VarFacts facts;
  static_cast<ValueFacts&>(facts) = ValueFacts::Alike();
  facts.kind = kind;
  facts.typed = typed;
  facts.of_sequence = of_sequence;
  return facts;
}

Lowering::Lowering(const Model& model, ir::ProgramBuilder* builder)
    : GraphLoweringOf(Types(), builder), model_(model), library_(LibraryOf(model)) {}

Result<Lowered> Lowering::Run() {
  HEDDLE_RETURN_IF_ERROR(CheckVersions());
  for (const Function& f : model_.functions)
    if (!functions_.emplace(FunctionNameOf(f), &f).second)
      builder_.Problem("function '", f.name, "' of domain '", f.domain, "' is given twice");
  std::unordered_set<std::string_view> filled;
  for (const TensorData& t : model_.graph.initializers) filled.insert(t.name);
  for (const ValueInfo& v : model_.graph.inputs)
    if (!filled.contains(v.name)) KeepName(std::string(v.name));
  for (const ValueInfo& v : model_.graph.outputs) {
    KeepName(std::string(v.name));
    output_names_.insert(v.name);
  }
  AddInitializers(model_.graph, &main_);
  LowerInputs();
  MakeTextPool();
  TakeTextLists();
  Surroundings around;
  around.names = &main_;
  around.opsets = &model_.opsets;
  LowerNodes(model_.graph.nodes, around);
  HEDDLE_RETURN_IF_ERROR(UnknownOperators());
  LowerOutputs();
  Lowered made;
  if (builder_.ok()) Recognise();
  DeclareShapes();
  formats::FinishDraft(&draft_);
  for (int v : KeptVariables()) made.parameters.push_back(ParameterOf(v));
  MoveTo(&made);
  made.inputs = std::move(inputs_);
  made.outputs = std::move(outputs_);
  made.keys = std::move(keys_);
  return made;
}

Status Lowering::CheckVersions() const {
  for (const OpsetImport& opset : model_.opsets)
    if (opset.domain.empty() && (opset.version < 1 || opset.version > kNewestOpset))
      return Unimplemented("the model is of opset ", opset.version, "; heddle reads 1 to ",
                           kNewestOpset);
  return Status::Ok();
}

void Lowering::AddInitializers(const Graph& graph, NameScope* names) {
  const auto define = [&](std::string_view name, auto make) {
    if (names->vars.contains(name))
      return builder_.Problem("initializer '", name, "' is given twice");
    names->vars.emplace(name, make());
  };
  for (const TensorData& data : graph.initializers)
    define(data.name, [&] { return AddConstant(data, data.name); });
  for (const SparseData& data : graph.sparse_initializers) {
    define(data.values.name, [&] {
      auto dense = MakeDense(data);
      if (!dense.ok()) {
        builder_.Problem(dense.status().message());
        return kNoDraft;
      }
      return AddConstant(*std::move(dense), data.values.type, data.values.name);
    });
  }
}

// Inputs with an initializer are parameters, not feeds.
void Lowering::LowerInputs() {
  for (const ValueInfo& input : model_.graph.inputs) {
    if (const auto known = main_.vars.find(input.name); known != main_.vars.end()) {
      if (known->second == kNoDraft || facts(known->second).data == nullptr)
        builder_.Problem("input '", input.name, "' is given twice");
      continue;
    }
    const Type& type = input.type;
    const int v = NewVar(std::string(input.name), DType::kUnknown);
    facts(v).exact_name = true;
    facts(v).kind = type.kind;
    facts(v).of_sequence = type.kind == Type::Kind::kOptional && !type.inner.empty() &&
                           type.inner[0].kind == Type::Kind::kSequence;
    const Type* elements = &type;
    while (!elements->inner.empty()) elements = elements->inner.data();
    facts(v).type = elements->element;
    DraftVar& made = var(v);
    made.fed = true;
    if (type.kind == Type::Kind::kTensor) {
      made.dtype = StorageOf(type.element);
      if (type.element == kString) {
        made.kind = ir::VarKind::kRaw;
      } else if (made.dtype == DType::kUnknown) {
        builder_.Problem("input '", input.name, "': ", type.element,
                         " is no element type that heddle knows");
      }
      if (type.ranked && type.dims.size() <= static_cast<size_t>(Shape::kMaxRank)) {
        made.ranked = type.element != kString;
        made.dims = type.dims;
        facts(v).shape = Shape(std::span<const int64_t>(type.dims));
      }
    } else if (type.kind == Type::Kind::kSequence || type.kind == Type::Kind::kOptional) {
      made.kind = facts(v).type == kString ? ir::VarKind::kRaw : ir::VarKind::kArray;
    } else {
      builder_.Problem("input '", input.name, "': only tensors, sequences and optionals are read");
    }
    main_.vars.emplace(input.name, v);
    draft_.feeds.emplace_back(v, static_cast<int>(draft_.feeds.size()));
    inputs_.push_back(type);
  }
}

bool Lowering::IsTextList(int v) {
  return facts(v).type == kString &&
         (facts(v).kind == Type::Kind::kSequence || facts(v).kind == Type::Kind::kOptional);
}

// Inside the program, lists of texts are lists of numbers.
void Lowering::TakeTextLists() {
  Surroundings around;
  around.names = &main_;
  for (const ValueInfo& input : model_.graph.inputs) {
    int& v = main_.vars.at(input.name);
    if (v == kNoDraft || !var(v).fed || !IsTextList(v)) continue;
    Node& node = owned_nodes_.emplace_back();
    node.op_type = "input";
    node.outputs = {input.name};
    const int fed = std::exchange(v, NodeLowering(*this, node, around, 0).NumbersOfList(v));
    TakeFacts(fed, v);
  }
}

// The variable with which a list of texts leaves the program under this name.
int Lowering::GivenTextList(int v, std::string_view name) {
  Surroundings around;
  around.names = &main_;
  Node& node = owned_nodes_.emplace_back();
  node.op_type = "output";
  node.inputs = {name};
  const int made = NodeLowering(*this, node, around, 0).TextsOfList(v);
  TakeFacts(v, made);
  if (var(v).name == name) {
    FreeName(std::string(name));
    var(v).name = FreshName(StrCat(name, "/numbers"));
  }
  return made;
}

void Lowering::LowerOutputs() {
  std::unordered_set<std::string_view> seen;
  std::unordered_map<int, int> outputs_of;
  std::unordered_set<int> named;  // variables that already have the name of an output
  for (const ValueInfo& output : model_.graph.outputs)
    if (const auto v = main_.vars.find(output.name);
        v != main_.vars.end() && v->second != kNoDraft && var(v->second).name == output.name)
      named.insert(v->second);
  for (const ValueInfo& output : model_.graph.outputs) {
    const int column = static_cast<int>(draft_.fetches.size());
    const auto found = main_.vars.find(output.name);
    if (found == main_.vars.end() || found->second == kNoDraft) {
      if (TooMany()) continue;
      builder_.Problem("output '", output.name, "': no node makes it");
      continue;
    }
    int v = found->second;
    if (IsTextList(v)) v = GivenTextList(v, output.name);
    // A value that has another name, as behind an Identity, and that is no other output takes the
    // output's name.
    if (var(v).name != output.name && !facts(v).data && !var(v).fed && var(v).block == 0 &&
        !outputs_of[v]++ && !named.contains(v)) {
      FreeName(std::string(output.name));
      var(v).name = FreshName(output.name);
    }
    const bool own =
        var(v).name == output.name && !facts(v).data && seen.insert(output.name).second;
    if (!own) {
      // An initializer, a feed, or a value that has another name: the output is a copy.
      FreeName(std::string(output.name));
      const int copy = NewVar(FreshName(output.name), var(v).dtype);
      var(copy).kind = var(v).kind;
      facts(copy) = facts(v);
      facts(copy).data = nullptr;
      if (facts(v).data != nullptr) var(v).persistable = true;
      DraftOp& assign = draft_.blocks[0].ops.emplace_back();
      assign.type = "assign";
      assign.inputs = {{"X", {v}}};
      assign.outputs = {{"Out", {copy}}};
      v = copy;
    }
    var(v).named = true;
    draft_.fetches.emplace_back(v, column);
    Type type = output.type;
    if (type.kind == Type::Kind::kNone ||
        (type.kind == Type::Kind::kTensor && StorageOf(type.element) != var(v).dtype &&
         var(v).dtype != DType::kUnknown)) {
      type.kind = facts(v).kind;
      type.element = facts(v).type;
      type.inner.clear();
      if (type.kind == Type::Kind::kSequence || type.kind == Type::Kind::kOptional) {
        type.inner.emplace_back();
        type.inner[0].kind = Type::Kind::kTensor;
        type.inner[0].element = facts(v).type;
      }
    }
    outputs_.push_back(std::move(type));
    keys_.push_back(facts(v).keys);
  }
}

void Lowering::LowerNodes(const std::vector<Node>& nodes, const Surroundings& around) {
  for (const Node* node : InOrder(nodes)) {
    if (TooMany()) return;
    if (++nodes_lowered_ > kMostNodes) {
      // Said at once, before what is missing for it.
      builder_.Problem("more than ", kMostNodes, " nodes, those of functions counted in each call");
      return;
    }
    LowerNode(*node, around);
  }
}

bool Lowering::TooMany() const { return nodes_lowered_ > kMostNodes; }

namespace {

struct NameOrder {
  bool operator()(const Attribute& a, const Attribute& b) const { return a.name < b.name; }
  bool operator()(const Attribute& a, std::string_view b) const { return a.name < b; }
  bool operator()(std::string_view a, const Attribute& b) const { return a < b.name; }
};

}  // namespace

void Lowering::LowerNode(const Node& file_node, const Surroundings& around) {
  const Node* node = &file_node;
  // Attributes that refer to attributes of the function's call.
  const bool refers = std::any_of(node->attributes.begin(), node->attributes.end(),
                                  [](const Attribute& a) { return !a.reference.empty(); });
  if (refers) {
    Node& own = owned_nodes_.emplace_back(file_node);
    std::vector<Attribute> kept;
    for (const Attribute& a : own.attributes) {
      if (a.reference.empty()) {
        kept.push_back(a);
        continue;
      }
      if (around.arguments == nullptr) {
        builder_.Problem(Where(*node), ": attribute '", a.name, "' refers to '", a.reference,
                         "' outside of any function");
        continue;
      }
      const auto given = std::equal_range(around.arguments->begin(), around.arguments->end(),
                                          a.reference, NameOrder());
      for (auto one = given.first; one != given.second; ++one) {
        kept.push_back(*one);
        kept.back().name = a.name;
      }
    }
    own.attributes = std::move(kept);
    node = &own;
  }
  int64_t version = -1;
  for (const OpsetImport& opset : *around.opsets)
    if (opset.domain == node->domain) version = opset.version;
  if (version < 0) {
    builder_.Problem(Where(*node), ": the model imports no version of domain '", node->domain, "'");
  } else if (node->domain.empty() && version > kNewestOpset) {
    builder_.Problem(Where(*node), ": opset ", version, "; heddle reads 1 to ", kNewestOpset);
  }
  NodeLowering lowering(*this, *node, around, version);
  bool done = version < 0;
  const bool known = IsKnownDomain(node->domain);
  if (!done && !known) done = LowerCall(*node, around);
  if (!done && known && !IsOwn(*node) && !functions_.contains(CalledBy(*node)))
    done = !CheckDefinition(lowering) || !CheckDemands(lowering);
  if (!done && known) {
    const Handler handler = FindHandler(node->domain, node->op_type);
    if (handler != nullptr && node->outputs.empty()) lowering.Problem("has no output");
    // Also inputs that no handler reads.
    for (size_t i = 0; i < node->inputs.size(); ++i) lowering.In(i);
    done = (handler != nullptr && node->outputs.empty()) || LowerStringMover(lowering) ||
           LowerUnsignedForm(lowering) || (handler != nullptr && handler(lowering)) ||
           LowerDirect(lowering);
    if (!done) done = LowerCall(*node, around);
  }
  if (!done) done = LowerOwn(lowering);
  if (!done) NoteUnknown(node->FullName(), Place(*node, around));
  SetDefinedTypes(lowering);
  // Outputs that an erroneous node did not make are declared, so that nodes after it report no
  // errors for them.
  for (std::string_view output : node->outputs)
    if (!output.empty() && !around.names->vars.contains(output))
      around.names->vars.emplace(output, NewVar(FreshName(output), DType::kUnknown));
}

// Prepares a node for operands of unsigned types; true: it is lowered already, or refused.
bool Lowering::LowerUnsignedForm(NodeLowering& n) {
  const int type = n.UnsignedType();
  if (type == kUndefinedType || functions_.contains(CalledBy(n.node()))) return false;
  const auto use = UnsignedUseOf(n, type);
  if (!n.SetUnsigned(use, type)) return true;
  return use == formats::UnsignedUse::kOwn && LowerUnsigned(n, type);
}

// Expands a call of one of the model's functions: lowers its nodes in a name scope of their own.
bool Lowering::LowerCall(const Node& node, const Surroundings& around) {
  const auto found = functions_.find(CalledBy(node));
  if (found == functions_.end()) return false;
  const Function& f = *found->second;
  NodeLowering call(*this, node, around, 0);
  if (const auto made = library_.Instantiate(found->first, ValuesOf(node.attributes)); !made.ok()) {
    call.Problem(made.status().message());
    return true;
  }
  if (around.depth >= kMostDepth) {
    call.Problem("functions call each other more than ", kMostDepth, " deep");
    return true;
  }
  if (node.inputs.size() > f.inputs.size() || node.outputs.size() > f.outputs.size()) {
    call.Problem("has ", node.inputs.size(), " inputs and ", node.outputs.size(),
                 " outputs; the function takes ", f.inputs.size(), " and gives ", f.outputs.size());
    return true;
  }
  NameScope names;
  for (size_t i = 0; i < f.inputs.size(); ++i) names.vars.emplace(f.inputs[i], call.In(i));
  std::vector<Attribute> arguments = node.attributes;
  std::unordered_set<std::string_view> named;
  for (const Attribute& a : node.attributes) named.insert(a.name);
  for (const Attribute& a : f.defaults)
    if (!named.contains(a.name)) arguments.push_back(a);
  std::stable_sort(arguments.begin(), arguments.end(), NameOrder());
  Surroundings inside;
  inside.names = &names;
  inside.opsets = f.opsets.empty() ? around.opsets : &f.opsets;
  inside.function = &f;
  inside.arguments = &arguments;
  inside.depth = around.depth + 1;
  LowerNodes(f.nodes, inside);
  if (TooMany()) return true;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!call.Wants(i)) continue;
    const auto made = names.vars.find(f.outputs[i]);
    if (made == names.vars.end() || made->second == kNoDraft)
      call.Problem("the function does not make its output '", f.outputs[i], "'");
    else
      call.Result(i, made->second);
  }
  return true;
}

std::string_view Lowering::OwnName(size_t k) {
  while (own_names_.size() <= k) {
    // The name begins with a newline. It can only collide with an input of the same node in a file
    // that uses just such names.
    std::string& name = own_names_.emplace_back("\n");
    name += std::to_string(own_names_.size());
  }
  return own_names_[k];
}

std::string Lowering::Where(const Node& node) const {
  std::string text = StrCat("block ", block_, ", op ", node.index, " (", node.FullName());
  if (!node.name.empty()) text += StrCat(" '", node.name, "'");
  return text + ")";
}

std::string Lowering::Place(const Node& node, const Surroundings& around) const {
  std::string text = StrCat("block ", block_, ", op ", node.index);
  if (!node.name.empty()) text += StrCat(" '", node.name, "'");
  if (around.function != nullptr) text += StrCat(" of function ", around.function->name);
  return text;
}

void Lowering::Recognise() {
  const Node none;
  Surroundings around;
  around.names = &main_;
  NodeLowering reader(*this, none, around, 0);
  RecogniseForms(&draft_, all_facts(), [&](int v) -> std::optional<double> {
    const Shape& shape = facts(v).shape;
    if (facts(v).data == nullptr || shape.rank() > 1 || !shape.is_static() || shape.numel() != 1)
      return std::nullopt;
    const auto number = reader.ConstantFloats(v);
    return number ? std::optional((*number)[0]) : std::nullopt;
  });
}

}  // namespace heddle::onnx
