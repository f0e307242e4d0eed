// The public functions: they check the caller's arguments and pass them to the draft.
#include "heddle/program_builder.h"

#include <algorithm>
#include <atomic>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "builder/call.h"
#include "builder/draft.h"
#include "core/error.h"
#include "core/programs/sub_block_slots.h"
#include "heddle/bounds.h"

namespace heddle {

using builder::Known;
using ir::kNoVar;
using ir::VarId;

class ProgramBuilder::Impl {
 public:
  explicit Impl(std::string name) : draft(std::move(name)) {}

  Variable Handle(VarId v) const { return {number_, v}; }
  // The variable of a handle, if operators of the present block may name it.
  Result<VarId> Find(Variable v) const {
    if (v.builder_ == 0) return InvalidArgument("no variable is given");
    if (v.builder_ != number_ || v.id_ >= draft.vars())
      return InvalidArgument("a variable of another program is given");
    if (!draft.IsVisible(v.id_))
      return InvalidArgument("variable '", draft.var(v.id_).name,
                             "' was made in a block that has ended");
    return VarId{v.id_};
  }
  Result<std::vector<VarId>> FindAll(const std::vector<Variable>& variables) const {
    std::vector<VarId> ids;
    for (Variable v : variables) {
      if (!v) {
        ids.push_back(kNoVar);
        continue;
      }
      HEDDLE_ASSIGN_OR_RETURN(const VarId id, Find(v));
      ids.push_back(id);
    }
    return ids;
  }
  Status CheckName(const std::string& name) const {
    if (!draft.IsTaken(name)) return Status::Ok();
    return InvalidArgument("variable '", name, "': there is one of this name, or it is reserved");
  }
  // Makes an input or a parameter, a variable of the first block.
  Result<Variable> Declared(const std::string& name, DType dtype, const Shape& shape,
                            bool persistable, int lod_level = 0) {
    HEDDLE_RETURN_IF_ERROR(CheckName(name));
    if (dtype == DType::kUnknown) return InvalidArgument("variable '", name, "' has no dtype");
    if (!shape.known_rank()) return InvalidArgument("variable '", name, "' has no rank");
    for (int64_t d : shape)
      if (d < -1 || (persistable && d < 0))
        return InvalidArgument("variable '", name, "': ", d, " is no dimension");
    ir::Var var;
    var.name = name;
    var.persistable = persistable;
    var.lod_level = lod_level;
    Known known = builder::KnownOf(dtype, shape);
    known.sequences = lod_level > 0;
    return Handle(draft.NewVar(std::move(var), std::move(known)));
  }

  Status Begin(bool loop, Variable condition);
  Result<OperatorResults> Add(std::string_view type, const Operands& inputs,
                              const Attributes& attributes, const Targets& targets);

  builder::Draft draft;

 private:
  static uint64_t NextNumber() {
    static std::atomic<uint64_t> made{0};
    return made.fetch_add(1) + 1;
  }
  // An output slot of an operator that is not added yet.
  struct Output {
    std::vector<VarId> there;          // existing variables
    std::vector<std::string> to_make;  // names of new ones; "": FreshName() gives one
  };
  Status Fill(ir::Op* op, const Operands& inputs, const Attributes& attributes) const;
  Result<Output> OutputFor(const SlotDef& slot, const Target* target) const;
  Result<std::vector<Output>> OutputsFor(const OpDef& def, const Targets& targets) const;
  Status CheckWrites(const ir::Op& op, const std::vector<Known>& written) const;

