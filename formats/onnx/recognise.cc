// Recognises operators that exporters wrote out as several, since their format had no name for
// them. The last of the operators becomes the one that is meant; those before it are dropped if
// nothing else reads them.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>
#include <utility>

#include "core/interrupts.h"
#include "formats/onnx/lower.h"

namespace heddle::onnx {
namespace {

bool Near(double a, double b) { return std::abs(a - b) <= 1e-4 * std::abs(b); }

class Forms {
 public:
  Forms(Draft* draft, const std::deque<VarFacts>& facts, const ScalarOf& scalar)
      : draft_(*draft),
        facts_(facts),
        scalar_(scalar),
        writes_(draft->vars.size()),
        makers_(writes_.size()) {
    for (const auto& block : draft_.blocks)
      for (const DraftOp& op : block.ops)
        for (const auto& [slot, vars] : op.outputs)
          for (int v : vars)
            if (v != kNoDraft) ++writes_[static_cast<size_t>(v)];
  }

  void Run() {
    Run(&Forms::Recognise);
    // In a second walk: the forms of the first one contain products and quotients.
    Run(&Forms::Plainer);
  }

 private:
  void Run(void (Forms::*step)(DraftOp*)) {
    for (formats::DraftBlock& block : draft_.blocks) {
      ++block_;
      for (DraftOp& op : block.ops) {
        LookForInterrupt();
        (this->*step)(&op);
        for (const auto& [slot, vars] : op.outputs)
          for (int v : vars)
            if (v != kNoDraft && writes_[static_cast<size_t>(v)] == 1)
              makers_[static_cast<size_t>(v)] = {&op, block_};
      }
    }
  }

  void Recognise(DraftOp* op) {
    inner_.clear();
    const bool found = op->type == "elementwise_div"   ? HardActivation(op)
                       : op->type == "elementwise_mul" ? Gated(op) || Gelu(op) || Normal(op, op, {})
                       : op->type == "elementwise_add" ? NormalWithBias(op)
                                                       : false;
    if (!found) return;
    for (DraftOp* inner : inner_) inner->optional = true;
  }

  // Replaces an operator by a cheaper one with attributes that computes the same.
  void Plainer(DraftOp* op) {
    if (op->type == "squeeze2") return DropAxes(op);
    if (op->type == "slice") return JoinSlices(op);
    const bool product = op->type == "elementwise_mul";
    if (!product && op->type != "elementwise_div") return;
    const auto split = Split(*op);
    if (!split || !IsFloat32(split->x) || Rank(split->x) < 1 || op->optional) return;
    // Only by powers of two, where the quotient rounds as the product does.
    int exponent = 0;
    const bool exact = std::frexp(split->number, &exponent) == 0.5 && std::abs(exponent) < 100;
    if (product ? std::isfinite(split->number) : exact)
      Replace(op, "scale", split->x,  // bias -0 keeps the sign of zeros
              {{"scale", product ? split->number : 1 / split->number}, {"bias", -0.0}});
  }

  // Joins a slice of a slice along other axes.
  void JoinSlices(DraftOp* op) {
    DraftOp* inner = Maker(In(*op, "Input"), "slice");
    if (inner == nullptr || inner->inputs.size() != 1 || op->inputs.size() != 1 ||
        Attr<Ints>(*inner, "decrease_axis") || Attr<Ints>(*op, "decrease_axis"))
      return;
    DraftOp::Slots<AttrValue> joined;
    const auto axes = Attr<Ints>(*inner, "axes"), own = Attr<Ints>(*op, "axes");
    if (!axes || !own) return;
    for (int64_t a : *own)
      if (a < 0 || std::find(axes->begin(), axes->end(), a) != axes->end()) return;
    if (std::any_of(axes->begin(), axes->end(), [](int64_t a) { return a < 0; })) return;
    for (const char* name : {"axes", "starts", "ends"}) {
      auto all = Attr<Ints>(*inner, name);
      const auto more = Attr<Ints>(*op, name);
      if (!all || !more) return;
      all->insert(all->end(), more->begin(), more->end());
      joined.emplace_back(name, *std::move(all));
    }
    inner->optional = true;
    op->inputs = inner->inputs;
    op->attributes = std::move(joined);
  }

