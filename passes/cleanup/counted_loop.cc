#include "passes/cleanup/counted_loop.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/programs/sub_block_slots.h"
#include "passes/cleanup/copies.h"
#include "passes/cleanup/evaluate.h"

namespace heddle::passes {

using ir::kNoVar;
using ir::VarId;

namespace {

constexpr int kMostHops = 64;
// 2^31 - 1: such numbers are the same in 32 bits.
constexpr int64_t kMostNumber = (int64_t{1} << 31) - 1;

// The number; nullopt: it is too large to be the same in all integer types.
std::optional<int64_t> Held(int64_t number) {
  return number >= -kMostNumber && number <= kMostNumber ? std::optional(number) : std::nullopt;
}

std::optional<int64_t> OneNumber(const Tensor& t) {
  if (!t.initialized() || t.numel() != 1) return std::nullopt;
  int64_t number = 0;
  switch (t.dtype()) {
    case DType::kBool:
      number = *t.data<bool>() ? 1 : 0;
      break;
    case DType::kI32:
      number = *t.data<int32_t>();
      break;
    case DType::kI64:
      number = *t.data<int64_t>();
      break;
    default:
      return std::nullopt;
  }
  return Held(number);
}

bool IsWhole(double x) {
  return std::floor(x) == x && std::abs(x) <= static_cast<double>(kMostNumber);
}

// The integer that the operator adds to its X; nullopt: it does something else.
std::optional<int64_t> AddedTo(const ir::Op& op) {
  if (!op.var_attrs.empty()) return std::nullopt;
  double added = 0;
  if (op.type() == "increment") {
    added = op.Attr<double>("step");
  } else if (op.type() == "scale" && HasOnlyInput(op, "X") && op.Attr<double>("scale") == 1) {
    added = op.Attr<double>("bias");
  } else {
    return std::nullopt;
  }
  return IsWhole(added) ? std::optional(static_cast<int64_t>(added)) : std::nullopt;
}

// Whether the operator keeps the value of a tensor of one number, perhaps with another shape or
// integer type.
bool KeepsNumber(const ir::Op& op) {
  const std::string& type = op.type();
  if (type == "reshape2" || type == "reshape" || type == "squeeze2" || type == "unsqueeze2")
    return HasOnlyInput(op, "X");
  const auto is_integer = [&](const char* name) {
    const int64_t dtype = op.Attr<int64_t>(name);
    return dtype == DTypeToProto(DType::kI32) || dtype == DTypeToProto(DType::kI64);
  };
  return type == "cast" && is_integer("in_dtype") && is_integer("out_dtype");
}

bool HasInputs(const ir::Op& op) {
  return std::any_of(op.inputs.begin(), op.inputs.end(), [](const auto& slot) {
    return std::any_of(slot.begin(), slot.end(), [](VarId v) { return v != kNoVar; });
  });
}

}  // namespace

std::optional<int64_t> KnownScalars::At(VarId v, int at, bool use) const {
  // In all: an operator may have one operand twice, and so may the operators that compute it.
  int left = kMostHops;
  return Find(v, at, use, &left);
}

std::optional<int64_t> KnownScalars::Find(VarId v, int at, bool use, int* left) const {
  if (--*left < 0 || v == kNoVar || p_.vars[v].kind != ir::VarKind::kTensor) return std::nullopt;
  const int writer = view_.WriterBefore(v, at);
  if (writer >= 0)
    return Computed(p_.blocks[static_cast<size_t>(view_.block())].ops[static_cast<size_t>(writer)],
                    writer, use, left);
  const Shape& shape = p_.vars[v].shape;  // the contents of larger ones are not asked for
  if (!p_.vars[v].persistable || !view_.NeverWritten(v) ||
      (shape.is_static() && shape.numel() != 1))
    return std::nullopt;
  const Tensor* t = context_.Parameter(p_, v, use);
  return t != nullptr ? OneNumber(*t) : std::nullopt;
}

std::optional<int64_t> KnownScalars::Computed(const ir::Op& op, int at, bool use, int* left) const {
  if (!IsPure(op) || !op.var_attrs.empty()) return std::nullopt;
  if (const VarId x = CopiedBy(p_, op); x != kNoVar) return Find(x, at, use, left);
  if (const auto added = AddedTo(op)) {
    const auto x = Find(OnlyIn(op, "X"), at, use, left);
    return x ? Held(*x + *added) : std::nullopt;
  }
  if (KeepsNumber(op)) return Find(OnlyIn(op, "X"), at, use, left);
  if (!HasInputs(op)) {
    constexpr size_t kScalarBytes = 8;
    const auto values = Evaluate(op, {}, kScalarBytes);
    const bool one = values.ok() && values->size() == 1 && (*values)[0].is_tensor();
    return one ? OneNumber((*values)[0].tensor()) : std::nullopt;
  }
  const auto binary = [&](const char* type) { return op.type() == type; };
  const bool known = binary("less_than") || binary("less_equal") || binary("logical_and") ||
                     binary("elementwise_add");
  if (!known) return std::nullopt;
  const auto x = Find(OnlyIn(op, "X"), at, use, left);
  const auto y = Find(OnlyIn(op, "Y"), at, use, left);
  if (!x || !y) return std::nullopt;
  if (binary("less_than")) return *x < *y;
  if (binary("less_equal")) return *x <= *y;
  if (binary("logical_and")) return *x != 0 && *y != 0;
  return Held(*x + *y);
}

int LoopBody(const ir::Op& op, const std::vector<int>& runs) {
  if (!ir::RunsAgain(*op.def) || ir::ConditionSlot(*op.def) < 0 || !op.var_attrs.empty() ||
      op.has_control_edges())
    return -1;
  const std::vector<int> bodies = op.SubBlocks();
  return bodies.size() == 1 && runs[static_cast<size_t>(bodies[0])] == 1 ? bodies[0] : -1;
}

std::vector<int> CountRunners(const ir::Program& program) {
  std::vector<int> runs(program.blocks.size());
  for (const ir::Block& block : program.blocks)
    for (const ir::Op& op : block.ops)
      ForEachSubBlock(op, [&](int sub) { ++runs[static_cast<size_t>(sub)]; });
  return runs;
}

std::optional<Counted> CountedAt(const ir::Program& program, PassContext& context,
                                 const VersionView& inside, VarId v, int at) {
  const KnownScalars scalars(program, context, inside);
  const auto& ops = program.blocks[static_cast<size_t>(inside.block())].ops;
  Counted counted;
  for (int hops = 0; hops < kMostHops && v != kNoVar; ++hops) {
    if (program.vars[v].kind != ir::VarKind::kTensor) return std::nullopt;
    const int writer = inside.WriterBefore(v, at);
    if (writer < 0) {
      counted.counter = v;
      return counted;
    }
    const ir::Op& op = ops[static_cast<size_t>(writer)];
    if (!IsPure(op)) return std::nullopt;
    at = writer;
    if (const VarId x = CopiedBy(program, op); x != kNoVar) {
      v = x;
    } else if (const auto added = AddedTo(op)) {
      counted.offset += *added;
      v = OnlyIn(op, "X");
    } else if (KeepsNumber(op)) {
      v = OnlyIn(op, "X");
    } else if (op.type() == "elementwise_add") {
      const VarId x = OnlyIn(op, "X"), y = OnlyIn(op, "Y");
      const auto a = scalars.At(x, at), b = scalars.At(y, at);
      if (a.has_value() == b.has_value()) return std::nullopt;
      counted.offset += a ? *a : *b;
      v = a ? y : x;
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

namespace {

class LimitFinder {
 public:
  LimitFinder(const ir::Program& program, PassContext& context, const VersionView& inside)
      : p_(program), context_(context), inside_(inside) {}

  bool Find(VarId condition, int at) {
    if (condition == kNoVar || --left_ < 0) return false;
    const int writer = inside_.WriterBefore(condition, at);
    if (writer < 0) {
      const auto known = KnownScalars(p_, context_, inside_).At(condition, at);
      return known.has_value() && *known != 0;
    }
    const ir::Op& op = Ops()[static_cast<size_t>(writer)];
    if (!IsPure(op) || !op.var_attrs.empty()) return false;
    if (const VarId x = CopiedBy(p_, op); x != kNoVar) return Find(x, writer);
    if (op.type() == "logical_and")
      return Find(OnlyIn(op, "X"), writer) && Find(OnlyIn(op, "Y"), writer);
    if (op.type() != "less_than" && op.type() != "less_equal") return false;
    return Add(op, writer);
  }
  CountedLoop found;

 private:
  const std::vector<ir::Op>& Ops() const {
    return p_.blocks[static_cast<size_t>(inside_.block())].ops;
  }

  bool Add(const ir::Op& op, int at) {
    const VarId bound = OnlyIn(op, "Y");
    const auto counted = CountedAt(p_, context_, inside_, OnlyIn(op, "X"), at);
    if (!counted || bound == kNoVar || !inside_.writes(bound).empty()) return false;
    const auto end = static_cast<int>(Ops().size());
    const auto next = CountedAt(p_, context_, inside_, counted->counter, end);
    if (!next || next->counter != counted->counter || next->offset < 1) return false;
    found.limits.push_back({.counter = counted->counter,
                            .bound = bound,
                            .offset = counted->offset,
                            .step = next->offset,
                            .inclusive = op.type() == "less_equal"});
    return true;
  }

  const ir::Program& p_;
  PassContext& context_;
  const VersionView& inside_;
  int left_ = kMostHops;  // in all
};

}  // namespace

std::optional<CountedLoop> FindCounters(const ir::Program& program, PassContext& context,
                                        const ir::Op& loop, const VersionView& inside) {
  LimitFinder finder(program, context, inside);
  const auto end = static_cast<int>(program.blocks[static_cast<size_t>(inside.block())].ops.size());
  const VarId condition = OnlyIn(loop, "Condition");
  if (condition == kNoVar || inside.writes(condition).empty()) return std::nullopt;
  if (!finder.Find(condition, end) || finder.found.limits.empty()) return std::nullopt;
  return std::move(finder.found);
}

std::optional<int64_t> KnownTurns(const KnownScalars& outside, const ir::Op& loop, int at,
                                  const CountedLoop& counted, bool use) {
  const auto begins = outside.At(OnlyIn(loop, "Condition"), at, use);
  if (!begins) return std::nullopt;
  if (*begins == 0) return 0;
  std::optional<int64_t> least;
  for (const CountedLoop::Limit& limit : counted.limits) {
    const auto first = outside.At(limit.counter, at, use);
    const auto bound = outside.At(limit.bound, at, use);
    if (!first || !bound) return std::nullopt;
    // After turn t, counted from 0, the loop goes on while first + t step + offset < bound.
    const int64_t room = *bound + (limit.inclusive ? 1 : 0) - *first - limit.offset;
    const int64_t turns = 1 + (room <= 0 ? 0 : (room + limit.step - 1) / limit.step);
    // A counter that overflows would go on with negative numbers.
    if (!Held(*first + (turns - 1) * limit.step + limit.offset)) return std::nullopt;
    least = least ? std::min(*least, turns) : turns;
  }
  return least;
}

}  // namespace heddle::passes
