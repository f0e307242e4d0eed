// A convolution and what follows it (batch_norm, bias, factors, a residual sum, an activation, and
// a last factor and offset) become one fused_conv2d. Everything per channel before the activation
// is folded into the weights, in double.
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/memory/lazy_buffer.h"
#include "core/op_registry.h"
#include "core/programs/kept_outputs.h"
#include "core/shapes.h"
#include "passes/fuse/fused_activation.h"
#include "passes/fuse/replace_chains.h"
#include "passes/graph_view.h"
#include "passes/pass.h"
#include "passes/places.h"
#include "passes/version_view.h"

namespace heddle::passes {
namespace {

using ir::VarId;

// Factors per output channel of a convolution, which its filter is multiplied by.
struct FilterScale {
  // Part of the name under which packed filters are kept in users' files: must be raised when Apply
  // gives other bits.
  static constexpr int kVersion = 1;

  Shape shape;         // of the filter
  int64_t group_rows;  // transposed convolutions: rows of dimension 0 per group; else 0
  std::vector<double> factors;

  // Scales the filter's elements [first, last), stored from `w` on.
  void Apply(float* w, int64_t first, int64_t last) const {
    const int64_t window = shape[2] * shape[3];
    for (int64_t at = first; at < last;) {
      const int64_t i = at / window / shape[1], j = at / window % shape[1];
      const int64_t channel = group_rows > 0 ? i / group_rows * shape[1] + j : i;
      // The end of the elements that share a factor.
      const int64_t end =
          std::min(last, group_rows > 0 ? (at / window + 1) * window : (i + 1) * shape[1] * window);
      for (; at < end; ++at, ++w)
        *w = static_cast<float>(*w * factors[static_cast<size_t>(channel)]);
    }
  }
  // A text that is equal only for equal scales.
  std::string Fingerprint() const {
    return StrCat("v", kVersion, " ", shape.ToString(), " ", group_rows, " ",
                  XXH3_64bits(factors.data(), factors.size() * sizeof(double)));
  }
};

class ConvFuser {
 public:
  ConvFuser(ir::Program& program, PassContext& context, const GraphView& view, int at)
      : p_(program),
        context_(context),
        view_(view),
        ops_(program.blocks[static_cast<size_t>(view.block())].ops),
        at_(at) {}

  // Absorbs followers; returns whether there is something to replace. An operator that another
  // convolution has taken (`gone`) ends the chain.
  bool Grow(const TakenOps& gone) {
    const ir::Op& conv = ops_[at_];
    const std::string& type = conv.type();
    transposed_ = type == "conv2d_transpose" || type == "depthwise_conv2d_transpose";
    if (!transposed_ && type != "conv2d" && type != "depthwise_conv2d") return false;
    last_ = conv.Attr<std::string>("data_format") == "NHWC";
    filter_ = context_.Constant(p_, view_, conv.In("Filter")[0], false);
    if (filter_ == nullptr || filter_->rank() != 4 || (transposed_ && last_) ||
        !conv.var_attrs.empty())
      return false;
    groups_ = std::max<int64_t>(1, conv.Attr<int64_t>("groups"));
    channels_ = transposed_ ? filter_->dim(1) * groups_ : filter_->dim(0);
    scale_.assign(static_cast<size_t>(channels_), 1.0);
    bias_.assign(static_cast<size_t>(channels_), 0.0);
    if (const int b = conv.def->FindInput("Bias"); b >= 0 && !conv.inputs[b].empty()) return false;
    out_ = conv.Out("Output")[0];
    for (int r; (r = view_.OnlyReader(out_, context_)) >= 0 && !gone[r] && Absorb(ops_[r]);)
      absorbed.push_back(r);
    return !absorbed.empty();
  }

