// Kernels for float32: element by element with broadcasting, and products.
#include <cmath>

#include "device/cuda/cuda_device.h"

namespace heddle {
namespace {

constexpr int kThreads = 256;

unsigned Blocks(int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

// --- one input ---

struct ReluFn {
  __device__ float operator()(float x) const { return x > 0 ? x : 0; }
};
struct SigmoidFn {
  __device__ float operator()(float x) const { return 1 / (1 + expf(-x)); }
};
struct TanhFn {
  __device__ float operator()(float x) const { return tanhf(x); }
};
struct ExpFn {
  __device__ float operator()(float x) const { return expf(x); }
};
struct SqrtFn {
  __device__ float operator()(float x) const { return sqrtf(x); }
};
struct ScaleFn {
  float scale, bias;
  bool bias_first;
  __device__ float operator()(float x) const {
    return bias_first ? (x + bias) * scale : x * scale + bias;
  }
};

template <typename Fn>
__global__ void MapKernel(const float* x, float* y, int64_t n, Fn fn) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fn(x[i]);
}

template <typename Fn>
Status Map(CudaCall& call, Fn fn) {
  const Tensor& x = call.ctx.In("X");
  Tensor& y = call.ctx.Out("Out");
  if (const int64_t n = x.numel(); n > 0)
    MapKernel<<<Blocks(n), kThreads, 0, call.stream>>>(x.data<float>(), y.mutable_data<float>(), n,
                                                       fn);
  return Status::Ok();
}

template <typename Fn>
Status Unary(CudaCall& call) {
  return Map(call, Fn());
}

Status Scale(CudaCall& call) {
  if (call.ctx.InOpt("ScaleTensor") != nullptr)
    return Unimplemented("scale by a tensor has no CUDA kernel");
  return Map(call, ScaleFn{static_cast<float>(call.ctx.Float("scale")),
                           static_cast<float>(call.ctx.Float("bias")),
                           !call.ctx.Bool("bias_after_scale")});
}

// --- two inputs that broadcast ---

constexpr int kMaxRank = 8;

// Where element i of the output finds its inputs.
struct Broadcast {
  int rank;
  int64_t dims[kMaxRank], x[kMaxRank], y[kMaxRank];  // strides, 0 where an input repeats
};

struct AddFn {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct SubFn {
  __device__ float operator()(float a, float b) const { return a - b; }
};
struct MulFn {
  __device__ float operator()(float a, float b) const { return a * b; }
};
struct DivFn {
  __device__ float operator()(float a, float b) const { return a / b; }
};
struct MaxFn {
  __device__ float operator()(float a, float b) const { return a > b ? a : b; }
};

template <typename Fn>
__global__ void BinaryKernel(const float* x, const float* y, float* out, int64_t n, Broadcast b,
                             Fn fn) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int64_t left = i, at_x = 0, at_y = 0;
  for (int d = b.rank - 1; d >= 0; --d) {
    const int64_t k = left % b.dims[d];
    left /= b.dims[d];
    at_x += k * b.x[d];
    at_y += k * b.y[d];
  }
  out[i] = fn(x[at_x], y[at_y]);
}

// Strides of `from`, whose first dimension stands at `axis` of the output.
void Strides(const Shape& from, const Shape& out, int axis, int64_t* strides) {
  int64_t stride = 1;
  for (int d = 0; d < out.rank(); ++d) strides[d] = 0;
  for (int d = from.rank() - 1; d >= 0; --d) {
    if (from[d] != 1 && axis + d < out.rank()) strides[axis + d] = stride;
    stride *= from[d];
  }
}

template <typename Fn>
Status Binary(CudaCall& call) {
  const Tensor &x = call.ctx.In("X"), &y = call.ctx.In("Y");
  Tensor& out = call.ctx.Out("Out");
  const Shape& shape = out.shape();
  if (shape.rank() > kMaxRank) return Unimplemented("more than ", kMaxRank, " dimensions");
  Broadcast b{};
  b.rank = shape.rank();
  for (int d = 0; d < b.rank; ++d) b.dims[d] = shape[d];
  const int64_t given = call.ctx.Int("axis");
  const int axis = given < 0 ? -1 : static_cast<int>(given);
  const auto first = [&](const Shape& s) {
    return axis < 0 || s.rank() == b.rank ? b.rank - s.rank() : axis;
  };
  Strides(x.shape(), shape, first(x.shape()), b.x);
  Strides(y.shape(), shape, first(y.shape()), b.y);
  if (const int64_t n = out.numel(); n > 0)
    BinaryKernel<<<Blocks(n), kThreads, 0, call.stream>>>(
        x.data<float>(), y.data<float>(), out.mutable_data<float>(), n, b, Fn());
  return Status::Ok();
}

// --- products ---

Status MatMul(CudaCall& call) {
  const Tensor &x = call.ctx.In("X"), &y = call.ctx.In("Y");
  Tensor& out = call.ctx.Out("Out");
  if (x.rank() < 2 || y.rank() < 2) return Unimplemented("products of vectors have no CUDA kernel");
  const bool tx = call.ctx.Bool("trans_x"), ty = call.ctx.Bool("trans_y");
  const int64_t m = x.dim(tx ? x.rank() - 1 : x.rank() - 2);
  const int64_t k = x.dim(tx ? x.rank() - 2 : x.rank() - 1);
  const int64_t n = y.dim(ty ? y.rank() - 2 : y.rank() - 1);
  if (m == 0 || n == 0) return Status::Ok();
  const int64_t batch_x = x.numel() / std::max<int64_t>(1, m * k);
  const int64_t batch_y = y.numel() / std::max<int64_t>(1, k * n);
  const int64_t batch = out.numel() / (m * n);
  if ((batch_x != batch && batch_x != 1) || (batch_y != batch && batch_y != 1))
    return Unimplemented("products whose batches broadcast partly have no CUDA kernel");
  // Column-major: out^T = y^T x^T.
  const float one = 1, zero = 0;
  const auto result = cublasSgemmStridedBatched(
      call.blas, ty ? CUBLAS_OP_T : CUBLAS_OP_N, tx ? CUBLAS_OP_T : CUBLAS_OP_N,
      static_cast<int>(n), static_cast<int>(m), static_cast<int>(k), &one, y.data<float>(),
      static_cast<int>(y.dim(y.rank() - 1)), batch_y == 1 ? 0 : k * n, x.data<float>(),
      static_cast<int>(x.dim(x.rank() - 1)), batch_x == 1 ? 0 : m * k, &zero,
      out.mutable_data<float>(), static_cast<int>(n), m * n, static_cast<int>(batch));
  return result == CUBLAS_STATUS_SUCCESS
             ? Status::Ok()
             : Internal("cuBLAS refuses the product: ", cublasGetStatusString(result));
}

struct Entry {
  const char* op;
  CudaKernelFn fn;
};
constexpr Entry kKernels[] = {
    {"relu", Unary<ReluFn>},          {"sigmoid", Unary<SigmoidFn>},
    {"tanh", Unary<TanhFn>},          {"exp", Unary<ExpFn>},
    {"sqrt", Unary<SqrtFn>},          {"scale", Scale},
    {"elementwise_add", Binary<AddFn>}, {"elementwise_sub", Binary<SubFn>},
    {"elementwise_mul", Binary<MulFn>}, {"elementwise_div", Binary<DivFn>},
    {"elementwise_max", Binary<MaxFn>}, {"matmul_v2", MatMul},
};

}  // namespace

CudaKernelFn FindCudaKernel(const std::string& op) {
  for (const Entry& e : kKernels)
    if (op == e.op) return e.fn;
  return nullptr;
}

}  // namespace heddle
