// OpDef: everything heddle knows about an operator, declared in the operator's own file.
//
// A definition is built once, when the registry is first used, and is immutable afterwards; every
// thread may read it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attr.h"
#include "core/dtype_of.h"
#include "core/key.h"
#include "heddle/status.h"

namespace heddle {

class ShapeContext;
class PrepareContext;
class KernelContext;
namespace contracts {
class Contract;
}

// A kernel's preparation for one set of shapes. Immutable once made; any number of runs share it.
struct KernelState {
  // Facts for plans and tools. The Prepare function sets those that apply.
  struct Facts {
    // The kernel's implementation, such as "winograd 4x4, avx512"; empty: the operator has only
    // one.
    std::string implementation;
    // The memory that a run reads first, or its beginning, which is worth prefetching during the
    // operator before this one. It lives as long as the state.
    std::span<const std::byte> prefetch;
    // Input slots of the definition, as bits, whose contents are not read in runs, since the state
    // holds a copy. A parameter that is read nowhere else need not be in memory
    // (core/memory/lazy_buffer.h).
    uint32_t packed_inputs = 0;
  };

  virtual ~KernelState() = default;

  // Facts are allocated separately, since most states have none, and a run of thousands of small
  // kernels is bound by the cache that their states take.
  Facts& facts() {
    if (facts_ == nullptr) facts_ = std::make_unique<Facts>();
    return *facts_;
  }
  const Facts& facts() const { return facts_ != nullptr ? *facts_ : NoFacts(); }

 private:
  static const Facts& NoFacts();

  std::unique_ptr<Facts> facts_;
};

using KernelFn = Status (*)(KernelContext&);
using InferShapeFn = Status (*)(ShapeContext&);
using PrepareFn = Result<std::unique_ptr<KernelState>> (*)(PrepareContext&);
using CostFn = double (*)(const ShapeContext&);

enum SlotFlags : unsigned {
  kOptional = 1,    // may be absent, or an empty variable
  kList = 2,        // any number of variables
  kNoBuffer = 4,    // only dtype, shape and LoD are read ("no-need-buffer")
  kShapeValue = 8,  // the value determines the output's shape: it is read when shapes are inferred
  kAnyKind = 16,    // may be selected rows or a tensor array; other operands are tensors
  kRecord = 32,     // what an operator that runs blocks leaves for its gradient: a variable for
                    // slots of this kind alone, changed by whoever reads it
  kNoData = 64,     // an output with dtype and shape but no contents, for kNoBuffer slots only
};

enum OpTraits : unsigned {
  kRandom = 1,  // draws from the run's generator; such operators keep their program order
  // Must run even if its outputs are not read; such operators keep their program order.
  kSideEffect = 2,
  kCommunication = 4,  // has the same order on every rank
  kReader = 8,         // goes before everything else
  kControlFlow = 16,   // runs sub-blocks
  // For the layout pass: which other layouts of 4-D operands an operator accepts.
  kElementwise = 32,    // first output element = function of first input's element: any layout
  kBroadcasts = 64,     // X and Y broadcast, attribute `axis`
  kChannelsLast = 128,  // attribute data_format or data_layout may be NHWC
  kAlongAxis = 256,     // joins or cuts tensors along attribute `axis`
};

struct SlotDef {
  std::string name;
  uint32_t key;
  unsigned flags;
};
struct AttrDef {
  std::string name;
  uint32_t key;
  AttrValue default_value;
};

class OpDef {
 public:
  explicit OpDef(std::string name) : name_(std::move(name)) {}

