#include "kernels/fused/element_program.h"

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/op_registry.h"
#include "core/shapes.h"
#include "kernels/fused/row_loop.h"
#include "kernels/reduce/reduce_op.h"

namespace heddle {
namespace {

// Moves *at behind the numbers of the kind's attributes.
void ReadNumbers(const Floats& values, ElementProgram::Kind* kind, size_t* at) {
  kind->first_number = *at;
  if (kind->reshapes) {
    const double rank = *at < values.size() ? values[*at] : 0;
    const size_t n = rank > 0 ? static_cast<size_t>(std::min<double>(rank, Shape::kMaxRank)) : 0;
    if (++*at + n <= values.size()) kind->dims = std::span(values).subspan(*at, n);
    *at += n;
    return;
  }
  for (const AttrDef& a : kind->def->attrs()) {
    if (!IsNumber(a.default_value)) continue;
    if (kind->broadcasts && a.name == "axis" && *at < values.size())
      kind->axis = static_cast<int64_t>(values[*at]);
    if (kind->reduces && a.name == "keep_dim" && *at < values.size())
      kind->keep_dim = values[*at] != 0;
    ++*at;
  }
}

Status ReadKinds(const Strings& ops, const Floats& values, ElementProgram* program) {
  size_t at = 0;
  program->numbers = &values;
  program->kinds.reserve(ops.size());
  for (const std::string& name : ops) {
    const OpDef* def = FindOp(name);
    const TileOp* tile = FindTileOp(name);
    const bool reduces = program->axes > 0 && FindRowReduction(name, DType::kF32, 0) != nullptr;
    const bool reshapes = name == "reshape2";
    if (def == nullptr || (tile == nullptr && !reduces && !reshapes))
      return InvalidArgument("'", name, "' is no operator of fused loops");
    ElementProgram::Kind& kind = program->kinds.emplace_back();
    kind.def = def;
    kind.tile = tile;
    kind.operands = tile == nullptr ? 1 : static_cast<uint32_t>(tile->operands);
    kind.reduces = reduces;
    kind.reshapes = reshapes;
    kind.broadcasts = def->has(kBroadcasts);
    ReadNumbers(values, &kind, &at);
  }
  if (at == values.size()) return Status::Ok();
  return InvalidArgument("there are ", values.size(), " attribute values for ", at, " attributes");
}

Status ReadSteps(const Ints& code, ElementProgram* program) {
  program->steps.reserve(code.size() / 2);
  for (size_t at = 0; at < code.size();) {
    if (code[at] < 0 || code[at] >= std::ssize(program->kinds))
      return InvalidArgument("code[", at, "] is ", code[at], ", which is no kind of step");
    ElementProgram::Step step;
    step.kind = static_cast<uint32_t>(code[at++]);
    for (uint32_t k = 0; k < program->kinds[step.kind].operands; ++k, ++at) {
      if (at >= code.size() || code[at] < 0 || code[at] >= program->values())
        return InvalidArgument("code[", at, "] is no value that is known there");
      step.in[k] = static_cast<uint32_t>(code[at]);
    }
    program->steps.push_back(step);
  }
  return Status::Ok();
}

// One -1 takes what is left over, 0 copies the dimension of the same position.
Result<Shape> Reshaped(const Shape& x, std::span<const double> dims) {
  Shape want, out;
  int open = -1;
  int64_t rest = 1;
  bool fits = true;
  for (const double dim : dims) {
    if (!(dim >= -1 && dim < 1e15)) return InvalidArgument("a value is given the dimension ", dim);
    const int at = out.rank();
    want.push_back(static_cast<int64_t>(dim));
    int64_t d = want[at];
    if (d == 0) d = at < x.rank() ? x[at] : 0;
    if (want[at] == -1) open = at;
    out.push_back(d);
    if (at != open) fits = fits && !__builtin_mul_overflow(rest, d, &rest);
  }
  if (!x.is_static()) return out;
  if (open >= 0) out[open] = rest == 0 ? 0 : x.numel() / rest;
  if (fits && out.is_static() && out.numel() == x.numel()) return out;
  return InvalidArgument("a value of shape ", x.ToString(), " cannot be given the shape ",
                         want.ToString());
}

Result<Shape> ReducedRows(const Shape& x, int axes, bool keep_dim) {
  if (!x.known_rank()) return Shape::Unknown();
  if (x.rank() < axes)
    return InvalidArgument("rows of ", axes, " dimensions, but a value has shape ", x.ToString());
  const uint32_t all = (1u << x.rank()) - 1, kept = (1u << (x.rank() - axes)) - 1;
  return ReducedShape(x, all & ~kept, keep_dim);
}

// Shapes as they are found, each once.
class ShapeTable {
 public:
  explicit ShapeTable(ElementShapes* shapes) : shapes_(*shapes) {}