  // Joins a squeeze with the slice whose axes of length one it drops.
  void DropAxes(DraftOp* op) {
    DraftOp* slice = Maker(In(*op, "X"), "slice");
    if (slice == nullptr || slice->inputs.size() != 1 || op->optional) return;
    const auto gone = Attr<Ints>(*op, "axes"), axes = Attr<Ints>(*slice, "axes");
    const auto starts = Attr<Ints>(*slice, "starts"), ends = Attr<Ints>(*slice, "ends");
    if (!gone || !axes || gone != axes || !starts || !ends || Attr<Ints>(*slice, "decrease_axis"))
      return;
    for (size_t i = 0; i < axes->size(); ++i)
      if ((*axes)[i] < 0 || (*ends)[i] != (*starts)[i] + 1 || (*ends)[i] == 0) return;
    slice->optional = true;
    op->type = slice->type;
    op->inputs = slice->inputs;
    op->attributes = slice->attributes;
    op->attributes.emplace_back("decrease_axis", *axes);
  }

  // The operator of this block that alone writes `v`; null: there is none, or it is of another
  // type.
  DraftOp* Maker(int v, std::string_view type) {
    if (v == kNoDraft) return nullptr;
    const auto& [op, block] = makers_[static_cast<size_t>(v)];
    return block == block_ && op->type == type ? op : nullptr;
  }
  static int In(const DraftOp& op, std::string_view slot) {
    for (const auto& [name, vars] : op.inputs)
      if (name == slot && vars.size() == 1) return vars[0];
    return kNoDraft;
  }
  template <typename T>
  static std::optional<T> Attr(const DraftOp& op, std::string_view name) {
    for (const auto& [attribute, value] : op.attributes)
      if (attribute == name)
        if (const T* typed = std::get_if<T>(&value)) return *typed;
    return std::nullopt;
  }
  static double Number(const DraftOp& op, std::string_view name, double otherwise) {
    return Attr<double>(op, name).value_or(otherwise);
  }
  // The operands of a binary operator of which one is a constant number.
  struct WithNumber {
    int x = kNoDraft;
    double number = 0;
  };
  std::optional<WithNumber> Split(const DraftOp& op) {
    const int x = In(op, "X"), y = In(op, "Y");
    if (x == kNoDraft || y == kNoDraft || !Plain(op)) return std::nullopt;
    const auto number_of = [&](int v, int other) {
      return KeepsShape(v, other) ? scalar_(v) : std::nullopt;
    };
    if (const auto number = number_of(y, x)) return WithNumber{x, *number};
    const auto number = number_of(x, y);
    if (!number || op.type == "elementwise_div" || op.type == "elementwise_sub")
      return std::nullopt;
    return WithNumber{y, *number};
  }
  // Whether the result has the shape of x: a number given as a vector turns a scalar into a vector.
  bool KeepsShape(int number, int x) const { return Rank(number) == 0 || Rank(x) > 0; }
  // Whether it has no `axis`, which old versions had.
  static bool Plain(const DraftOp& op) {
    const auto axis = Attr<int64_t>(op, "axis");
    return !axis || *axis == -1;
  }
  int Rank(int v) const { return facts_[static_cast<size_t>(v)].shape.rank(); }
  bool IsFloat32(int v) const { return draft_.vars[static_cast<size_t>(v)].dtype == DType::kF32; }

  void Replace(DraftOp* op, std::string_view type, int x, DraftOp::Slots<AttrValue> attributes) {
    op->type = type;
    op->inputs = {{"X", {x}}};
    op->attributes = std::move(attributes);
  }

