#include "device/cuda/dnn/cudnn.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace heddle::HEDDLE_GRID {
namespace {

constexpr size_t kMostWorkspace = size_t{1} << 28;  // bytes
constexpr int64_t kMostConfigs = 24;                // that are tried, of each way to find them
constexpr int64_t kAlignment = 16;                  // of operands, in bytes

using Dims = std::array<int64_t, 4>;

// Names of tensors in a plan and where it is executed.
enum Uid : int64_t { kX = 1, kW, kY, kResidual, kBias, kFirstVirtual };

// A descriptor of the graph interface. After a call that fails it is no longer ok(), and calls do
// nothing.
class Descriptor {
 public:
  Descriptor(const CudnnApi& api, cudnnBackendDescriptorType_t type) : api_(&api) {
    Note(api.create_descriptor(type, &raw_));
  }
  Descriptor(Descriptor&& other) noexcept
      : api_(other.api_), raw_(std::exchange(other.raw_, nullptr)), ok_(other.ok_) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (raw_ != nullptr) (void)api_->destroy_descriptor(raw_);
  }

  bool ok() const { return ok_; }
  cudnnBackendDescriptor_t raw() const { return raw_; }

  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
                  const void* values) {
    if (ok_) Note(api_->set(raw_, name, type, count, values));
    return *this;
  }
  Descriptor& SetInts(cudnnBackendAttributeName_t name, const int64_t* values, int64_t count) {
    return Set(name, CUDNN_TYPE_INT64, count, values);
  }
  Descriptor& SetInt(cudnnBackendAttributeName_t name, int64_t value) {
    return SetInts(name, &value, 1);
  }
  Descriptor& SetFloat(cudnnBackendAttributeName_t name, float value) {
    return Set(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  Descriptor& SetType(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return Set(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
  }
  Descriptor& SetChild(cudnnBackendAttributeName_t name, const Descriptor& child) {
    ok_ = ok_ && child.ok();
    const cudnnBackendDescriptor_t raw = child.raw();
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  }
  Descriptor& Finish() {
    if (ok_) Note(api_->finalize(raw_));
    return *this;
  }
  // Returns how many there are; at most `most` are written. -1: it cannot be told.
  int64_t Get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t most,
              void* to) const {
    int64_t count = 0;
    if (!ok_ || api_->get(raw_, name, type, most, &count, to) != CUDNN_STATUS_SUCCESS) return -1;
    return count;
  }

 private:
  void Note(cudnnStatus_t status) { ok_ = ok_ && status == CUDNN_STATUS_SUCCESS; }

  const CudnnApi* api_;
  cudnnBackendDescriptor_t raw_ = nullptr;
  bool ok_ = true;
};

std::optional<cudnnDataType_t> TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return CUDNN_DATA_FLOAT;
    case DType::kF16:
      return CUDNN_DATA_HALF;
    case DType::kBF16:
      return CUDNN_DATA_BFLOAT16;
    default:
      return std::nullopt;
  }
}

Dims StridesOf(const Dims& d, bool channels_last) {
  if (channels_last) return {d[1] * d[2] * d[3], 1, d[3] * d[1], d[1]};
  return {d[1] * d[2] * d[3], d[2] * d[3], d[3], 1};
}

// The operations of one convolution with what follows it, and the descriptors that they refer to.
class ConvGraph {
 public:
  ConvGraph(std::shared_ptr<const CudnnApi> api, const DnnConv& conv, cudnnDataType_t type)
      : api_(std::move(api)), conv_(conv), type_(type), next_(kFirstVirtual) {}