  // Makes the fused operator, and adds its new constants to the program.
  ir::Op Make() {
    const ir::Op& conv = ops_[at_];
    ir::Op fused = ir::MakeOp(*FindOp(transposed_ ? "fused_conv2d_transpose" : "fused_conv2d"));
    for (size_t a = 0; a < fused.def->attrs().size(); ++a)
      if (const int from = conv.def->FindAttr(fused.def->attrs()[a].name); from >= 0)
        fused.attrs[a] = conv.attrs[from];
    fused.index = conv.index;
    fused.call_stack = conv.call_stack;
    auto set = [&](const char* name, AttrValue v) { fused.attrs[fused.def->FindAttr(name)] = v; };
    SetActivation(activation_, &fused);
    set("fuse_scale", out_scale_);
    set("fuse_shift", out_shift_);
    auto in = [&](const char* slot) -> auto& { return fused.inputs[fused.def->FindInput(slot)]; };
    in("Input") = conv.In("Input");
    in("Filter") = conv.In("Filter");
    const std::string stem = p_.vars[conv.In("Filter")[0]].name;
    if (scaled_) in("Filter") = {context_.AddConstant(p_, stem, ScaledFilter())};
    if (biased_) in("Bias") = {context_.AddConstant(p_, stem + ".bias", BiasTensor())};
    if (residual_) in("ResidualData") = {*residual_};
    if (const auto padded = PaddingBefore()) {
      in("Input") = {padded->image};
      set("paddings", padded->paddings);
      set("padding_algorithm", std::string("EXPLICIT"));
    }
    fused.outputs[fused.def->FindOutput("Output")] = {out_};
    return fused;
  }

  std::vector<int> absorbed;

 private:
  // An image that an operator pads with zeros, and the padding with which the convolution does the
  // same.
  struct Padded {
    VarId image;
    Ints paddings;
  };
  std::optional<Padded> PaddingBefore() const {
    const ir::Op& conv = ops_[at_];
    const VarId x = conv.In("Input")[0];
    if (!last_ || !view_.SingleWriter(x)) return std::nullopt;
    const ir::Op& pad = ops_[static_cast<size_t>(view_.writers(x)[0])];
    if (pad.type() != "pad" || !HasOnlyInput(pad, "X") || !pad.var_attrs.empty() ||
        pad.Attr<std::string>("mode") != "constant" || pad.Attr<double>("pad_value") != 0 ||
        !pad.Attr<Ints>("axes").empty() || pad.Attr<bool>("before_first"))
      return std::nullopt;
    const VarId image = pad.In("X")[0];
    if (!SamePlace(pad, conv) || !view_.WrittenBefore(image, at_)) return std::nullopt;
    const Ints& by = pad.Attr<Ints>("paddings");
    if (by.size() != 8 || std::any_of(by.begin(), by.end(), [](int64_t p) { return p < 0; }))
      return std::nullopt;
    if (by[0] != 0 || by[1] != 0 || by[6] != 0 || by[7] != 0) return std::nullopt;
    const std::string& algorithm = conv.Attr<std::string>("padding_algorithm");
    Ints own = conv.Attr<Ints>("paddings");
    if (algorithm.starts_with("SAME")) return std::nullopt;
    if (algorithm == "VALID") own = {0, 0, 0, 0};
    if (own.size() == 2) own = {own[0], own[0], own[1], own[1]};
    if (own.size() != 4) return std::nullopt;
    for (size_t i = 0; i < 4; ++i) {
      own[i] += by[2 + i];
      // Filters that could lie wholly in the padding are left to it.
      if (own[i] < 0 || own[i] >= filter_->dim(i < 2 ? 2 : 3)) return std::nullopt;
    }
    return Padded{image, own};
  }

  bool activated() const { return !activation_.name.empty(); }
  bool linear_after() const { return out_scale_ != 1 || out_shift_ != 0; }

  bool Absorb(const ir::Op& op) {
    const std::string& t = op.type();
    if (!op.var_attrs.empty()) return false;
    auto all = std::tie(scale_, bias_, scaled_, biased_, out_scale_, out_shift_);
    const std::tuple before(scale_, bias_, scaled_, biased_, out_scale_, out_shift_);
    bool done = false;
    if (t == "batch_norm") done = BatchNorm(op);
    if (t == "elementwise_add") done = Add(op, 1) || Residual(op);
    if (t == "elementwise_sub") done = Add(op, -1);
    if (t == "elementwise_mul") done = Multiply(op, false);
    if (t == "elementwise_div") done = Multiply(op, true);
    if (t == "scale") done = Scale(op);
    // The folded filter would give NaN for other elements than the operators do.
    if (done && !MayFold()) {
      all = before;
      return false;
    }
    if (!done) done = Activate(op);
    if (done) out_ = FirstOut(op);
    return done;
  }
  bool MayFold() const {
    const auto fits = [](double v) { return std::isfinite(static_cast<float>(v)); };
    // A factor that makes weights 0 would turn infinity into NaN.
    const auto scales = [](double v) { return v == 0 || std::isnormal(static_cast<float>(v)); };
    return std::all_of(scale_.begin(), scale_.end(), scales) &&
           std::all_of(bias_.begin(), bias_.end(), fits) && fits(out_scale_) && fits(out_shift_);
  }
  static VarId FirstOut(const ir::Op& op) { return op.outputs[0][0]; }

