#include "core/memory/lazy_buffer.h"
#include "passes/graph_view.h"
#include "passes/pass.h"

namespace heddle::passes {

const Tensor* PassContext::Parameter(const ir::Program& program, ir::VarId var, bool use,
                                     bool contents) {
  if (var == ir::kNoVar) return nullptr;
  const ir::Var& v = program.vars[var];
  if (!v.persistable || v.kind != ir::VarKind::kTensor || fed.count(var) > 0) return nullptr;
  const Value* value = folded_.StampOf(v.name).value;
  if (value == nullptr || !value->is_tensor() || !value->tensor().initialized()) return nullptr;
  const Tensor& t = value->tensor();
  if (!t.is_contiguous()) return nullptr;
  const Tensor* found = &t;
  if (contents && LazyShelf::IsWaiting(t)) {  // most such parameters are folded into others
    found = CopyOf(t);
    if (found == nullptr) return nullptr;
  } else if (contents && !MakeResident(t).ok()) {
    return nullptr;
  }
  if (use && used_names_.insert(v.name).second)
    if (const Scope::Stamp stamp = source_.StampOf(v.name); stamp.value == value)
      used_.emplace_back(v.name, stamp);
  return found;
}

const Tensor* PassContext::CopyOf(const Tensor& waiting) {
  Tensor& copy = copied_[&waiting];
  if (copy.initialized()) return &copy;
  const auto contents = ContentsToCome(waiting);
  const BufferRef memory = contents ? copies_.Allocate(waiting.bytes()) : BufferRef();
  if (!memory || !(*contents)(memory->data(), 0, waiting.bytes()).ok()) return nullptr;
  copy = Tensor(waiting.dtype(), waiting.shape(), memory);
  return &copy;
}

const Tensor* PassContext::Constant(const ir::Program& program, const GraphView& view,
                                    ir::VarId var, bool contents) {
  if (var == ir::kNoVar || !view.NeverWritten(var)) return nullptr;
  const Tensor* t = Parameter(program, var, false, false);
  if (t == nullptr || t->dtype() != DType::kF32) return nullptr;
  return Parameter(program, var, true, contents);
}

ir::VarId PassContext::AddConstant(ir::Program& program, const std::string& stem, Tensor value) {
  ir::Var var;
  var.name = program.FreshName(stem);
  var.dtype = value.dtype();
  var.shape = value.shape();
  var.persistable = true;
  folded_.Set(var.name, std::move(value));
  return program.AddVar(std::move(var));
}

}  // namespace heddle::passes
