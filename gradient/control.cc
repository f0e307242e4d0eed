#include "gradient/control.h"

#include <algorithm>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/programs/sub_block_slots.h"

namespace heddle::gradient {

using ir::kNoVar;
using ir::Op;
using ir::Var;
using ir::VarId;
using ir::VarKind;

std::vector<OuterVar> OuterVarsOf(const BlockGradient& pass, size_t at) {
  std::vector<OuterVar> found;
  const auto entry = [&](VarId v) -> OuterVar& {
    for (OuterVar& each : found)
      if (each.var == v) return each;
    found.emplace_back().var = v;
    return found.back();
  };
  const auto read = [&](BlockGradient::ValueId v) {
    if (v != BlockGradient::kNoValue) entry(pass.VarOf(v)).read = v;
  };
  const auto write = [&](BlockGradient::ValueId v) {
    if (v == BlockGradient::kNoValue) return;
    OuterVar& outer = entry(pass.VarOf(v));
    outer.after = v;
    outer.before = pass.Before(at, outer.var);
  };
  for (const auto& slot : pass.InValues(at))
    for (const auto v : slot) read(v);
  for (const auto v : pass.HiddenReads(at)) read(v);
  for (const auto& slot : pass.OutValues(at))
    for (const auto v : slot) write(v);
  for (const auto v : pass.HiddenWrites(at)) write(v);
  return found;
}

std::vector<Op> CopyOps(Shared& shared, const std::vector<Op>& ops, int from, int block,
                        VarMap* vars) {
  const auto mapped = [&](VarId v) {
    if (v == kNoVar) return v;
    if (const auto found = vars->find(v); found != vars->end()) return found->second;
    if (shared.program.vars[v].block != from) return v;
    const Var like = shared.program.vars[v];
    const VarId copy = shared.AddVar(StrCat(like.name, "@AGAIN"), block, like);
    vars->emplace(v, copy);
    return copy;
  };
  std::vector<Op> copies;
  for (const Op& op : ops) {
    Op copy = op;
    copy.index = -1;
    copy.hints = nullptr;
    for (size_t s = 0; s < copy.inputs.size(); ++s) {
      if (s < copy.def->inputs().size() && ir::IsSubBlockSlot(copy.def->inputs()[s]))
        copy.inputs[s].clear();
      for (VarId& v : copy.inputs[s]) v = mapped(v);
    }
    for (size_t s = 0; s < copy.outputs.size(); ++s) {
      if (ir::IsSubBlockSlot(copy.def->outputs()[s])) copy.outputs[s].clear();
      for (VarId& v : copy.outputs[s]) v = mapped(v);
    }
    for (AttrValue& a : copy.attrs) {
      const auto again = [&](BlockRef* ref) {
        if (ref->id < 0) return;
        const int inner = shared.AddBlock(block);
        const std::vector<Op> body = shared.program.blocks[static_cast<size_t>(ref->id)].ops;
        std::vector<Op> body_copy = CopyOps(shared, body, ref->id, inner, vars);
        shared.program.blocks[static_cast<size_t>(inner)].ops = std::move(body_copy);
        ref->id = inner;
      };
      if (auto* one = std::get_if<BlockRef>(&a)) again(one);
      if (auto* many = std::get_if<std::vector<BlockRef>>(&a))
        for (BlockRef& ref : *many) again(&ref);
    }
    copies.push_back(std::move(copy));
  }
  return copies;
}

void ReplaceVars(Shared& shared, std::vector<Op>* ops, const VarMap& vars) {
  for (Op& op : *ops) {
    for (auto* slots : {&op.inputs, &op.outputs})
      for (auto& slot : *slots)
        for (VarId& v : slot)
          if (const auto found = vars.find(v); found != vars.end()) v = found->second;
    for (const int b : op.SubBlocks())
      ReplaceVars(shared, &shared.program.blocks[static_cast<size_t>(b)].ops, vars);
  }
}

namespace {

Op Simple(std::string_view type, std::vector<std::vector<VarId>> inputs, VarId output) {
  Op op = ir::MakeOp(*FindOp(type));
  for (size_t s = 0; s < inputs.size(); ++s) op.inputs[s] = std::move(inputs[s]);
  op.outputs[0] = {output};
  return op;
}

void Set(Op* op, std::string_view name, AttrValue value) {
  op->attrs[static_cast<size_t>(op->def->FindAttr(name))] = std::move(value);
}

}  // namespace

VarId ArrayGradient(BlockGradient& pass, VarId array) {
  Shared& shared = pass.shared();
  if (const auto found = shared.array_gradients.find(array); found != shared.array_gradients.end())
    return found->second;
  const Var like = shared.program.vars[array];
  const VarId gradient = shared.AddVar(StrCat(like.name, "@GRAD@ARRAY"), pass.into(), like);
  shared.array_gradients.emplace(array, gradient);
  Var number;
  number.dtype = DType::kI64;
  number.shape = Shape({1});
  Var truth = number;
  truth.dtype = DType::kBool;
  // for (at = 0; at < length; ++at) gradient[at] = zeros like array[at]
  const VarId at = shared.AddVar(StrCat(like.name, "@AT"), pass.into(), number);
  const VarId length = shared.AddVar(StrCat(like.name, "@LENGTH"), pass.into(), number);
  const VarId more = shared.AddVar(StrCat(like.name, "@MORE"), pass.into(), truth);
  Op begin = Simple("fill_constant", {}, at);
  Set(&begin, "shape", Ints{1});
  Set(&begin, "dtype", int64_t{3});
  pass.Emit(std::move(begin));
  pass.Emit(Simple("lod_array_length", {{array}}, length));
  pass.Emit(Simple("less_than", {{at}, {length}}, more));
  const int body = shared.AddBlock(pass.into());
  Var element;
  element.dtype = like.dtype;
  element.shape = Shape::Unknown();
  const VarId item = shared.AddVar(StrCat(like.name, "@ITEM"), body, element);
  const VarId zeros = shared.AddVar(StrCat(like.name, "@ZEROS"), body, element);
  std::vector<Op> ops;
  ops.push_back(Simple("read_from_array", {{array}, {at}}, item));
  ops.push_back(Simple("fill_zeros_like", {{item}}, zeros));
  ops.push_back(Simple("write_to_array", {{zeros}, {at}}, gradient));
  Op next = Simple("increment", {{at}}, at);
  ops.push_back(std::move(next));
  ops.push_back(Simple("less_than", {{at}, {length}}, more));
  shared.program.blocks[static_cast<size_t>(body)].ops = std::move(ops);
  Op loop = ir::MakeOp(*FindOp("while"));
  loop.inputs[static_cast<size_t>(loop.def->FindInput("X"))] = {array, at, length, gradient};
  loop.inputs[static_cast<size_t>(loop.def->FindInput("Condition"))] = {more};
  loop.outputs[static_cast<size_t>(loop.def->FindOutput("Out"))] = {at, more, gradient};
  Set(&loop, "sub_block", BlockRef{body});
  pass.Emit(std::move(loop));
  return gradient;
}

void ListOperands(const ir::Program& program, Op* op, std::string_view reads,
                  std::string_view writes) {
  std::vector<int> blocks = op->SubBlocks();
  for (size_t k = 0; k < blocks.size(); ++k)
    for (const Op& each : program.blocks[static_cast<size_t>(blocks[k])].ops)
      for (const int inner : each.SubBlocks())
        if (std::find(blocks.begin(), blocks.end(), inner) == blocks.end()) blocks.push_back(inner);
  auto& in = op->inputs[static_cast<size_t>(op->def->FindInput(reads))];
  auto& out = op->outputs[static_cast<size_t>(op->def->FindOutput(writes))];
  const auto add = [&](const std::vector<VarId>& slot, std::vector<VarId>* list) {
    for (const VarId v : slot) {
      if (v == kNoVar || program.vars[v].kind == VarKind::kScopes) continue;
      const int block = program.vars[v].block;
      if (std::find(blocks.begin(), blocks.end(), block) != blocks.end()) continue;
      if (std::find(list->begin(), list->end(), v) == list->end()) list->push_back(v);
    }
  };
  for (const int b : blocks)
    for (const Op& each : program.blocks[static_cast<size_t>(b)].ops) {
      for (const auto& slot : each.outputs) add(slot, &out);
    }
  // What a branch writes itself is nothing that it is given; a loop is given it by the turn before.
  const std::vector<VarId> own = ir::RunsAgain(*op->def) ? std::vector<VarId>() : out;
  for (const int b : blocks)
    for (const Op& each : program.blocks[static_cast<size_t>(b)].ops)
      for (size_t s = 0; s < each.inputs.size(); ++s) {
        if (s < each.def->inputs().size() && ir::IsSubBlockSlot(each.def->inputs()[s])) continue;
        std::vector<VarId> given;
        for (const VarId v : each.inputs[s])
          if (std::find(own.begin(), own.end(), v) == own.end()) given.push_back(v);
        add(given, &in);
      }
}

bool DrawsNumbers(const ir::Program& program, const std::vector<Op>& ops) {
  for (const Op& op : ops) {
    const int test = op.def->FindAttr("is_test");
    const bool tests = test >= 0 && std::get<bool>(op.attrs[static_cast<size_t>(test)]);
    if (op.def->has(kRandom) && !tests) return true;
    for (const int b : op.SubBlocks())
      if (DrawsNumbers(program, program.blocks[static_cast<size_t>(b)].ops)) return true;
  }
  return false;
}

}  // namespace heddle::gradient
