// Products of the items that a loop reads turn by turn are computed for all turns at once.
//
// A recurrent layer written as a loop takes item t of a sequence in turn t and multiplies it by a
// matrix. That does not depend on the turn before: the whole sequence is multiplied before the
// loop, and the turn takes item t of the product. This is only done if the loop is known to read at
// least half of the sequence: for less, the products turn by turn cost less.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/cleanup/copies.h"
#include "passes/cleanup/counted_loop.h"
#include "passes/cleanup/deep_reads.h"

namespace heddle::passes {
namespace {

using ir::kNoVar;
using ir::VarId;

// A product has at most this many times as many columns as its sequence, since all of it is in
// memory while the loop runs.
constexpr int64_t kMostGrowth = 16;

// Item `index` of `sequence` along an axis, as an operator of the body selects it.
struct Selection {
  VarId sequence = kNoVar, index = kNoVar;
  int64_t axis = 0;
  int at = 0;             // the position of the operator
  const char* data = "";  // its slot for the sequence; "": it reads a list made of the sequence
  int squeeze = -1;       // the position of the operator that drops the axis; -1: none
};

class ProductHoister {
 public:
  ProductHoister(ir::Program& program, PassContext& context) : p_(program), context_(context) {}

  bool Run() {
    if (p_.blocks.size() < 2 || HasGradientBlocks(p_)) return false;
    const std::vector<int> runs = CountRunners(p_);
    bool changed = false;
    for (size_t b = p_.blocks.size(); b-- > 0;)
      for (size_t at = p_.blocks[b].ops.size(); at-- > 0;)
        if (const int body = LoopBody(p_.blocks[b].ops[at], runs);
            body >= 0 && p_.blocks[b].ops[at].device.empty())
          for (size_t added = 0; HoistOne(static_cast<int>(b), at, body, &added); changed = true) {
          }
    return changed;
  }

 private:
  std::vector<ir::Op>& OpsOf(int block) { return p_.blocks[static_cast<size_t>(block)].ops; }
  const std::vector<ir::Op>& OpsOf(int block) const {
    return p_.blocks[static_cast<size_t>(block)].ops;
  }
  static bool IsProduct(const ir::Op& op) {
    return op.type() == "matmul_v2" && !op.Attr<bool>("trans_x") && op.var_attrs.empty() &&
           op.device.empty() && IsPure(op);
  }

  // `at`: the loop's position before any operators were inserted in front of it. `added`: the
  // number of inserted operators, which this call increases.
  bool HoistOne(int block, size_t at, int body, size_t* added) {
    const auto& ops = OpsOf(body);
    if (std::none_of(ops.begin(), ops.end(), IsProduct)) return false;
    if (!views_) views_.emplace(p_, context_.fetched);
    views_->Enter(block, body);
    const VersionView &outside = views_->outside(), &inside = views_->inside();
    const auto position = static_cast<int>(at);
    const ir::Op& loop = OpsOf(block)[at + *added];
    const auto counted = FindCounters(p_, context_, loop, inside);
    if (!counted) return false;
    for (size_t q = 0; q < ops.size(); ++q) {
      LookForInterrupt();
      if (!IsProduct(ops[q])) continue;
      const auto selection = Selected(outside, inside, ops[q], static_cast<int>(q), position);
      if (!selection || !Fits(inside, ops[q], *selection) ||
          !IsReadToTheEnd(outside, inside, loop, position, *counted, *selection))
        continue;
      *added += Hoist(block, position + static_cast<int>(*added), body, static_cast<int>(q), inside,
                      *selection);
      return true;
    }
    return false;
  }

  bool IsOutside(const VersionView& inside, VarId v) const {
    return v != kNoVar && p_.vars[v].block != inside.block() && inside.writes(v).empty() &&
           p_.vars[v].kind == ir::VarKind::kTensor;
  }