  bool Activate(const ir::Op& op) {
    if (activated() || linear_after()) return false;
    auto a = AsActivation(op);
    if (a) activation_ = *a;
    return a.has_value();
  }

  bool BatchNorm(const ir::Op& op) {
    if (!ir::IsInference(op) || activated() || linear_after() || residual_ ||
        (op.Attr<std::string>("data_layout") == "NHWC") != last_ || !op.Out("MeanOut").empty() ||
        op.In("X")[0] != out_ || op.In("Scale").empty() || op.In("Bias").empty())
      return false;
    const Tensor* t[4] = {};
    const char* slots[4] = {"Scale", "Bias", "Mean", "Variance"};
    for (int i = 0; i < 4; ++i) {
      t[i] = context_.Constant(p_, view_, op.In(slots[i])[0]);
      if (t[i] == nullptr || t[i]->numel() != channels_) return false;
    }
    const double epsilon = op.Attr<double>("epsilon");
    for (size_t c = 0; c < scale_.size(); ++c) {
      const double k = t[0]->data<float>()[c] / std::sqrt(t[3]->data<float>()[c] + epsilon);
      scale_[c] *= k;
      bias_[c] = (bias_[c] - t[2]->data<float>()[c]) * k + t[1]->data<float>()[c];
    }
    return scaled_ = biased_ = true;
  }

  // A parameter, or a reshape of one to a known shape, as for a bias [C] that becomes [1, C, 1, 1].
  const Tensor* ConstantOrReshaped(VarId v) {
    if (view_.writers(v).size() != 1 || !view_.Stable(v)) return context_.Constant(p_, view_, v);
    const ir::Op& op = ops_[static_cast<size_t>(view_.writers(v)[0])];
    if ((op.type() != "reshape2" && op.type() != "reshape") || !op.var_attrs.empty())
      return nullptr;
    // X must be the only input: no variable may give the shape.
    for (size_t slot = 0; slot < op.inputs.size(); ++slot)
      if (static_cast<int>(slot) != op.def->FindInput("X") && !op.inputs[slot].empty())
        return nullptr;
    const Shape& shape = p_.vars[v].shape;
    const Tensor* t = context_.Constant(p_, view_, op.In("X")[0]);
    if (t == nullptr || !shape.is_static() || shape.numel() != t->numel()) return nullptr;
    return &reshaped_.emplace_back(t->Reshaped(shape));
  }

  // The constant operand of X op Y, of one value or one per channel; nullptr: it is neither.
  const Tensor* Operand(const ir::Op& op, bool y_only) {
    const VarId x = op.In("X")[0], y = op.In("Y")[0];
    if (x == y || (y_only && x != out_)) return nullptr;
    const Tensor* t = ConstantOrReshaped(x == out_ ? y : x);
    if (t == nullptr || (t->numel() == 1 && t->rank() <= 4)) return t;
    const int64_t axis = op.Attr<int64_t>("axis");
    const Shape& s = t->shape();
    if (last_) {  // aligned at the last dimension, with no dimensions but the channels
      const bool ends = axis == -1 || (axis == 3 && s.rank() == 1 && x == out_);
      return ends && s.rank() <= 4 && t->numel() == channels_ && s[s.rank() - 1] == channels_
                 ? t
                 : nullptr;
    }
    const bool vector = s.rank() == 1 && axis == 1 && x == out_;
    const bool column = s.rank() == 3 && s[1] == 1 && s[2] == 1 && (axis == -1 || axis == 1);
    const bool full = s.rank() == 4 && s[0] == 1 && s[2] == 1 && s[3] == 1 && axis <= 0;
    return t->numel() == channels_ && (vector || column || full) ? t : nullptr;
  }

  bool Add(const ir::Op& op, double sign) {
    const Tensor* t = Operand(op, sign < 0);
    if (t == nullptr) return false;
    const float* v = t->data<float>();
    if (activated() || linear_after()) {
      if (t->numel() != 1) return false;
      out_shift_ += sign * v[0];
      return true;
    }
    for (size_t c = 0; c < bias_.size(); ++c) bias_[c] += sign * v[t->numel() == 1 ? 0 : c];
    return biased_ = true;
  }

