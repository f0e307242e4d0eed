#include "passes/cleanup/evaluate.h"

#include <deque>
#include <exception>

#include "core/error.h"
#include "core/kernel_context.h"
#include "core/kernel_selector.h"
#include "core/memory/bytes.h"
#include "core/memory/contents_error.h"
#include "core/shape_context.h"

namespace heddle {
namespace {

class OneThread final : public IntraOp {
 public:
  int threads() const override { return 1; }
  void ParallelFor(int64_t n, int64_t, FunctionRef<void(int64_t, int64_t)> fn) override {
    if (n > 0) fn(0, n);
  }
};

class PlainAllocator final : public TensorAllocator {
 public:
  BufferRef Allocate(size_t bytes) override {
    Tensor t = Tensor::Empty(DType::kU8, {static_cast<int64_t>(bytes)});
    if (!t.initialized()) throw std::bad_alloc();
    return t.buffer();
  }
};

// An operator that is bound to a frame of its own.
class Evaluator {
 public:
  Evaluator(const ir::Op& op, const std::vector<const Value*>& inputs) {
    bound_.def = op.def;
    bound_.attrs = op.attrs.data();
    size_t at = 0;
    bound_.in_begin.push_back(0);
    for (const auto& slot : op.inputs) {
      for (size_t i = 0; i < slot.size(); ++i) {
        const Value* v = inputs[at++];
        bound_.in.push_back(v == nullptr ? kNoSlot : Add(*v));
      }
      bound_.in_begin.push_back(static_cast<uint32_t>(bound_.in.size()));
    }
    bound_.out_begin.push_back(0);
    for (const auto& slot : op.outputs) {
      for (ir::VarId v : slot) bound_.out.push_back(v == ir::kNoVar ? kNoSlot : Add(Value()));
      bound_.out_begin.push_back(static_cast<uint32_t>(bound_.out.size()));
    }
    services_.intra = &intra_;
    services_.allocator = &allocator_;
    services_.packs = &packs_;
  }

  Status Run(size_t max_bytes) {
    if (bound_.def->infer_shape() != nullptr) HEDDLE_RETURN_IF_ERROR(MakeOutputs(max_bytes));
    KernelFn fn = nullptr;
    HEDDLE_RETURN_IF_ERROR(SelectKernel(bound_, frame_.data(), &fn));
    std::unique_ptr<KernelState> state;
    if (bound_.def->prepare() != nullptr) {
      PrepareContext prepare(bound_, frame_.data(), services_, nullptr);
      HEDDLE_ASSIGN_OR_RETURN(state, bound_.def->prepare()(prepare));
    }
    KernelContext ctx(bound_, frame_.data(), services_, state.get());
    return fn(ctx);
  }

  std::vector<Value> Outputs() const {
    std::vector<Value> out;
    for (uint32_t s : bound_.out) out.push_back(s == kNoSlot ? Value() : *frame_[s]);
    return out;
  }

 private:
  uint32_t Add(Value v) {
    values_.push_back(std::move(v));
    frame_.push_back(&values_.back());
    return static_cast<uint32_t>(frame_.size() - 1);
  }

  Status MakeOutputs(size_t max_bytes) {
    ShapeContext ctx(bound_, frame_.data());
    HEDDLE_RETURN_IF_ERROR(bound_.def->infer_shape()(ctx));
    if (ctx.deferred()) return Unimplemented("the shapes are not known");
    size_t bytes = 0;
    for (size_t i = 0; i < bound_.out.size(); ++i) {
      if (bound_.out[i] == kNoSlot) continue;
      if (i >= ctx.outs().size() || !ctx.outs()[i].set || !ctx.outs()[i].shape.is_static() ||
          ctx.outs()[i].dtype == DType::kUnknown || ctx.outs()[i].has_lod)
        return Unimplemented("the shapes are not known");
      const size_t more = BytesFor(ctx.outs()[i].dtype, ctx.outs()[i].shape);
      if (more > max_bytes || (bytes += more) > max_bytes)
        return ResourceExhausted("the result is larger than wanted");
    }
    for (size_t i = 0; i < bound_.out.size(); ++i) {
      if (bound_.out[i] == kNoSlot) continue;
      Tensor t = Tensor::Zeros(ctx.outs()[i].dtype, ctx.outs()[i].shape);
      if (!t.initialized()) return ResourceExhausted("out of memory");
      *frame_[bound_.out[i]] = std::move(t);
    }
    return Status::Ok();
  }

  BoundOp bound_;
  std::deque<Value> values_;
  std::vector<Value*> frame_;
  OneThread intra_;
  PlainAllocator allocator_;
  PackCache packs_;
  Services services_;
};

}  // namespace

Result<std::vector<Value>> Evaluate(const ir::Op& op, const std::vector<const Value*>& inputs,
                                    size_t max_bytes) {
  if ((op.def->traits() & (kRandom | kSideEffect | kCommunication | kReader | kControlFlow)) != 0 ||
      !op.var_attrs.empty() || op.has_control_edges())
    return Unimplemented(op.type(), " needs more than its inputs");
  try {
    Evaluator evaluator(op, inputs);
    HEDDLE_RETURN_IF_ERROR(evaluator.Run(max_bytes));
    std::vector<Value> out = evaluator.Outputs();
    size_t bytes = 0;
    for (const Value& v : out)
      if (v.is_tensor() && v.tensor().initialized()) bytes += v.tensor().bytes();
    if (bytes > max_bytes) return ResourceExhausted("the result is larger than wanted");
    return out;
  } catch (const std::bad_alloc& e) {
    return ResourceExhausted(e.what());
  } catch (const ContentsError& e) {
    return e.status();
  } catch (const std::exception& e) {
    return InvalidArgument(e.what());
  }
}

}  // namespace heddle
