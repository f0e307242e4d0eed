#include "device/cuda/cuda_device.h"

#include <nvtx3/nvToolsExt.h>

#include <limits>

#include "device/cuda/grid/kernel_table.h"
#ifdef HEDDLE_CUDNN
#include "device/cuda/dnn/cudnn.h"
#endif
#include "core/kernel_context.h"
#include "device/cuda/lt_algorithms.h"
#include "device/open_cuda.h"

namespace heddle {

Status CudaStatus(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return Status::Ok();
  const std::string text = StrCat(what, ": ", cudaGetErrorString(error));
  (void)cudaGetLastError();  // clears errors that do not last
  if (error == cudaErrorMemoryAllocation) return ResourceExhausted(text);
  return Internal(text);
}

namespace {

class CudaEvent final : public Event {
 public:
  CudaEvent(CudaDevice& device, cudaEvent_t event) : device_(device), event_(event) {}
  ~CudaEvent() override { (void)cudaEventDestroy(event_); }
  bool Reached() const override { return cudaEventQuery(event_) != cudaErrorNotReady; }
  Status Wait() override {
    HEDDLE_RETURN_IF_ERROR(device_.Note(cudaEventSynchronize(event_), "waiting for an event"));
    return failure;
  }
  Result<int64_t> NanosecondsSince(const Event& earlier) const override {
    float ms = 0;
    const cudaEvent_t from = static_cast<const CudaEvent&>(earlier).event_;
    HEDDLE_RETURN_IF_ERROR(
        device_.Note(cudaEventElapsedTime(&ms, from, event_), "the time between events"));
    return static_cast<int64_t>(static_cast<double>(ms) * 1e6);
  }
  cudaEvent_t get() const { return event_; }
  Status failure;  // of the stream, when it was recorded

 private:
  CudaDevice& device_;
  cudaEvent_t event_;
};

class CudaGraph final : public Graph {
 public:
  explicit CudaGraph(cudaGraphExec_t exec) : exec_(exec) {}
  ~CudaGraph() override { (void)cudaGraphExecDestroy(exec_); }
  cudaGraphExec_t get() const { return exec_; }

