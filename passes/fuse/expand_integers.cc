// ONNX's operators on quantised tensors with constant scales become what they are short for:
// operators between dequantised and quantised tensors, of which fuse_quantized makes heddle's own.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "core/interrupts.h"
#include "core/op_registry.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"

namespace heddle::passes {
namespace {

using ir::VarId;

class IntegerExpander {
 public:
  IntegerExpander(ir::Program& program, PassContext& context)
      : p_(program), context_(context), view_(program, context) {}

  bool Run() {
    auto& ops = p_.blocks[static_cast<size_t>(view_.block())].ops;
    std::vector<ir::Op> old = std::move(ops);
    bool changed = false;
    for (ir::Op& op : old) {
      LookForInterrupt();
      if (op.var_attrs.empty() && !op.has_control_edges() && Expand(op))
        changed = true;
      else
        out_.push_back(std::move(op));
    }
    ops = std::move(out_);
    return changed;
  }

 private:
  bool Expand(const ir::Op& op) {
    const std::string& t = op.type();
    if (op.outputs.empty() || op.outputs[0].size() != 1 || !view_.SingleWriter(op.outputs[0][0]))
      return false;
    at_ = &op;
    if (t == "onnx_q_linear_conv") return Convolution(op);
    if (t == "onnx_q_linear_mat_mul") return Product(op);
    if (t == "onnx_ms_q_linear_add") return Pair(op, "elementwise_add");
    if (t == "onnx_ms_q_linear_mul") return Pair(op, "elementwise_mul");
    if (t == "onnx_ms_q_linear_sigmoid") return Function(op, "sigmoid");
    if (t == "onnx_ms_q_linear_leaky_relu") return Function(op, "leaky_relu");
    if (t == "onnx_ms_q_linear_concat") return Join(op);
    if (t == "onnx_ms_q_linear_global_average_pool") return Means(op);
    if (t == "onnx_max_pool") return Pool(op);
    return false;
  }

  // The only variable of a slot; kNoVar: there is none.
  static VarId In(const ir::Op& op, const char* slot) {
    const auto& vars = op.In(slot);
    return vars.empty() ? ir::kNoVar : vars[0];
  }
  bool IsConstant(VarId v) const {
    return v != ir::kNoVar && p_.vars[v].persistable && view_.NeverWritten(v) &&
           context_.fed.count(v) == 0;
  }
  // Whether all that are given are constants, as the operator wants them: floats, and zero points
  // of the type of what they belong to. Those of `many` may have several elements.
  bool AreConstant(const ir::Op& op, std::initializer_list<std::string> slots,
                   const std::string& many = "") {
    return std::all_of(slots.begin(), slots.end(), [&](const std::string& slot) {
      const std::string of = slot.substr(0, 1);
      const bool several = !many.empty() && of == many;
      const VarId v = In(op, slot.c_str());
      if (slot.ends_with("_scale")) return IsScale(v, several);
      if (v == ir::kNoVar) return true;
      if (!slot.ends_with("_zero_point")) return IsConstant(v);
      const std::string upper(1, static_cast<char>(std::toupper(of[0])));
      const VarId whole = op.def->FindInput(of) >= 0      ? In(op, of.c_str())
                          : op.def->FindInput(upper) >= 0 ? In(op, upper.c_str())
                                                          : op.outputs[0][0];
      return whole != ir::kNoVar && IsZero(v, p_.vars[whole].dtype, several);
    });
  }
  bool IsScale(VarId v, bool several) {
    const Tensor* const t = IsConstant(v) ? context_.Parameter(p_, v) : nullptr;
    return t != nullptr && t->dtype() == DType::kF32 &&
           (t->numel() == 1 || (several && t->rank() == 1));
  }
  bool IsZero(VarId v, DType dtype, bool several) {
    const Tensor* const t = IsConstant(v) ? context_.Parameter(p_, v) : nullptr;
    return t != nullptr && t->dtype() == dtype && (t->numel() == 1 || (several && t->rank() == 1));
  }
  bool IsByte(VarId v) const {
    return p_.vars[v].dtype == DType::kU8 || p_.vars[v].dtype == DType::kI8;
  }
  bool IsImage(VarId v) const { return p_.vars[v].shape.rank() == 4; }