  // --- declaration ---
  OpDef& Doc(std::string_view text);
  OpDef& Input(std::string_view name, unsigned flags = 0);
  OpDef& Output(std::string_view name, unsigned flags = 0);
  // Adds flags to a declared input.
  OpDef& InputFlags(std::string_view name, unsigned flags);
  // Declares an attribute; its type, also that of ctx.Attr<T>(), is the default's, whatever integer
  // or float type the file uses. Names are views and these functions are out of line, since every
  // operator of the library calls them.
  OpDef& Attr(std::string_view name, bool v);
  OpDef& Attr(std::string_view name, int v);
  OpDef& Attr(std::string_view name, int64_t v);
  OpDef& Attr(std::string_view name, double v);
  OpDef& Attr(std::string_view name, const char* v);
  OpDef& Attr(std::string_view name, Ints v);
  OpDef& Attr(std::string_view name, Floats v);
  OpDef& Attr(std::string_view name, Strings v);
  OpDef& Attr(std::string_view name, BlockRef v);
  OpDef& Attr(std::string_view name, std::vector<BlockRef> v);
  OpDef& Traits(unsigned traits);
  // `out` may be computed in the memory of `in` if `in` is not used afterwards.
  OpDef& Inplace(std::string_view in, std::string_view out);
  // `out` is the memory of `in` with another shape: no kernel needs to run.
  OpDef& View(std::string_view in, std::string_view out);
  // Without a shape function the kernel allocates its outputs (KernelContext::Alloc).
  OpDef& InferShape(InferShapeFn fn);
  // What operands and attributes must be, and what outputs are, in the words of
  // core/contracts/contract.h. It is checked before the shape function is called. If it says the
  // shape and dtype of every output, no shape function is needed.
  OpDef& Contract(std::string_view text);
  // Called once per set of input shapes; KernelContext::State() returns the result.
  OpDef& Prepare(PrepareFn fn);
  // The estimated time in ns on one thread; without it, the time follows from the bytes of the
  // operands.
  OpDef& Cost(CostFn fn);
  // The kernel for one dtype of the deciding input (KernelKey; by default the first one present).
  OpDef& Kernel(DType dtype, KernelFn fn);
  OpDef& Kernel(std::initializer_list<DType> dtypes, KernelFn fn);
  // One kernel for every dtype.
  OpDef& AnyKernel(KernelFn fn);
  // Adds K<T>::Run as the kernel for each T.
  template <template <typename> class K, typename... Ts>
  OpDef& Kernels() {
    (Kernel(kDTypeOf<Ts>, &K<Ts>::Run), ...);
    return *this;
  }
  OpDef& KernelKey(std::string_view input);

  // --- reading ---
  const std::string& name() const { return name_; }
  const std::string& doc() const { return doc_; }
  const std::vector<SlotDef>& inputs() const { return inputs_; }
  const std::vector<SlotDef>& outputs() const { return outputs_; }
  const std::vector<AttrDef>& attrs() const { return attrs_; }
  unsigned traits() const { return traits_; }
  bool has(OpTraits t) const { return (traits_ & t) != 0; }
  struct SlotPair {
    int in, out;
  };
  const std::vector<SlotPair>& inplace() const { return inplace_; }
  const std::vector<SlotPair>& views() const { return views_; }
  InferShapeFn infer_shape() const { return infer_shape_; }
  const contracts::Contract* contract() const { return contract_.get(); }  // nullptr: none
  PrepareFn prepare() const { return prepare_; }
  CostFn cost() const { return cost_; }
  KernelFn kernel(DType dtype) const { return kernels_[static_cast<int>(dtype)]; }
  int kernel_key() const { return kernel_key_; }  // input slot; -1: the first one present
  bool has_any_kernel() const;
  std::string KernelDTypes() const;            // "float32, float64", for messages
  int FindInput(std::string_view name) const;  // -1 when there is none
  int FindOutput(std::string_view name) const;
  int FindAttr(std::string_view name) const;

 private:
  OpDef& AddAttr(std::string_view name, AttrValue value);
  SlotPair FindPair(std::string_view in, std::string_view out) const;

  std::string name_, doc_;
  std::vector<SlotDef> inputs_, outputs_;
  std::vector<AttrDef> attrs_;
  unsigned traits_ = 0;
  std::vector<SlotPair> inplace_, views_;
  InferShapeFn infer_shape_ = nullptr;
  InferShapeFn own_shapes_ = nullptr;  // behind the contract's check
  std::shared_ptr<const contracts::Contract> contract_;
  PrepareFn prepare_ = nullptr;
  CostFn cost_ = nullptr;
  std::array<KernelFn, kNumDTypes> kernels_{};
  int kernel_key_ = -1;
};

// Begins the definition of an operator. The build finds every HEDDLE_OP line below kernels/; the
// operator's cases are tests/ops/cases/<family>/<name>.txt (docs/examples.md). An operator is
// defined when a process first uses it. The linker puts the definitions side by side, where those
// of a program share pages.
#define HEDDLE_OP(name)                                                                   \
  namespace heddle {                                                                      \
  [[gnu::cold, gnu::section(".text.startup.operators")]] void DefineOp_##name(OpDef& op); \
  }                                                                                       \
  void heddle::DefineOp_##name([[maybe_unused]] OpDef& op)

}  // namespace heddle
