#include "gradient/tuning/edit.h"

#include <algorithm>
#include <random>
#include <set>

#include "core/error.h"
#include "core/op_registry.h"

namespace heddle::gradient {

using ir::kNoVar;
using ir::Op;
using ir::Var;
using ir::VarId;

namespace {

bool Holds(const std::vector<std::vector<VarId>>& slots, VarId v) {
  return std::any_of(slots.begin(), slots.end(), [v](const auto& slot) {
    return std::find(slot.begin(), slot.end(), v) != slot.end();
  });
}

// assign, or the scale by 1 that Paddle puts before outputs.
bool IsCopy(const Op& op) {
  if (op.type() == "assign") return true;
  return op.type() == "scale" && op.Attr<double>("scale") == 1 && op.Attr<double>("bias") == 0 &&
         op.In("ScaleTensor").empty();
}

}  // namespace

Edit::Edit(const Program& program)
    : program_(std::make_shared<ir::Program>(program.ir())),
      shared_(program_.get()),
      outputs_(program.outputs()) {
  // What a file leaves open may follow from the operands.
  for (const Op& op : ops()) shared_.InferOutputs(op);
}

Result<VarId> Edit::Output(const std::string& name, std::string_view option) const {
  std::string names;
  VarId only = kNoVar;
  int count = 0;
  for (size_t k = 0; k < program_->fetches.size() && k < outputs_.size(); ++k) {
    const VarId v = program_->fetches[k].var;
    if (!name.empty() && (outputs_[k].name == name || program_->vars[v].name == name)) return v;
    const DType dtype = program_->vars[v].dtype;
    if (dtype != DType::kUnknown && !IsFloat(dtype)) continue;
    names += (names.empty() ? "'" : ", '") + outputs_[k].name + "'";
    only = v;
    ++count;
  }
  if (!name.empty()) {
    const VarId v = program_->Find(0, name);
    if (v != kNoVar) return v;
    return NotFound(option, " '", name, "': the program has no such variable");
  }
  if (count == 1) return only;
  if (count == 0)
    return InvalidArgument("the model has no output of a floating type; ", option,
                           " names a variable instead");
  return InvalidArgument("the model has ", count, " outputs: ", names, "; ", option,
                         " says which one is meant");
}

std::string Edit::NameOf(VarId v) const {
  for (size_t k = 0; k < program_->fetches.size() && k < outputs_.size(); ++k)
    if (program_->fetches[k].var == v) return outputs_[k].name;
  return program_->vars[v].name;
}

int Edit::WriterOf(VarId v) const {
  const auto& ops = program_->blocks[0].ops;
  for (size_t k = ops.size(); k-- > 0;)
    if (Holds(ops[k].outputs, v)) return static_cast<int>(k);
  return -1;
}

std::vector<int> Edit::ReadersOf(VarId v) const {
  std::vector<int> readers;
  for (const ir::Block& block : program_->blocks)
    for (size_t k = 0; k < block.ops.size(); ++k)
      if (Holds(block.ops[k].inputs, v))
        readers.push_back(block.id == 0 ? static_cast<int>(k) : -1);
  return readers;
}

VarId Edit::Source(VarId v) const {
  for (int at = WriterOf(v); at >= 0; at = WriterOf(v)) {
    const Op& op = program_->blocks[0].ops[static_cast<size_t>(at)];
    if (!IsCopy(op) || op.In("X").size() != 1 || op.In("X")[0] == v) break;
    v = op.In("X")[0];
  }
  return v;
}

VarId Edit::Parameter(VarId v) const {
  constexpr int kMostSteps = 8;
  for (int step = 0; step < kMostSteps; ++step) {
    v = Source(v);
    if (program_->vars[v].persistable) return v;
    const int at = WriterOf(v);
    if (at < 0) return kNoVar;
    const Op& op = program_->blocks[0].ops[static_cast<size_t>(at)];
    if (op.type() != "reshape2" && op.type() != "unsqueeze2") return kNoVar;
    v = op.In("X").at(0);
  }
  return kNoVar;
}

std::string Edit::PlaceOf(int op) const {
  const auto k = static_cast<size_t>(op);
  return gradient::PlaceOf(0, program_->blocks[0].ops[k], k);
}

VarId Edit::Emit(std::string_view type, const Slots& in, const Settings& settings,
                 const std::string& name, std::string_view out, int at) {
  Op op = ir::MakeOp(*FindOp(type));
  for (const auto& [slot, vars] : in)
    op.inputs[static_cast<size_t>(op.def->FindInput(slot))] = vars;
  for (const Setting& s : settings) {
    AttrValue& value = op.attrs[static_cast<size_t>(op.def->FindAttr(s.name))];
    if (std::holds_alternative<double>(value) && std::holds_alternative<int64_t>(s.value))
      value = static_cast<double>(std::get<int64_t>(s.value));
    else
      value = s.value;
  }
  const size_t slot = out.empty() ? 0 : static_cast<size_t>(op.def->FindOutput(out));
  Var unknown;
  unknown.shape = Shape::Unknown();
  VarId made = kNoVar;
  for (size_t s = 0; s < op.outputs.size(); ++s) {
    if (s != slot && (op.def->outputs()[s].flags & (kOptional | kList)) != 0) continue;
    op.outputs[s] = {
        shared_.AddVar(s == slot ? name : name + "@" + op.def->outputs()[s].name, 0, unknown)};
    if (s == slot) made = op.outputs[s][0];
  }
  shared_.InferOutputs(op);
  auto& all = ops();
  all.insert(at < 0 ? all.end() : all.begin() + at, std::move(op));
  return made;
}

VarId Edit::AddParameter(const std::string& name, DType dtype, const Shape& shape) {
  Var like;
  like.dtype = dtype;
  like.shape = shape;
  const VarId v = shared_.AddVar(name, 0, like);
  program_->vars[v].persistable = true;
  return v;
}

Result<std::vector<VarId>> Edit::InferAgain(const std::vector<VarId>& changed,
                                            const std::function<void(ir::Op*)>& mend) {
  std::set<VarId> dirty(changed.begin(), changed.end());
  std::vector<VarId> reshaped = changed;
  for (size_t k = 0; k < ops().size(); ++k) {
    const Op& op = ops()[k];
    bool reads = false;
    for (const auto& slot : op.inputs)
      for (const VarId v : slot) reads = reads || dirty.contains(v);
    if (!reads) continue;
    if (op.def->has(kControlFlow))
      return Unimplemented(PlaceOf(static_cast<int>(k)), " reads what changes its shape");
    if (mend) mend(&ops()[k]);
    std::vector<std::pair<VarId, Shape>> before;
    for (const auto& slot : op.outputs)
      for (const VarId v : slot) {
        if (v == kNoVar || var(v).persistable || var(v).kind != ir::VarKind::kTensor) continue;
        before.emplace_back(v, var(v).shape);
        var(v).shape = Shape::Unknown();
      }
    const size_t slots = before.size();
    shared_.InferOutputs(op);
    bool any = slots == 0;
    for (const auto& [v, shape] : before) {
      any = any || var(v).shape.known_rank();
      if (var(v).shape == shape) continue;
      dirty.insert(v);
      if (std::find(reshaped.begin(), reshaped.end(), v) == reshaped.end()) reshaped.push_back(v);
    }
    if (!any)
      return Unimplemented(PlaceOf(static_cast<int>(k)),
                           " does not accept the new shapes of its operands");
  }
  return reshaped;
}

Tensor UniformTensor(DType dtype, const Shape& shape, double limit, uint64_t seed,
                     const std::string& name) {
  std::vector<uint32_t> words = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (const char c : name) words.push_back(static_cast<uint8_t>(c));
  std::seed_seq mixed(words.begin(), words.end());
  std::mt19937_64 random(mixed);
  Tensor made = Tensor::Zeros(dtype, shape);
  for (int64_t k = 0; k < made.numel(); ++k) {
    const double x = limit * (static_cast<double>(random() >> 11) * 0x1p-52 - 1);
    if (dtype == DType::kF64)
      made.mutable_data<double>()[k] = x;
    else
      made.mutable_data<float>()[k] = static_cast<float>(x);
  }
  return made;
}

}  // namespace heddle::gradient
