#include "kernels/base/check.h"
#include "kernels/onnx_nn/recurrent.h"

namespace heddle {
namespace {

template <typename T>
struct OnnxGru {
  static Status Run(KernelContext& ctx) {
    HEDDLE_RETURN_IF_ERROR(CheckDType(
        kDTypeOf<T>, {&ctx.In("W"), &ctx.In("R"), ctx.InOpt("B"), ctx.InOpt("initial_h")}));
    HEDDLE_ASSIGN_OR_RETURN(const RecurrentConfig config,
                            RecurrentConfigOf(ctx, RecurrentKind::kGru, false));
    const RecurrentWeights<T> weights{ctx.In("W").data<T>(), ctx.In("R").data<T>()};
    return RunRecurrent<T>(ctx, config, weights);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_gru) {
  op.Doc("GRU of ONNX: gates z, r, h; the reset before or behind the recurrent product");
  DeclareRecurrent(op, RecurrentKind::kGru);
  op.InferShape([](ShapeContext& ctx) { return RecurrentShape(ctx, RecurrentKind::kGru, false); });
  op.Kernels<OnnxGru, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_EXAMPLES(onnx_gru, R"(
example forward, no bias
attr hidden_size INT 2
in X float32 [2, 2, 3] -0.32 -0.63 0.27 -0.77 0.06 -0.24 -0.8 0.01 -0.83 -0.12 -0.77 -0.74
in W float32 [1, 6, 3] -0.14 0.59 -0.68 -0.5 0.23 0.81 0.14 -0.19 0.86 -0.82 0.65 -0.38 -0.64 -0.69
  -0.34 0.57 -0.57 0.15
in R float32 [1, 6, 2] 0.25 -0.23 0.09 -0.79 -0.79 -0.53 0.32 -0.13 -0.33 0.15 -0.08 -0.36
out Y_h float32 [1, 2, 2] 0.42058656 -0.27803564 0.42136684 0.10020177

example both directions, lengths, states
attr hidden_size INT 2
attr direction STRING "bidirectional"
in X float32 [3, 2, 2] 0.53 0.36 -0.46 0.13 0.05 0.68 0.41 -0.38 0.86 -0.69 -0.15 0.46
in W float32 [2, 6, 2] -0.63 -0.02 -0.83 0.3 0.48 0.13 0.68 -0.34 0.35 0.17 0.14 -0.08 0.61 0.8
  -0.05 0.3 -0.79 0.36 0.26 0.89 0.58 -0.39 -0.21 0.3
in R float32 [2, 6, 2] -0.86 -0.07 -0.6 -0.69 -0.79 0.48 -0.67 -0.45 -0.2 0.67 -0.75 -0.09 0.09 0.69
  0.57 0.66 -0.4 -0.15 -0.25 0.69 0.82 -0.63 -0.58 -0.48
in B float32 [2, 12] -0.48 -0.03 0.16 -0.43 -0.89 -0.15 -0.24 0.12 0.82 0.34 0.03 0.21 0.32 -0.8
  0.72 0.5 0.67 0.54 -0.19 -0.18 -0.71 0.24 -0.79 -0.78
in sequence_lens int32 [2] 3 2
in initial_h float32 [2, 2, 2] -0.52 -0.61 -0.29 -0.81 -0.9 -0.63 -0.72 -0.25
out Y float32 [3, 2, 2, 2] -0.6153546 -0.21644484 -0.58646387 -0.59214896 -0.072502084 -0.1532942
  -0.3859801 0.0026206076 -0.6118146 -0.028110728 -0.686431 -0.15791525 -0.11593653 -0.023426026
  -0.28369457 -0.18044919 -0.5547849 0.32893294 0 0 -0.045909107 -0.2967453 0 0
out Y_h float32 [2, 2, 2] -0.5547849 0.32893294 -0.686431 -0.15791525 -0.072502084 -0.1532942
  -0.3859801 0.0026206076

example reverse, lengths, clip
attr hidden_size INT 2
attr direction STRING "reverse"
attr clip FLOAT 0.3
in X float32 [3, 2, 1] -0.85 0.67 0.21 -0.63 -0.45 -0.27
in W float32 [1, 6, 1] -0.24 -0.68 0.63 0.89 -0.06 -0.03
in R float32 [1, 6, 2] -0.75 -0.72 -0.28 -0.42 0.59 -0.61 -0.86 0.81 0.05 -0.64 0.08 -0.85
in B float32 [1, 12] 0.05 0.86 0.65 0.35 -0.43 -0.24 -0.6 0.49 0.06 0.5 -0.31 -0.5
in sequence_lens int32 [2] 1 3
out Y float32 [3, 1, 2, 2] -0.16734235 -0.12397026 -0.26735482 -0.23609227 0 0 -0.23501515
  -0.19518405 0 0 -0.16734235 -0.12397026
out Y_h float32 [1, 2, 2] -0.16734235 -0.12397026 -0.26735482 -0.23609227

example other activations
attr hidden_size INT 2
attr activations STRINGS ["HardSigmoid", "ScaledTanh"]
attr activation_alpha FLOATS [0.3, 1.1]
attr activation_beta FLOATS [0.4, 0.9]
in X float32 [2, 1, 2] 0.56 0.87 0.63 0.55
in W float32 [1, 6, 2] 0.57 0.43 -0.49 0.03 -0.26 -0.85 -0.85 -0.4 -0.43 0.35 0.82 -0.09
in R float32 [1, 6, 2] 0.79 0.88 0.82 -0.24 -0.5 -0.49 -0.55 -0.53 0.22 0.72 0.61 -0.04
in B float32 [1, 12] 0.28 0.54 -0.75 0.29 0.74 0.51 0.45 -0.04 -0.58 0.52 -0.3 0.54
out Y float32 [2, 1, 1, 2] 0.080812246 0.49533206 0.09991713 0.7546761
out Y_h float32 [1, 1, 2] 0.09991713 0.7546761

example linear before reset
attr hidden_size INT 2
attr linear_before_reset INT 1
in X float32 [2, 2, 2] 0.85 -0.19 -0.18 0.8 0.4 -0.59 -0.67 -0.63
in W float32 [1, 6, 2] 0.73 0.55 -0.64 0.59 0.86 0.28 -0.27 0.09 -0.66 -0.87 0.85 0.27
in R float32 [1, 6, 2] 0.05 0.78 -0.12 0.67 0.59 -0.52 -0.45 -0.37 -0.47 0.16 -0.43 -0.15
in B float32 [1, 12] -0.66 0.74 -0.26 -0.08 0.15 0.73 -0.14 0.75 0.0 0.06 0.04 -0.87
in initial_h float32 [1, 2, 2] -0.11 -0.57 -0.89 0.54
out Y float32 [2, 1, 2, 2] -0.19822198 -0.05100596 -0.5639498 0.5323842 0.24411574 0.108167544
  0.5231524 0.42174092
out Y_h float32 [1, 2, 2] 0.24411574 0.108167544 0.5231524 0.42174092

example batch first
# oracle reference
attr hidden_size INT 2
attr layout INT 1
in X float32 [2, 2, 2] -0.59 -0.05 0.41 0.1 -0.31 0.03 0.1 0.51
in W float32 [1, 6, 2] -0.71 0.11 -0.45 -0.4 0.49 0.01 0.11 0.47 0.74 -0.1 0.2 0.01
in R float32 [1, 6, 2] 0.02 0.35 -0.09 0.06 -0.04 0.79 0.36 0.68 0.8 -0.43 0.11 0.8
in B float32 [1, 12] 0.61 -0.65 -0.68 -0.1 -0.77 -0.47 -0.77 0.31 0.51 0.71 -0.62 0.39
out Y float32 [2, 2, 1, 2] -0.41469947 -0.1006356 -0.6799469 -0.08079949 -0.4478299 -0.07782942
  -0.7015159 -0.10325799
out Y_h float32 [2, 1, 2] -0.6799469 -0.08079949 -0.7015159 -0.10325799
)")