  // A ramp min(max(x + offset, 0), top).
  struct Ramp {
    int x = kNoDraft;
    double offset = 0, top = 0;
  };
  std::optional<Ramp> RampOf(int v) {
    DraftOp* limit = Maker(v, "relu6");
    const bool is_clip = limit == nullptr;
    if (is_clip) limit = Maker(v, "clip");
    if (limit == nullptr || (is_clip && Number(*limit, "min", -1) != 0)) return std::nullopt;
    const double top = Number(*limit, is_clip ? "max" : "threshold", 0);
    if (!(top > 0 && std::isfinite(top))) return std::nullopt;
    DraftOp* add = Maker(In(*limit, "X"), "elementwise_add");
    if (add == nullptr) return std::nullopt;
    const auto sum = Split(*add);
    if (!sum || !IsFloat32(sum->x)) return std::nullopt;
    inner_ = {limit, add};
    return Ramp{sum->x, sum->number, top};
  }

  // Whether these are the constants of hard_swish, x min(max(x + offset, 0), top) / scale: its
  // kernel computes with 6, 6 and 3 whatever its attributes say. Files have them rounded to
  // float32.
  static bool IsHardSwish(double top, double scale, double offset) {
    const auto is = [](double number, double wanted) {
      return std::abs(number / wanted - 1) < 1e-6;
    };
    return is(top, 6) && is(scale, 6) && is(offset, 3);
  }

  // Recognises hard_sigmoid, min(max(x + 3, 0), 6) / 6, and hard_swish, with a further factor x.
  bool HardActivation(DraftOp* op) {
    const auto quotient = Split(*op);
    if (!quotient || quotient->number == 0) return false;
    const double scale = quotient->number;
    if (const auto ramp = RampOf(quotient->x); ramp && ramp->top == scale) {
      Replace(op, "hard_sigmoid", ramp->x,
              {{"slope", 1 / scale}, {"offset", ramp->offset / scale}});
      return true;
    }
    DraftOp* product = Maker(quotient->x, "elementwise_mul");
    if (product == nullptr || !Plain(*product)) return false;
    for (const auto& [one, other] : {std::pair{"X", "Y"}, {"Y", "X"}}) {
      const auto ramp = RampOf(In(*product, one));
      if (!ramp || ramp->x != In(*product, other)) continue;
      if (!IsHardSwish(ramp->top, scale, ramp->offset)) continue;
      inner_.push_back(product);
      Replace(op, "hard_swish", ramp->x, {});
      return true;
    }
    return false;
  }

  // Recognises x times its sigmoid (swish), or hard sigmoid.
  bool Gated(DraftOp* op) {
    if (!Plain(*op)) return false;
    for (const auto& [one, other] : {std::pair{"X", "Y"}, {"Y", "X"}}) {
      const int gate = In(*op, one), x = In(*op, other);
      if (x == kNoDraft || !IsFloat32(x)) continue;
      if (DraftOp* soft = Maker(gate, "sigmoid"); soft != nullptr) {
        inner_ = {soft};
        const int inside = In(*soft, "X");
        DraftOp* product = Maker(inside, "elementwise_mul");
        const auto scaled = product == nullptr ? std::nullopt : Split(*product);
        if (scaled && scaled->x == x) inner_.push_back(product);
        if (inside == x || (scaled && scaled->x == x)) {
          Replace(op, "swish", x, {{"beta", inside == x ? 1.0 : scaled->number}});
          return true;
        }
        inner_.clear();
      }
      DraftOp* hard = Maker(gate, "hard_sigmoid");
      if (hard == nullptr || In(*hard, "X") != x) continue;
      const double slope = Number(*hard, "slope", 0.2), offset = Number(*hard, "offset", 0.5);
      if (slope <= 0 || !IsHardSwish(1 / slope, 1 / slope, offset / slope)) continue;
      inner_ = {hard};
      Replace(op, "hard_swish", x, {{"divide_first", true}});
      return true;
    }
    return false;
  }

