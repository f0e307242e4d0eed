#include "executor/plan/var_attrs.h"

#include "core/dtype_of.h"
#include "core/error.h"

namespace heddle {
namespace {

// Appends the elements of `t`; false for a dtype that no attribute has.
template <typename Number>
bool Append(const Tensor& t, std::vector<Number>* out) {
  return VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float16, bfloat16, float,
                    double>(t.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < t.numel(); ++i)
      out->push_back(static_cast<Number>(static_cast<ComputeType<T>>(t.data<T>()[i])));
  });
}

template <typename Number>
Status Set(const std::vector<const Tensor*>& from, AttrValue* to) {
  std::vector<Number> numbers;
  for (const Tensor* t : from)
    if (!Append(*t, &numbers))
      return InvalidArgument("is given by a variable of ", Name(t->dtype()));
  if (std::holds_alternative<std::vector<Number>>(*to)) {
    *to = std::move(numbers);
    return Status::Ok();
  }
  if (numbers.size() != 1)
    return InvalidArgument("is given by variables with ", numbers.size(),
                           " elements; it is one number");
  if (std::holds_alternative<bool>(*to))
    *to = numbers[0] != 0;
  else
    *to = numbers[0];
  return Status::Ok();
}

Status ReadOne(const std::vector<const Tensor*>& from, AttrValue* to) {
  if (std::holds_alternative<double>(*to) || std::holds_alternative<Floats>(*to))
    return Set<double>(from, to);
  if (std::holds_alternative<int64_t>(*to) || std::holds_alternative<Ints>(*to) ||
      std::holds_alternative<bool>(*to))
    return Set<int64_t>(from, to);
  return InvalidArgument(
      "is neither a number nor a list of numbers, and cannot be given by a "
      "variable");
}

}  // namespace

Status ReadVarAttrs(const std::vector<int>& var_attrs, Value* const* frame, BoundOp* op,
                    std::vector<AttrValue>* attrs) {
  attrs->assign(op->attrs, op->attrs + op->def->attrs().size());
  op->attrs = attrs->data();
  size_t list = op->def->inputs().size();
  for (const int a : var_attrs) {
    std::vector<const Tensor*> tensors;
    const std::string& name = op->def->attrs()[a].name;
    for (uint32_t k = op->in_begin[list]; k < op->in_begin[list + 1]; ++k) {
      const Value* v = op->in[k] == kNoSlot ? nullptr : frame[op->in[k]];
      if (v == nullptr || !v->is_tensor() || !v->initialized())
        return InvalidArgument("the variable that gives attribute '", name, "' holds nothing");
      tensors.push_back(&v->tensor());
    }
    if (Status s = ReadOne(tensors, &(*attrs)[a]); !s.ok())
      return InvalidArgument("attribute '", name, "' ", s.message());
    ++list;
  }
  return Status::Ok();
}

}  // namespace heddle