  // Whether all of it is well-formed; what the library can compute is another question.
  bool Build(cudnnHandle_t handle) {
    const ConvShape& g = conv_.shape;
    const Dims x{g.batch, g.in_c, g.h.in, g.w.in}, y{g.batch, g.out_c, g.h.out, g.w.out};
    const Dims w{g.out_c, g.in_c / g.groups, g.h.kernel, g.w.kernel};
    Descriptor& conv = AddGeometry();
    switch (conv_.kind) {
      case DnnConv::Kind::kForward: {
        const bool more = conv_.residual || conv_.bias || conv_.relu;
        Descriptor& xd = AddTensor(kX, x, type_, false);
        Descriptor& wd = AddTensor(kW, w, type_, false);
        Descriptor& yd =
            more ? AddTensor(next_++, y, CUDNN_DATA_FLOAT, true) : AddTensor(kY, y, type_, false);
        AddOperation(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv)
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, xd)
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, wd)
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, yd)
            .SetFloat(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1)
            .SetFloat(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, conv_.add ? 1 : 0)
            .Finish();
        if (more) AddEpilogue(yd, y);
        break;
      }
      case DnnConv::Kind::kInputGrad:
        AddOperation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR)
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, conv)
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, AddTensor(kY, y, type_, false))
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, AddTensor(kW, w, type_, false))
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, AddTensor(kX, x, type_, false))
            .SetFloat(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, 1)
            .SetFloat(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, conv_.add ? 1 : 0)
            .Finish();
        break;
      case DnnConv::Kind::kFilterGrad:
        AddOperation(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR)
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, conv)
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                      AddTensor(kY, y, type_, false))
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, AddTensor(kX, x, type_, false))
            .SetChild(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                      AddTensor(kW, w, type_, false))
            .SetFloat(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, 1)
            .SetFloat(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, conv_.add ? 1 : 0)
            .Finish();
        break;
    }
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const auto& op : operations_) operations.push_back(op->raw());
    Descriptor& graph = Add(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
    graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
              static_cast<int64_t>(operations.size()), operations.data());
    graph.Finish();
    graph_ = &graph;
    return std::all_of(operations_.begin(), operations_.end(),
                       [](const auto& op) { return op->ok(); }) &&
           graph.ok();
  }
  const Descriptor& graph() const { return *graph_; }
  // The operands that are given when the graph is executed.
  const std::vector<int64_t>& uids() const { return uids_; }

 private:
  Descriptor& Add(cudnnBackendDescriptorType_t type) {
    return *others_.emplace_back(std::make_unique<Descriptor>(*api_, type));
  }
  Descriptor& AddOperation(cudnnBackendDescriptorType_t type) {
    return *operations_.emplace_back(std::make_unique<Descriptor>(*api_, type));
  }

  Descriptor& AddGeometry() {
    const ConvAxis &h = conv_.shape.h, &w = conv_.shape.w;
    const int64_t pads[] = {h.pad, w.pad}, strides[] = {h.stride, w.stride},
                  dilations[] = {h.dilation, w.dilation};
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    return Add(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
        .SetType(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
        .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode)
        .SetInt(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, 2)
        .SetInts(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations, 2)
        .SetInts(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides, 2)
        .SetInts(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads, 2)
        .SetInts(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads, 2)
        .Finish();
  }

  // `inner`: it exists in registers only.
  Descriptor& AddTensor(int64_t uid, const Dims& dims, cudnnDataType_t type, bool inner) {
    const Dims strides = StridesOf(dims, conv_.shape.channels_last);
    if (!inner) uids_.push_back(uid);
    return Add(CUDNN_BACKEND_TENSOR_DESCRIPTOR)
        .SetType(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
        .SetInts(CUDNN_ATTR_TENSOR_DIMENSIONS, dims.data(), 4)
        .SetInts(CUDNN_ATTR_TENSOR_STRIDES, strides.data(), 4)
        .SetInt(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid)
        .SetInt(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kAlignment)
        .Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &inner)
        .Finish();
  }

  Descriptor& AddFunction(cudnnPointwiseMode_t mode) {
    return Add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR)
        .Set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode)
        .SetType(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  }
  // The next tensor after the convolution: the result behind the last of `left` steps.
  Descriptor& AddNext(const Dims& y, int left) {
    return left == 0 ? AddTensor(kY, y, type_, false)
                     : AddTensor(next_++, y, CUDNN_DATA_FLOAT, true);
  }
  Descriptor* AddSum(const Descriptor& from, const Descriptor& addend, Descriptor& to) {
    AddOperation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        .SetChild(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR,
                  AddFunction(CUDNN_POINTWISE_ADD).Finish())
        .SetChild(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, from)
        .SetChild(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, addend)
        .SetChild(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to)
        .Finish();
    return &to;
  }
  // Residual, bias and relu: in this order the library has kernels for all at once.
  void AddEpilogue(Descriptor& conv, const Dims& y) {
    int left = (conv_.residual ? 1 : 0) + (conv_.bias ? 1 : 0) + (conv_.relu ? 1 : 0);
    Descriptor* now = &conv;
    if (conv_.residual) {
      Descriptor& residual = AddTensor(kResidual, y, type_, false);
      now = AddSum(*now, residual, AddNext(y, --left));
    }
    if (conv_.bias) {
      Descriptor& bias = AddTensor(kBias, {1, y[1], 1, 1}, type_, false);
      now = AddSum(*now, bias, AddNext(y, --left));
    }
    if (!conv_.relu) return;
    Descriptor& to = AddNext(y, --left);
    AddOperation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
        .SetChild(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, AddRelu())
        .SetChild(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, *now)
        .SetChild(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, to)
        .Finish();
  }
  Descriptor& AddRelu() {
    const cudnnNanPropagation_t nan =
        conv_.keep_nan ? CUDNN_PROPAGATE_NAN : CUDNN_NOT_PROPAGATE_NAN;
    return AddFunction(CUDNN_POINTWISE_RELU_FWD)
        .Set(CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan)
        .Finish();
  }

  const std::shared_ptr<const CudnnApi> api_;
  const DnnConv conv_;
  const cudnnDataType_t type_;
  int64_t next_;
  std::vector<std::unique_ptr<Descriptor>> others_, operations_;
  std::vector<int64_t> uids_;
  Descriptor* graph_ = nullptr;
};

