#ifdef HEDDLE_CUDNN

#include "tests/grid/cudnn_stand_in.h"

#include <cmath>
#include <cstring>
#include <map>
#include <set>

// The type behind cuDNN's handles.
struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace heddle::testing {
namespace {

struct Attribute {
  cudnnBackendAttributeType_t type;
  int64_t count;
  std::vector<char> bytes;
};

struct Node {
  cudnnBackendDescriptorType_t type;
  std::map<int, Attribute> attributes;
  bool final = false;
  const StandInEngine* engine = nullptr;  // of configurations and engines

  bool Has(int name) const { return attributes.count(name) > 0; }
  template <typename T>
  std::vector<T> All(int name) const {
    const auto found = attributes.find(name);
    if (found == attributes.end()) return {};
    std::vector<T> values(static_cast<size_t>(found->second.count));
    if (!values.empty())
      std::memcpy(values.data(), found->second.bytes.data(), values.size() * sizeof(T));
    return values;
  }
  template <typename T>
  T One(int name, T missing = T()) const {
    const auto values = All<T>(name);
    return values.size() == 1 ? values[0] : missing;
  }
  const Node* Child(int name) const { return One<const Node*>(name); }
};

cudnnStatus_t Mistake(std::string what) {
  CudnnStandIn::Get().mistakes.push_back(std::move(what));
  return CUDNN_STATUS_BAD_PARAM;
}

size_t SizeOfType(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    case CUDNN_TYPE_BOOLEAN:
      return 1;
    default:
      return 4;
  }
}

// The attributes that a descriptor cannot do without, with their types.
const std::map<int, cudnnBackendAttributeType_t>& Required(cudnnBackendDescriptorType_t type) {
  using Wanted = std::map<int, cudnnBackendAttributeType_t>;
  static const std::map<int, Wanted> all = {
      {CUDNN_BACKEND_TENSOR_DESCRIPTOR,
       {{CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64}}},
      {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR,
       {{CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, CUDNN_TYPE_FLOAT},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, CUDNN_TYPE_FLOAT},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA, CUDNN_TYPE_FLOAT},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA, CUDNN_TYPE_FLOAT},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE}}},
      {CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR,
       {{CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE},
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR,
       {{CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE}}},
      {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR,
       {{CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR}}},
      {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR,
       {{CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR}}}};
  static const Wanted none;
  const auto found = all.find(type);
  return found == all.end() ? none : found->second;
}

// --- tensors in memory ---

struct View {
  std::vector<int64_t> dims, steps;
  float* data = nullptr;
  float& At(int64_t n, int64_t c, int64_t h, int64_t w) const {
    const auto along = [&](size_t d, int64_t i) { return dims[d] == 1 ? 0 : i * steps[d]; };
    return data[along(0, n) + along(1, c) + along(2, h) + along(3, w)];
  }
};

class Interpreter {
 public:
  Interpreter(const Node& plan, const Node& pack) : plan_(plan) {
    const auto ids = pack.All<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    const auto pointers = pack.All<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    for (size_t i = 0; i < ids.size() && i < pointers.size(); ++i)
      memory_[ids[i]] = static_cast<float*>(pointers[i]);
  }

