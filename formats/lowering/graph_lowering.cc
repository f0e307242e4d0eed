#include "formats/lowering/graph_lowering.h"

#include "core/error.h"
#include "core/interrupts.h"

namespace heddle::formats {

ValueFacts ValueFacts::Alike() const {
  ValueFacts facts;
  facts.type = type;
  facts.shape = shape;
  return facts;
}

GraphLowering::GraphLowering(const ElementTypes& types, ir::ProgramBuilder* builder, size_t blocks)
    : builder_(*builder), types_(types) {
  draft_.blocks.resize(blocks);
}

std::string GraphLowering::FreshName(std::string_view stem) {
  std::string name(stem);
  for (size_t n = draft_.vars.size(); name.empty() || !names_.insert(name).second; ++n)
    name = StrCat(stem, "/", n);
  return name;
}

int GraphLowering::NewVar(std::string name, DType dtype) {
  DraftVar& var = draft_.vars.emplace_back();
  var.name = std::move(name);
  var.block = block_;
  var.dtype = dtype;
  ResizeFacts();
  return static_cast<int>(draft_.vars.size() - 1);
}

void GraphLowering::SetType(int v, int type) {
  known(v).type = type;
  DraftVar& made = var(v);
  const ElementType* element = types_.Find(type);
  if (element == nullptr) return;
  if (made.dtype == DType::kUnknown) made.dtype = element->storage;
  if (element->is_text && made.kind == ir::VarKind::kTensor) {
    made.kind = ir::VarKind::kRaw;
    made.dtype = DType::kUnknown;
  }
}

int GraphLowering::AddConstant(const TensorBytes& data, std::string_view name) {
  const int v = NewVar(FreshName(name), types_.StorageOf(data.type));
  ValueFacts& facts = known(v);
  var(v).block = 0;
  facts.type = data.type;
  facts.data = &data;
  facts.exact_name = true;
  const auto count = data.Count();
  if (!count.ok() || data.element == nullptr) {
    builder_.Problem(data.name.empty() ? StrCat("constant '", name, "': ") : "",
                     count.ok() ? StrCat(data.What(), " is of no element type that heddle knows")
                                : count.status().message());
    facts.unreadable = true;
    return v;
  }
  facts.shape = Shape(std::span<const int64_t>(data.dims));
  var(v).dims = data.dims;
  var(v).ranked = !data.is_text();
  if (data.is_text()) var(v).kind = ir::VarKind::kRaw;
  return v;
}

TensorBytes& GraphLowering::OwnTensor(int type) {
  TensorBytes& data = owned_.emplace_back();
  data.type = type;
  data.element = types_.Find(type);
  return data;
}

int GraphLowering::AddConstant(Tensor value, int type, std::string_view name) {
  TensorBytes& data = OwnTensor(type);
  data.dims.assign(value.shape().begin(), value.shape().end());
  const int v = AddConstant(data, name);
  known(v).value = std::make_shared<const Tensor>(value);
  made_constants_.emplace(v, std::move(value));
  return v;
}

int GraphLowering::AddConstant(const Strings& values, int type, std::string_view name) {
  TensorBytes& data = OwnTensor(type);
  data.dims = {static_cast<int64_t>(values.size())};
  for (const std::string& text : values) data.strings.push_back(texts_.emplace_back(text));
  return AddConstant(data, name);
}

void GraphLowering::MakeTextPool() {
  text_pool_ = NewVar(FreshName("texts@pool"), DType::kUnknown);
  var(text_pool_).kind = ir::VarKind::kRaw;
  DraftOp& op = draft_.blocks[0].ops.emplace_back();
  op.type = "text_pool";
  op.outputs = {{"Out", {text_pool_}}};
  op.optional = true;
}

int GraphLowering::NewBlock() {
  draft_.blocks.emplace_back().parent = block_;
  return static_cast<int>(draft_.blocks.size() - 1);
}

GraphLowering::Mark GraphLowering::MarkAt(int block) const {
  return {block,
          draft_.blocks[static_cast<size_t>(block)].ops.size(),
          draft_.blocks.size(),
          draft_.vars.size(),
          builder_.problems(),
          noted_.size()};
}

void GraphLowering::GoBack(const Mark& mark) {
  draft_.blocks.resize(mark.blocks);
  draft_.blocks[static_cast<size_t>(mark.block)].ops.resize(mark.operators);
  for (size_t v = mark.vars; v < draft_.vars.size(); ++v) {
    names_.erase(draft_.vars[v].name);
    made_constants_.erase(static_cast<int>(v));
  }
  draft_.vars.resize(mark.vars);
  ResizeFacts();
  builder_.ForgetProblems(mark.problems);
  for (; noted_.size() > mark.unknown; noted_.pop_back())
    if (--noted_.back()->second.count == 0) unknown_.erase(noted_.back());
}

void GraphLowering::NoteUnknown(std::string_view op, const std::string& where) {
  auto found = unknown_.find(op);
  if (found == unknown_.end()) found = unknown_.emplace(op, Unknown()).first;
  if (found->second.count++ == 0) found->second.first = where;
  noted_.push_back(found);
}

Status GraphLowering::UnknownOperators() const {
  if (unknown_.empty()) return Status::Ok();
  std::string text = StrCat(unknown_.size(), unknown_.size() == 1 ? " operator" : " operators",
                            " that heddle does not have, or not in this form:");
  for (const auto& [name, unknown] : unknown_)
    text += StrCat("\n  ", name, " (", unknown.count, unknown.count == 1 ? " time" : " times",
                   ", first: ", unknown.first, ")");
  return Unimplemented(text);
}

std::vector<int> GraphLowering::Writers() const {
  std::vector<int> writers(draft_.vars.size());
  for (const DraftBlock& block : draft_.blocks)
    for (const DraftOp& op : block.ops)
      for (const auto& [slot, vars] : op.outputs)
        for (int v : vars)
          if (v != kNoDraft) ++writers[static_cast<size_t>(v)];
  return writers;
}

void GraphLowering::DeclareShapes() {
  LookForInterrupt();
  const std::vector<int> writers = Writers();
  for (size_t v = 0; v < draft_.vars.size(); ++v) {
    DraftVar& var = draft_.vars[v];
    const ValueFacts& facts = known(static_cast<int>(v));
    if (var.ranked || var.kind != ir::VarKind::kTensor || !facts.shape.known_rank() ||
        facts.is_variable || (writers[v] != 1 && !facts.joined))
      continue;
    var.ranked = true;
    var.dims.assign(facts.shape.begin(), facts.shape.end());
  }
}

void GraphLowering::MergeConstants() {
  LookForInterrupt();
  std::vector<int> kept = Writers();
  for (const auto& [v, column] : draft_.fetches) ++kept[static_cast<size_t>(v)];
  std::unordered_map<std::string, int> first;
  std::vector<int> instead(draft_.vars.size());
  for (size_t v = 0; v < draft_.vars.size(); ++v) {
    instead[v] = static_cast<int>(v);
    const ValueFacts& facts = known(static_cast<int>(v));
    if (!draft_.vars[v].persistable || kept[v] > 0 || facts.is_variable || facts.data == nullptr ||
        facts.unreadable || !facts.data->MayBeLookedInto())
      continue;
    auto made = facts.value ? Result<Tensor>(*facts.value) : MakeTensor(*facts.data);
    if (!made.ok()) continue;  // the error is reported where the constant is needed
    std::string key = StrCat(facts.data->TypeText(), ":");
    key.append(static_cast<const char*>(made->raw()), made->bytes());
    instead[v] = first.emplace(std::move(key), static_cast<int>(v)).first->second;
  }
  for (DraftBlock& block : draft_.blocks)
    for (DraftOp& op : block.ops)
      for (auto* slots : {&op.inputs, &op.attributes_from})
        for (auto& [slot, vars] : *slots)
          for (int& v : vars)
            if (v != kNoDraft) v = instead[static_cast<size_t>(v)];
}

std::vector<int> GraphLowering::KeptVariables() {
  LookForInterrupt();
  std::vector<int> used = Writers();
  for (const DraftBlock& block : draft_.blocks)
    for (const DraftOp& op : block.ops)
      for (const auto& [slot, vars] : op.inputs)
        for (int v : vars)
          if (v != kNoDraft) ++used[static_cast<size_t>(v)];
  for (const auto& [v, column] : draft_.fetches) ++used[static_cast<size_t>(v)];
  std::vector<int> kept;
  for (size_t v = 0; v < draft_.vars.size(); ++v) {
    draft_.vars[v].persistable = draft_.vars[v].persistable && used[v] > 0;
    if (draft_.vars[v].persistable) kept.push_back(static_cast<int>(v));
  }
  return kept;
}

Parameter GraphLowering::ParameterOf(int v) {
  Parameter p{.name = var(v).name, .data = {}, .made = {}};
  if (known(v).data != nullptr) p.data = *known(v).data;
  const auto own = made_constants_.find(v);
  if (own != made_constants_.end()) p.made = own->second;
  return p;
}

}  // namespace heddle::formats
