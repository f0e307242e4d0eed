#include "offload/group_description.h"

#include <algorithm>

#include "core/error.h"
#include "core/guard.h"

namespace heddle::offload {

using ir::kNoVar;
using ir::VarId;

GroupDescription::GroupDescription(const Group& group, Onnx onnx)
    : symbol_(group.symbol), program_(group.program), parameters_(group.parameters) {
  AddValues();
  for (const ir::Op& op : program_->blocks[0].ops) AddOperator(op);
  std::vector<VarId> inputs, outputs;
  for (const ir::Port& feed : program_->feeds) inputs.push_back(feed.var);
  for (const ir::Port& fetch : program_->fetches) outputs.push_back(fetch.var);
  Finish(inputs, outputs);
  if (onnx == Onnx::kNone) return;
  writer_ = std::make_unique<OnnxWriter>(*program_, parameters_);
  onnx_status_ = writer_->Prepare();
  if (!onnx_status_.ok()) {
    writer_ = nullptr;
    return;
  }
  onnx_outline_ = writer_->outline();
  SetTypes(*writer_);
  if (onnx == Onnx::kWritten) WriteOnnx();
}

GroupDescription::GroupDescription(const Group& group, Range part, OnnxWriter* onnx)
    : symbol_(group.symbol), program_(group.program), parameters_(group.parameters) {
  AddValues();
  std::vector<VarId> inputs, outputs;
  std::vector<bool> seen(program_->vars.size()), written(program_->vars.size());
  for (size_t at = part.first; at < part.last; ++at) {
    const ir::Op& op = program_->blocks[0].ops[at];
    AddOperator(op);
    for (const auto& slot : op.inputs)
      for (const VarId v : slot) {
        if (v == kNoVar || seen[v]) continue;
        seen[v] = true;
        if (!program_->vars[v].persistable) inputs.push_back(v);
      }
    for (const auto& slot : op.outputs)
      for (const VarId v : slot) {
        if (v == kNoVar || written[v]) continue;
        seen[v] = written[v] = true;
        outputs.push_back(v);
      }
  }
  Finish(inputs, outputs);
  if (onnx == nullptr) return;
  SetOnnx(onnx->WriteRange(part.first, part.last, inputs, outputs));
  if (onnx_status_.ok()) SetTypes(*onnx);
}

void GroupDescription::Finish(const std::vector<VarId>& inputs, const std::vector<VarId>& outputs) {
  const auto& in = Indices(inputs);
  const auto& out = Indices(outputs);
  group_ = {sizeof(group_),
            symbol_.c_str(),
            value_list_.size(),
            value_list_.data(),
            operator_list_.size(),
            operator_list_.data(),
            in.size(),
            in.data(),
            out.size(),
            out.data(),
            nullptr,
            0,
            nullptr,
            nullptr};
}

void GroupDescription::SetTypes(const OnnxWriter& onnx) {
  for (const auto& [var, dtype] : onnx.types())  // where the program does not declare it
    if (values_[var].dtype == HEDDLE_ENGINE_UNKNOWN)
      values_[var].dtype = static_cast<int32_t>(dtype);
}

void GroupDescription::SetOnnx(Result<std::string> written) {
  onnx_status_ = written.status();
  if (!written.ok()) return;
  onnx_ = *std::move(written);
  group_.onnx = onnx_.data();
  group_.onnx_bytes = onnx_.size();
}

void GroupDescription::WriteOnnx() {
  group_.host = nullptr;
  group_.later = nullptr;
  if (writer_ != nullptr) SetOnnx(writer_->Bytes());
  writer_ = nullptr;
  if (onnx_.empty()) return;  // else an engine has had it written, and restored nothing
  group_.onnx = onnx_.data();
  group_.onnx_bytes = onnx_.size();
}

void GroupDescription::WriteOnnxLater(std::function<bool()> is_same) {
  if (writer_ == nullptr) return;
  is_same_ = std::move(is_same);
  group_.host = this;
  group_.later = Later;
}

// Called by engines: what is told to others of the group stays as it is.
const void* GroupDescription::Later(void* description, size_t* bytes) {
  auto& self = *static_cast<GroupDescription*>(description);
  const Status written = Guard([&] {
    if (self.writer_ == nullptr) return Status::Ok();
    if (!self.is_same_()) return InvalidArgument("parameters have changed");
    HEDDLE_ASSIGN_OR_RETURN(self.onnx_, self.writer_->Bytes());
    self.writer_ = nullptr;
    return Status::Ok();
  });
  *bytes = written.ok() ? self.onnx_.size() : 0;
  return written.ok() ? self.onnx_.data() : nullptr;
}

void GroupDescription::set_symbol(std::string symbol) {
  symbol_ = std::move(symbol);
  group_.symbol = symbol_.c_str();
}

void GroupDescription::AddValues() {
  for (const ir::Var& var : program_->vars) {
    auto& dims = integers_.emplace_back(var.shape.begin(), var.shape.end());
    const bool known = var.shape.rank() >= 0;
    values_.push_back({sizeof(heddle_engine_value), var.name.c_str(),
                       static_cast<int32_t>(var.dtype), known ? var.shape.rank() : -1, dims.data(),
                       nullptr, 0});
  }
  for (const auto& [var, tensor] : parameters_) {
    auto& dims = integers_.emplace_back(tensor.shape().begin(), tensor.shape().end());
    heddle_engine_value& value = values_[var];
    value.dtype = static_cast<int32_t>(tensor.dtype());
    value.rank = tensor.rank();
    value.dims = dims.data();
    value.data = tensor.raw();
    value.bytes = tensor.bytes();
  }
  for (const heddle_engine_value& value : values_) value_list_.push_back(&value);
}

const std::vector<int32_t>& GroupDescription::Indices(const std::vector<VarId>& vars) {
  auto& indices = indices_.emplace_back();
  for (const VarId v : vars) indices.push_back(v == kNoVar ? -1 : static_cast<int32_t>(v));
  return indices;
}

const heddle_engine_slot* const* GroupDescription::AddSlots(
    const std::vector<SlotDef>& defs, const std::vector<std::vector<VarId>>& slots, size_t* count) {
  Pointers& list = slot_lists_.emplace_back();
  for (size_t s = 0; s < defs.size(); ++s) {
    if (slots[s].empty()) continue;
    const auto& indices = Indices(slots[s]);
    slots_.push_back(
        {sizeof(heddle_engine_slot), defs[s].name.c_str(), indices.size(), indices.data()});
    list.push_back(&slots_.back());
  }
  *count = list.size();
  return list.data();
}

void GroupDescription::AddAttributes(const ir::Op& op, heddle_engine_operator* to) {
  auto& list = attribute_lists_.emplace_back();
  const auto& defs = op.def->attrs();
  for (size_t a = 0; a < defs.size(); ++a) {
    heddle_engine_attribute attr = {};
    attr.size = sizeof(attr);
    attr.name = defs[a].name.c_str();
    const auto held = std::find(op.var_attrs.begin(), op.var_attrs.end(), static_cast<int>(a));
    if (held != op.var_attrs.end()) {
      const size_t slot =
          op.def->inputs().size() + static_cast<size_t>(held - op.var_attrs.begin());
      const auto& indices = Indices(op.inputs[slot]);
      attr.kind = HEDDLE_ENGINE_HELD;
      attr.count = indices.size();
      attr.values = indices.data();
    } else if (const AttrValue& value = op.attrs[a]; const bool* b = std::get_if<bool>(&value)) {
      attr.kind = HEDDLE_ENGINE_BOOLEAN;
      attr.count = 1;
      attr.ints = integers_.emplace_back(1, *b ? 1 : 0).data();
    } else if (const auto* i = std::get_if<int64_t>(&value)) {
      attr.kind = HEDDLE_ENGINE_INTEGER;
      attr.count = 1;
      attr.ints = i;
    } else if (const auto* d = std::get_if<double>(&value)) {
      attr.kind = HEDDLE_ENGINE_REAL;
      attr.count = 1;
      attr.reals = d;
    } else if (const auto* s = std::get_if<std::string>(&value)) {
      attr.kind = HEDDLE_ENGINE_TEXT;
      attr.count = 1;
      attr.texts = texts_.emplace_back(1, s->c_str()).data();
    } else if (const auto* is = std::get_if<Ints>(&value)) {
      attr.kind = HEDDLE_ENGINE_INTEGERS;
      attr.count = is->size();
      attr.ints = is->data();
    } else if (const auto* ds = std::get_if<Floats>(&value)) {
      attr.kind = HEDDLE_ENGINE_REALS;
      attr.count = ds->size();
      attr.reals = ds->data();
    } else if (const auto* ss = std::get_if<Strings>(&value)) {
      auto& texts = texts_.emplace_back();
      for (const std::string& text : *ss) texts.push_back(text.c_str());
      attr.kind = HEDDLE_ENGINE_TEXTS;
      attr.count = texts.size();
      attr.texts = texts.data();
    } else {
      continue;  // blocks: operators of groups run none
    }
    attributes_.push_back(attr);
    list.push_back(&attributes_.back());
  }
  to->num_attributes = list.size();
  to->attributes = list.data();
}

void GroupDescription::AddOperator(const ir::Op& op) {
  heddle_engine_operator& to = operators_.emplace_back();
  to.size = sizeof(to);
  to.type = op.type().c_str();
  to.inputs = AddSlots(op.def->inputs(), op.inputs, &to.num_inputs);
  to.outputs = AddSlots(op.def->outputs(), op.outputs, &to.num_outputs);
  AddAttributes(op, &to);
  operator_list_.push_back(&to);
}

}  // namespace heddle::offload
