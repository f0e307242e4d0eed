#include "core/contracts/contract.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/contracts/clause.h"
#include "core/error.h"

namespace heddle::contracts {
namespace {

constexpr int64_t kUnknown = -1;

// Whether both can be the same shape, as far as they are known.
bool MayBeEqual(const Shape& a, const Shape& b) {
  if (!a.known_rank() || !b.known_rank()) return true;
  bool same = a.rank() == b.rank();
  for (int i = 0; same && i < a.rank(); ++i) same = a[i] < 0 || b[i] < 0 || a[i] == b[i];
  return same;
}

// Checks one call. It remembers which dimensions the letters stand for.
class Call {
 public:
  Call(const ShapeContext& ctx, int letters)
      : ctx_(ctx), letters_(static_cast<size_t>(letters), kUnknown) {}

  Status Check(const Clause& c) {
    const BoundOp& op = ctx_.op();
    const auto slot = static_cast<size_t>(c.at);
    const uint32_t first = op.in_begin[slot], last = op.in_begin[slot + 1];
    const bool list = (ctx_.def().inputs()[slot].flags & kList) != 0;
    for (uint32_t k = first; k < last; ++k) {
      const Tensor* t = TensorAt(op.in[k]);
      if (t == nullptr) continue;
      if (Status status = CheckOne(c, *t); !status.ok())
        return InvalidArgument(c.name, list ? StrCat("[", k - first, "]") : std::string(), " ",
                               status.message());
    }
    return Status::Ok();
  }

  Status CheckAttribute(const Clause& c) const {
    const AttrValue& value = ctx_.op().attrs[static_cast<size_t>(c.at)];
    if (const auto* text = std::get_if<std::string>(&value)) {
      if (c.texts.empty() || std::find(c.texts.begin(), c.texts.end(), *text) != c.texts.end())
        return Status::Ok();
      std::string all;
      for (const std::string& each : c.texts) all += StrCat(all.empty() ? "" : ", ", each);
      return InvalidArgument("attribute ", c.name, " is '", *text, "', expected one of ", all);
    }
    if (const auto* one = std::get_if<int64_t>(&value)) return CheckNumber(c, *one, "");
    if (const auto* one = std::get_if<double>(&value)) return CheckNumber(c, *one, "");
    if (const auto* some = std::get_if<Ints>(&value)) return CheckNumbers(c, *some);
    if (const auto* some = std::get_if<Floats>(&value)) return CheckNumbers(c, *some);
    return Status::Ok();
  }

  // The first tensor of an input slot; nullptr: it is absent, or no tensor.
  const Tensor* TensorOf(int slot) const {
    const BoundOp& op = ctx_.op();
    const uint32_t at = op.in_begin[static_cast<size_t>(slot)];
    return at < op.in_begin[static_cast<size_t>(slot) + 1] ? TensorAt(op.in[at]) : nullptr;
  }

  // The shape of an output; Shape::Unknown() where its rank is not known.
  Shape ShapeOf(const ShapePattern& p) const {
    Shape shape;
    for (const Dimension& d : p.head) shape.push_back(ValueOf(d));
    if (p.has_dots) {
      if (!dots_known_ || !p.shares_dots) return Shape::Unknown();
      for (const int64_t d : dots_) shape.push_back(d);
    }
    for (const Dimension& d : p.tail) shape.push_back(ValueOf(d));
    return shape;
  }

  // The dtype, shape and LoD that a clause says an output has.
  struct Told {
    DType dtype = DType::kUnknown;
    Shape shape;
    const Tensor* lod = nullptr;  // the tensor whose LoD it has
  };
  Told Tell(const Clause& c) const {
    Told told;
    const int from = c.like != kNone && c.dtypes == 0 ? c.like : c.dtype_of;
    const Tensor* const source = from == kNone ? nullptr : TensorOf(from);
    if (source != nullptr) told.dtype = source->dtype();
    if (from == kNone)
      for (int t = 0; t < static_cast<int>(DType::kUnknown); ++t)
        if (c.dtypes == uint32_t{1} << t) told.dtype = static_cast<DType>(t);
    const Tensor* const like = c.like == kNone ? nullptr : TensorOf(c.like);
    if (c.like == kNone)
      told.shape = c.has_shape ? ShapeOf(c.shape) : Shape::Unknown();
    else
      told.shape = like != nullptr ? like->shape() : Shape::Unknown();
    told.lod = c.lod_of == kNone ? like : TensorOf(c.lod_of);
    return told;
  }

