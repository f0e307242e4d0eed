#include "tests/ops/refusals.h"

#include <algorithm>
#include <set>

#include "kernels/base/only_value.h"
#include "tests/ops/compare.h"
#include "tests/ops/shown.h"

namespace heddle::testing {
namespace {

// Another value than `usual` in *attr; false where the type has none that could be tried.
bool SetOther(const AttrValue& usual, proto::OpDesc_Attr* attr) {
  if (const bool* truth = std::get_if<bool>(&usual)) {
    attr->set_type(proto::BOOLEAN);
    attr->set_b(!*truth);
  } else if (const int64_t* number = std::get_if<int64_t>(&usual)) {
    attr->set_type(proto::INT);
    attr->set_i(static_cast<int32_t>(*number + 1));
  } else if (const std::string* text = std::get_if<std::string>(&usual)) {
    attr->set_type(proto::STRING);
    attr->set_s(*text + "?");
  } else {
    return false;
  }
  return true;
}

void Replace(const proto::OpDesc_Attr& attr, std::vector<proto::OpDesc_Attr>* attrs) {
  std::erase_if(*attrs, [&](const proto::OpDesc_Attr& a) { return a.name() == attr.name(); });
  attrs->push_back(attr);
}

bool IsListOfPlaces(const Tensor& t) {
  if (t.rank() < 2 || !IsInteger(t.dtype()) || t.dtype() == DType::kU8) return false;
  std::set<double> different;
  for (int64_t i = 0; i < t.numel(); ++i) different.insert(ElementAt(t, i).real());
  return different.size() >= kDifferent && *different.begin() >= 0;
}

}  // namespace

bool HasOneValue(Lab& lab, const OpDef& op, const AttrDef& attr,
                 const std::vector<const Example*>& examples) {
  proto::OpDesc_Attr other;
  other.set_name(attr.name);
  if (!SetOther(attr.default_value, &other)) return false;
  for (const Example* e : examples) {
    Example changed = *e;
    if (!e->is_program() && e->op == op.name()) Replace(other, &changed.attrs);
    bool calls = !e->is_program() && e->op == op.name();
    for (ExampleOp& one : changed.program) {
      if (one.type != op.name()) continue;
      Replace(other, &one.attrs);
      calls = true;
    }
    if (!calls) continue;
    const auto got = RunExample(lab.Reference(), changed);
    return !got.ok() && got.status().message().find(attr.name) != std::string::npos &&
           got.status().message().find(kIsOnlyValue) != std::string::npos;
  }
  return false;
}

bool StartsAtZero(Lab& lab, const OpDef& op, const std::vector<const Example*>& examples) {
  for (const Example* e : examples) {
    if (e->is_program() || e->op != op.name()) continue;
    for (size_t i = 0; i < e->inputs.size(); ++i) {
      const Value& value = e->inputs[i].value;
      if (!value.is_tensor() || !IsListOfPlaces(value.tensor())) continue;
      Example changed = *e;
      Tensor less = value.tensor().Clone();
      VisitDType<int8_t, int16_t, int32_t, int64_t>(less.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        less.mutable_data<T>()[0] = T(-1);
      });
      changed.inputs[i].value = Value(less);
      if (RunExample(lab.Reference(), *e).ok() && !RunExample(lab.Reference(), changed).ok())
        return true;
    }
  }
  return false;
}

}  // namespace heddle::testing
