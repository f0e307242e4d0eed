#include "core/op_def.h"

#include <cstdio>
#include <cstdlib>

#include "core/contracts/contract.h"
#include "core/error.h"
#include "core/shape_context.h"

namespace heddle {

const KernelState::Facts& KernelState::NoFacts() {
  static const Facts kNone;
  return kNone;
}
namespace {

// Ends the process: a definition that contradicts itself is a bug of heddle, which the first test
// finds.
[[noreturn]] void Broken(const std::string& op, const std::string& what) {
  std::fprintf(stderr, "heddle: definition of operator %s: %s\n", op.c_str(), what.c_str());
  std::abort();
}

template <typename Defs>
void CheckNew(const std::string& op, const Defs& defs, std::string_view name) {
  for (const auto& d : defs)
    if (d.key == HashName(name))
      Broken(op, "'" + std::string(name) + "' clashes with '" + d.name + "'");
}

template <typename Defs>
int FindName(const Defs& defs, std::string_view name) {
  for (size_t i = 0; i < defs.size(); ++i)
    if (defs[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace

OpDef& OpDef::Doc(std::string_view text) {
  doc_ = text;
  return *this;
}

OpDef& OpDef::Input(std::string_view name, unsigned flags) {
  CheckNew(name_, inputs_, name);
  inputs_.push_back({std::string(name), HashName(name), flags});
  return *this;
}

OpDef& OpDef::Output(std::string_view name, unsigned flags) {
  CheckNew(name_, outputs_, name);
  outputs_.push_back({std::string(name), HashName(name), flags});
  return *this;
}

OpDef& OpDef::InputFlags(std::string_view name, unsigned flags) {
  const int input = FindInput(name);
  if (input < 0) Broken(name_, "no input " + std::string(name));
  inputs_[static_cast<size_t>(input)].flags |= flags;
  return *this;
}

OpDef& OpDef::AddAttr(std::string_view name, AttrValue value) {
  CheckNew(name_, attrs_, name);
  attrs_.push_back({std::string(name), HashName(name), std::move(value)});
  return *this;
}
OpDef& OpDef::Attr(std::string_view name, bool v) { return AddAttr(name, v); }
OpDef& OpDef::Attr(std::string_view name, int v) { return AddAttr(name, int64_t{v}); }
OpDef& OpDef::Attr(std::string_view name, int64_t v) { return AddAttr(name, v); }
OpDef& OpDef::Attr(std::string_view name, double v) { return AddAttr(name, v); }
OpDef& OpDef::Attr(std::string_view name, const char* v) { return AddAttr(name, std::string(v)); }
OpDef& OpDef::Attr(std::string_view name, Ints v) { return AddAttr(name, std::move(v)); }
OpDef& OpDef::Attr(std::string_view name, Floats v) { return AddAttr(name, std::move(v)); }
OpDef& OpDef::Attr(std::string_view name, Strings v) { return AddAttr(name, std::move(v)); }
OpDef& OpDef::Attr(std::string_view name, BlockRef v) { return AddAttr(name, v); }
OpDef& OpDef::Attr(std::string_view name, std::vector<BlockRef> v) {
  return AddAttr(name, std::move(v));
}

OpDef& OpDef::Traits(unsigned traits) {
  traits_ |= traits;
  return *this;
}

OpDef::SlotPair OpDef::FindPair(std::string_view in, std::string_view out) const {
  const SlotPair pair{FindInput(in), FindOutput(out)};
  if (pair.in < 0 || pair.out < 0)
    Broken(name_, "no slots " + std::string(in) + ", " + std::string(out));
  return pair;
}

OpDef& OpDef::Inplace(std::string_view in, std::string_view out) {
  inplace_.push_back(FindPair(in, out));
  return *this;
}

OpDef& OpDef::View(std::string_view in, std::string_view out) {
  views_.push_back(FindPair(in, out));
  return *this;
}

OpDef& OpDef::InferShape(InferShapeFn fn) {
  if (contract_ != nullptr) Broken(name_, "InferShape stands behind Contract");
  infer_shape_ = fn;
  return *this;
}

OpDef& OpDef::Contract(std::string_view text) {
  if (contract_ != nullptr) Broken(name_, "there are two contracts");
  auto contract = contracts::Contract::Parse(text, *this);
  if (!contract.ok()) Broken(name_, contract.status().message());
  contract_ = *std::move(contract);
  if (own_shapes_ = infer_shape_; own_shapes_ != nullptr)
    infer_shape_ = [](ShapeContext& ctx) -> Status {
      return ctx.def().contract_->InferBeside(ctx.def().own_shapes_, ctx);
    };
  else if (contract_->tells_outputs())
    infer_shape_ = [](ShapeContext& ctx) { return ctx.def().contract_->Infer(ctx); };
  else
    Broken(name_, "the contract needs a shape function, or says the outputs' shapes and dtypes");
  return *this;
}

OpDef& OpDef::Prepare(PrepareFn fn) {
  prepare_ = fn;
  return *this;
}

OpDef& OpDef::Cost(CostFn fn) {
  cost_ = fn;
  return *this;
}

OpDef& OpDef::Kernel(DType dtype, KernelFn fn) {
  kernels_[static_cast<int>(dtype)] = fn;
  return *this;
}

OpDef& OpDef::Kernel(std::initializer_list<DType> dtypes, KernelFn fn) {
  for (DType t : dtypes) Kernel(t, fn);
  return *this;
}

OpDef& OpDef::AnyKernel(KernelFn fn) {
  kernels_.fill(fn);
  return *this;
}

OpDef& OpDef::KernelKey(std::string_view input) {
  kernel_key_ = FindInput(input);
  if (kernel_key_ < 0) Broken(name_, "no input " + std::string(input));
  return *this;
}

bool OpDef::has_any_kernel() const {
  for (KernelFn k : kernels_)
    if (k != nullptr) return true;
  return false;
}

std::string OpDef::KernelDTypes() const {
  std::string text;
  for (int i = 0; i < kNumDTypes - 1; ++i) {
    if (kernels_[i] == nullptr) continue;
    if (!text.empty()) text += ", ";
    text += Name(static_cast<DType>(i));
  }
  return text;
}

int OpDef::FindInput(std::string_view name) const { return FindName(inputs_, name); }
int OpDef::FindOutput(std::string_view name) const { return FindName(outputs_, name); }
int OpDef::FindAttr(std::string_view name) const { return FindName(attrs_, name); }

}  // namespace heddle