 private:
  const Tensor* TensorAt(uint32_t slot) const {
    const Value* v = slot == kNoSlot ? nullptr : ctx_.frame()[slot];
    return v != nullptr && v->is_tensor() ? &v->tensor() : nullptr;
  }
  const std::string& NameOf(int slot) const {
    return ctx_.def().inputs()[static_cast<size_t>(slot)].name;
  }

  Status CheckOne(const Clause& c, const Tensor& t) {
    const DType dtype = t.dtype();
    if (dtype != DType::kUnknown) {
      if (c.dtypes != 0 && (c.dtypes >> static_cast<int>(dtype) & 1) == 0)
        return InvalidArgument("has dtype ", Name(dtype), ", expected ", c.dtype_text);
      for (const int as : {c.dtype_of, c.dtypes == 0 ? c.like : kNone}) {
        const Tensor* other = as == kNone ? nullptr : TensorOf(as);
        if (other != nullptr && other->dtype() != DType::kUnknown && other->dtype() != dtype)
          return InvalidArgument("has dtype ", Name(dtype), ", expected ", Name(other->dtype()),
                                 " as ", NameOf(as));
      }
    }
    const Shape& shape = t.shape();
    if (!shape.known_rank()) return Status::Ok();
    if (c.like != kNone) HEDDLE_RETURN_IF_ERROR(CheckLike(shape, c.like));
    if (c.one && shape.is_static() && shape.numel() != 1)
      return InvalidArgument("has shape ", shape.ToString(), ", expected one element");
    if (const Tensor* other = c.count_of == kNone ? nullptr : TensorOf(c.count_of);
        other != nullptr && shape.is_static() && other->shape().is_static() &&
        shape.numel() != other->shape().numel())
      return InvalidArgument("has shape ", shape.ToString(), ", expected as many elements as ",
                             NameOf(c.count_of), " ", other->shape().ToString());
    if (const int64_t count = c.has_count ? ValueOf(c.count) : kUnknown;
        count != kUnknown && shape.is_static() && shape.numel() != count)
      return InvalidArgument("has shape ", shape.ToString(), ", expected ", count, " elements (",
                             c.count.text, ")");
    return c.has_shape ? CheckShape(c.shape, shape) : Status::Ok();
  }

  Status CheckLike(const Shape& shape, int like) const {
    const Tensor* other = TensorOf(like);
    if (other == nullptr || MayBeEqual(shape, other->shape())) return Status::Ok();
    return InvalidArgument("has shape ", shape.ToString(), ", expected ", other->shape().ToString(),
                           " as ", NameOf(like));
  }

  Status CheckShape(const ShapePattern& p, const Shape& shape) {
    const int head = static_cast<int>(p.head.size()), tail = static_cast<int>(p.tail.size());
    const int between = shape.rank() - head - tail;
    if (between < 0 || (between > 0 && !p.has_dots))
      return InvalidArgument("has shape ", shape.ToString(), ", expected rank ", head + tail,
                             p.has_dots ? " or more, " : ", ", p.text);
    for (int i = 0; i < head; ++i) HEDDLE_RETURN_IF_ERROR(CheckDimension(p, p.head, i, shape, i));
    for (int i = 0; i < tail; ++i)
      HEDDLE_RETURN_IF_ERROR(CheckDimension(p, p.tail, i, shape, head + between + i));
    if (p.has_dots && p.shares_dots) return CheckDots(p, shape, head, between);
    return Status::Ok();
  }

  Status CheckDimension(const ShapePattern& p, const std::vector<Dimension>& dims, int i,
                        const Shape& shape, int at) {
    const Dimension& d = dims[static_cast<size_t>(i)];
    const int64_t is = shape[at];
    if (d.any || is < 0) return Status::Ok();
    if (d.is_letter() && letters_[static_cast<size_t>(d.over[0].number)] == kUnknown) {
      letters_[static_cast<size_t>(d.over[0].number)] = is;
      return Status::Ok();
    }
    bool whole = true;
    const int64_t wanted = ValueOf(d, &whole);
    if (wanted == is || (wanted == kUnknown && whole)) return Status::Ok();
    if (!whole)
      return InvalidArgument("has shape ", shape.ToString(), ", expected ", p.text, ", but ",
                             d.text, " is no whole number");
    return InvalidArgument("has shape ", shape.ToString(), ", expected ", wanted, " as dimension ",
                           at, " of ", p.text);
  }