  VarId NewVar(const char* what, DType dtype, const Shape& shape) {
    ir::Var var;
    var.name = p_.FreshName(p_.vars[at_->outputs[0][0]].name + "." + what);
    var.block = view_.block();
    var.dtype = dtype;
    var.shape = shape;
    return p_.AddVar(std::move(var));
  }
  ir::Op New(const char* type) const {
    ir::Op op = ir::MakeOp(*FindOp(type));
    op.index = at_->index;
    op.call_stack = at_->call_stack;
    TakePlace(*at_, &op);
    return op;
  }
  static void Set(ir::Op* op, const char* slot, VarId v) {
    if (v != ir::kNoVar) op->inputs[static_cast<size_t>(op->def->FindInput(slot))] = {v};
  }
  static void SetAttr(ir::Op* op, const char* name, AttrValue value) {
    op->attrs[static_cast<size_t>(op->def->FindAttr(name))] = std::move(value);
  }
  // Adds the operator; returns its output, a new variable unless it is given.
  VarId Add(ir::Op op, const char* slot, const Shape& shape, VarId out = ir::kNoVar) {
    if (out == ir::kNoVar) out = NewVar(slot, DType::kF32, shape);
    op.outputs[static_cast<size_t>(op.def->FindOutput(slot))] = {out};
    out_.push_back(std::move(op));
    return out;
  }

  VarId Real(VarId x, VarId scale, VarId zero, int64_t axis = 1) {
    ir::Op op = New("affine_dequantize");
    Set(&op, "x", x);
    Set(&op, "x_scale", scale);
    Set(&op, "x_zero_point", zero);
    SetAttr(&op, "axis", axis);
    return Add(std::move(op), "y", p_.vars[x].shape);
  }
  bool Quantise(VarId x, VarId scale, VarId zero) {
    ir::Op op = New("affine_quantize");
    Set(&op, "x", x);
    Set(&op, "y_scale", scale);
    Set(&op, "y_zero_point", zero);
    const VarId out = at_->outputs[0][0];
    constexpr int64_t kOnnxUint8 = 2, kOnnxInt8 = 3;
    const int64_t type = p_.vars[out].dtype == DType::kI8 ? kOnnxInt8 : kOnnxUint8;
    SetAttr(&op, "output_dtype", type);
    SetAttr(&op, "elem_type", type);
    Add(std::move(op), "y", p_.vars[out].shape, out);
    return true;
  }
  const Shape& OutShape() const { return p_.vars[at_->outputs[0][0]].shape; }

  // A list of ONNX for two dimensions, or as many ones or zeros; empty: it has another length.
  static Ints Two(const Ints& list, size_t n, int64_t otherwise) {
    if (list.empty()) return Ints(n, otherwise);
    return list.size() == n ? list : Ints();
  }
  // Begins and ends of both dimensions, from ONNX's begins and then ends.
  static Ints Pads(const Ints& pads) { return {pads[0], pads[2], pads[1], pads[3]}; }
  static bool PadsAreSaid(const ir::Op& op) {
    const std::string& how = op.Attr<std::string>("auto_pad");
    return how.empty() || how == "NOTSET";
  }