  bool Multiply(const ir::Op& op, bool divide) {
    const Tensor* t = Operand(op, divide);
    if (t == nullptr) return false;
    const float* v = t->data<float>();
    auto factor = [&](size_t c) { return divide ? 1.0 / v[c] : static_cast<double>(v[c]); };
    if (activated() || linear_after() || residual_) {
      if (t->numel() != 1) return false;
      out_scale_ *= factor(0);
      out_shift_ *= factor(0);
      return true;
    }
    for (size_t c = 0; c < bias_.size(); ++c) {
      scale_[c] *= factor(t->numel() == 1 ? 0 : c);
      bias_[c] *= factor(t->numel() == 1 ? 0 : c);
    }
    return scaled_ = true;
  }

  bool Scale(const ir::Op& op) {
    if (!op.In("ScaleTensor").empty()) return false;
    const double a = op.Attr<double>("scale"), b = op.Attr<double>("bias");
    const double shift = op.Attr<bool>("bias_after_scale") ? b : a * b;
    if (activated() || linear_after() || residual_) {
      out_scale_ *= a;
      out_shift_ = out_shift_ * a + shift;
      return true;
    }
    for (size_t c = 0; c < bias_.size(); ++c) {
      scale_[c] *= a;
      bias_[c] = bias_[c] * a + shift;
    }
    scaled_ = scaled_ || a != 1;
    return biased_ = true;
  }

  // Absorbs the sum with a tensor of the same shape. Open dimensions might differ and broadcast, so
  // only the batch may be open, unless both operands derive from one tensor by steps that keep its
  // sizes.
  bool Residual(const ir::Op& op) {
    if (activated() || linear_after() || residual_ || transposed_) return false;
    const VarId x = op.In("X")[0], y = op.In("Y")[0], other = x == out_ ? y : x;
    if (x == y) return false;
    const Shape &a = p_.vars[out_].shape, &b = p_.vars[other].shape;
    if (a.rank() != 4 || !(a == b) || p_.vars[other].dtype != DType::kF32) return false;
    const int64_t channels = a[last_ ? 3 : 1], rows = a[last_ ? 1 : 2], columns = a[last_ ? 2 : 3];
    if (channels < 0 || ((rows < 0 || columns < 0) && !SizesAreEqual(out_, other))) return false;
    residual_ = other;
    return true;
  }

  // Whether both derive from one tensor with its batch, rows and columns.
  bool SizesAreEqual(VarId a, VarId b) {
    const std::vector<VarId> from = SameSizes(a), others = SameSizes(b);
    return std::any_of(from.begin(), from.end(), [&](VarId v) {
      return view_.Stable(v) && std::find(others.begin(), others.end(), v) != others.end();
    });
  }
  // `v`, and the tensors from which it is computed with the same batch, rows and columns.
  std::vector<VarId> SameSizes(VarId v) {
    constexpr size_t kMostSteps = 16;
    std::vector<VarId> found{v};
    while (found.size() < kMostSteps && view_.Stable(found.back()) &&
           !view_.writers(found.back()).empty()) {
      const VarId next = SameSizeInput(ops_[static_cast<size_t>(view_.writers(found.back())[0])]);
      if (next == ir::kNoVar) break;
      found.push_back(next);
    }
    return found;
  }
  // The input that has the output's batch, rows and columns; kNoVar: unknown.
  VarId SameSizeInput(const ir::Op& op) {
    if (!op.var_attrs.empty() || op.inputs.empty() || op.inputs[0].size() != 1) return ir::kNoVar;
    if (op.def->has(kElementwise)) return op.inputs[0][0];
    if (op.def->has(kBroadcasts) && op.inputs[1].size() == 1) {
      const VarId x = op.inputs[0][0], y = op.inputs[1][0];
      return IsPerChannel(y, op) ? x : IsPerChannel(x, op) ? y : ir::kNoVar;
    }
    if (op.type() != "conv2d" && op.type() != "depthwise_conv2d" && op.type() != "fused_conv2d")
      return ir::kNoVar;
    const Tensor* filter = context_.Constant(p_, view_, op.In("Filter")[0], false);
    const Ints &pads = op.Attr<Ints>("paddings"), &dilations = op.Attr<Ints>("dilations");
    if (filter == nullptr || filter->rank() != 4 || op.Attr<Ints>("strides") != Ints{1, 1} ||
        op.Attr<std::string>("padding_algorithm") != "EXPLICIT" || dilations.size() != 2 ||
        (pads.size() != 2 && pads.size() != 4))
      return ir::kNoVar;
    for (size_t d = 0; d < 2; ++d) {
      const int64_t both = pads.size() == 2 ? 2 * pads[d] : pads[2 * d] + pads[2 * d + 1];
      if (both != dilations[d] * (filter->dim(static_cast<int>(d) + 2) - 1)) return ir::kNoVar;
    }
    return op.In("Input")[0];
  }
  // Whether `v` is a constant of one number, or of one number per channel of a 4-D operand.
  bool IsPerChannel(VarId v, const ir::Op& op) {
    const Tensor* t = ConstantOrReshaped(v);
    if (t == nullptr || t->rank() > 4) return false;
    if (t->numel() == 1) return true;
    const Shape& s = t->shape();
    const int64_t axis = op.Attr<int64_t>("axis");
    if (s.rank() == 1) return axis == (last_ ? 3 : 1) || (last_ && axis == -1);
    const int channel = s.rank() - (last_ ? 1 : 3);
    return channel >= 0 && (axis == -1 || axis == 4 - s.rank()) && s[channel] == t->numel();
  }