 private:
  cudaGraphExec_t exec_;
};

// A range that Nsight shows on the host's time line.
struct NvtxRange {
  explicit NvtxRange(const char* name) { nvtxRangePushA(name); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
  ~NvtxRange() { nvtxRangePop(); }
};

// Work space of cuBLAS and cuBLASLt, which must not allocate memory while kernels are captured.
constexpr size_t kBlasBytes = 32 << 20;

class CudaStream final : public Stream {
 public:
  // Takes over all three; `blas_memory` may be null.
  CudaStream(CudaDevice& device, cudaStream_t stream, cublasHandle_t blas, void* blas_memory)
      : device_(device), stream_(stream), blas_(blas), blas_memory_(blas_memory) {}
  ~CudaStream() override {
    (void)cudaStreamSynchronize(stream_);
    dnn_.reset();
    (void)cublasDestroy(blas_);
    (void)cudaFree(blas_memory_);
    (void)cudaStreamDestroy(stream_);
  }
  Status UseDnn(card::Dnn& dnn) {
    HEDDLE_ASSIGN_OR_RETURN(dnn_, dnn.NewStream(stream_));
    return Status::Ok();
  }
  Status CopyToDevice(void* to, const void* from, size_t bytes, uint64_t tag) override {
    return Copy(to, from, bytes, cudaMemcpyHostToDevice, tag);
  }
  Status CopyToHost(void* to, const void* from, size_t bytes, uint64_t tag) override {
    return Copy(to, from, bytes, cudaMemcpyDeviceToHost, tag);
  }
  Status CopyOnDevice(void* to, const void* from, size_t bytes, uint64_t tag) override {
    return Copy(to, from, bytes, cudaMemcpyDeviceToDevice, tag);
  }
  Status Fill(void* to, uint8_t byte, size_t bytes, uint64_t tag) override {
    if (error_) return Status::Ok();
    return Keep(device_.Note(cudaMemsetAsync(to, byte, bytes, stream_), "a fill"), tag);
  }
  Status Launch(KernelCall call, uint64_t tag) override {
    if (error_) return Status::Ok();
    const card::GridKernel* const kernel = card::FindGridKernel(call.op->def->name());
    if (kernel == nullptr) return Unimplemented("no CUDA kernel of ", call.op->def->name());
    const NvtxRange range(call.op->def->name().c_str());
    std::vector<Value*> frame;
    for (Value& v : call.operands) frame.push_back(&v);
    KernelContext ctx(*call.op, frame.data(), *call.services, call.state);
    card::Queue queue(stream_, blas_, device_.lt(), blas_memory_,
                      blas_memory_ != nullptr ? kBlasBytes : 0);
    queue.set_dnn(dnn_.get());
    Status status = kernel->run(queue, ctx);
    if (status.ok()) status = device_.Note(cudaGetLastError(), "the launch of a kernel");
    return Keep(std::move(status), tag);
  }
  Status Record(Event& event) override {
    auto& e = static_cast<CudaEvent&>(event);
    e.failure = error_ ? error_->status : Status::Ok();
    return device_.Note(cudaEventRecord(e.get(), stream_), "the record of an event");
  }
  Status WaitFor(Event& event) override {
    auto& e = static_cast<CudaEvent&>(event);
    if (!e.failure.ok()) (void)Keep(e.failure, 0);
    return device_.Note(cudaStreamWaitEvent(stream_, e.get(), 0), "a stream's wait for an event");
  }
  Status Synchronize() override {
    (void)Keep(device_.Note(cudaStreamSynchronize(stream_), "the stream"), 0);
    return error_ ? error_->status : Status::Ok();
  }
  void WaitUntilDone() override { (void)cudaStreamSynchronize(stream_); }
  std::optional<StreamError> TakeError() override { return std::exchange(error_, std::nullopt); }
  Status BeginCapture() override {
    if (error_) return error_->status;
    return device_.Note(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                        "the beginning of a capture");
  }
  Result<std::unique_ptr<Graph>> EndCapture() override {
    cudaGraph_t graph = nullptr;
    Status status = device_.Note(cudaStreamEndCapture(stream_, &graph), "the end of a capture");
    if (error_) status = std::exchange(error_, std::nullopt)->status;
    cudaGraphExec_t exec = nullptr;
    if (status.ok())
      status = device_.Note(cudaGraphInstantiate(&exec, graph, 0), "a graph of captured work");
    if (graph != nullptr) (void)cudaGraphDestroy(graph);
    if (!status.ok()) return status;
    return std::unique_ptr<Graph>(std::make_unique<CudaGraph>(exec));
  }
  Status Replay(Graph& graph) override {
    if (error_) return Status::Ok();
    const NvtxRange range("graph");
    return Keep(device_.Note(cudaGraphLaunch(static_cast<CudaGraph&>(graph).get(), stream_),
                             "the launch of a graph"),
                0);
  }

 private:
  Status Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, uint64_t tag) {
    if (error_ || bytes == 0) return Status::Ok();
    return Keep(device_.Note(cudaMemcpyAsync(to, from, bytes, kind, stream_), "a copy"), tag);
  }
  // A failure of the stream's; the call itself was taken.
  Status Keep(Status status, uint64_t tag) {
    if (!status.ok() && !error_) error_ = StreamError{std::move(status), tag, device_.NextError()};
    return Status::Ok();
  }

  CudaDevice& device_;
  cudaStream_t stream_;
  cublasHandle_t blas_;
  void* blas_memory_;
  std::unique_ptr<card::DnnStream> dnn_;
  std::optional<StreamError> error_;
};

// cuDNN is used where it is there; nothing needs it.
void OpenDnn([[maybe_unused]] const CudaOptions& options,
             [[maybe_unused]] std::unique_ptr<card::Dnn>* dnn) {
#ifdef HEDDLE_CUDNN
  const auto api = card::LoadCudnn();
  if (!api.ok()) return;
  auto opened = card::NewCudnn(*api, options.tf32);
  if (opened.ok()) *dnn = *std::move(opened);
#endif
}

}  // namespace

Result<std::shared_ptr<Device>> CudaDevice::Open(const CudaOptions& options) {
  int count = 0;
  HEDDLE_RETURN_IF_ERROR(CudaStatus(cudaGetDeviceCount(&count), "no card"));
  if (count == 0) return NotFound("there is no card");
  HEDDLE_RETURN_IF_ERROR(CudaStatus(cudaSetDevice(0), "the first card"));
  auto device = std::make_shared<CudaDevice>(options);
  size_t free = 0;
  HEDDLE_RETURN_IF_ERROR(CudaStatus(cudaMemGetInfo(&free, &device->memory_bytes_), "its memory"));
  // Work space that kernels give back stays with the process.
  cudaMemPool_t pool = nullptr;
  uint64_t keep = std::numeric_limits<uint64_t>::max();
  if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess)
    (void)cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
  HEDDLE_ASSIGN_OR_RETURN(device->lt_, LtAlgorithms::Make(options.tf32, kBlasBytes));
  OpenDnn(options, &device->dnn_);
  return std::shared_ptr<Device>(std::move(device));
}

