#ifdef HEDDLE_WITH_ONEDNN

#include "kernels/gemm/onednn.h"

#include <tbb/task_arena.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "core/error.h"
#include "core/machine.h"
#include "core/threads/library_place.h"
#include "core/threads/primitives_library.h"
#include "kernels/gemm/pack_once.h"

// A program that counts calls of the heap defines these two, to tell the library's apart
// (tools/alloc_count.h).
extern "C" {
[[gnu::weak]] void heddle_library_call_begins();
[[gnu::weak]] void heddle_library_call_ends();
}

namespace heddle::onednn {
namespace {

struct LibraryCall {
  LibraryCall() {
    if (heddle_library_call_begins != nullptr) heddle_library_call_begins();
  }
  ~LibraryCall() {
    if (heddle_library_call_ends != nullptr) heddle_library_call_ends();
  }
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
};

dnnl::engine MakeEngine() {
  if (AmxIsBroken()) dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_fp16);
  return dnnl::engine(dnnl::engine::kind::cpu, 0);
}

bool IsFound() {
  static const bool found = FindPrimitive("dnnl_engine_create") != nullptr;
  return found;
}

void Check(dnnl_status_t status, const char* what) {
  if (status != dnnl_success)
    throw std::runtime_error(StrCat("oneDNN: ", what, " failed with status ", int{status}));
}

void AppendActivation(dnnl::post_ops& ops, const Epilogue& e) {
  using dnnl::algorithm;
  switch (e.activation) {
    case Activation::kNone:
      return;
    case Activation::kRelu:
      // Some of oneDNN's loops for relu keep NaN, of which this relu makes 0.
      return ops.append_eltwise(algorithm::eltwise_clip, 0.f,
                                std::numeric_limits<float>::infinity());
    case Activation::kLeakyRelu:
      return ops.append_eltwise(algorithm::eltwise_relu, e.alpha, 0.f);
    case Activation::kHardSwish:
      ops.append_eltwise(algorithm::eltwise_hardswish, e.alpha / e.limit, e.beta / e.limit);
      if (e.limit != 1.f) ops.append_eltwise(algorithm::eltwise_linear, e.limit, 0.f);
      return;
    case Activation::kSwish:
      return ops.append_eltwise(algorithm::eltwise_swish, e.alpha, 0.f);
    case Activation::kGeluTanh:
      return ops.append_eltwise(algorithm::eltwise_gelu_tanh, 0.f, 0.f);
    case Activation::kTanh:
      return ops.append_eltwise(algorithm::eltwise_tanh, 0.f, 0.f);
    case Activation::kMish:
      return ops.append_eltwise(algorithm::eltwise_mish, 0.f, 0.f);
    case Activation::kReluKeepsNan:
    case Activation::kClip:
    case Activation::kHardSigmoid:
    case Activation::kSigmoid:
    case Activation::kGeluErf:
      throw std::logic_error("a LateEpilogue computes this activation");
  }
}

}  // namespace

void* FindFunction(const char* name) {
  void* const found = FindPrimitive(name);
  if (found == nullptr) throw dnnl::error(dnnl_unimplemented, "oneDNN's library is not found");
  return found;
}

LateEpilogue::LateEpilogue(Epilogue* epilogue) {
  if (FollowsOnednn(*epilogue)) late_ = TakeActivation(epilogue);
}

void LateEpilogue::Run(const KernelContext& ctx, int64_t n, float* data) const {
  if (!late_) return;
  constexpr int64_t kGrain = 1 << 14;
  ctx.ParallelFor(n, kGrain,
                  [&](int64_t begin, int64_t end) { RunPiece(end - begin, data + begin); });
}

void LateEpilogue::RunPiece(int64_t n, float* data) const {
  if (late_) ApplyEpilogue(*late_, 1, n, n, nullptr, false, data);
}

const dnnl::engine& Engine() {
  static const dnnl::engine engine = MakeEngine();
  return engine;
}