  // Variables carry this number, since the address of a later builder may be the same.
  const uint64_t number_ = NextNumber();
};

Status ProgramBuilder::Impl::Fill(ir::Op* op, const Operands& inputs,
                                  const Attributes& attributes) const {
  const OpDef& def = *op->def;
  for (const auto& [name, variables] : inputs) {
    HEDDLE_ASSIGN_OR_RETURN(const size_t s, builder::InputNamed(def, name));
    if (!op->inputs[s].empty()) return InvalidArgument("input slot '", name, "' is given twice");
    auto ids = FindAll(variables);
    if (!ids.ok()) return InvalidArgument("input slot '", name, "': ", ids.status().message());
    op->inputs[s] = *std::move(ids);
  }
  HEDDLE_RETURN_IF_ERROR(builder::CheckInputs(*op));
  std::vector<bool> given(op->attrs.size());
  for (const auto& [name, value] : attributes) {
    HEDDLE_ASSIGN_OR_RETURN(const size_t a, builder::AttributeNamed(def, name));
    if (given[a]) return InvalidArgument("attribute '", name, "' is given twice");
    given[a] = true;
    std::vector<Variable> from;
    if (const auto* one = std::get_if<Variable>(&value)) from = {*one};
    if (const auto* list = std::get_if<std::vector<Variable>>(&value)) from = *list;
    if (from.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(op->attrs[a], builder::Converted(def.attrs()[a], value));
      continue;
    }
    std::vector<VarId> ids;
    for (Variable v : from) {
      const auto id = Find(v);
      if (!id.ok()) return InvalidArgument("attribute '", name, "': ", id.status().message());
      ids.push_back(*id);
    }
    op->var_attrs.push_back(static_cast<int>(a));
    op->inputs.push_back(std::move(ids));
  }
  return Status::Ok();
}

Result<ProgramBuilder::Impl::Output> ProgramBuilder::Impl::OutputFor(const SlotDef& slot,
                                                                     const Target* target) const {
  Output output;
  if (target == nullptr) {
    const bool left_out = (slot.flags & kOptional) != 0 || ir::IsSubBlockSlot(slot);
    if (!left_out && (slot.flags & kList))
      return InvalidArgument("output slot '", slot.name,
                             "' takes a list: say how many variables it has");
    if (!left_out) output.to_make = {""};
    return output;
  }
  if (const int* count = std::get_if<int>(target)) {
    constexpr int kMost = 100'000;
    if (*count < 1 || *count > kMost)
      return InvalidArgument("output slot '", slot.name, "' cannot have ", *count, " variables");
    output.to_make.resize(static_cast<size_t>(*count));
  } else if (const auto* names = std::get_if<std::vector<std::string>>(target)) {
    output.to_make = *names;
    for (const std::string& name : *names)
      if (!name.empty()) HEDDLE_RETURN_IF_ERROR(CheckName(name));
  } else {
    auto ids = FindAll(std::get<std::vector<Variable>>(*target));
    if (!ids.ok())
      return InvalidArgument("output slot '", slot.name, "': ", ids.status().message());
    output.there = *std::move(ids);
  }
  const size_t count = output.there.size() + output.to_make.size();
  if (!(slot.flags & kList) && count != 1)
    return InvalidArgument("output slot '", slot.name, "' takes one variable, not ", count);
  return output;
}

Result<std::vector<ProgramBuilder::Impl::Output>> ProgramBuilder::Impl::OutputsFor(
    const OpDef& def, const Targets& targets) const {
  std::vector<const Target*> given(def.outputs().size());
  for (const auto& [name, target] : targets) {
    HEDDLE_ASSIGN_OR_RETURN(const size_t s, builder::OutputNamed(def, name));
    if (given[s] != nullptr) return InvalidArgument("output slot '", name, "' is given twice");
    given[s] = &target;
  }
  std::vector<Output> outputs;
  outputs.reserve(given.size());  // `names` refers to them
  std::unordered_set<std::string_view> names;
  std::unordered_set<VarId> there;
  for (size_t s = 0; s < given.size(); ++s) {
    HEDDLE_ASSIGN_OR_RETURN(Output output, OutputFor(def.outputs()[s], given[s]));
    outputs.push_back(std::move(output));
    for (const std::string& name : outputs.back().to_make)
      if (!name.empty() && !names.insert(name).second)
        return InvalidArgument("two outputs are called '", name, "'");
    for (VarId v : outputs.back().there)
      if (v != kNoVar && !there.insert(v).second)
        return InvalidArgument("two outputs are variable '", draft.var(v).name, "'");
  }
  return outputs;
}

// An error if an output would change the dtype of its variable.
Status ProgramBuilder::Impl::CheckWrites(const ir::Op& op,
                                         const std::vector<Known>& written) const {
  size_t at = 0;
  for (size_t s = 0; s < op.outputs.size(); ++s) {
    for (VarId v : op.outputs[s]) {
      const Known& made = written[at++];
      if (v == kNoVar) continue;
      const Known& has = draft.known(v);
      if (made.dtype == DType::kUnknown || has.dtype == DType::kUnknown ||
          has.kind != ir::VarKind::kTensor || has.dtype == made.dtype)
        continue;
      return InvalidArgument("output slot '", op.def->outputs()[s].name, "': variable '",
                             draft.var(v).name, "' is ", Name(has.dtype),
                             ", and the operator makes ", Name(made.dtype));
    }
  }
  return Status::Ok();
}

Result<OperatorResults> ProgramBuilder::Impl::Add(std::string_view type, const Operands& inputs,
                                                  const Attributes& attributes,
                                                  const Targets& targets) {
  HEDDLE_ASSIGN_OR_RETURN(const OpDef* def, builder::OperatorNamed(type));
  ir::Op op = ir::MakeOp(*def);
  HEDDLE_RETURN_IF_ERROR(Fill(&op, inputs, attributes));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Output> outputs, OutputsFor(*def, targets));
  // Shape functions need to know which outputs are present; new ones need no variable for that.
  for (size_t s = 0; s < outputs.size(); ++s) {
    op.outputs[s] = outputs[s].there;
    op.outputs[s].resize(op.outputs[s].size() + outputs[s].to_make.size(), 0);
  }
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<Known> written, draft.Ask(op));
  for (size_t s = 0; s < outputs.size(); ++s)
    for (size_t i = outputs[s].there.size(); i < op.outputs[s].size(); ++i)
      op.outputs[s][i] = kNoVar;
  HEDDLE_RETURN_IF_ERROR(CheckWrites(op, written));
  // Names that the caller chose come first, so that FreshName() does not return them.
  for (const bool chosen : {true, false}) {
    for (size_t s = 0; s < outputs.size(); ++s) {
      for (size_t i = 0; i < outputs[s].to_make.size(); ++i) {
        const std::string& name = outputs[s].to_make[i];
        if (name.empty() == chosen) continue;
        ir::Var var;
        var.name = chosen ? name : draft.FreshName(type);
        var.block = draft.block();
        op.outputs[s][outputs[s].there.size() + i] = draft.NewVar(std::move(var), {});
      }
    }
  }
  HEDDLE_RETURN_IF_ERROR(draft.Add(op, written));
  OperatorResults results;
  for (size_t s = 0; s < outputs.size(); ++s) {
    if (op.outputs[s].empty()) continue;
    auto& made = results.emplace_back(def->outputs()[s].name, std::vector<Variable>());
    for (VarId v : op.outputs[s]) made.second.push_back(v == kNoVar ? Variable() : Handle(v));
  }
  return results;
}