// The plan keeps the descriptors that it is made of, and the library's functions that destroy them:
// it may outlive the device.
class CudnnPlan final : public DnnPlan {
 public:
  CudnnPlan(std::shared_ptr<const ConvGraph> graph, Descriptor config, Descriptor plan,
            size_t workspace, int64_t engine)
      : graph_(std::move(graph)),
        config_(std::move(config)),
        plan_(std::move(plan)),
        workspace_(workspace),
        name_(StrCat("engine ", engine)) {}
  size_t workspace_bytes() const override { return workspace_; }
  const std::string& name() const override { return name_; }
  const Descriptor& plan() const { return plan_; }
  const std::vector<int64_t>& uids() const { return graph_->uids(); }

 private:
  const std::shared_ptr<const ConvGraph> graph_;
  const Descriptor config_, plan_;
  const size_t workspace_;
  const std::string name_;
};

class CudnnStream final : public DnnStream {
 public:
  CudnnStream(std::shared_ptr<const CudnnApi> api, cudnnHandle_t handle)
      : api_(std::move(api)), handle_(handle) {}
  ~CudnnStream() override { (void)api_->destroy(handle_); }
  Status Run(const DnnPlan& plan, const DnnOperands& o) override {
    const auto& chosen = static_cast<const CudnnPlan&>(plan);
    std::vector<void*> pointers;
    for (const int64_t uid : chosen.uids()) pointers.push_back(const_cast<void*>(At(o, uid)));
    Descriptor pack(*api_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const auto count = static_cast<int64_t>(pointers.size());
    pack.SetInts(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, chosen.uids().data(), count)
        .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, pointers.data())
        .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &o.workspace)
        .Finish();
    if (!pack.ok()) return Internal("cuDNN refuses the operands of a convolution");
    const cudnnStatus_t status = api_->execute(handle_, chosen.plan().raw(), pack.raw());
    if (status == CUDNN_STATUS_SUCCESS) return Status::Ok();
    return Internal("cuDNN refuses the convolution: ", api_->error(status));
  }

 private:
  static const void* At(const DnnOperands& o, int64_t uid) {
    switch (uid) {
      case kX:
        return o.x;
      case kW:
        return o.w;
      case kResidual:
        return o.residual;
      case kBias:
        return o.bias;
      default:
        return o.y;
    }
  }

  const std::shared_ptr<const CudnnApi> api_;
  const cudnnHandle_t handle_;
};

class Cudnn final : public Dnn {
 public:
  Cudnn(const CudnnApi& api, cudnnHandle_t handle, bool tf32)
      : api_(std::make_shared<const CudnnApi>(api)), tf32_(tf32), handle_(handle) {}
  ~Cudnn() override { (void)api_->destroy(handle_); }
  const std::string& name() const override { return name_; }