bool Sgemm(const GemmDims& d, float alpha, const float* a, const float* b, float beta, float* c) {
  bool done = false;
  if (!IsFound()) return false;
  LibraryPlace::Enter([&] {
    Engine();
    const LibraryCall call;
    done = dnnl_sgemm(d.trans_a ? 'T' : 'N', d.trans_b ? 'T' : 'N', d.m, d.n, d.k, alpha, a, d.lda,
                      b, d.ldb, beta, c, d.ldc) == dnnl_success;
  });
  return done;
}

dnnl::memory::desc Dense(const dnnl::memory::dims& dims) {
  dnnl::memory::dims strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return Strided(dims, strides);
}

dnnl::memory::desc Strided(const dnnl::memory::dims& dims, const dnnl::memory::dims& strides) {
  return {dims, dnnl::memory::data_type::f32, strides};
}

dnnl::memory::desc Any(const dnnl::memory::dims& dims) {
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

dnnl::memory::desc MatrixOf(const BatchedGemm& g, const Shape& batch_stride, int64_t rows,
                            int64_t cols, bool transposed, int64_t leading,
                            dnnl::memory::data_type type) {
  dnnl::memory::dims dims, strides;
  int64_t step = rows * cols;
  for (int i = g.dims.rank() - 1; i >= 0; --i) {
    const bool broadcast = batch_stride[i] == 0;
    dims.insert(dims.begin(), broadcast ? 1 : g.dims[i]);
    strides.insert(strides.begin(), broadcast ? step : batch_stride[i]);
    if (!broadcast) step = batch_stride[i] * g.dims[i];
  }
  dims.push_back(rows);
  dims.push_back(cols);
  strides.push_back(transposed ? 1 : leading);
  strides.push_back(transposed ? leading : 1);
  return {dims, type, strides};
}

dnnl::memory::desc InBf16(const dnnl::memory::desc& desc) {
  constexpr auto kBf16 = dnnl::memory::data_type::bf16;
  if (desc.get_format_kind() == dnnl::memory::format_kind::any)
    return {desc.get_dims(), kBf16, dnnl::memory::format_tag::any};
  return {desc.get_dims(), kBf16, desc.get_strides()};
}

bool MultipliesBf16() {
  if (!IsFound()) return false;
  Engine();
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  constexpr auto kNeeded = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (isa & kNeeded) == kNeeded;
}

std::string Describe(const dnnl::memory::desc& desc) {
  std::string text = std::to_string(static_cast<int>(desc.get_data_type()));
  const auto list = [&](char name, const auto& values) {
    text += name;
    for (auto v : values) text += std::to_string(v) + ',';
  };
  list('d', desc.get_dims());
  list('p', desc.get_padded_dims());
  list('s', desc.get_strides());
  list('b', desc.get_inner_blks());
  list('i', desc.get_inner_idxs());
  return text;
}

int ScaledBiasArg() { return DNNL_ARG_ATTR_MULTIPLE_POST_OP(1) | DNNL_ARG_SRC_1; }

dnnl::primitive_attr Attributes(const Epilogue& epilogue, const dnnl::memory::desc* scaled_bias,
                                float factor) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops ops;
  if (scaled_bias) {
    ops.append_eltwise(dnnl::algorithm::eltwise_linear, factor, 0.f);
    if (epilogue.bias) ops.append_binary(dnnl::algorithm::binary_add, *scaled_bias);
  }
  if (epilogue.residual) ops.append_sum();
  AppendActivation(ops, epilogue);
  if (epilogue.linear())
    ops.append_eltwise(dnnl::algorithm::eltwise_linear, epilogue.scale, epilogue.shift);
  if (ops.len() > 0) attr.set_post_ops(ops);
  return attr;
}

struct Call::Handles {
  dnnl::stream stream;
  std::vector<dnnl::memory> memories;
  std::vector<dnnl_exec_arg_t> args;
};