  // The scaled filter. A filter that is not in memory yet is not read here either.
  Tensor ScaledFilter() const {
    const FilterScale scale{filter_->shape(), transposed_ ? filter_->dim(0) / groups_ : 0, scale_};
    if (const auto contents = ContentsToCome(*filter_)) {
      const auto make = [contents, scale](void* to, size_t begin, size_t end) {
        HEDDLE_RETURN_IF_ERROR((*contents)(to, begin, end));
        scale.Apply(static_cast<float*>(to), static_cast<int64_t>(begin / sizeof(float)),
                    static_cast<int64_t>(end / sizeof(float)));
        return Status::Ok();
      };
      ContentsOrigin origin = OriginOf(*filter_);
      origin.part += " scaled " + scale.Fingerprint();
      BufferRef scaled = MakeLazyBuffer(filter_->bytes(), make, std::move(origin));
      if (!scaled) throw std::bad_alloc();
      return Tensor(DType::kF32, filter_->shape(), std::move(scaled));
    }
    Tensor t = BorrowedContents(*filter_).tensor().Clone();
    if (!t.initialized()) throw std::bad_alloc();
    scale.Apply(t.mutable_data<float>(), 0, t.numel());
    return t;
  }
  Tensor BiasTensor() const {
    Tensor t = Tensor::Empty(DType::kF32, {channels_});
    for (size_t c = 0; c < bias_.size(); ++c)
      t.mutable_data<float>()[c] = static_cast<float>(bias_[c]);
    return t;
  }

  ir::Program& p_;
  PassContext& context_;
  const GraphView& view_;
  std::vector<ir::Op>& ops_;
  const int at_;
  bool transposed_ = false, scaled_ = false, biased_ = false;
  bool last_ = false;  // channels are the last dimension
  const Tensor* filter_ = nullptr;
  int64_t groups_ = 1, channels_ = 0;
  std::vector<double> scale_, bias_;
  std::optional<VarId> residual_;
  std::deque<Tensor> reshaped_;
  FusedActivation activation_;
  double out_scale_ = 1, out_shift_ = 0;
  VarId out_ = ir::kNoVar;
};

Result<bool> RunFuseConv(ir::Program& program, PassContext& context) {
  return ReplaceChains<ConvFuser>(program, context);
}

}  // namespace
}  // namespace heddle::passes

HEDDLE_PASS(fuse_conv) {
  pass.doc =
      "conv2d + batch_norm/bias/factor + residual + activation + factor/offset -> fused_conv2d";
  pass.level = 2;
  pass.each_block = true;
  pass.tolerance = 1e-5;
  pass.own_ops = {"fused_conv2d", "fused_conv2d_transpose"};
  pass.before = "b = conv2d(a, w); c = batch_norm(b, …); d = c + r; e = relu(d)";
  pass.after = "e = fused_conv2d(a, w', bias', r), fuse_activation relu";
  pass.refuses =
      "filters that are not constant parameters; results in the middle that are read elsewhere, "
      "fetched or written again; operands written before the chain ends; residual sums that might "
      "broadcast: of open sizes only those are taken whose operands come from one tensor";
  pass.seeks =
      OfTypes({"conv2d", "depthwise_conv2d", "conv2d_transpose", "depthwise_conv2d_transpose"});
  pass.run = RunFuseConv;
}