  Result<std::unique_ptr<DnnStream>> NewStream(void* stream) override {
    cudnnHandle_t handle = nullptr;
    cudnnStatus_t status = api_->create(&handle);
    if (status != CUDNN_STATUS_SUCCESS)
      return Internal("cuDNN gives no handle: ", api_->error(status));
    auto made = std::make_unique<CudnnStream>(api_, handle);
    status = api_->set_stream(handle, static_cast<cudaStream_t>(stream));
    if (status != CUDNN_STATUS_SUCCESS)
      return Internal("cuDNN refuses the stream: ", api_->error(status));
    return std::unique_ptr<DnnStream>(std::move(made));
  }

  std::unique_ptr<DnnPlan> Plan(const DnnConv& conv) override {
    const std::optional<cudnnDataType_t> type = TypeOf(conv.dtype);
    if (!type || !DnnTakes(conv.shape)) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto graph = std::make_shared<ConvGraph>(api_, conv, *type);
    if (!graph->Build(handle_)) return nullptr;
    for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK})
      if (auto plan = FirstOf(mode, graph, conv.dtype)) return plan;
    return nullptr;
  }

 private:
  // The first configuration, the fastest by the library's guess, that can be used.
  std::unique_ptr<DnnPlan> FirstOf(cudnnBackendHeurMode_t mode,
                                   const std::shared_ptr<const ConvGraph>& graph, DType dtype) {
    Descriptor guess(*api_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    guess.SetChild(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph->graph())
        .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode)
        .Finish();
    int64_t count =
        guess.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, nullptr);
    count = std::min(count, kMostConfigs);
    std::vector<Descriptor> configs;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (int64_t i = 0; i < count; ++i) {
      configs.emplace_back(*api_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      raw.push_back(configs.back().raw());
    }
    if (count > 0)
      count = guess.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                        raw.data());
    for (int64_t i = 0; i < std::min<int64_t>(count, std::ssize(configs)); ++i)
      if (auto plan = PlanWith(std::move(configs[static_cast<size_t>(i)]), graph, dtype))
        return plan;
    return nullptr;
  }

  std::unique_ptr<DnnPlan> PlanWith(Descriptor config,
                                    const std::shared_ptr<const ConvGraph>& graph, DType dtype) {
    const Descriptor engine(*api_, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    cudnnBackendDescriptor_t raw = engine.raw();
    if (config.Get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw) != 1 ||
        !Suits(engine, dtype))
      return nullptr;
    int64_t index = 0;
    (void)engine.Get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
    Descriptor plan(*api_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_)
        .SetChild(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config)
        .Finish();
    int64_t bytes = 0;
    if (plan.Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes) != 1 ||
        static_cast<size_t>(bytes) > kMostWorkspace)
      return nullptr;
    return std::make_unique<CudnnPlan>(graph, std::move(config), std::move(plan),
                                       static_cast<size_t>(bytes), index);
  }

  // Its results are the same in every run, sums are in float32, and factors of float32 are taken as
  // they are unless TF32 is allowed.
  bool Suits(const Descriptor& engine, DType dtype) const {
    cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    const int64_t count = engine.Get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                     CUDNN_NUMERICAL_NOTE_TYPE_COUNT, notes);
    if (count < 0) return false;
    return std::none_of(notes, notes + std::min<int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT),
                        [&](cudnnBackendNumericalNote_t note) {
                          switch (note) {
                            case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
                            case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
                              return true;
                            case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
                            case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
                              return dtype == DType::kF32 && !tf32_;
                            default:
                              return false;
                          }
                        });
  }

  const std::shared_ptr<const CudnnApi> api_;
  const bool tf32_;
  const std::string name_ = "cudnn";
  std::mutex mutex_;  // the handle's
  cudnnHandle_t handle_;
};

}  // namespace

Result<std::unique_ptr<Dnn>> NewCudnn(const CudnnApi& api, bool tf32) {
  constexpr size_t kNine = 90000;
  if (api.version() < kNine) return NotFound("cuDNN: version ", api.version(), ", 9 is needed");
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = api.create(&handle);
  if (status != CUDNN_STATUS_SUCCESS) return NotFound("cuDNN: no handle: ", api.error(status));
  return std::unique_ptr<Dnn>(std::make_unique<Cudnn>(api, handle, tf32));
}

}  // namespace heddle::HEDDLE_GRID
