// Operators between dequantised tensors, and the quantisation of what they give, become operators
// on 8-bit integers.
//
// The pass visits a block once, in order. It knows which variables are dequantised: those that an
// affine_dequantize with constant scales wrote, and those that an operator which only moves
// elements made of such (the operator then moves the integers). Products and convolutions take what
// follows them up to the quantisation of their result; operators that nobody reads any more are
// left to dead_ops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/fuse/fused_activation.h"
#include "passes/fuse/quantized_values.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::VarId;

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

// What follows a sum of products: a factor and an addend per column, then bounds.
struct Follower {
  std::vector<double> factor, offset;
  bool has_offset = false;
  double least = -kNoLimit, most = kNoLimit;

  bool bounded() const { return least != -kNoLimit || most != kNoLimit; }
};

class QuantizedFuser {
 public:
  QuantizedFuser(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        view_(program, context),
        ops_(program.blocks[static_cast<size_t>(context.block)].ops),
        values_(program, context, view_) {}

  bool Run() {
    std::vector<ir::Op> old = std::move(ops_);
    old_ = &old;
    gone_.assign(old.size(), false);
    // In a program that was optimised before, what moves elements stands where the layout wants it.
    static const std::set<std::string> made{"quantized_conv2d", "quantized_matmul", "quantized_sum",
                                            "quantized_product", "byte_table"};
    moves_ = std::none_of(old.begin(), old.end(),
                          [](const ir::Op& op) { return made.count(op.type()) > 0; });
    // A constant may be dequantised behind what it is added to.
    for (size_t i = 0; i < old.size(); ++i) {
      if (!old[i].var_attrs.empty()) continue;
      if (old[i].type() == "affine_quantize") values_.NoteConstant(old[i]);
      if (old[i].type() == "affine_dequantize") values_.Note(old[i], static_cast<int>(i));
    }
    for (size_t i = 0; i < old.size(); ++i) {
      LookForInterrupt();
      at_ = static_cast<int>(i);
      if (gone_[i]) continue;
      if (old[i].var_attrs.empty() && !old[i].has_control_edges() && Visit(old[i])) {
        changed_ = true;
        continue;
      }
      out_.push_back(old[i]);
    }
    ops_ = std::move(changed_ ? out_ : old);
    return changed_;
  }

 private:
  // Replaces the operator by others; false: it stays.
  bool Visit(const ir::Op& op) {
    const std::string& t = op.type();
    if (t == "affine_dequantize") return false;
    if (t == "affine_quantize") return !values_.NoteConstant(op) && Quantisation(op);
    if (t == "conv2d" || t == "depthwise_conv2d") return Convolution(op);
    if (t == "matmul_v2") return Product(op);
    if (t == "elementwise_add" || t == "elementwise_mul") return Pair(op);
    if (t == "concat") return Join(op);
    if (t == "pool2d") return Pool(op);
    return Move(op);
  }

  // What was dequantised at the place of the operator at at_.
  const Dequantized* Real(VarId v) const {
    const Dequantized* const d = values_.Find(v);
    if (d == nullptr || d->writer == nullptr) return d;
    return SamePlace(*d->writer, (*old_)[static_cast<size_t>(at_)]) ? d : nullptr;
  }
  const Dequantized* Plain(VarId v) const {  // with one scale for all
    const Dequantized* const d = Real(v);
    return d != nullptr && d->whole() ? d : nullptr;
  }

  // --- what follows a product -------------------------------------------------------------------

  // The only reader of `v`, if it may be taken along with the operator at at_.
  const ir::Op* Next(VarId v, int* at) const {
    *at = view_.OnlyReader(v, context_);
    if (*at < 0 || gone_[static_cast<size_t>(*at)]) return nullptr;
    const ir::Op& op = (*old_)[static_cast<size_t>(*at)];
    return op.var_attrs.empty() && SamePlace(op, (*old_)[static_cast<size_t>(at_)]) ? &op : nullptr;
  }

  // Numbers of a constant: one, or one for each of `columns`, which are dimension `axis` from the
  // end of the result (1 is the last one).
  std::optional<std::vector<float>> Columns(VarId v, int64_t columns, int axis, int64_t said,
                                            int rank) {
    const auto t = values_.Floats(v);
    if (!t) return std::nullopt;
    const Shape& s = t->shape();
    const bool one = t->numel() == 1 && s.rank() <= rank;
    bool each = t->numel() == columns && s.rank() >= 1 && s.rank() <= rank;
    if (each && s.rank() == 1 && said >= 0)
      each = said == rank - axis;
    else if (each)
      each = (said == -1 || said == rank - s.rank()) && s.rank() >= axis &&
             s[s.rank() - axis] == columns;
    if (!one && !each) return std::nullopt;
    return std::vector<float>(t->data<float>(), t->data<float>() + t->numel());
  }

  bool Absorb(const ir::Op& op, VarId from, int64_t columns, int axis, int rank, Follower* f) {
    const std::string& t = op.type();
    const bool add = t == "elementwise_add", mul = t == "elementwise_mul",
               div = t == "elementwise_div";
    if (add || mul || div) {
      if (f->bounded()) return false;
      const VarId x = op.In("X")[0], y = op.In("Y")[0];
      if (x == y || (x != from && (div || op.Attr<int64_t>("axis") >= 0))) return false;
      const auto c = Columns(x == from ? y : x, columns, axis, op.Attr<int64_t>("axis"), rank);
      if (!c) return false;
      for (size_t i = 0; i < f->factor.size(); ++i) {
        const double v = double{(*c)[c->size() == 1 ? 0 : i]};
        if (add) {
          f->offset[i] += v;
        } else {
          const double by = div ? 1 / v : v;
          f->factor[i] *= by;
          f->offset[i] *= by;
        }
      }
      f->has_offset = f->has_offset || add;
      return true;
    }
    const auto a = AsActivation(op);
    if (!a || (a->name != "relu" && a->name != "clip")) return false;
    const double least = a->name == "relu" ? 0 : a->alpha;
    const double most = a->name == "relu" ? kNoLimit : a->beta;
    f->least = std::min(std::max(f->least, least), most);
    f->most = std::max(std::min(f->most, most), least);
    return f->least <= f->most;
  }

  // Follows the chain behind `*out`, and sets `*out` to its result and `*dtype` to that of the
  // fused operator. The positions of what is taken are in `taken`.
  void Follow(int64_t columns, int axis, Follower* f, VarId* out, std::optional<Quantized8>* q,
              std::vector<int>* taken) {
    const int rank = p_.vars[*out].shape.rank();
    int at;
    for (const ir::Op* op; (op = Next(*out, &at)) != nullptr;) {
      if (op->type() == "affine_quantize") {
        *q = values_.QuantisationBy(*op);
        if (!*q) return;
        taken->push_back(at);
        *out = op->Out("y")[0];
        return;
      }
      Follower next = *f;
      if (rank < 0 || !Absorb(*op, *out, columns, axis, rank, &next)) return;
      *f = std::move(next);
      taken->push_back(at);
      *out = op->outputs[0][0];
    }
  }

  // Adds the operands and attributes that products and convolutions share.
  bool Finish(const ir::Op& from, Follower f, const std::optional<Quantized8>& q,
              const std::string& stem, ir::Op* made) {
    for (size_t i = 0; i < f.factor.size() && q; ++i) {
      f.factor[i] /= q->scale;
      f.offset[i] = f.offset[i] / q->scale + q->zero;
    }
    if (q) {
      f.has_offset = f.has_offset || q->zero != 0;
      f.least = f.least / q->scale + q->zero;
      f.most = f.most / q->scale + q->zero;
    }
    for (size_t i = 0; i < f.factor.size(); ++i)
      if (!std::isnormal(static_cast<float>(f.factor[i])) ||
          !std::isfinite(static_cast<float>(f.offset[i])))
        return false;
    const auto tensor = [](const std::vector<double>& v) {
      Tensor t = Tensor::Empty(DType::kF32, {static_cast<int64_t>(v.size())});
      for (size_t i = 0; i < v.size(); ++i) t.mutable_data<float>()[i] = static_cast<float>(v[i]);
      return t;
    };
    SetInput(made, "Factor", context_.AddConstant(p_, stem + ".factor", tensor(f.factor)));
    if (f.has_offset)
      SetInput(made, "Offset", context_.AddConstant(p_, stem + ".offset", tensor(f.offset)));
    SetAttr(made, "out_dtype", std::string(Name(q ? q->dtype : DType::kF32)));
    SetAttr(made, "least", f.least);
    SetAttr(made, "most", f.most);
    made->index = from.index;
    made->call_stack = from.call_stack;
    TakePlace(from, made);
    return true;
  }

  static void SetInput(ir::Op* op, const char* slot, VarId v) {
    op->inputs[static_cast<size_t>(op->def->FindInput(slot))] = {v};
  }
  static void SetOutput(ir::Op* op, const char* slot, VarId v) {
    op->outputs[static_cast<size_t>(op->def->FindOutput(slot))] = {v};
  }
  static void SetAttr(ir::Op* op, const char* name, AttrValue value) {
    op->attrs[static_cast<size_t>(op->def->FindAttr(name))] = std::move(value);
  }

  void Take(const std::vector<int>& taken) {
    for (const int at : taken) gone_[static_cast<size_t>(at)] = true;
  }

  // The factors of one operand times those of a constant per column.
  static std::vector<double> Factors(double x, const Dequantized& w, int64_t columns) {
    std::vector<double> factors(static_cast<size_t>(columns));
    for (size_t i = 0; i < factors.size(); ++i)
      factors[i] = x * double{w.scale[w.scale.size() == 1 ? 0 : i]};
    return factors;
  }

  bool Convolution(const ir::Op& op) {
    const Dequantized* const x = Plain(op.In("Input")[0]);
    const Dequantized* const w = Real(op.In("Filter")[0]);
    if (x == nullptr || w == nullptr || !w->constant || (!w->whole() && w->axis != 0) ||
        op.Attr<std::string>("data_format") != "NCHW" || w->value.rank() != 4)
      return false;
    if (const int b = op.def->FindInput("Bias"); b >= 0 && !op.inputs[b].empty()) return false;
    VarId out = op.Out("Output")[0];
    if (!view_.SingleWriter(out)) return false;
    const int64_t channels = w->value.dim(0);
    Follower f{Factors(x->scale[0], *w, channels),
               std::vector<double>(static_cast<size_t>(channels))};
    std::optional<Quantized8> q;
    std::vector<int> taken;
    Follow(channels, 3, &f, &out, &q, &taken);
    ir::Op made = ir::MakeOp(*FindOp("quantized_conv2d"));
    for (size_t a = 0; a < made.def->attrs().size(); ++a)
      if (const int from = op.def->FindAttr(made.def->attrs()[a].name); from >= 0)
        made.attrs[a] = op.attrs[static_cast<size_t>(from)];
    const std::string stem = p_.vars[op.In("Filter")[0]].name;
    if (!Finish(op, std::move(f), q, stem, &made)) return false;
    SetInput(&made, "Input", values_.Operand(*x, p_.vars[op.In("Input")[0]].name));
    SetInput(&made, "Filter", values_.Operand(*w, stem));
    if (const auto zero = values_.ZeroOperand(*w, stem)) SetInput(&made, "FilterZero", *zero);
    SetAttr(&made, "input_zero", int64_t{x->zero[0]});
    SetOutput(&made, "Output", out);
    Take(taken);
    out_.push_back(std::move(made));
    return true;
  }

  bool Product(const ir::Op& op) {
    const Dequantized* const x = Plain(op.In("X")[0]);
    const Dequantized* const y = Real(op.In("Y")[0]);
    if (x == nullptr || y == nullptr || (x->constant && y->constant)) return false;
    const Shape &xs = p_.vars[op.In("X")[0]].shape, &ys = p_.vars[op.In("Y")[0]].shape;
    VarId out = op.Out("Out")[0];
    if (!xs.known_rank() || !ys.known_rank() || xs.rank() < 2 || ys.rank() < 2 ||
        !view_.SingleWriter(out))
      return false;
    const int axis = op.Attr<bool>("trans_y") ? ys.rank() - 2 : ys.rank() - 1;
    if (!y->whole() && (ys.rank() != 2 || y->axis != axis)) return false;
    // Without the number of columns there may be one factor for all, and no addend per column.
    const int64_t columns = y->constant ? y->value.dim(axis) : ys[axis];
    const int64_t factors = y->whole() && columns < 0 ? 1 : columns;
    Follower f{Factors(x->scale[0], *y, factors),
               std::vector<double>(static_cast<size_t>(factors))};
    std::optional<Quantized8> q;
    std::vector<int> taken;
    Follow(factors, 1, &f, &out, &q, &taken);
    ir::Op made = ir::MakeOp(*FindOp("quantized_matmul"));
    const std::string stem = p_.vars[op.In("Y")[0]].name;
    if (!Finish(op, std::move(f), q, stem, &made)) return false;
    SetInput(&made, "X", values_.Operand(*x, p_.vars[op.In("X")[0]].name));
    SetInput(&made, "Y", values_.Operand(*y, stem));
    if (const auto zero = values_.ZeroOperand(*y, stem)) SetInput(&made, "YZero", *zero);
    SetAttr(&made, "x_zero", int64_t{x->zero[0]});
    SetAttr(&made, "trans_x", op.Attr<bool>("trans_x"));
    SetAttr(&made, "trans_y", op.Attr<bool>("trans_y"));
    SetOutput(&made, "Out", out);
    Take(taken);
    out_.push_back(std::move(made));
    return true;
  }

  // --- element by element -----------------------------------------------------------------------

  // A sum or product of two dequantised tensors that is quantised again.
  bool Pair(const ir::Op& op) {
    const VarId a = op.In("X")[0], b = op.In("Y")[0];
    const Dequantized *const x = Plain(a), *const y = Plain(b);
    VarId out = op.outputs[0][0];
    if (x == nullptr || y == nullptr || !view_.SingleWriter(out)) return false;
    Follower f;
    std::optional<Quantized8> q;
    std::vector<int> taken;
    int at;
    for (const ir::Op* next; !q && (next = Next(out, &at)) != nullptr;) {
      taken.push_back(at);
      if (next->type() == "affine_quantize") {
        if (!(q = values_.QuantisationBy(*next))) return false;
        out = next->Out("y")[0];
      } else {
        const auto act = AsActivation(*next);
        if (!act || (act->name != "relu" && act->name != "clip") || f.bounded()) return false;
        f.least = act->name == "relu" ? 0 : act->alpha;
        if (act->name == "clip") f.most = act->beta;
        out = next->outputs[0][0];
      }
    }
    if (!q) return false;
    if (x->constant && y->constant) return false;
    if (PairTable(op, *x, *y, f, *q, out)) {
      Take(taken);
      return true;
    }
    ir::Op made =
        ir::MakeOp(*FindOp(op.type() == "elementwise_add" ? "quantized_sum" : "quantized_product"));
    SetInput(&made, "X", values_.Operand(*x, p_.vars[a].name));
    SetInput(&made, "Y", values_.Operand(*y, p_.vars[b].name));
    SetOutput(&made, "Out", out);
    SetAttr(&made, "axis", op.Attr<int64_t>("axis"));
    SetAttr(&made, "x_scale", double{x->scale[0]});
    SetAttr(&made, "x_zero", int64_t{x->zero[0]});
    SetAttr(&made, "y_scale", double{y->scale[0]});
    SetAttr(&made, "y_zero", int64_t{y->zero[0]});
    SetAttr(&made, "out_scale", double{q->scale});
    SetAttr(&made, "out_zero", int64_t{q->zero});
    SetAttr(&made, "out_dtype", std::string(Name(q->dtype)));
    SetAttr(&made, "least", f.least);
    SetAttr(&made, "most", f.most);
    made.index = op.index;
    made.call_stack = op.call_stack;
    TakePlace(op, &made);
    Take(taken);
    out_.push_back(std::move(made));
    return true;
  }

  // A sum or product with one number, as a table.
  bool PairTable(const ir::Op& op, const Dequantized& x, const Dequantized& y, const Follower& f,
                 const Quantized8& q, VarId out) {
    const Dequantized &number = y.constant ? y : x, &other = y.constant ? x : y;
    if (!number.constant || number.value.numel() != 1 || number.value.rank() > 1 ||
        !(p_.vars[out].shape == p_.vars[other.integers].shape))
      return false;
    const ByteTable table = QuantizedValues::TableOfPair(op.type() == "elementwise_add", other,
                                                         number, f.least, f.most, q);
    MakeTable(other.integers, table, q.dtype, out, op);
    return true;
  }

  // `out` = table[x]. A table of a table is one.
  void MakeTable(VarId x, ByteTable table, DType dtype, VarId out, const ir::Op& place) {
    if (const auto before = tables_.find(x); before != tables_.end()) {
      ByteTable both;
      for (size_t i = 0; i < both.size(); ++i) both[i] = table[before->second.second[i]];
      table = both;
      x = before->second.first;
    }
    tables_[out] = {x, table};
    Tensor t = Tensor::Empty(dtype, {static_cast<int64_t>(table.size())});
    std::copy(table.begin(), table.end(), static_cast<uint8_t*>(t.mutable_raw()));
    ir::Op made = ir::MakeOp(*FindOp("byte_table"));
    SetInput(&made, "X", x);
    SetInput(&made, "Table", context_.AddConstant(p_, p_.vars[out].name + ".table", std::move(t)));
    SetOutput(&made, "Out", out);
    made.index = place.index;
    made.call_stack = place.call_stack;
    TakePlace(place, &made);
    out_.push_back(std::move(made));
  }

  // A function of one element between dequantised and quantised: a table, or nothing where the
  // integers stay as they are.
  bool Quantisation(const ir::Op& op) {
    const auto q = values_.QuantisationBy(op);
    if (!q || !view_.SingleWriter(op.Out("y")[0])) return false;
    std::vector<const ir::Op*> chain{&op};
    VarId v = op.In("x")[0];
    constexpr size_t kLongest = 16;
    while (Real(v) == nullptr && chain.size() < kLongest && view_.SingleWriter(v)) {
      const ir::Op& writer = (*old_)[static_cast<size_t>(view_.writers(v)[0])];
      if (!IsFunction(writer, v) || !SamePlace(writer, op)) break;
      chain.push_back(&writer);
      v = writer.inputs[0][0];
    }
    const Dequantized* const x = Plain(v);
    if (x == nullptr || x->constant) return false;
    return Requantise(chain, *x, *q, op.Out("y")[0], op);
  }
  // Whether the operator computes each element of `out` from that of its first operand alone, or
  // with one constant number.
  bool IsFunction(const ir::Op& op, VarId out) {
    static const std::set<std::string> pairs{"elementwise_add", "elementwise_sub",
                                             "elementwise_mul", "elementwise_div"};
    const bool pair = pairs.count(op.type()) > 0;
    if (!(pair || op.def->has(kElementwise)) || !IsPure(op) || !op.var_attrs.empty() ||
        op.inputs.empty() || op.inputs[0].size() != 1 || op.outputs[0] != std::vector<VarId>{out} ||
        p_.vars[op.inputs[0][0]].dtype != DType::kF32)
      return false;
    if (pair) {
      const auto number = values_.Floats(op.In("Y")[0]);
      return number && number->numel() == 1 && number->rank() <= 1 &&
             op.Attr<int64_t>("axis") == -1 && !values_.Floats(op.In("X")[0]);
    }
    for (size_t s = 1; s < op.inputs.size(); ++s)
      for (const VarId other : op.inputs[s])
        if (other != ir::kNoVar) return false;
    return true;
  }
  // Makes `out` of x by the operators of the chain, the last one first.
  bool Requantise(const std::vector<const ir::Op*>& chain, const Dequantized& x,
                  const Quantized8& q, VarId out, const ir::Op& place) {
    if (chain.size() == 1 && x.Like(q)) {
      ir::Op copy = ir::MakeOp(*FindOp("assign"));
      SetInput(&copy, "X", x.integers);
      SetOutput(&copy, "Out", out);
      TakePlace(place, &copy);
      out_.push_back(std::move(copy));
      return true;
    }
    const auto table = values_.TableOf(chain, x, q);
    if (!table) return false;
    MakeTable(x.integers, *table, q.dtype, out, place);
    return true;
  }

  // --- moves ------------------------------------------------------------------------------------

  // Concatenation whose result is quantised: its parts are quantised like it, and joined.
  bool Join(const ir::Op& op) {
    const auto& parts = op.In("X");
    const VarId out = op.Out("Out")[0];
    if (parts.empty() || !op.In("AxisTensor").empty() || !view_.SingleWriter(out)) return false;
    for (const VarId v : parts)
      if (Plain(v) == nullptr || Plain(v)->constant) return false;
    int at;
    const ir::Op* const next = Next(out, &at);
    std::optional<Quantized8> q;
    if (next != nullptr && next->type() == "affine_quantize") q = values_.QuantisationBy(*next);
    if (!q) {
      const Dequantized& first = *Plain(parts[0]);
      const Quantized8 own{first.scale[0], first.zero[0], first.dtype};
      for (const VarId v : parts)
        if (!Plain(v)->Like(own)) return false;
      return MoveIntegers(op, first);
    }
    ir::Op made = op;
    auto& operands = made.inputs[static_cast<size_t>(op.def->FindInput("X"))];
    for (VarId& v : operands) {
      const Dequantized x = *Plain(v);
      if (x.Like(*q)) {
        v = x.integers;
        continue;
      }
      const VarId part = NewVar(p_.vars[v].name + ".requantized", q->dtype, p_.vars[v].shape);
      if (!Requantise({next}, x, *q, part, op)) return false;
      v = part;
    }
    SetOutput(&made, "Out", next->Out("y")[0]);
    Take({at});
    out_.push_back(std::move(made));
    return true;
  }

  VarId NewVar(const std::string& stem, DType dtype, const Shape& shape) {
    ir::Var var;
    var.name = p_.FreshName(stem);
    var.block = view_.block();
    var.dtype = dtype;
    var.shape = shape;
    return p_.AddVar(std::move(var));
  }

  // Whether the operator only moves or picks elements of its first operand, whose type it keeps.
  static bool Moves(const ir::Op& op) {
    static const std::set<std::string> types{
        "reshape2", "transpose2", "squeeze2",      "unsqueeze2",
        "flatten2", "slice",      "strided_slice", "flatten_contiguous_range",
        "gather",   "expand_v2",  "tile"};
    return types.count(op.type()) > 0;
  }

  bool Move(const ir::Op& op) {
    if (!Moves(op) || op.inputs.empty() || op.inputs[0].size() != 1) return false;
    const Dequantized* const x = Real(op.inputs[0][0]);
    if (x == nullptr || op.outputs[0].size() != 1 || !view_.SingleWriter(op.outputs[0][0]) ||
        op.def->kernel(x->dtype) == nullptr)
      return false;
    if (x->constant) {
      values_.MoveConstant(op, *x);
      return false;
    }
    return x->whole() && MoveIntegers(op, *x);
  }

  // The greatest of some numbers belongs to the greatest of their integers.
  bool Pool(const ir::Op& op) {
    const Dequantized* const x = Plain(op.In("X")[0]);
    if (x == nullptr || x->constant || op.Attr<std::string>("pooling_type") != "max" ||
        op.Attr<bool>("global_pooling") || op.Attr<bool>("adaptive") || x->scale[0] < 0 ||
        !view_.SingleWriter(op.Out("Out")[0]))
      return false;
    ir::Op made = ir::MakeOp(*FindOp("byte_max_pool"));
    for (size_t a = 0; a < made.def->attrs().size(); ++a)
      if (const int from = op.def->FindAttr(made.def->attrs()[a].name); from >= 0)
        made.attrs[a] = op.attrs[static_cast<size_t>(from)];
    SetInput(&made, "X", op.In("X")[0]);
    SetOutput(&made, "Out", op.Out("Out")[0]);
    made.index = op.index;
    made.call_stack = op.call_stack;
    TakePlace(op, &made);
    return MoveIntegers(made, *x);
  }

  // The operator takes and gives integers; what it gave is dequantised behind it.
  bool MoveIntegers(const ir::Op& op, const Dequantized& from) {
    if (!moves_) return false;
    Dequantized x = from;
    const VarId out = op.outputs[0][0];
    ir::Op made = op;
    for (VarId& v : made.inputs[0]) v = Plain(v)->integers;
    x.integers = NewVar(p_.vars[out].name + ".quantized", x.dtype, p_.vars[out].shape);
    made.outputs[0] = {x.integers};
    out_.push_back(std::move(made));
    ir::Op back = *x.writer;
    back.inputs[static_cast<size_t>(back.def->FindInput("x"))] = {x.integers};
    SetOutput(&back, "y", out);
    TakePlace(op, &back);
    out_.push_back(std::move(back));
    values_.Set(out, std::move(x));
    return true;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op>& ops_;
  QuantizedValues values_;
  const std::vector<ir::Op>* old_ = nullptr;
  std::vector<ir::Op> out_;
  std::vector<bool> gone_;  // taken by an operator before it
  // What byte_table operators that were made look up, and in which table.
  std::map<VarId, std::pair<VarId, ByteTable>> tables_;
  int at_ = 0;
  bool moves_ = true, changed_ = false;
};

Result<bool> RunFuseQuantized(ir::Program& program, PassContext& context) {
  return QuantizedFuser(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_quantized) {
  pass.doc =
      "operators between affine_dequantize and affine_quantize -> operators on 8-bit integers";
  pass.before =
      "a = affine_dequantize(x, s, z); w = affine_dequantize(v, t), v a parameter; b = conv2d(a, "
      "w); c = relu(b); y = affine_quantize(c, r, q)";
  pass.after = "y = quantized_conv2d(x, v, s t / r, q), least q";
  pass.refuses =
      "scales and zero points that are no constants, blocks of scales, integers of more or fewer "
      "than 8 bits; intermediate results that are fetched or read elsewhere; scales per channel of "
      "an image, or along a dimension that products sum over";
  pass.level = 2;
  pass.needs = PassNeeds::kHostCaches;
  pass.each_block = true;
  // A result may be rounded to the next of 255 steps.
  pass.tolerance = 1.0 / 255;
  pass.own_ops = {"affine_dequantize", "quantized_conv2d", "quantized_matmul", "quantized_sum",
                  "quantized_product", "byte_table",       "byte_max_pool"};
  pass.seeks = OfTypes({"affine_dequantize"});
  pass.run = RunFuseQuantized;
}
