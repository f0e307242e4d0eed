// A convolution of 8-bit integers whose sums are converted and scaled becomes one operator: what
// exporters and ONNX Runtime's quantiser make of convolutions whose image is quantised on the way.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/memory/lazy_buffer.h"
#include "core/op_registry.h"
#include "passes/fuse/fused_activation.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::VarId;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

class IntegerConvFuser {
 public:
  IntegerConvFuser(ir::Program& program, PassContext& context)
      : p_(program),
        context_(context),
        view_(program, context),
        ops_(program.blocks[static_cast<size_t>(context.block)].ops) {}

  bool Run() {
    gone_.assign(ops_.size(), false);
    made_.resize(ops_.size());
    bool changed = false;
    for (size_t i = 0; i < ops_.size(); ++i) {
      LookForInterrupt();
      if (gone_[i] || !ops_[i].var_attrs.empty() || ops_[i].has_control_edges()) continue;
      const int at = static_cast<int>(i);
      if (ops_[i].type() == "onnx_conv_integer")
        changed = Scaled(at) || changed;
      else if (IsUnbounded(ops_[i]))
        changed = Followed(at) || changed;
    }
    if (!changed) return false;
    std::vector<ir::Op> out;
    for (size_t i = 0; i < ops_.size(); ++i) {
      for (ir::Op& op : made_[i]) out.push_back(std::move(op));
      if (!gone_[i]) out.push_back(std::move(ops_[i]));
    }
    ops_ = std::move(out);
    return true;
  }

 private:
  static VarId In(const ir::Op& op, const char* slot) {
    const auto& vars = op.In(slot);
    return vars.empty() ? ir::kNoVar : vars[0];
  }
  static VarId Out(const ir::Op& op) { return op.outputs[0][0]; }
  static void Set(ir::Op* op, const char* slot, VarId v) {
    if (v != ir::kNoVar) op->inputs[static_cast<size_t>(op->def->FindInput(slot))] = {v};
  }
  static void SetAttr(ir::Op* op, const char* name, AttrValue value) {
    op->attrs[static_cast<size_t>(op->def->FindAttr(name))] = std::move(value);
  }

  // The only reader of `v`, which is read nowhere else, at the place of the operator at `at`; null:
  // there is none.
  const ir::Op* Next(VarId v, int at, int* next) const {
    *next = view_.OnlyReader(v, context_);
    if (*next < 0 || gone_[static_cast<size_t>(*next)]) return nullptr;
    const ir::Op& op = ops_[static_cast<size_t>(*next)];
    return op.var_attrs.empty() && SamePlace(op, ops_[static_cast<size_t>(at)]) ? &op : nullptr;
  }

  // Whether a tensor of this shape has one number for all of an image with `channels`, or one for
  // each of these.
  static bool IsOne(const Shape& s, int rank) {
    return s.is_static() && s.numel() == 1 && s.rank() <= rank;
  }
  static bool IsEach(const Shape& s, int rank, int64_t axis, int64_t channels) {
    if (!s.is_static() || s.numel() != channels || s.rank() > rank) return false;
    if (s.rank() == 1 && axis == 1) return true;
    return (axis == -1 || axis == rank - s.rank()) && s.rank() >= rank - 1 &&
           s[s.rank() - rank + 1] == channels;
  }
  // The other operand of a sum or product of `from`, if it is one of these; kNoVar: it is neither.
  VarId Beside(const ir::Op& op, VarId from, int rank, int64_t channels) const {
    const VarId x = op.In("X")[0], y = op.In("Y")[0];
    const VarId other = x == from ? y : x;
    const auto axis = op.Attr<int64_t>("axis");
    if (x == y || (x != from && axis >= 0) || p_.vars[other].dtype != DType::kF32)
      return ir::kNoVar;
    const Shape& s = p_.vars[other].shape;
    return IsOne(s, rank) || IsEach(s, rank, axis, channels) ? other : ir::kNoVar;
  }

  // --- the convolution and its factor -----------------------------------------------------------