  cudnnStatus_t Run() {
    const Node* const config = plan_.Child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    const Node* const graph = config->Child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
    for (const Node* op : graph->All<const Node*>(CUDNN_ATTR_OPERATIONGRAPH_OPS)) {
      const cudnnStatus_t status = op->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR
                                       ? Pointwise(*op)
                                       : Convolution(*op);
      if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    return CUDNN_STATUS_SUCCESS;
  }

 private:
  View ViewOf(const Node* tensor) {
    View v{tensor->All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
           tensor->All<int64_t>(CUDNN_ATTR_TENSOR_STRIDES), nullptr};
    const auto id = tensor->One<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    if (tensor->One<char>(CUDNN_ATTR_TENSOR_IS_VIRTUAL) != 0) {
      auto& inner = virtual_[id];
      size_t size = 1;
      for (const int64_t d : v.dims) size *= static_cast<size_t>(d);
      inner.resize(size);
      v.data = inner.data();
    } else {
      v.data = memory_.count(id) > 0 ? memory_[id] : nullptr;
    }
    return v;
  }

  cudnnStatus_t Convolution(const Node& op) {
    const bool forward = op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR;
    const bool input = op.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    const auto pick = [&](int a, int b, int c) { return forward ? a : input ? b : c; };
    const View x = ViewOf(op.Child(pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X)));
    const View w = ViewOf(op.Child(pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW)));
    const View y = ViewOf(op.Child(pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY)));
    const Node& g = *op.Child(pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                   CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
    const auto beta = op.One<float>(pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA));
    if (x.data == nullptr || w.data == nullptr || y.data == nullptr)
      return Mistake("an operand of a convolution has no memory");
    const auto pad = g.All<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    const auto stride = g.All<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    const auto dilation = g.All<int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    const int64_t groups = x.dims[1] / w.dims[1], each = y.dims[1] / groups;
    const View& to = forward ? y : input ? x : w;
    for (int64_t n = 0; n < to.dims[0]; ++n)
      for (int64_t c = 0; c < to.dims[1]; ++c)
        for (int64_t h = 0; h < to.dims[2]; ++h)
          for (int64_t v = 0; v < to.dims[3]; ++v) {
            float& at = to.At(n, c, h, v);
            at = beta == 0 ? 0 : beta * at;
          }
    for (int64_t n = 0; n < y.dims[0]; ++n)
      for (int64_t k = 0; k < y.dims[1]; ++k)
        for (int64_t oh = 0; oh < y.dims[2]; ++oh)
          for (int64_t ow = 0; ow < y.dims[3]; ++ow)
            for (int64_t c = 0; c < w.dims[1]; ++c)
              for (int64_t r = 0; r < w.dims[2]; ++r)
                for (int64_t s = 0; s < w.dims[3]; ++s) {
                  const int64_t ih = oh * stride[0] - pad[0] + r * dilation[0];
                  const int64_t iw = ow * stride[1] - pad[1] + s * dilation[1];
                  if (ih < 0 || iw < 0 || ih >= x.dims[2] || iw >= x.dims[3]) continue;
                  float& xe = x.At(n, k / each * w.dims[1] + c, ih, iw);
                  float& we = w.At(k, c, r, s);
                  float& ye = y.At(n, k, oh, ow);
                  if (forward)
                    ye += xe * we;
                  else if (input)
                    xe += ye * we;
                  else
                    we += xe * ye;
                }
    return CUDNN_STATUS_SUCCESS;
  }

  cudnnStatus_t Pointwise(const Node& op) {
    const Node& f = *op.Child(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    const View x = ViewOf(op.Child(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
    const View y = ViewOf(op.Child(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
    const auto mode = f.One<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    const bool adds = mode == CUDNN_POINTWISE_ADD;
    if (!adds && mode != CUDNN_POINTWISE_RELU_FWD) return Mistake("a function is not known");
    View b = x;
    if (adds) b = ViewOf(op.Child(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
    if (x.data == nullptr || y.data == nullptr || b.data == nullptr)
      return Mistake("an operand behind a convolution has no memory");
    if (y.data == b.data) return Mistake("an addend is where the result is to be");
    for (int64_t n = 0; n < y.dims[0]; ++n)
      for (int64_t c = 0; c < y.dims[1]; ++c)
        for (int64_t h = 0; h < y.dims[2]; ++h)
          for (int64_t w = 0; w < y.dims[3]; ++w) {
            const float from = x.At(n, c, h, w);
            y.At(n, c, h, w) = adds ? from + b.At(n, c, h, w) : from < 0 ? 0 : from;
          }
    return CUDNN_STATUS_SUCCESS;
  }

  const Node& plan_;
  std::map<int64_t, float*> memory_;
  std::map<int64_t, std::vector<float>> virtual_;
};

// --- the functions ---

size_t Version() { return CudnnStandIn::Get().version; }
const char* ErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "fine" : "refused";
}
cudnnStatus_t Create(cudnnHandle_t* handle) {
  if (CudnnStandIn::Get().refuses_handles) return CUDNN_STATUS_NOT_INITIALIZED;
  ++CudnnStandIn::Get().handles;
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t Destroy(cudnnHandle_t handle) {
  --CudnnStandIn::Get().handles;
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t SetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t CreateDescriptor(cudnnBackendDescriptorType_t type,
                               cudnnBackendDescriptor_t* descriptor) {
  ++CudnnStandIn::Get().descriptors;
  *descriptor = new Node{type, {}, false, nullptr};
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t DestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  --CudnnStandIn::Get().descriptors;
  delete static_cast<Node*>(descriptor);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t SetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                           cudnnBackendAttributeType_t type, int64_t count, const void* values) {
  Node& node = *static_cast<Node*>(descriptor);
  if (node.final) return Mistake("an attribute is set after the descriptor was finalized");
  const auto& wanted = Required(node.type);
  if (const auto found = wanted.find(name); found != wanted.end() && found->second != type)
    return Mistake("attribute " + std::to_string(name) + " has another type");
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
    for (int64_t i = 0; i < count; ++i)
      if (const Node* child = static_cast<const Node* const*>(values)[i]; !child->final)
        return Mistake("attribute " + std::to_string(name) + " is a descriptor that is not final");
  Attribute a{type, count, {}};
  const auto* const bytes = static_cast<const char*>(values);
  a.bytes.assign(bytes, bytes + static_cast<size_t>(count) * SizeOfType(type));
  node.attributes[name] = std::move(a);
  return CUDNN_STATUS_SUCCESS;
}

// The result of a convolution has the size that its geometry gives.
cudnnStatus_t CheckSizes(const Node& op, int conv, int x, int w, int y) {
  const Node& g = *op.Child(conv);
  const auto xd = op.Child(x)->All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto wd = op.Child(w)->All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto yd = op.Child(y)->All<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  if (xd.size() != 4 || wd.size() != 4 || yd.size() != 4)
    return Mistake("a tensor of a convolution has not four dimensions");
  if (xd[1] % wd[1] != 0 || yd[0] != xd[0] || yd[1] != wd[0])
    return Mistake("channels or batches of a convolution do not fit");
  for (size_t d = 0; d < 2; ++d) {
    const auto at = [&](int name) { return g.All<int64_t>(name)[d]; };
    const int64_t room = xd[2 + d] + at(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS) +
                         at(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS) -
                         at(CUDNN_ATTR_CONVOLUTION_DILATIONS) * (wd[2 + d] - 1) - 1;
    if (room < 0 || room / at(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES) + 1 != yd[2 + d])
      return Mistake("the size of a convolution's result does not follow from its geometry");
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t Finalize(cudnnBackendDescriptor_t descriptor) {
  Node& node = *static_cast<Node*>(descriptor);
  for (const auto& [name, type] : Required(node.type))
    if (!node.Has(name)) return Mistake("attribute " + std::to_string(name) + " is missing");
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  switch (node.type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      status = CheckSizes(node, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      status = CheckSizes(node, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
      break;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      status = CheckSizes(node, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
      break;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const Node& config = *node.Child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      const Node& graph = *config.Child(CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
      if (graph.All<void*>(CUDNN_ATTR_OPERATIONGRAPH_OPS).size() > config.engine->most_operations)
        return CUDNN_STATUS_NOT_SUPPORTED;
      break;
    }
    default:
      break;
  }
  node.final = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t GetAttribute(cudnnBackendDescriptor_t const descriptor,
                           cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t,
                           int64_t most, int64_t* count, void* to) {
  const Node& node = *static_cast<const Node*>(descriptor);
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      if (!node.final) return Mistake("heuristics are asked before they are final");
      const bool fallback =
          node.One<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
      int64_t n = 0;
      for (const StandInEngine& e : CudnnStandIn::Get().engines) {
        if (e.fallback != fallback) continue;
        if (to != nullptr && n < most) {
          Node& config = *static_cast<Node* const*>(to)[n];
          config.engine = &e;
          config.attributes[CUDNN_ATTR_ENGINE_OPERATION_GRAPH] =
              node.attributes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
          config.final = true;
        }
        ++n;
      }
      *count = to == nullptr ? n : std::min(n, most);
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      Node& engine = **static_cast<Node* const*>(to);
      engine.engine = node.engine;
      engine.final = true;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
      *static_cast<int64_t*>(to) = node.engine->index;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: {
      const auto& notes = node.engine->notes;
      *count = static_cast<int64_t>(notes.size());
      if (!notes.empty()) std::memcpy(to, notes.data(), notes.size() * sizeof(notes[0]));
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      if (!node.final) return CUDNN_STATUS_BAD_PARAM;
      *static_cast<int64_t*>(to) =
          node.Child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->engine->workspace;
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    default:
      return Mistake("attribute " + std::to_string(name) + " is asked for");
  }
}

cudnnStatus_t Execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                      cudnnBackendDescriptor_t pack) {
  if (handle == nullptr) return Mistake("a plan is executed without a handle");
  const Node& p = *static_cast<const Node*>(plan);
  const Node& v = *static_cast<const Node*>(pack);
  if (!p.final || !v.final) return Mistake("a plan is executed that is not final");
  const int64_t bytes = p.Child(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)->engine->workspace;
  void* const work = v.One<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (bytes > 0 && work == nullptr) return Mistake("a plan has no work space");
  if (bytes > 0) std::memset(work, 0x55, static_cast<size_t>(bytes));
  ++CudnnStandIn::Get().executed;
  return Interpreter(p, v).Run();
}

}  // namespace

CudnnStandIn& CudnnStandIn::Get() {
  static CudnnStandIn state;
  return state;
}

grid_on_host::CudnnApi StandInApi() {
  return {Version,           ErrorString,  Create,       Destroy,  SetStream, CreateDescriptor,
          DestroyDescriptor, SetAttribute, GetAttribute, Finalize, Execute};
}

}  // namespace heddle::testing

#endif
