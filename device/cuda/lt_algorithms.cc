#include "device/cuda/lt_algorithms.h"

#include <cstring>

#include "core/error.h"

namespace heddle {
namespace {

using card::LtActivation;
using card::LtChoice;
using card::LtProduct;

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(LtChoice::algorithm));

// Descriptions of a product, in memory of the caller: a run allocates nothing.
struct Description {
  cublasLtMatmulDescOpaque_t product;
  cublasLtMatrixLayoutOpaque_t a, b, c, d;
};

uint32_t EpilogueOf(const LtProduct& p) {
  const bool bias = p.bias != nullptr;
  switch (p.activation) {
    case LtActivation::kRelu:
      return bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case LtActivation::kGelu:
      return bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    default:
      return bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
  }
}

class Describer {
 public:
  Description& description() { return d_; }
  bool Run(const LtProduct& p, bool tf32) {
    const card::ColumnMajorGemm& g = p.gemm;
    const bool fast = tf32 && g.type == DType::kF32;
    Note(cublasLtMatmulDescInit(
        &d_.product, fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F));
    const int32_t turn_a = g.trans_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int32_t turn_b = g.trans_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const uint32_t epilogue = EpilogueOf(p);
    Set(CUBLASLT_MATMUL_DESC_TRANSA, turn_a);
    Set(CUBLASLT_MATMUL_DESC_TRANSB, turn_b);
    Set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    // One bias for the whole batch: its stride is 0 unless something else is said.
    if (p.bias != nullptr) Set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias);
    Matrix(&d_.a, g.type, g.trans_a ? g.k : g.m, g.trans_a ? g.m : g.k, g.lda, g.batch, g.a_step);
    Matrix(&d_.b, g.type, g.trans_b ? g.n : g.k, g.trans_b ? g.k : g.n, g.ldb, g.batch, g.b_step);
    Matrix(&d_.c, g.c_type, g.m, g.n, g.ldc, g.batch, g.c_step);
    Matrix(&d_.d, g.c_type, g.m, g.n, g.ldc, g.batch, g.c_step);
    return good_;
  }

 private:
  void Note(cublasStatus_t status) { good_ = good_ && status == CUBLAS_STATUS_SUCCESS; }
  template <typename T>
  void Set(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    Note(cublasLtMatmulDescSetAttribute(&d_.product, attribute, &value, sizeof value));
  }
  void Matrix(cublasLtMatrixLayoutOpaque_t* m, DType type, int64_t rows, int64_t cols, int64_t ld,
              int64_t batch, int64_t step) {
    Note(cublasLtMatrixLayoutInit(m, CudaTypeOf(type), static_cast<uint64_t>(rows),
                                  static_cast<uint64_t>(cols), ld));
    if (batch == 1) return;
    const auto count = static_cast<int32_t>(batch);
    Note(cublasLtMatrixLayoutSetAttribute(m, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count,
                                          sizeof count));
    Note(cublasLtMatrixLayoutSetAttribute(m, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step,
                                          sizeof step));
  }

  Description d_{};
  bool good_ = true;
};

}  // namespace

cudaDataType_t CudaTypeOf(DType dtype) {
  return dtype == DType::kF16 ? CUDA_R_16F : dtype == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

Result<std::unique_ptr<LtAlgorithms>> LtAlgorithms::Make(bool tf32, size_t space) {
  cublasLtHandle_t lt = nullptr;
  if (cublasLtCreate(&lt) != CUBLAS_STATUS_SUCCESS) return Internal("cuBLASLt gives no handle");
  return std::make_unique<LtAlgorithms>(lt, tf32, space);
}
LtAlgorithms::~LtAlgorithms() { (void)cublasLtDestroy(lt_); }

std::optional<LtChoice> LtAlgorithms::Choose(const LtProduct& p) {
  Describer describer;
  if (!describer.Run(p, tf32_)) return std::nullopt;
  cublasLtMatmulPreferenceOpaque_t wishes;
  bool good = cublasLtMatmulPreferenceInit(&wishes) == CUBLAS_STATUS_SUCCESS;
  const auto wish = [&](cublasLtMatmulPreferenceAttributes_t attribute, auto value) {
    good = good && cublasLtMatmulPreferenceSetAttribute(&wishes, attribute, &value, sizeof value) ==
                       CUBLAS_STATUS_SUCCESS;
  };
  wish(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, static_cast<uint64_t>(space_));
  // Parts of sums are added up in float32, and in the same order in every run.
  wish(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
       static_cast<uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const uint32_t alignment = AlignmentOf(p);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    wish(attribute, alignment);
  if (!good) return std::nullopt;
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  Description& d = describer.description();
  const auto status = cublasLtMatmulAlgoGetHeuristic(lt_, &d.product, &d.a, &d.b, &d.c, &d.d,
                                                     &wishes, 1, &best, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0 || best.state != CUBLAS_STATUS_SUCCESS)
    return std::nullopt;
  LtChoice choice;
  std::memcpy(choice.algorithm.data(), &best.algo, sizeof best.algo);
  choice.workspace = best.workspaceSize;
  return choice;
}

Status LtAlgorithms::Run(const LtProduct& p, const LtChoice& choice, void* work, size_t space,
                         cudaStream_t stream) const {
  Describer describer;
  if (!describer.Run(p, tf32_)) return Internal("cuBLASLt refuses the description of a product");
  cublasLtMatmulAlgo_t algorithm;
  std::memcpy(&algorithm, choice.algorithm.data(), sizeof algorithm);
  Description& d = describer.description();
  const auto status =
      cublasLtMatmul(lt_, &d.product, &p.gemm.alpha, p.gemm.a, &d.a, p.gemm.b, &d.b, &p.gemm.beta,
                     p.c, &d.c, p.gemm.c, &d.d, &algorithm, work, space, stream);
  if (status == CUBLAS_STATUS_SUCCESS) return Status::Ok();
  return Internal("cuBLASLt refuses the product: ", cublasGetStatusString(status));
}

}  // namespace heddle