  Status CheckDots(const ShapePattern& p, const Shape& shape, int from, int count) {
    if (!dots_known_) {
      dots_known_ = true;
      dots_.assign(shape.begin() + from, shape.begin() + from + count);
      return Status::Ok();
    }
    bool same = static_cast<int>(dots_.size()) == count;
    for (int i = 0; same && i < count; ++i) {
      int64_t& known = dots_[static_cast<size_t>(i)];
      const int64_t is = shape[from + i];
      same = known < 0 || is < 0 || known == is;
      if (known < 0) known = is;
    }
    if (same) return Status::Ok();
    return InvalidArgument("has shape ", shape.ToString(), ", expected ", p.text, " with ",
                           Shape(std::span<const int64_t>(dots_)).ToString(), " for the dots");
  }

  // kUnknown: it depends on what is not known, or, with `whole` false, it is no whole number.
  int64_t ValueOf(const Dimension& d, bool* whole = nullptr) const {
    if (d.any) return kUnknown;
    int64_t over = 1, under = 1;
    for (const auto* factors : {&d.over, &d.under})
      for (const Factor& f : *factors) {
        const int64_t value = ValueOf(f);
        if (value < 0) return kUnknown;
        int64_t& product = factors == &d.over ? over : under;
        if (__builtin_mul_overflow(product, value, &product)) return kUnknown;
      }
    if (under != 0 && over % under == 0) return over / under;
    if (whole != nullptr) *whole = false;
    return kUnknown;
  }
  int64_t ValueOf(const Factor& f) const {
    if (f.kind == Factor::Kind::kLetter) return letters_[static_cast<size_t>(f.number)];
    if (f.kind == Factor::Kind::kAttribute)
      return std::get<int64_t>(ctx_.op().attrs[static_cast<size_t>(f.number)]);
    return f.number;
  }

  template <typename T>
  Status CheckNumbers(const Clause& c, const std::vector<T>& values) const {
    if (c.has_length) {
      const int64_t length = ValueOf(c.length);
      if (length != kUnknown && length != static_cast<int64_t>(values.size()))
        return InvalidArgument("attribute ", c.name, " has ", values.size(), " elements, expected ",
                               length);
    }
    for (size_t i = 0; i < values.size(); ++i)
      HEDDLE_RETURN_IF_ERROR(CheckNumber(c, values[i], StrCat("[", i, "]")));
    return c.distinct ? CheckDistinct(c, values) : Status::Ok();
  }

