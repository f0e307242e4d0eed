#include "kernels/gemm/spread_residual.h"

#include <utility>

#include "core/error.h"

namespace heddle {

Result<Shape> ResidualSum(const Shape& product, const Shape& residual) {
  bool fits = product.rank() == residual.rank() && product.rank() > 0 &&
              (product[0] == residual[0] || product[0] == 1 || residual[0] == 1);
  for (int i = 1; fits && i < product.rank(); ++i) fits = product[i] == residual[i];
  if (!fits)
    return InvalidArgument("ResidualData has shape ", residual.ToString(), ", the product's is ",
                           product.ToString());
  return product[0] == 1 ? residual : product;
}

Epilogue TakeFromResidual(Epilogue* epilogue) {
  epilogue->residual = false;
  return TakeActivation(epilogue);
}

void SpreadResidual(const Epilogue& late, const Shape& product_shape, const float* product,
                    const Shape& residual_shape, const float* residual, float* out) {
  const int64_t batch = product_shape[0] == 1 ? residual_shape[0] : product_shape[0];
  const int64_t item = product_shape.Product(1, product_shape.rank());
  for (int64_t b = 0; b < batch; ++b) {
    const float* p = product + (product_shape[0] == 1 ? 0 : b * item);
    const float* r = residual + (residual_shape[0] == 1 ? 0 : b * item);
    float* to = out + b * item;
    for (int64_t k = 0; k < item; ++k) to[k] = p[k] + r[k];
  }
  ApplyEpilogue(late, 1, batch * item, batch * item, nullptr, false, out);
}

}  // namespace heddle