  bool Convolution(const ir::Op& op) {
    const VarId x = In(op, "x"), w = In(op, "w"), bias = In(op, "B");
    const Ints strides = Two(op.Attr<Ints>("strides"), 2, 1);
    const Ints dilations = Two(op.Attr<Ints>("dilations"), 2, 1);
    const Ints pads = Two(op.Attr<Ints>("pads"), 4, 0);
    if (!IsByte(x) || !IsImage(x) || !IsConstant(w) || !IsImage(w) || strides.empty() ||
        dilations.empty() || pads.empty() || !PadsAreSaid(op) ||
        std::any_of(pads.begin(), pads.end(), [](int64_t p) { return p < 0; }) ||
        !AreConstant(
            op,
            {"x_scale", "x_zero_point", "w_scale", "w_zero_point", "y_scale", "y_zero_point", "B"},
            "w") ||
        (bias != ir::kNoVar && p_.vars[bias].dtype != DType::kI32))
      return false;
    if (bias != ir::kNoVar && p_.vars[bias].dtype != DType::kI32) return false;
    const Tensor* const x_scale = context_.Parameter(p_, In(op, "x_scale"));
    const Tensor* const w_scale = context_.Parameter(p_, In(op, "w_scale"));
    if (x_scale == nullptr || w_scale == nullptr || x_scale->dtype() != DType::kF32 ||
        w_scale->dtype() != DType::kF32 || x_scale->numel() != 1)
      return false;
    VarId bias_scale = ir::kNoVar;
    if (bias != ir::kNoVar) {
      // The bias has the scales of the sums.
      Tensor scale = w_scale->Clone();
      for (int64_t i = 0; i < scale.numel(); ++i)
        scale.mutable_data<float>()[i] *= *x_scale->data<float>();
      bias_scale = context_.AddConstant(p_, p_.vars[bias].name + ".scale", std::move(scale));
    }
    ir::Op conv = New("conv2d");
    Set(&conv, "Input", Real(x, In(op, "x_scale"), In(op, "x_zero_point")));
    Set(&conv, "Filter", Real(w, In(op, "w_scale"), In(op, "w_zero_point"), 0));
    SetAttr(&conv, "strides", strides);
    SetAttr(&conv, "dilations", dilations);
    SetAttr(&conv, "paddings", Pads(pads));
    SetAttr(&conv, "groups", op.Attr<int64_t>("group"));
    VarId y = Add(std::move(conv), "Output", OutShape());
    if (bias != ir::kNoVar) {
      ir::Op add = New("elementwise_add");
      Set(&add, "X", y);
      Set(&add, "Y", Real(bias, bias_scale, ir::kNoVar, 0));
      SetAttr(&add, "axis", int64_t{1});
      y = Add(std::move(add), "Out", OutShape());
    }
    return Quantise(y, In(op, "y_scale"), In(op, "y_zero_point"));
  }

  bool Product(const ir::Op& op) {
    const VarId a = In(op, "a"), b = In(op, "b");
    if (!IsByte(a) || !IsByte(b) || p_.vars[a].shape.rank() < 2 || p_.vars[b].shape.rank() < 2 ||
        !AreConstant(
            op, {"a_scale", "a_zero_point", "b_scale", "b_zero_point", "y_scale", "y_zero_point"},
            p_.vars[b].shape.rank() == 2 ? "b" : ""))
      return false;
    ir::Op product = New("matmul_v2");
    Set(&product, "X", Real(a, In(op, "a_scale"), In(op, "a_zero_point")));
    Set(&product, "Y", Real(b, In(op, "b_scale"), In(op, "b_zero_point")));
    return Quantise(Add(std::move(product), "Out", OutShape()), In(op, "y_scale"),
                    In(op, "y_zero_point"));
  }

  bool Pair(const ir::Op& op, const char* type) {
    if (!AreConstant(
            op, {"A_scale", "A_zero_point", "B_scale", "B_zero_point", "C_scale", "C_zero_point"}))
      return false;
    ir::Op pair = New(type);
    Set(&pair, "X", Real(In(op, "A"), In(op, "A_scale"), In(op, "A_zero_point")));
    Set(&pair, "Y", Real(In(op, "B"), In(op, "B_scale"), In(op, "B_zero_point")));
    return Quantise(Add(std::move(pair), "Out", OutShape()), In(op, "C_scale"),
                    In(op, "C_zero_point"));
  }

  bool Function(const ir::Op& op, const char* type) {
    if (!AreConstant(op, {"X_scale", "X_zero_point", "Y_scale", "Y_zero_point"})) return false;
    ir::Op function = New(type);
    Set(&function, "X", Real(In(op, "X"), In(op, "X_scale"), In(op, "X_zero_point")));
    if (op.def->FindAttr("alpha") >= 0) SetAttr(&function, "alpha", op.Attr<double>("alpha"));
    return Quantise(Add(std::move(function), "Out", OutShape()), In(op, "Y_scale"),
                    In(op, "Y_zero_point"));
  }