Status ProgramBuilder::Impl::Begin(bool loop, Variable condition) {
  const auto check = [&]() -> Result<VarId> {
    HEDDLE_ASSIGN_OR_RETURN(const VarId v, Find(condition));
    const Known& known = draft.known(v);
    if (known.dtype != DType::kUnknown && known.dtype != DType::kBool)
      return InvalidArgument("the condition, '", draft.var(v).name, "', is ", Name(known.dtype),
                             "; one bool is expected");
    if (known.ranked && !known.open() && known.at[0].numel() != 1)
      return InvalidArgument("the condition, '", draft.var(v).name, "', has shape ",
                             known.shape().ToString(), "; one bool is expected");
    return v;
  };
  if (draft.open_blocks() >= static_cast<size_t>(kMostNestedBlocks))
    return draft.Here(
        InvalidArgument("more than ", kMostNestedBlocks, " levels of blocks in blocks"),
        loop ? "while" : "conditional_block");
  const auto checked = check();
  if (!checked.ok()) return draft.Here(checked.status(), loop ? "while" : "conditional_block");
  draft.BeginBlock(loop, *checked);
  return Status::Ok();
}

ProgramBuilder::ProgramBuilder(std::string name) : impl_(std::make_unique<Impl>(std::move(name))) {}
ProgramBuilder::ProgramBuilder(ProgramBuilder&&) noexcept = default;
ProgramBuilder& ProgramBuilder::operator=(ProgramBuilder&&) noexcept = default;
ProgramBuilder::~ProgramBuilder() = default;

Result<Variable> ProgramBuilder::Feed(const std::string& name, DType dtype, const Shape& shape,
                                      int lod_level) {
  HEDDLE_ASSIGN_OR_RETURN(const Variable v,
                          impl_->Declared(name, dtype, shape, /*persistable=*/false, lod_level));
  ir::ProgramBuilder& ir = impl_->draft.builder;
  ir.AddFeed(v.id_, static_cast<int>(ir.program().feeds.size()));
  return v;
}

Result<Variable> ProgramBuilder::Parameter(const std::string& name, Tensor value) {
  if (!value.initialized()) return InvalidArgument("parameter '", name, "' has no value");
  HEDDLE_ASSIGN_OR_RETURN(const Variable v, Parameter(name, value.dtype(), value.shape()));
  impl_->draft.scope->Set(name, Value(value.Contiguous()));
  impl_->draft.SetValue(v.id_, &impl_->draft.scope->Find(name)->tensor());
  return v;
}

