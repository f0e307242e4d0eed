#include "device/cuda/grid/map.h"

namespace heddle::HEDDLE_GRID {

Status MapHalves(Queue& queue, const Tensor& x, const Tensor* dy, Tensor& out, Element op,
                 const ElementArgs& args) {
  return VisitReal(x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Each(queue, out.numel(),
                MapHalfBody<T>{ReadOf<T>(x), ReadOr<T>(dy), WriteOf<T>(out), op, args});
  });
}

}  // namespace heddle::HEDDLE_GRID