CudaDevice::CudaDevice(const CudaOptions& options) : options_(options) {}
CudaDevice::~CudaDevice() = default;
card::LtChoices* CudaDevice::lt() const { return lt_.get(); }

Status CudaDevice::Note(cudaError_t error, const char* what) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
    case cudaErrorMisalignedAddress:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorECCUncorrectable:
    case cudaErrorAssert:
      lost_ = true;  // the context returns this error for every later call
      break;
    default:
      break;
  }
  return CudaStatus(error, what);
}

Result<void*> CudaDevice::Allocate(size_t bytes) {
  void* memory = nullptr;
  HEDDLE_RETURN_IF_ERROR(Note(cudaMalloc(&memory, std::max<size_t>(bytes, 1)), "an allocation"));
  return memory;
}
void CudaDevice::Free(void* memory) { (void)cudaFree(memory); }

Result<void*> CudaDevice::AllocateHost(size_t bytes) {
  void* memory = nullptr;
  HEDDLE_RETURN_IF_ERROR(
      Note(cudaMallocHost(&memory, std::max<size_t>(bytes, 1)), "an allocation on the host"));
  return memory;
}
void CudaDevice::FreeHost(void* memory) { (void)cudaFreeHost(memory); }

Result<std::unique_ptr<Stream>> CudaDevice::NewStream(int priority) {
  cudaStream_t stream = nullptr;
  HEDDLE_RETURN_IF_ERROR(
      Note(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "a new stream"));
  cublasHandle_t blas = nullptr;
  if (cublasCreate(&blas) != CUBLAS_STATUS_SUCCESS) {
    (void)cudaStreamDestroy(stream);
    return Internal("cuBLAS gives no handle");
  }
  (void)cublasSetStream(blas, stream);
  void* blas_memory = nullptr;
  if (cudaMalloc(&blas_memory, kBlasBytes) == cudaSuccess)
    (void)cublasSetWorkspace(blas, blas_memory, kBlasBytes);
  else
    (void)cudaGetLastError();  // cuBLAS then allocates its own
  const int math = options_.tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
  (void)cublasSetMathMode(
      blas, static_cast<cublasMath_t>(math | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
  auto made = std::make_unique<CudaStream>(*this, stream, blas, blas_memory);
  if (dnn_ != nullptr) HEDDLE_RETURN_IF_ERROR(made->UseDnn(*dnn_));
  return std::unique_ptr<Stream>(std::move(made));
}

Result<std::unique_ptr<Event>> CudaDevice::NewEvent(bool timed) {
  cudaEvent_t event = nullptr;
  HEDDLE_RETURN_IF_ERROR(
      Note(cudaEventCreateWithFlags(&event, timed ? cudaEventDefault : cudaEventDisableTiming),
           "a new event"));
  return std::unique_ptr<Event>(std::make_unique<CudaEvent>(*this, event));
}

bool CudaDevice::HasKernel(const CallView& call) const {
  return card::CoversAndChooses(*lt_, call);
}
Result<std::unique_ptr<KernelState>> CudaDevice::Prepare(const PrepareContext& call) const {
  return card::PrepareGridKernel(call, dnn_.get());
}

Result<std::shared_ptr<Device>> OpenCudaDevice(const CudaOptions& options) {
  return CudaDevice::Open(options);
}

}  // namespace heddle