  // Collects the factors of a product; constant numbers are multiplied into `number`.
  void Factors(const DraftOp& op, double* number, std::vector<int>* values) {
    for (const char* slot : {"X", "Y"}) {
      const int v = In(op, slot);
      if (v == kNoDraft) continue;
      if (const auto scalar = scalar_(v)) {
        *number *= *scalar;
        vector_number_ = vector_number_ || Rank(v) > 0;
        continue;
      }
      DraftOp* inner = values->size() < 4 ? Maker(v, "elementwise_mul") : nullptr;
      if (inner != nullptr && Plain(*inner) && depth_ < 3) {
        ++depth_;
        inner_.push_back(inner);
        Factors(*inner, number, values);
        --depth_;
        continue;
      }
      DraftOp* quotient = Maker(v, "elementwise_div");
      const auto split = quotient == nullptr ? std::nullopt : Split(*quotient);
      if (split && split->number != 0) {
        inner_.push_back(quotient);
        *number /= split->number;
        values->push_back(split->x);
        continue;
      }
      values->push_back(v);
    }
  }

  // x, where `v` is erf(x / sqrt(2)) + 1.
  int ErrorFunctionOf(int v) {
    DraftOp* add = Maker(v, "elementwise_add");
    const auto sum = add == nullptr ? std::nullopt : Split(*add);
    DraftOp* erf = sum && sum->number == 1 ? Maker(sum->x, "erf") : nullptr;
    if (erf == nullptr) return kNoDraft;
    const int t = In(*erf, "X");
    DraftOp* inner = Maker(t, "elementwise_div");
    const bool divides = inner != nullptr;
    if (inner == nullptr) inner = Maker(t, "elementwise_mul");
    const auto scaled = inner == nullptr ? std::nullopt : Split(*inner);
    if (!scaled || !Near(scaled->number, divides ? std::sqrt(2.0) : std::sqrt(0.5)))
      return kNoDraft;
    inner_.insert(inner_.end(), {add, erf, inner});
    return scaled->x;
  }

  bool Gelu(DraftOp* op) {
    double number = 1;
    std::vector<int> values;
    if (!Plain(*op)) return false;
    vector_number_ = false;
    Factors(*op, &number, &values);
    if (values.size() == 2 && Near(number, 0.5) && (!vector_number_ || Rank(values[0]) > 0)) {
      for (size_t i = 0; i < 2; ++i) {
        const int x = ErrorFunctionOf(values[i]);
        if (x == kNoDraft || x != values[1 - i] || !IsFloat32(x)) continue;
        Replace(op, "gelu", x, {{"approximate", false}});
        return true;
      }
    }
    inner_.clear();
    return false;
  }

  // The operator that makes `v`, if that is a mean over the last dimension, which is kept.
  DraftOp* LastMean(int v, int rank) {
    DraftOp* mean = Maker(v, "reduce_mean");
    if (mean == nullptr) return nullptr;
    const auto dim = Attr<Ints>(*mean, "dim");
    const bool last = dim && dim->size() == 1 && ((*dim)[0] == -1 || (*dim)[0] == rank - 1);
    const bool keeps = Attr<bool>(*mean, "keep_dim").value_or(false) &&
                       !Attr<bool>(*mean, "reduce_all").value_or(false);
    return last && keeps ? mean : nullptr;
  }