  // The item of a sequence that the product multiplies; nullopt: it multiplies something else.
  std::optional<Selection> Selected(const VersionView& outside, const VersionView& inside,
                                    const ir::Op& product, int at, int loop) const {
    const auto& ops = OpsOf(inside.block());
    const VarId item = OnlyIn(product, "X");
    int writer = item == kNoVar ? -1 : inside.WriterBefore(item, at);
    if (writer < 0) return std::nullopt;
    Selection found;
    if (ops[static_cast<size_t>(writer)].type() == "squeeze2") {
      const ir::Op& squeeze = ops[static_cast<size_t>(writer)];
      const VarId whole = OnlyIn(squeeze, "X");
      if (!IsPure(squeeze) || !squeeze.var_attrs.empty() || !HasOnlyInput(squeeze, "X"))
        return std::nullopt;
      found.squeeze = writer;
      writer = whole == kNoVar ? -1 : inside.WriterBefore(whole, writer);
      if (writer < 0) return std::nullopt;
    }
    const ir::Op& op = ops[static_cast<size_t>(writer)];
    if (!IsPure(op) || !op.var_attrs.empty() || !op.device.empty()) return std::nullopt;
    found.at = writer;
    if (op.type() == "gather" && OnlyIn(op, "Axis") == kNoVar &&
        op.Attr<int64_t>("batch_dims") == 0) {
      found.sequence = OnlyIn(op, "X"), found.index = OnlyIn(op, "Index");
      found.axis = op.Attr<int64_t>("axis");
      found.data = "X";
    } else if (op.type() == "list_item" && !op.Attr<bool>("wrap")) {
      found.index = OnlyIn(op, "index");
      found.sequence = MadeFrom(outside, inside, OnlyIn(op, "list"), loop);
    } else {
      return std::nullopt;
    }
    if (found.index == kNoVar || !IsOutside(inside, found.sequence) ||
        !inside.Same(found.index, writer, at + 1))
      return std::nullopt;
    const int rank = p_.vars[found.sequence].shape.rank();
    if (found.axis < 0) found.axis += rank;
    // The last axis is the one that is summed over. An item that keeps the selected axis must have
    // it in front; the product then keeps it as well.
    if (found.axis < 0 || found.axis >= rank - 1) return std::nullopt;
    if (found.squeeze >= 0 &&
        ops[static_cast<size_t>(found.squeeze)].Attr<Ints>("axes") != Ints{found.axis})
      return std::nullopt;
    return found;
  }

  // The tensor that `list` was made of, if nothing else writes the list; kNoVar: there is none.
  VarId MadeFrom(const VersionView& outside, const VersionView& inside, VarId list,
                 int loop) const {
    if (list == kNoVar || !inside.writes(list).empty() || outside.writes(list).size() != 1)
      return kNoVar;
    const int writer = outside.WriterBefore(list, loop);
    if (writer < 0) return kNoVar;
    const ir::Op& op = OpsOf(outside.block())[static_cast<size_t>(writer)];
    if (op.type() != "list_split" || !IsPure(op) || !HasOnlyInput(op, "tensor") ||
        op.Attr<int64_t>("axis") != 0 || op.Attr<bool>("keepdims"))
      return kNoVar;
    const VarId tensor = OnlyIn(op, "tensor");
    return tensor != kNoVar && outside.Same(tensor, writer, loop) ? tensor : kNoVar;
  }

  // Whether no turn changes the matrix, the sequence's last dimension may equal the matrix's rows,
  // and the product is not much larger than the sequence.
  bool Fits(const VersionView& inside, const ir::Op& product, const Selection& s) const {
    const VarId matrix = OnlyIn(product, "Y"), out = OnlyOut(product, "Out");
    if (!IsOutside(inside, matrix) || out == kNoVar) return false;
    const Shape& shape = p_.vars[matrix].shape;
    const Shape& sequence = p_.vars[s.sequence].shape;
    if (shape.rank() != 2 || !shape.is_static()) return false;
    const bool turned = product.Attr<bool>("trans_y");
    const int64_t terms = shape[turned ? 1 : 0], columns = shape[turned ? 0 : 1];
    const int64_t length = sequence[sequence.rank() - 1];
    return (length < 0 || length == terms) && columns <= kMostGrowth * terms &&
           p_.vars[s.sequence].dtype == p_.vars[matrix].dtype;
  }