  uint32_t Add(const Shape& shape) {
    auto& all = shapes_.distinct;
    const auto found = std::find(all.begin(), all.end(), shape);
    if (found != all.end()) return static_cast<uint32_t>(found - all.begin());
    all.push_back(shape);
    return static_cast<uint32_t>(all.size() - 1);
  }

  Result<uint32_t> Broadcast(uint32_t a, uint32_t b, int64_t axis) {
    if (a == last_a_ && b == last_b_ && axis == last_axis_) return last_;
    HEDDLE_ASSIGN_OR_RETURN(const Shape shape,
                            BroadcastShape(shapes_.distinct[a], shapes_.distinct[b], axis));
    last_a_ = a;
    last_b_ = b;
    last_axis_ = axis;
    return last_ = Add(shape);
  }

 private:
  ElementShapes& shapes_;
  uint32_t last_a_ = std::numeric_limits<uint32_t>::max(), last_b_ = 0, last_ = 0;
  int64_t last_axis_ = 0;
};

constexpr uint32_t kNoLoD = std::numeric_limits<uint32_t>::max();

// The value in X that a value gets its sequence offsets from: its first operand's, and so on. They
// go with the first dimension: a reshape may change it, and a row may be all of a value.
std::pmr::vector<uint32_t> LoDSources(const ElementProgram& program, const ElementShapes& shapes,
                                      std::pmr::memory_resource* memory) {
  std::pmr::vector<uint32_t> source(memory);
  source.reserve(program.values());
  for (uint32_t v = 0; v < program.inputs; ++v) source.push_back(v);
  for (const ElementProgram::Step& step : program.steps) {
    const ElementProgram::Kind& kind = program.kinds[step.kind];
    const Shape &from = shapes.Of(step.in[0]),
                &to = shapes.Of(static_cast<uint32_t>(source.size()));
    const bool reshaped = kind.reshapes && (from.rank() <= 0 || to.rank() <= 0 || from[0] != to[0]);
    const bool whole = kind.reduces && from.rank() <= program.axes;
    source.push_back(reshaped || whole ? kNoLoD : source[step.in[0]]);
  }
  return source;
}

}  // namespace

Result<ElementProgram> ReadElementProgram(const OpContext& ctx, std::pmr::memory_resource* memory) {
  ElementProgram program(memory);
  program.inputs = static_cast<uint32_t>(ctx.InCount("X"));
  if (ctx.def().FindAttr("axes") >= 0) {
    const int64_t axes = ctx.Int("axes");
    if (axes < 1 || axes > Shape::kMaxRank)
      return InvalidArgument("axes is ", axes, ", expected 1 to ", Shape::kMaxRank);
    program.axes = static_cast<int>(axes);
  }
  HEDDLE_RETURN_IF_ERROR(ReadKinds(ctx.Attr<Strings>("ops"), ctx.Attr<Floats>("values"), &program));
  HEDDLE_RETURN_IF_ERROR(ReadSteps(ctx.IntList("code"), &program));
  program.outs.reserve(ctx.IntList("outs").size());
  for (const int64_t v : ctx.IntList("outs")) {
    if (v < program.inputs || v >= program.values())
      return InvalidArgument("outs names ", v, ", which no step computes");
    const size_t step = static_cast<size_t>(v) - program.inputs;
    if (program.kinds[program.steps[step].kind].reshapes)
      return InvalidArgument("outs names ", v, ", another shape of a value");
    if (std::find(program.outs.begin(), program.outs.end(), v) != program.outs.end())
      return InvalidArgument("outs names ", v, " twice");
    program.outs.push_back(static_cast<uint32_t>(v));
  }
  if (program.outs.empty() || static_cast<int>(program.outs.size()) != ctx.OutCount("Out") ||
      program.outs[0] != program.values() - 1)
    return InvalidArgument("outs must name a value for each Out, the last step's first");
  return program;
}

Result<ElementShapes> InferElementShapes(const ElementProgram& program,
                                         std::span<const Shape* const> inputs,
                                         std::pmr::memory_resource* memory) {
  ElementShapes shapes(memory);
  shapes.of.reserve(program.values());
  ShapeTable table(&shapes);
  for (const Shape* s : inputs) shapes.of.push_back(table.Add(*s));
  for (const ElementProgram::Step& step : program.steps) {
    const ElementProgram::Kind& kind = program.kinds[step.kind];
    uint32_t out = shapes.of[step.in[0]];
    if (kind.reshapes) {
      HEDDLE_ASSIGN_OR_RETURN(const Shape to, Reshaped(shapes.distinct[out], kind.dims));
      shapes.of.push_back(table.Add(to));
      continue;
    }
    if (kind.reduces) {
      HEDDLE_ASSIGN_OR_RETURN(const Shape reduced,
                              ReducedRows(shapes.distinct[out], program.axes, kind.keep_dim));
      shapes.of.push_back(table.Add(reduced));
      continue;
    }
    for (uint32_t k = 1; k < kind.operands; ++k) {
      const uint32_t other = shapes.of[step.in[k]];
      if (other == out) continue;
      if (kind.broadcasts) {
        HEDDLE_ASSIGN_OR_RETURN(out, table.Broadcast(out, other, kind.axis));
      } else if (shapes.distinct[out].is_static() && shapes.distinct[other].is_static()) {
        return InvalidArgument("the operands of ", kind.def->name(), " must have one shape, got ",
                               shapes.distinct[out].ToString(), " and ",
                               shapes.distinct[other].ToString());
      }
    }
    shapes.of.push_back(out);
  }
  return shapes;
}

Status InferElementProgram(ShapeContext& ctx) {
  FusedMemory memory;
  HEDDLE_ASSIGN_OR_RETURN(const ElementProgram program, ReadElementProgram(ctx, &memory.resource));
  std::pmr::vector<const Shape*> inputs(&memory.resource);
  inputs.reserve(program.inputs);
  bool any_lod = false;
  for (int i = 0; i < static_cast<int>(program.inputs); ++i) {
    if (!ctx.HasIn("X", i)) return InvalidArgument("input X[", i, "] is missing");
    if (ctx.InDType("X", i) != ctx.InDType("X", 0))
      return InvalidArgument("inputs X[0] and X[", i, "] must have one dtype, got ",
                             Name(ctx.InDType("X", 0)), " and ", Name(ctx.InDType("X", i)));
    inputs.push_back(&ctx.InShape("X", i));
    any_lod = any_lod || !ctx.InLoD("X", i).empty();
  }
  HEDDLE_ASSIGN_OR_RETURN(const ElementShapes shapes,
                          InferElementShapes(program, inputs, &memory.resource));
  for (size_t o = 0; o < program.outs.size(); ++o)
    ctx.SetOut("Out", shapes.Of(program.outs[o]), ctx.InDType("X", 0), static_cast<int>(o));
  if (!any_lod) return Status::Ok();
  const std::pmr::vector<uint32_t> source = LoDSources(program, shapes, &memory.resource);
  for (size_t o = 0; o < program.outs.size(); ++o) {
    const uint32_t from = source[program.outs[o]];
    if (from == kNoLoD) continue;
    if (const LoD& lod = ctx.InLoD("X", static_cast<int>(from)); !lod.empty())
      ctx.SetOutLoD("Out", lod, static_cast<int>(o));
  }
  return Status::Ok();
}

}  // namespace heddle