Result<Variable> ProgramBuilder::Parameter(const std::string& name, DType dtype,
                                           const Shape& shape) {
  return impl_->Declared(name, dtype, shape, /*persistable=*/true);
}

Result<Variable> ProgramBuilder::Array(const std::string& name, DType dtype) {
  HEDDLE_RETURN_IF_ERROR(impl_->CheckName(name));
  ir::Var var;
  var.name = name;
  var.block = impl_->draft.block();
  var.kind = ir::VarKind::kArray;
  Known known;
  known.dtype = dtype;
  return impl_->Handle(impl_->draft.NewVar(std::move(var), std::move(known)));
}

Status ProgramBuilder::Fetch(Variable variable) {
  HEDDLE_ASSIGN_OR_RETURN(const VarId v, impl_->Find(variable));
  const ir::Var& var = impl_->draft.var(v);
  if (var.block != 0)
    return InvalidArgument("variable '", var.name, "' of an inner block cannot be an output");
  ir::ProgramBuilder& ir = impl_->draft.builder;
  ir.AddFetch(v, static_cast<int>(ir.program().fetches.size()));
  return Status::Ok();
}

Result<OperatorResults> ProgramBuilder::Add(std::string_view type, const Operands& inputs,
                                            const Attributes& attributes, const Targets& targets) {
  auto results = impl_->Add(type, inputs, attributes, targets);
  if (!results.ok()) return impl_->draft.Here(results.status(), type);
  return results;
}

Result<Variable> ProgramBuilder::Apply(std::string_view type, const Operands& inputs,
                                       const Attributes& attributes, const Targets& targets) {
  HEDDLE_ASSIGN_OR_RETURN(const OperatorResults results, Add(type, inputs, attributes, targets));
  return results.empty() ? Variable() : results[0].second[0];
}

Status ProgramBuilder::Assign(Variable from, Variable to) {
  return Add("assign", {{"X", {from}}}, {}, {{"Out", std::vector<Variable>{to}}}).status();
}

Status ProgramBuilder::BeginWhile(Variable condition) { return impl_->Begin(true, condition); }
Status ProgramBuilder::BeginIf(Variable condition) { return impl_->Begin(false, condition); }
Status ProgramBuilder::EndBlock() {
  if (impl_->draft.block() == 0) return InvalidArgument("there is no block to end");
  return impl_->draft.EndBlock();
}

Status ProgramBuilder::Declare(Variable variable, DType dtype, const Shape& shape) {
  HEDDLE_ASSIGN_OR_RETURN(const VarId v, impl_->Find(variable));
  const Known& has = impl_->draft.known(v);
  const std::string& name = impl_->draft.var(v).name;
  if (has.dtype != DType::kUnknown && has.dtype != dtype)
    return InvalidArgument("variable '", name, "' is ", Name(has.dtype), ", not ", Name(dtype));
  bool fits = !has.ranked || has.at[0].rank() == shape.rank();
  for (int64_t d : shape)
    if (d < -1) return InvalidArgument("variable '", name, "': ", d, " is no dimension");
  for (int i = 0; has.ranked && fits && i < shape.rank(); ++i)
    fits = shape[i] < 0 || has.shape()[i] < 0 || shape[i] == has.shape()[i];
  if (!fits)
    return InvalidArgument("variable '", name, "' has shape ", has.shape().ToString(), ", not ",
                           shape.ToString());
  impl_->draft.Declare(v, builder::KnownOf(dtype, shape));
  return Status::Ok();
}

Result<TensorInfo> ProgramBuilder::Info(Variable variable) const {
  HEDDLE_ASSIGN_OR_RETURN(const VarId v, impl_->Find(variable));
  const Known& known = impl_->draft.known(v);
  return TensorInfo{impl_->draft.var(v).name, known.dtype, known.shape()};
}

int64_t ProgramBuilder::MarkNext() { return impl_->draft.MarkNext(); }
void ProgramBuilder::NextAfter(const std::vector<int64_t>& marks) { impl_->draft.NextAfter(marks); }
void ProgramBuilder::SetPlace(std::string place) { impl_->draft.SetPlace(std::move(place)); }

Result<Model> ProgramBuilder::Finish() && {
  // Later calls apply to a new, empty program, which rejects the variables of this one.
  const auto impl = std::exchange(impl_, std::make_unique<Impl>(impl_->draft.builder.name()));
  return impl->draft.Finish();
}

}  // namespace heddle
