#include "kernels/base/check.h"
#include "kernels/onnx_nn/recurrent.h"

namespace heddle {
namespace {

template <typename T>
struct OnnxLstm {
  static Status Run(KernelContext& ctx) {
    HEDDLE_RETURN_IF_ERROR(
        CheckDType(kDTypeOf<T>, {&ctx.In("W"), &ctx.In("R"), ctx.InOpt("B"), ctx.InOpt("initial_h"),
                                 ctx.InOpt("initial_c"), ctx.InOpt("P")}));
    HEDDLE_ASSIGN_OR_RETURN(const RecurrentConfig config,
                            RecurrentConfigOf(ctx, RecurrentKind::kLstm, false));
    const RecurrentWeights<T> weights{ctx.In("W").data<T>(), ctx.In("R").data<T>()};
    return RunRecurrent<T>(ctx, config, weights);
  }
};

}  // namespace
}  // namespace heddle

HEDDLE_OP(onnx_lstm) {
  op.Doc("LSTM of ONNX: gates i, o, f, c; peepholes, coupled gates, any activations");
  DeclareRecurrent(op, RecurrentKind::kLstm);
  op.InferShape([](ShapeContext& ctx) { return RecurrentShape(ctx, RecurrentKind::kLstm, false); });
  op.Kernels<OnnxLstm, float, double>().Kernel({DType::kF16, DType::kBF16}, RunInFloat);
}