  template <typename T>
  Status CheckDistinct(const Clause& c, const std::vector<T>& axes) const {
    const Tensor* const x = TensorOf(c.axis_of);
    if (x == nullptr || !x->shape().known_rank()) return Status::Ok();
    const auto rank = static_cast<T>(std::max(1, x->shape().rank()));
    const auto from_begin = [rank](T axis) { return axis < 0 ? axis + rank : axis; };
    for (size_t i = 0; i < axes.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (from_begin(axes[i]) == from_begin(axes[k]))
          return InvalidArgument("attribute ", c.name, "[", i, "] is ", axes[i],
                                 ", expected another axis than [", k, "]");
    return Status::Ok();
  }

  template <typename T>
  Status CheckNumber(const Clause& c, T value, const std::string& at) const {
    const auto v = static_cast<double>(value);
    const bool in = (c.above ? v > c.least : v >= c.least) && (c.below ? v < c.most : v <= c.most);
    if (!in)
      return InvalidArgument("attribute ", c.name, at, " is ", value, ", expected ", Range(c));
    const Tensor* const x = c.axis_of == kNone ? nullptr : TensorOf(c.axis_of);
    if (x != nullptr && x->shape().known_rank()) {
      const int rank = std::max(1, x->shape().rank());
      if (v < -rank || v >= rank)
        return InvalidArgument("attribute ", c.name, at, " is ", value, ", expected an axis of ",
                               NameOf(c.axis_of), " ", x->shape().ToString());
    }
    if (c.divides) {
      const int64_t dividend = ValueOf(c.dividend);
      if (dividend != kUnknown && (v <= 0 || dividend % static_cast<int64_t>(v) != 0))
        return InvalidArgument("attribute ", c.name, at, " is ", value, ", expected a divisor of ",
                               c.dividend.text, ", which is ", dividend);
    }
    return Status::Ok();
  }

  static std::string Range(const Clause& c) {
    constexpr double kEnd = std::numeric_limits<double>::infinity();
    if (c.least > -kEnd && c.most < kEnd)
      return StrCat(c.above ? "more than " : "", c.least, " to ", c.below ? "less than " : "",
                    c.most);
    if (c.least > -kEnd)
      return c.above ? StrCat("more than ", c.least) : StrCat(c.least, " or more");
    return c.below ? StrCat("less than ", c.most) : StrCat(c.most, " or less");
  }

  const ShapeContext& ctx_;
  std::vector<int64_t> letters_;  // what each stands for, once an operand has told
  std::vector<int64_t> dots_;
  bool dots_known_ = false;
};

Status CheckAll(Call& call, const std::vector<Clause>& inputs,
                const std::vector<Clause>& attributes) {
  for (const Clause& c : inputs) HEDDLE_RETURN_IF_ERROR(call.Check(c));
  for (const Clause& c : attributes) HEDDLE_RETURN_IF_ERROR(call.CheckAttribute(c));
  return Status::Ok();
}

}  // namespace

std::shared_ptr<const Contract> Contract::OfDTypes(const std::vector<InputDTypes>& inputs) {
  const std::shared_ptr<Contract> contract(new Contract);
  for (const InputDTypes& input : inputs) {
    Clause c;
    c.name = input.name;
    c.at = static_cast<int>(&input - inputs.data());
    c.dtype_of = input.as;
    for (const DType dtype : input.dtypes) {
      c.dtypes |= uint32_t{1} << static_cast<int>(dtype);
      c.dtype_text += StrCat(c.dtype_text.empty() ? "" : "|", Name(dtype));
    }
    contract->inputs_.push_back(std::move(c));
  }
  return contract;
}

Contract::Contract() = default;
Contract::~Contract() = default;

Status Contract::Check(const ShapeContext& ctx) const {
  Call call(ctx, letters_);
  return CheckAll(call, inputs_, attributes_);
}

Status Contract::Infer(ShapeContext& ctx) const {
  Call call(ctx, letters_);
  HEDDLE_RETURN_IF_ERROR(CheckAll(call, inputs_, attributes_));
  const BoundOp& op = ctx.op();
  for (const Clause& c : outputs_) {
    const auto told = call.Tell(c);
    const auto slot = static_cast<size_t>(c.at);
    for (uint32_t k = op.out_begin[slot]; k < op.out_begin[slot + 1]; ++k) {
      if (op.out[k] == kNoSlot) continue;
      ctx.SetOutAt(k, told.shape, told.dtype);
      if (told.lod != nullptr && !told.lod->lod().empty()) ctx.SetOutLoDAt(k, told.lod->lod());
    }
  }
  return Status::Ok();
}

Status Contract::InferBeside(InferShapeFn shapes, ShapeContext& ctx) const {
  Call call(ctx, letters_);
  HEDDLE_RETURN_IF_ERROR(CheckAll(call, inputs_, attributes_));
  HEDDLE_RETURN_IF_ERROR(shapes(ctx));
  const BoundOp& op = ctx.op();
  for (const Clause& c : outputs_) {
    const auto told = call.Tell(c);
    const auto slot = static_cast<size_t>(c.at);
    for (uint32_t k = op.out_begin[slot]; k < op.out_begin[slot + 1] && k < ctx.outs().size();
         ++k) {
      const ShapeContext::OutMeta& said = ctx.outs()[k];
      if (op.out[k] == kNoSlot || !said.set) continue;
      const bool dtype = told.dtype == DType::kUnknown || said.dtype == DType::kUnknown ||
                         told.dtype == said.dtype;
      if (dtype && MayBeEqual(told.shape, said.shape)) continue;
      return Internal("the contract says ", Name(told.dtype), " ", told.shape.ToString(), " of ",
                      c.name, ", the shape function ", Name(said.dtype), " ",
                      said.shape.ToString());
    }
  }
  return Status::Ok();
}

}  // namespace heddle::contracts