Call::Call(dnnl::primitive primitive, std::vector<std::pair<int, dnnl::memory::desc>> args,
           const dnnl::memory::desc& scratchpad)
    : primitive_(std::move(primitive)), args_(std::move(args)), scratchpad_(scratchpad) {}

Call::~Call() = default;

void Call::Run(const KernelContext& ctx, std::span<const void* const> data) const {
  ctx.services().intra->LendToLibrary();
  RunPiece(ctx, data, 1);
}

std::unique_ptr<Call::Handles> Call::NewHandles() const {
  auto handles = std::make_unique<Handles>();
  handles->stream = dnnl::stream(Engine());
  for (const auto& [arg, desc] : args_) {
    handles->memories.emplace_back(desc, Engine(), nullptr);
    handles->args.push_back({arg, handles->memories.back().get()});
  }
  if (scratchpad_.get_size() != 0) {
    handles->memories.emplace_back(scratchpad_, Engine(), nullptr);
    handles->args.push_back({DNNL_ARG_SCRATCHPAD, handles->memories.back().get()});
  }
  return handles;
}

void Call::RunPiece(const KernelContext& ctx, std::span<const void* const> data,
                    size_t pieces) const {
  std::unique_ptr<Handles> handles = spares_.Take();
  if (!handles) {
    handles = NewHandles();
    // Whether pieces of the first run overlap is chance: with spares for all pieces made here,
    // later runs make none.
    const size_t most = std::min(pieces, static_cast<size_t>(std::max(1, ctx.threads())));
    if (most > 1 && !reserved_.exchange(true, std::memory_order_relaxed))
      for (size_t n = 1; n < most; ++n) spares_.Put(NewHandles());
  }
  const size_t scratch_bytes = scratchpad_.get_size();
  size_t i = 0;
  for (const void* p : data)
    Check(dnnl_memory_set_data_handle(handles->args[i++].memory, const_cast<void*>(p)), "memory");
  Tensor scratch;
  if (scratch_bytes != 0) {
    scratch = ctx.CallScratch(DType::kU8, {static_cast<int64_t>(scratch_bytes)});
    Check(dnnl_memory_set_data_handle(handles->args[i++].memory, scratch.mutable_raw()), "memory");
  }
  LibraryPlace::Enter([&] {
    const LibraryCall call;
    Check(dnnl_primitive_execute(primitive_.get(), handles->stream.get(),
                                 static_cast<int>(handles->args.size()), handles->args.data()),
          "execution");
  });
  spares_.Put(std::move(handles));
}

// oneDNN asks the arena for the number of threads.
void OnOneThread(FunctionRef<void()> make) {
  tbb::task_arena(1).execute([&] { make(); });
}

std::unique_ptr<Call> MakeReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to,
                                  bool add) {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (add) {
    dnnl::post_ops ops;
    ops.append_sum();
    attr.set_post_ops(ops);
  }
  const dnnl::reorder::primitive_desc pd(Engine(), from, Engine(), to, attr);
  return std::make_unique<Call>(
      dnnl::reorder(pd),
      std::vector<std::pair<int, dnnl::memory::desc>>{{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}},
      pd.scratchpad_desc());
}

std::shared_ptr<const Packed> Pack(const PrepareContext& ctx, const Tensor& source,
                                   const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const std::string key = "onednn " + Describe(from) + '>' + Describe(to);
  return PackOnce<Packed>(ctx, source, key, [&](const Tensor& plain, Packed* packed) {
    packed->memory = PackMemory(ctx, to.get_size());
    const auto reorder = [&] {
      dnnl::stream stream(Engine());
      dnnl::memory src(from, Engine(), const_cast<void*>(plain.raw()));
      dnnl::memory dst(to, Engine(), packed->memory->data());
      dnnl::reorder(src, dst).execute(stream, src, dst);
    };
    // Others may wait for this copy: the thread must not pick up work that waits for it, too.
    LibraryPlace::Enter([&] { tbb::this_task_arena::isolate(reorder); });
  });
}

}  // namespace heddle::onednn

#endif  // HEDDLE_WITH_ONEDNN