HEDDLE_EXAMPLES(onnx_lstm, R"(
example forward, no bias
attr hidden_size INT 2
in X float32 [2, 2, 3] -0.32 -0.63 0.27 -0.77 0.06 -0.24 -0.8 0.01 -0.83 -0.12 -0.77 -0.74
in W float32 [1, 8, 3] -0.14 0.59 -0.68 -0.5 0.23 0.81 0.14 -0.19 0.86 -0.82 0.65 -0.38 -0.64 -0.69
  -0.34 0.57 -0.57 0.15 0.25 -0.23 0.09 -0.79 -0.79 -0.53
in R float32 [1, 8, 2] 0.32 -0.13 -0.33 0.15 -0.08 -0.36 0.53 0.36 -0.46 0.13 0.05 0.68 0.41 -0.38
  0.86 -0.69
out Y_h float32 [1, 2, 2] -0.052566275 0.3082534 -0.037215263 0.19949143

example both directions, lengths, states
attr hidden_size INT 2
attr direction STRING "bidirectional"
in X float32 [3, 2, 2] -0.15 0.46 -0.63 -0.02 -0.83 0.3 0.48 0.13 0.68 -0.34 0.35 0.17
in W float32 [2, 8, 2] 0.14 -0.08 0.61 0.8 -0.05 0.3 -0.79 0.36 0.26 0.89 0.58 -0.39 -0.21 0.3 -0.86
  -0.07 -0.6 -0.69 -0.79 0.48 -0.67 -0.45 -0.2 0.67 -0.75 -0.09 0.09 0.69 0.57 0.66 -0.4 -0.15
in R float32 [2, 8, 2] -0.25 0.69 0.82 -0.63 -0.58 -0.48 -0.48 -0.03 0.16 -0.43 -0.89 -0.15 -0.24
  0.12 0.82 0.34 0.03 0.21 0.32 -0.8 0.72 0.5 0.67 0.54 -0.19 -0.18 -0.71 0.24 -0.79 -0.78 -0.52
  -0.61
in B float32 [2, 16] -0.29 -0.81 -0.9 -0.63 -0.72 -0.25 -0.85 0.67 0.21 -0.63 -0.45 -0.27 -0.24
  -0.68 0.63 0.89 -0.06 -0.03 -0.75 -0.72 -0.28 -0.42 0.59 -0.61 -0.86 0.81 0.05 -0.64 0.08 -0.85
  0.05 0.86
in sequence_lens int32 [2] 3 2
in initial_h float32 [2, 2, 2] 0.65 0.35 -0.43 -0.24 -0.6 0.49 0.06 0.5
in initial_c float32 [2, 2, 2] -0.31 -0.5 0.56 0.87 0.63 0.55 0.57 0.43
in P float32 [2, 6] -0.49 0.03 -0.26 -0.85 -0.85 -0.4 -0.43 0.35 0.82 -0.09 0.79 0.88
out Y float32 [3, 2, 2, 2] -0.032381132 0.05066905 0.023931451 0.11580852 0.12627742 0.057872955
  0.13875571 0.07267271 -0.00908673 0.07646394 -0.021575851 0.053216055 0.18983488 0.112374574
  0.12751594 -0.0043569445 -0.043579157 0.033039104 0 0 0.12760685 0.030663002 0 0
out Y_h float32 [2, 2, 2] -0.043579157 0.033039104 -0.021575851 0.053216055 0.12627742 0.057872955
  0.13875571 0.07267271
out Y_c float32 [2, 2, 2] -0.23477377 0.22709905 -0.107452355 0.30135646 0.31637785 0.19595751
  0.27786842 0.32316726

example reverse, lengths, clip
attr hidden_size INT 2
attr direction STRING "reverse"
attr clip FLOAT 0.3
in X float32 [3, 2, 1] 0.82 -0.24 -0.5 -0.49 -0.55 -0.53
in W float32 [1, 8, 1] 0.22 0.72 0.61 -0.04 0.28 0.54 -0.75 0.29
in R float32 [1, 8, 2] 0.74 0.51 0.45 -0.04 -0.58 0.52 -0.3 0.54 0.85 -0.19 -0.18 0.8 0.4 -0.59
  -0.67 -0.63
in B float32 [1, 16] 0.73 0.55 -0.64 0.59 0.86 0.28 -0.27 0.09 -0.66 -0.87 0.85 0.27 0.05 0.78 -0.12
  0.67
in sequence_lens int32 [2] 1 3
out Y float32 [3, 1, 2, 2] -0.09325985 0.09406065 -0.083575405 0.13315655 0 0 -0.014428854
  0.110719554 0 0 0.001727638 0.0708512
out Y_h float32 [1, 2, 2] -0.09325985 0.09406065 -0.083575405 0.13315655
out Y_c float32 [1, 2, 2] -0.16379778 0.16522992 -0.15830544 0.23609227

example other activations
attr hidden_size INT 2
attr activations STRINGS ["HardSigmoid", "LeakyRelu", "Softsign"]
attr activation_alpha FLOATS [0.3, 0.1]
attr activation_beta FLOATS [0.4]
in X float32 [2, 1, 2] 0.59 -0.52 -0.45 -0.37
in W float32 [1, 8, 2] -0.47 0.16 -0.43 -0.15 -0.66 0.74 -0.26 -0.08 0.15 0.73 -0.14 0.75 0.0 0.06
  0.04 -0.87
in R float32 [1, 8, 2] -0.11 -0.57 -0.89 0.54 -0.59 -0.05 0.41 0.1 -0.31 0.03 0.1 0.51 -0.71 0.11
  -0.45 -0.4
in B float32 [1, 16] 0.49 0.01 0.11 0.47 0.74 -0.1 0.2 0.01 0.02 0.35 -0.09 0.06 -0.04 0.79 0.36
  0.68
out Y float32 [2, 1, 1, 2] 0.033086795 0.18221687 0.12000493 0.2814522
out Y_h float32 [1, 1, 2] 0.12000493 0.2814522
out Y_c float32 [1, 1, 2] 0.4220095 0.85014445

example coupled gates
attr hidden_size INT 2
attr input_forget INT 1
in X float32 [2, 1, 2] 0.8 -0.43 0.11 0.8
in W float32 [1, 8, 2] 0.61 -0.65 -0.68 -0.1 -0.77 -0.47 -0.77 0.31 0.51 0.71 -0.62 0.39 0.29 -0.64
  0.69 0.84
in R float32 [1, 8, 2] -0.5 0.81 -0.18 -0.02 0.88 0.6 -0.61 -0.12 0.03 -0.29 -0.55 -0.33 0.4 -0.86
  0.1 -0.11
in B float32 [1, 16] -0.87 -0.3 0.22 0.02 -0.78 0.87 0.52 0.85 -0.71 -0.42 -0.83 0.5 -0.41 -0.67
  -0.14 0.74
out Y float32 [2, 1, 1, 2] 0.056772042 0.093865916 0.047259405 0.26989675
out Y_h float32 [1, 1, 2] 0.047259405 0.26989675
out Y_c float32 [1, 1, 2] 0.17293718 0.4387178

example batch first
# oracle reference
attr hidden_size INT 2
attr layout INT 1
in X float32 [2, 2, 2] 0.57 -0.43 -0.63 0.75 0.13 0.36 -0.74 -0.8
in W float32 [1, 8, 2] 0.34 -0.13 -0.77 0.79 0.24 0.54 -0.75 0.64 -0.78 0.65 -0.08 -0.29 0.1 0.77
  -0.42 -0.67
in R float32 [1, 8, 2] 0.05 -0.47 -0.7 -0.61 -0.81 -0.54 -0.34 -0.35 0.47 -0.38 0.0 -0.58 -0.28
  -0.87 -0.45 -0.87
in B float32 [1, 16] 0.42 0.09 -0.56 -0.05 0.78 -0.71 0.57 -0.12 -0.01 0.6 -0.19 0.01 0.34 0.87
  -0.28 0.6
out Y float32 [2, 2, 1, 2] 0.0031481462 0.07332468 0.1186844 0.18094568 0.11303724 0.06687931
  -0.0022566807 0.2610133
out Y_h float32 [2, 1, 2] 0.1186844 0.18094568 -0.0022566807 0.2610133
out Y_c float32 [2, 1, 2] 0.333889 0.2613602 -0.012243152 0.6011192
)")