  // Whether the loop's counter runs through at least half of the sequence.
  bool IsReadToTheEnd(const VersionView& outside, const VersionView& inside, const ir::Op& loop,
                      int at, const CountedLoop& counted, const Selection& s) const {
    const auto index = CountedAt(p_, context_, inside, s.index, s.at);
    if (!index) return false;
    const auto limit = std::find_if(
        counted.limits.begin(), counted.limits.end(),
        [&](const CountedLoop::Limit& l) { return l.counter == index->counter && l.step == 1; });
    if (limit == counted.limits.end()) return false;
    const KnownScalars scalars(p_, context_, outside);
    const auto first = scalars.At(limit->counter, at);
    if (!first || *first + index->offset != 0) return false;
    const int64_t length = p_.vars[s.sequence].shape[static_cast<int>(s.axis)];
    if (const auto turns = KnownTurns(scalars, loop, at, counted)) {
      if (length < 0 || *turns < 1 || 2 * *turns < length) return false;
      scalars.At(limit->counter, at, true);
      KnownTurns(scalars, loop, at, counted, true);
      return true;
    }
    // A shape gives the number of turns, and nothing but shapes decides whether there is a first
    // one.
    return counted.limits.size() == 1 && ComesOfShapes(outside, limit->bound, at) &&
           ComesOfShapes(outside, OnlyIn(loop, "Condition"), at) &&
           scalars.At(limit->counter, at, true).has_value();
  }

  // Whether `v` is computed from constants and shapes alone, and from at least one shape.
  bool ComesOfShapes(const VersionView& view, VarId v, int at) const {
    int shapes = 0, left = 64;
    return Trace(view, v, at, &shapes, &left) && shapes > 0;
  }
  bool Trace(const VersionView& view, VarId v, int at, int* shapes, int* left) const {
    if (v == kNoVar) return true;
    if (--*left < 0) return false;
    const int writer = view.WriterBefore(v, at);
    if (writer < 0) return p_.vars[v].persistable && view.NeverWritten(v);
    const ir::Op& op = OpsOf(view.block())[static_cast<size_t>(writer)];
    if (!IsPure(op)) return false;
    if (op.type() == "shape") {
      ++*shapes;
      return true;
    }
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](const auto& slot) {
      return std::all_of(slot.begin(), slot.end(),
                         [&](VarId x) { return Trace(view, x, writer, shapes, left); });
    });
  }

  // The position of the operator that adds a row to the product, if no turn changes the row and
  // nothing else reads the product; -1: there is none.
  int Bias(const VersionView& inside, int product) const {
    const auto& ops = OpsOf(inside.block());
    const VarId out = OnlyOut(ops[static_cast<size_t>(product)], "Out");
    const auto readers = inside.Readers(out, product);
    if (!readers || readers->size() != 1) return -1;
    const ir::Op& sum = ops[static_cast<size_t>(readers->front())];
    const VarId row = sum.type() == "elementwise_add" ? OnlyIn(sum, "Y") : kNoVar;
    const VarId total = OnlyOut(sum, "Out");
    const bool alone = total != kNoVar && inside.Private(total) && inside.writes(total).size() == 1;
    const bool fits = alone && row != kNoVar && IsPure(sum) && sum.var_attrs.empty() &&
                      OnlyIn(sum, "X") == out && IsOutside(inside, row) &&
                      p_.vars[row].shape.rank() == 1 && sum.Attr<int64_t>("axis") == -1 &&
                      sum.device.empty() && inside.writes(out).size() == 1;
    return fits ? readers->front() : -1;
  }

  VarId NewLike(VarId like, int block, Shape shape) {
    ir::Var var = p_.vars[like];
    var.name = p_.FreshName(var.name);
    var.block = block;
    var.input = var.persistable = false;
    var.shape = std::move(shape);
    return p_.AddVar(std::move(var));
  }
  static void Set(std::vector<std::vector<VarId>>* slots, int slot, VarId v) {
    (*slots)[static_cast<size_t>(slot)] = {v};
  }

