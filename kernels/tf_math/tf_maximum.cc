// Extremes of two operands that pass NaN on, as elementwise_max and relu do not.
#include "kernels/elementwise/tile_loop.h"
#include "kernels/tf_math/slots.h"

namespace heddle {
namespace {

struct Maximum {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return (a > b) | (a != a) ? a : b;
  }
};
struct Minimum {
  static constexpr int64_t kGrain = kElementGrain;
  template <typename T>
  static T Apply(T a, T b) {
    return (a < b) | (a != a) ? a : b;
  }
};

struct ReluMap : UnaryOp {
  static constexpr Key kIns[] = {"features"};
  static constexpr Key kOuts[] = {"activations"};
  template <typename T>
  T operator()(T x) const {
    return x < T(0) ? T(0) : x;
  }
};
struct Relu6Map : UnaryOp {
  static constexpr Key kIns[] = {"features"};
  static constexpr Key kOuts[] = {"activations"};
  template <typename T>
  T operator()(T x) const {
    const T low = x < T(0) ? T(0) : x;
    return low > T(6) ? T(6) : low;
  }
};

template <typename F>
void DefineExtreme(OpDef& op, const char* doc) {
  DefineTfBinary<F, float, double, float16, bfloat16, uint8_t, int8_t, int16_t, int32_t, int64_t>(
      op, doc)
      .Attr("axis", -1)
      .Traits(kBroadcasts);
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(tf_maximum) { DefineExtreme<Maximum>(op, "the greater of x and y; NaN wins"); }
HEDDLE_OP(tf_minimum) { DefineExtreme<Minimum>(op, "the smaller of x and y; NaN wins"); }
HEDDLE_OP(tf_relu) {
  DefineMap<ReluMap, uint8_t, int8_t, int16_t, int32_t, int64_t>(op).Inplace("features",
                                                                             "activations");
  op.Doc("max(x, 0); NaN stays").Traits(kElementwise);
}
HEDDLE_OP(tf_relu6) {
  DefineMap<Relu6Map, uint8_t, int8_t, int16_t, int32_t, int64_t>(op).Inplace("features",
                                                                              "activations");
  op.Doc("min(max(x, 0), 6); NaN stays").Traits(kElementwise);
}

HEDDLE_TILE(tf_relu) { return MapTile<ReluMap>(); }
HEDDLE_TILE(tf_relu6) { return MapTile<Relu6Map>(); }
HEDDLE_TILE(tf_maximum) { return BinaryTile<Maximum>(); }
HEDDLE_TILE(tf_minimum) { return BinaryTile<Minimum>(); }

HEDDLE_EXAMPLES(tf_maximum, R"(
example NaN on either side
in x float32 [4] nan 1 nan 2
in y float32 [4] 0 nan nan 1
out z float32 [4] nan nan nan 2

example recorded case 1
in x float32 [4, 2, 2, 0]
in y float32 [1, 1, 2, 0]
out z float32 [4, 2, 2, 0]
)")

HEDDLE_EXAMPLES(tf_minimum, R"(
example recorded case 1
in x float32 [] 0.5083987
in y float32 [] 2.307828
out z float32 [] 0.5083987
)")

HEDDLE_EXAMPLES(tf_relu, R"(
example recorded case 1
in features float32 [] -36.087826
out activations float32 [] 0
)")

HEDDLE_EXAMPLES(tf_relu6, R"(
example recorded case 1
in features int32 [1, 2, 4] 1 6 -8 5 1 -7 -1 -3
out activations int32 [1, 2, 4] 1 6 0 5 1 0 0 0
)")