  // A value of the form (x - mean) / sqrt(variance + epsilon).
  struct Normalised {
    int x = kNoDraft;
    double epsilon = 0;
  };
  std::optional<Normalised> NormalisedOf(int v) {
    DraftOp* quotient = Maker(v, "elementwise_div");
    if (quotient == nullptr || !Plain(*quotient)) return std::nullopt;
    const int d = In(*quotient, "X");
    DraftOp* difference = Maker(d, "elementwise_sub");
    DraftOp* root = Maker(In(*quotient, "Y"), "sqrt");
    if (root == nullptr) root = Maker(In(*quotient, "Y"), "pow");
    if (root != nullptr && root->type == "pow" && Number(*root, "factor", 0) != 0.5)
      return std::nullopt;
    if (difference == nullptr || root == nullptr || !Plain(*difference)) return std::nullopt;
    const int x = In(*difference, "X");
    if (x == kNoDraft || Rank(x) < 2 || !IsFloat32(x)) return std::nullopt;
    DraftOp* mean = LastMean(In(*difference, "Y"), Rank(x));
    DraftOp* add = Maker(In(*root, "X"), "elementwise_add");
    const auto sum = add == nullptr ? std::nullopt : Split(*add);
    DraftOp* variance = sum ? LastMean(sum->x, Rank(x)) : nullptr;
    if (mean == nullptr || In(*mean, "X") != x || variance == nullptr) return std::nullopt;
    const int squares = In(*variance, "X");
    DraftOp* square = Maker(squares, "square");
    if (square == nullptr) square = Maker(squares, "elementwise_mul");
    if (square == nullptr || In(*square, "X") != d) return std::nullopt;
    if (square->type == "elementwise_mul" && In(*square, "Y") != d) return std::nullopt;
    inner_.insert(inner_.end(), {quotient, difference, root, mean, add, variance, square});
    return Normalised{x, sum->number};
  }

  // Whether `v` is a constant vector as long as the last dimension of x.
  bool IsRow(int v, int x) const {
    if (v == kNoDraft || Rank(v) != 1 || facts_[static_cast<size_t>(v)].data == nullptr)
      return false;
    const int64_t n = facts_[static_cast<size_t>(v)].shape[0];
    return n > 1 && facts_[static_cast<size_t>(x)].shape[Rank(x) - 1] == n;
  }

  bool Normal(DraftOp* product, DraftOp* result, std::vector<int> bias) {
    if (!Plain(*product)) return false;
    for (const auto& [one, other] : {std::pair{"X", "Y"}, {"Y", "X"}}) {
      const size_t before = inner_.size();
      const auto made = NormalisedOf(In(*product, one));
      const int scale = In(*product, other);
      if (made && IsRow(scale, made->x) && (bias.empty() || IsRow(bias[0], made->x))) {
        if (product != result) inner_.push_back(product);
        const int x = made->x;
        const std::vector<int> out = result->outputs[0].second;
        Replace(result, "layer_norm", x,
                {{"begin_norm_axis", int64_t{Rank(x) - 1}}, {"epsilon", made->epsilon}});
        result->inputs.emplace_back("Scale", std::vector<int>{scale});
        if (!bias.empty()) result->inputs.emplace_back("Bias", std::move(bias));
        result->outputs = {{"Y", out}};
        return true;
      }
      inner_.resize(before);
    }
    return false;
  }

  // Adds a bias to a layer_norm that Normal has made of a product.
  bool NormalWithBias(DraftOp* op) {
    if (!Plain(*op)) return false;
    for (const auto& [one, other] : {std::pair{"X", "Y"}, {"Y", "X"}}) {
      DraftOp* norm = Maker(In(*op, one), "layer_norm");
      const int bias = In(*op, other);
      if (norm == nullptr || In(*norm, "Bias") != kNoDraft) continue;
      const int x = In(*norm, "X");
      if (!IsRow(bias, x)) continue;
      inner_ = {norm};
      const std::vector<int> out = op->outputs[0].second;
      op->type = norm->type;
      op->inputs = norm->inputs;
      op->inputs.emplace_back("Bias", std::vector<int>{bias});
      op->attributes = norm->attributes;
      op->outputs = {{"Y", out}};
      return true;
    }
    return false;
  }

  Draft& draft_;
  const std::deque<VarFacts>& facts_;
  const ScalarOf& scalar_;
  std::vector<int> writes_;
  // Per variable: its only writer, and the block in which that was met, in the order of the walks.
  std::vector<std::pair<DraftOp*, int>> makers_;
  int block_ = 0;
  std::vector<DraftOp*> inner_;  // operators that the present form replaces
  int depth_ = 0;
  bool vector_number_ = false;  // one of the factors is a vector of one element
};

}  // namespace

void RecogniseForms(Draft* draft, const std::deque<VarFacts>& facts, const ScalarOf& scalar) {
  Forms(draft, facts, scalar).Run();
}

}  // namespace heddle::onnx