  struct Windows {
    Ints strides, dilations, pads;  // pads: the first and the last of each dimension in turn
    std::string algorithm = "EXPLICIT";
  };
  // nullopt: they are not known, or negative.
  static std::optional<Windows> WindowsOf(const ir::Op& op, int spatial) {
    const auto list = [&](const char* name, int n, int64_t value) {
      Ints v = op.Attr<Ints>(name);
      return v.empty() ? Ints(static_cast<size_t>(n), value) : v;
    };
    Windows w{list("strides", spatial, 1), list("dilations", spatial, 1), {}};
    const Ints pads = list("pads", 2 * spatial, 0);
    const auto n = static_cast<size_t>(spatial);
    if (w.strides.size() != n || w.dilations.size() != n || pads.size() != 2 * n) return {};
    if (std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; })) return {};
    for (size_t i = 0; i < n; ++i) {
      w.pads.push_back(pads[i]);
      w.pads.push_back(pads[n + i]);
    }
    const auto& how = op.Attr<std::string>("auto_pad");
    if (how == "VALID") w.pads.assign(2 * n, 0);
    // Of an odd number, SAME_UPPER pads one more at the end, as SAME does.
    if (how == "SAME_UPPER") w.algorithm = "SAME_DILATED";
    if (how == "SAME_LOWER") return {};
    return w;
  }

  // What the operator gives, if it is a convolution that can be fused.
  bool Scaled(int at) {
    const ir::Op& conv = ops_[static_cast<size_t>(at)];
    const VarId x = In(conv, "x"), w = In(conv, "w"), x_zero = In(conv, "x_zero_point"),
                w_zero = In(conv, "w_zero_point");
    const int rank = p_.vars[x].shape.rank(), spatial = rank - 2;
    if (spatial < 1 || spatial > 3 || !IsByte(x) || !IsByte(w) || !view_.SingleWriter(Out(conv)))
      return false;
    const Tensor* const filter = Constant(w);
    if (filter == nullptr || filter->rank() != rank || filter->numel() == 0) return false;
    const int64_t channels = filter->dim(0);
    if (w_zero != ir::kNoVar) {
      const Tensor* const t = Constant(w_zero);
      if (t == nullptr || t->dtype() != filter->dtype() ||
          (t->numel() != 1 && t->numel() != channels))
        return false;
    }
    if (x_zero != ir::kNoVar &&
        (p_.vars[x_zero].dtype != p_.vars[x].dtype || !IsOne(p_.vars[x_zero].shape, 1)))
      return false;
    const auto windows = WindowsOf(conv, spatial);
    if (!windows) return false;
    int cast_at, mul_at;
    const ir::Op* const cast = Next(Out(conv), at, &cast_at);
    if (cast == nullptr || cast->type() != "cast" || p_.vars[Out(*cast)].dtype != DType::kF32 ||
        !view_.SingleWriter(Out(*cast)))
      return false;
    const ir::Op* const mul = Next(Out(*cast), at, &mul_at);
    if (mul == nullptr || mul->type() != "elementwise_mul" || !view_.SingleWriter(Out(*mul)))
      return false;
    if (p_.vars[Out(*mul)].shape.rank() != rank) return false;
    const VarId factor = Beside(*mul, Out(*cast), rank, channels);
    const int both[] = {at, cast_at};
    if (factor == ir::kNoVar || !view_.ReadTheSame(both, mul_at)) return false;
    Make(conv, *filter, *windows, factor, Out(*mul), mul_at);
    gone_[static_cast<size_t>(at)] = gone_[static_cast<size_t>(cast_at)] =
        gone_[static_cast<size_t>(mul_at)] = true;
    return true;
  }
  bool IsByte(VarId v) const {
    return p_.vars[v].dtype == DType::kU8 || p_.vars[v].dtype == DType::kI8;
  }
  const Tensor* Constant(VarId v) {
    if (!p_.vars[v].persistable || !view_.NeverWritten(v) || context_.fed.count(v) > 0)
      return nullptr;
    return context_.Parameter(p_, v, false, false);
  }

  ir::Op New(const ir::Op& like, const char* type) const {
    ir::Op op = ir::MakeOp(*FindOp(type));
    op.index = like.index;
    op.call_stack = like.call_stack;
    TakePlace(like, &op);
    return op;
  }
  VarId NewVar(const std::string& stem, DType dtype, const Shape& shape) {
    ir::Var var;
    var.name = p_.FreshName(stem);
    var.block = view_.block();
    var.dtype = dtype;
    var.shape = shape;
    return p_.AddVar(std::move(var));
  }
  static Shape WithRow(const Shape& s) {
    Shape image{s[0], s[1], 1};
    image.push_back(s[2]);
    return image;
  }

  // Rows are images of one row.
  void Make(const ir::Op& conv, const Tensor& filter, Windows windows, VarId factor, VarId out,
            int at) {
    std::vector<ir::Op>& to = made_[static_cast<size_t>(at)];
    VarId x = In(conv, "x"), w = In(conv, "w");
    const bool row = filter.rank() == 3;
    ir::Op made = New(conv, filter.rank() == 5 ? "quantized_conv3d" : "quantized_conv2d");
    VarId result = out;
    if (row) {
      const VarId image =
          NewVar(p_.vars[x].name + ".row", p_.vars[x].dtype, WithRow(p_.vars[x].shape));
      to.push_back(ChangedRank(conv, "unsqueeze2", x, image));
      x = image;
      const Tensor* const contents = context_.Parameter(p_, w, true, true);
      Tensor kernel = contents->Clone();
      kernel.SetMeta(kernel.dtype(), WithRow(kernel.shape()));
      w = context_.AddConstant(p_, p_.vars[w].name + ".row", std::move(kernel));
      for (Ints* const list : {&windows.strides, &windows.dilations})
        list->insert(list->begin(), 1);
      windows.pads.insert(windows.pads.begin(), 2, 0);
      result = NewVar(p_.vars[out].name + ".row", DType::kF32, WithRow(p_.vars[out].shape));
    } else {
      context_.Parameter(p_, w, true, false);
    }
    Set(&made, "Input", x);
    Set(&made, "Filter", w);
    Set(&made, "Factor", factor);
    Set(&made, "InputZero", In(conv, "x_zero_point"));
    Set(&made, "FilterZero", In(conv, "w_zero_point"));
    SetAttr(&made, "strides", windows.strides);
    SetAttr(&made, "dilations", windows.dilations);
    SetAttr(&made, "paddings", windows.pads);
    SetAttr(&made, "padding_algorithm", windows.algorithm);
    SetAttr(&made, "groups", conv.Attr<int64_t>("group"));
    SetAttr(&made, "out_dtype", std::string(Name(DType::kF32)));
    made.outputs[static_cast<size_t>(made.def->FindOutput("Output"))] = {result};
    to.push_back(std::move(made));
    if (row) to.push_back(ChangedRank(conv, "squeeze2", result, out));
  }
  ir::Op ChangedRank(const ir::Op& like, const char* type, VarId from, VarId to) const {
    ir::Op op = New(like, type);
    Set(&op, "X", from);
    SetAttr(&op, "axes", Ints{2});
    op.outputs[static_cast<size_t>(op.def->FindOutput("Out"))] = {to};
    return op;
  }

  // --- what follows it --------------------------------------------------------------------------

  // A convolution to floats that has no bounds yet.
  static bool IsUnbounded(const ir::Op& op) {
    return (op.type() == "quantized_conv2d" || op.type() == "quantized_conv3d") &&
           op.Attr<std::string>("out_dtype") == Name(DType::kF32) &&
           op.Attr<double>("least") == -kUnbounded && op.Attr<double>("most") == kUnbounded;
  }

  // Takes a bias, and then bounds, behind the convolution or the removal of its row.
  bool Followed(int at) {
    ir::Op& conv = ops_[static_cast<size_t>(at)];
    if (conv.Attr<std::string>("data_format").ends_with('C')) return false;
    const Tensor* const filter = Constant(In(conv, "Filter"));
    if (filter == nullptr) return false;
    ir::Op* last = &conv;
    int next;
    const ir::Op* reader = Next(Out(conv), at, &next);
    if (reader != nullptr && reader->type() == "squeeze2" && view_.SingleWriter(Out(*reader)) &&
        reader->Attr<Ints>("axes") == Ints{2} && filter->rank() == 4) {
      last = &ops_[static_cast<size_t>(next)];
      reader = Next(Out(*reader), at, &next);
    }
    if (reader == nullptr || !view_.SingleWriter(Out(*reader))) return false;
    if (reader->type() == "elementwise_add" && In(conv, "Offset") == ir::kNoVar) {
      const int rank = p_.vars[Out(*last)].shape.rank();
      const VarId bias = Beside(*reader, Out(*last), rank, filter->dim(0));
      if (bias == ir::kNoVar || Constant(bias) == nullptr) return false;
      Set(&conv, "Offset", bias);
    } else {
      const auto a = AsActivation(*reader);
      if (!a || a->name != "clip") return false;  // as the convolution does, it keeps NaN
      SetAttr(&conv, "least", a->alpha);
      SetAttr(&conv, "most", a->beta);
    }
    // Readers of the result stand behind the operator that goes.
    last->outputs[0] = {Out(*reader)};
    gone_[static_cast<size_t>(next)] = true;
    return true;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op>& ops_;
  std::vector<bool> gone_;
  std::vector<std::vector<ir::Op>> made_;  // by the position before which they stand
};

Result<bool> RunFuseIntegerConv(ir::Program& program, PassContext& context) {
  return IntegerConvFuser(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_integer_conv) {
  pass.doc =
      "onnx_conv_integer + cast to float32 + factor, then bias, then bounds -> quantized_conv2d";
  pass.before = "s = onnx_conv_integer(x, w, z); t = cast(s); u = t * f; v = u + bias; y = relu(v)";
  pass.after = "y = quantized_conv2d(x, w, f, bias, z), least 0";
  pass.refuses =
      "filters and their zero points that are no constants; factors that are neither one number "
      "nor "
      "one for each channel; paddings SAME_LOWER; intermediate results that are fetched or read "
      "elsewhere";
  pass.level = 2;
  pass.needs = PassNeeds::kHostCaches;
  pass.repeat = true;
  pass.each_block = true;
  pass.own_ops = {"quantized_conv2d", "quantized_conv3d"};
  pass.seeks = OfTypes({"onnx_conv_integer", "quantized_conv2d", "quantized_conv3d"});
  pass.run = RunFuseIntegerConv;
}