  bool Join(const ir::Op& op) {
    const auto& all = op.In("inputs");
    if (all.empty() || all.size() % 3 != 0 || !AreConstant(op, {"Y_scale", "Y_zero_point"}))
      return false;
    for (size_t i = 0; i < all.size(); i += 3)
      if (!IsScale(all[i + 1], false) || !IsZero(all[i + 2], p_.vars[all[i]].dtype, false))
        return false;
    ir::Op join = New("concat");
    auto& parts = join.inputs[static_cast<size_t>(join.def->FindInput("X"))];
    for (size_t i = 0; i < all.size(); i += 3)
      parts.push_back(Real(all[i], all[i + 1], all[i + 2]));
    SetAttr(&join, "axis", op.Attr<int64_t>("axis"));
    return Quantise(Add(std::move(join), "Out", OutShape()), In(op, "Y_scale"),
                    In(op, "Y_zero_point"));
  }

  bool Means(const ir::Op& op) {
    const VarId x = In(op, "X");
    if (!IsImage(x) || op.Attr<int64_t>("channels_last") != 0 ||
        !AreConstant(op, {"x_scale", "x_zero_point", "y_scale", "y_zero_point"}))
      return false;
    ir::Op pool = New("pool2d");
    Set(&pool, "X", Real(x, In(op, "x_scale"), In(op, "x_zero_point")));
    SetAttr(&pool, "ksize", Ints{1, 1});
    SetAttr(&pool, "global_pooling", true);
    SetAttr(&pool, "pooling_type", std::string("avg"));
    return Quantise(Add(std::move(pool), "Out", OutShape()), In(op, "y_scale"),
                    In(op, "y_zero_point"));
  }

  bool Pool(const ir::Op& op) {
    const VarId x = In(op, "X");
    const Ints ksize = op.Attr<Ints>("kernel_shape"), strides = Two(op.Attr<Ints>("strides"), 2, 1);
    const Ints pads = Two(op.Attr<Ints>("pads"), 4, 0);
    if (!IsByte(x) || !IsImage(x) || ksize.size() != 2 || strides.empty() || pads.empty() ||
        !PadsAreSaid(op) || Two(op.Attr<Ints>("dilations"), 2, 1) != Ints{1, 1} ||
        op.Attr<int64_t>("ceil_mode") != 0)
      return false;
    for (size_t s = 1; s < op.outputs.size(); ++s)
      for (const VarId v : op.outputs[s])
        if (v != ir::kNoVar && (!view_.readers(v).empty() || context_.fetched.count(v) > 0))
          return false;
    for (size_t i = 0; i < 2; ++i)
      if (pads[i] < 0 || pads[i + 2] < 0 || pads[i] >= ksize[i] || pads[i + 2] >= ksize[i])
        return false;
    ir::Op pool = New("byte_max_pool");
    Set(&pool, "X", x);
    SetAttr(&pool, "ksize", ksize);
    SetAttr(&pool, "strides", strides);
    SetAttr(&pool, "paddings", Pads(pads));
    Add(std::move(pool), "Out", OutShape(), op.outputs[0][0]);
    return true;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView view_;
  std::vector<ir::Op> out_;
  const ir::Op* at_ = nullptr;  // the operator that is looked at
};

Result<bool> RunExpandIntegers(ir::Program& program, PassContext& context) {
  return IntegerExpander(program, context).Run();
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(expand_integers) {
  pass.doc =
      "ONNX's operators on quantised tensors with constant scales -> operators on floats between "
      "affine_dequantize and affine_quantize, for fuse_quantized";
  pass.before = "y = onnx_ms_q_linear_add(a, s, z, b, t, u, r, q)";
  pass.after =
      "c = affine_dequantize(a, s, z); d = affine_dequantize(b, t, u); e = c + d; y = "
      "affine_quantize(e, r, q)";
  pass.refuses =
      "scales and zero points that are no constants; images of other ranks than 4; paddings that "
      "are not given as numbers";
  pass.level = 2;
  pass.needs = PassNeeds::kHostCaches;
  pass.each_block = true;
  // A result may be rounded to the next of 255 steps.
  pass.tolerance = 1.0 / 255;
  pass.own_ops = {"affine_dequantize", "affine_quantize", "byte_max_pool"};
  pass.seeks =
      OfTypes({"onnx_q_linear_conv", "onnx_q_linear_mat_mul", "onnx_ms_q_linear_add",
               "onnx_ms_q_linear_mul", "onnx_ms_q_linear_sigmoid", "onnx_ms_q_linear_leaky_relu",
               "onnx_ms_q_linear_concat", "onnx_ms_q_linear_global_average_pool", "onnx_max_pool"});
  pass.run = RunExpandIntegers;
}