  // Moves the product; returns the number of operators that it inserts before the loop.
  size_t Hoist(int block, int at, int body, int product, const VersionView& inside,
               const Selection& s) {
    const int bias = Bias(inside, product);
    std::vector<ir::Op> before;
    VarId all = s.sequence;
    Shape shape = p_.vars[s.sequence].shape;
    const ir::Op multiply = OpsOf(body)[static_cast<size_t>(product)];
    const Shape& matrix = p_.vars[OnlyIn(multiply, "Y")].shape;
    shape[shape.rank() - 1] = matrix[multiply.Attr<bool>("trans_y") ? 0 : 1];
    VarId out = kNoVar;
    for (const int of : {product, bias}) {
      if (of < 0) continue;
      ir::Op op = OpsOf(body)[static_cast<size_t>(of)];
      out = OnlyOut(op, "Out");
      op.index = -1;
      Set(&op.inputs, op.def->FindInput("X"), all);
      all = NewLike(out, block, shape);
      Set(&op.outputs, op.def->FindOutput("Out"), all);
      before.push_back(std::move(op));
    }
    std::vector<ir::Op> taken = Take(body, all, out, s, shape);
    auto& ops = OpsOf(body);
    if (bias >= 0) ops.erase(ops.begin() + bias);
    ops[static_cast<size_t>(product)] = std::move(taken.back());
    ops.insert(ops.begin() + product, std::make_move_iterator(taken.begin()),
               std::make_move_iterator(taken.end() - 1));
    auto& outer = OpsOf(block);
    const size_t count = before.size();
    outer.insert(outer.begin() + at, std::make_move_iterator(before.begin()),
                 std::make_move_iterator(before.end()));
    return count;
  }

  // Operators that select an item of the product `all` as the body selected the item of the
  // sequence.
  std::vector<ir::Op> Take(int body, VarId all, VarId out, const Selection& s, const Shape& shape) {
    const ir::Op& like = OpsOf(body)[static_cast<size_t>(s.at)];
    std::vector<ir::Op> ops;
    if (*s.data != 0) {
      ops.push_back(like);
      Set(&ops[0].inputs, like.def->FindInput(s.data), all);
    } else {
      ir::Op op = ir::MakeOp(*FindOp("gather"));
      op.index = like.index;
      op.call_stack = like.call_stack;
      Set(&op.inputs, op.def->FindInput("X"), all);
      Set(&op.inputs, op.def->FindInput("Index"), s.index);
      ops.push_back(std::move(op));
    }
    const auto out_of = [](const ir::Op& op) { return op.def->FindOutput("Out"); };
    if (s.squeeze >= 0) {
      Shape kept = shape;
      kept[static_cast<int>(s.axis)] = 1;
      const VarId whole = NewLike(out, body, std::move(kept));
      Set(&ops[0].outputs, out_of(ops[0]), whole);
      ir::Op squeeze = OpsOf(body)[static_cast<size_t>(s.squeeze)];
      for (auto& slot : squeeze.outputs) slot.clear();
      Set(&squeeze.inputs, squeeze.def->FindInput("X"), whole);
      ops.push_back(std::move(squeeze));
    }
    Set(&ops.back().outputs, out_of(ops.back()), out);
    return ops;
  }

  ir::Program& p_;
  PassContext& context_;
  std::optional<LoopViews> views_;  // made for the first loop with a product
};

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(hoist_products) {
  pass.doc =
      "products of the items that a loop takes from a sequence are computed before it, at once";
  pass.before = "while: { x = gather(xs, t); p = matmul_v2(x, w); … }";
  pass.after = "ps = matmul_v2(xs, w); while: { p = gather(ps, t); … }";
  pass.refuses =
      "matrices that a turn changes; loops that may end before they have read half of the "
      "sequence, or whose number of turns is neither known nor a shape's; products with more than "
      "16 times as many columns as the sequence; programs with gradients";
  pass.level = 2;
  pass.tolerance = 1e-5;
  pass.seeks = OfTypes({"matmul_v2"});
  pass.run = [](ir::Program& program, PassContext& context) -> Result<bool> {
    return ProductHoister(program, context).Run();
  };
}
