#include "kernels/onnx_nn/recurrent_packed.h"

HEDDLE_OP(onnx_rnn) { DefineRecurrent<RecurrentKind::kRnn>(op, "plain recurrent network of ONNX"); }

HEDDLE_EXAMPLES(onnx_rnn, R"(
example forward, no bias
attr hidden_size INT 2
in X float32 [2, 2, 3] -0.32 -0.63 0.27 -0.77 0.06 -0.24 -0.8 0.01 -0.83 -0.12 -0.77 -0.74
in W float32 [1, 2, 3] -0.14 0.59 -0.68 -0.5 0.23 0.81
in R float32 [1, 2, 2] 0.14 -0.19 0.86 -0.82
out Y_h float32 [1, 2, 2] 0.5174297 -0.6976899 0.0688889 -0.5554687

example both directions, lengths, states
attr hidden_size INT 2
attr direction STRING "bidirectional"
in X float32 [3, 2, 2] 0.65 -0.38 -0.64 -0.69 -0.34 0.57 -0.57 0.15 0.25 -0.23 0.09 -0.79
in W float32 [2, 2, 2] -0.79 -0.53 0.32 -0.13 -0.33 0.15 -0.08 -0.36
in R float32 [2, 2, 2] 0.53 0.36 -0.46 0.13 0.05 0.68 0.41 -0.38
in B float32 [2, 4] 0.86 -0.69 -0.15 0.46 -0.63 -0.02 -0.83 0.3
in sequence_lens int32 [2] 3 2
in initial_h float32 [2, 2, 2] 0.48 0.13 0.68 -0.34 0.35 0.17 0.14 -0.08
out Y float32 [3, 2, 2, 2] 0.60379624 -0.17468977 0.9487686 -0.60569906 -0.96661633 0.19360578
  -0.8213521 0.095360994 0.73227906 -0.61277694 0.8776845 -0.73845565 -0.7763584 -0.39365184
  -0.86089706 0.34468555 0.6651021 -0.49041712 0 0 -0.8944801 0.39836168 0 0
out Y_h float32 [2, 2, 2] 0.6651021 -0.49041712 0.8776845 -0.73845565 -0.96661633 0.19360578
  -0.8213521 0.095360994

example reverse, lengths, clip
attr hidden_size INT 2
attr direction STRING "reverse"
attr clip FLOAT 0.3
in X float32 [3, 2, 1] 0.61 0.8 -0.05 0.3 -0.79 0.36
in W float32 [1, 2, 1] 0.26 0.89
in R float32 [1, 2, 2] 0.58 -0.39 -0.21 0.3
in B float32 [1, 4] -0.86 -0.07 -0.6 -0.69
in sequence_lens int32 [2] 1 3
out Y float32 [3, 1, 2, 2] -0.29131263 -0.21375227 -0.29131263 -0.074082136 0 0 -0.29131263
  -0.29131263 0 0 -0.29131263 -0.29131263
out Y_h float32 [1, 2, 2] -0.29131263 -0.21375227 -0.29131263 -0.074082136

example other activations
attr hidden_size INT 2
attr activations STRINGS ["Elu"]
attr activation_alpha FLOATS [0.7]
in X float32 [2, 1, 2] -0.79 0.48 -0.67 -0.45
in W float32 [1, 2, 2] -0.2 0.67 -0.75 -0.09
in R float32 [1, 2, 2] 0.09 0.69 0.57 0.66
in B float32 [1, 4] -0.4 -0.15 -0.25 0.69
out Y float32 [2, 1, 1, 2] -0.10967077 1.0892999 -0.051068634 1.7394257
out Y_h float32 [1, 1, 2] -0.051068634 1.7394257

example batch first
# oracle reference
attr hidden_size INT 2
attr layout INT 1
in X float32 [2, 2, 2] 0.82 -0.63 -0.58 -0.48 -0.48 -0.03 0.16 -0.43
in W float32 [1, 2, 2] -0.89 -0.15 -0.24 0.12
in R float32 [1, 2, 2] 0.82 0.34 0.03 0.21
in B float32 [1, 4] 0.32 -0.8 0.72 0.5
out Y float32 [2, 2, 1, 2] 0.38396326 -0.51711965 0.9433049 -0.3054108 0.8999013 -0.18620215
  0.92701125 -0.381749
out Y_h float32 [2, 1, 2] 0.9433049 -0.3054108 0.92701125 -0.381749

example constant weights, forward, no bias
attr hidden_size INT 2
in X float32 [2, 2, 3] -0.32 -0.63 0.27 -0.77 0.06 -0.24 -0.8 0.01 -0.83 -0.12 -0.77 -0.74
in W float32 [1, 2, 3] param -0.14 0.59 -0.68 -0.5 0.23 0.81
in R float32 [1, 2, 2] param 0.14 -0.19 0.86 -0.82
out Y_h float32 [1, 2, 2] 0.5174297 -0.6976899 0.0688889 -0.5554687

example constant weights, both directions, lengths, states
attr hidden_size INT 2
attr direction STRING "bidirectional"
in X float32 [3, 2, 2] 0.65 -0.38 -0.64 -0.69 -0.34 0.57 -0.57 0.15 0.25 -0.23 0.09 -0.79
in W float32 [2, 2, 2] param -0.79 -0.53 0.32 -0.13 -0.33 0.15 -0.08 -0.36
in R float32 [2, 2, 2] param 0.53 0.36 -0.46 0.13 0.05 0.68 0.41 -0.38
in B float32 [2, 4] param 0.86 -0.69 -0.15 0.46 -0.63 -0.02 -0.83 0.3
in sequence_lens int32 [2] 3 2
in initial_h float32 [2, 2, 2] 0.48 0.13 0.68 -0.34 0.35 0.17 0.14 -0.08
out Y float32 [3, 2, 2, 2] 0.60379624 -0.17468977 0.9487686 -0.60569906 -0.96661633 0.19360578
  -0.8213521 0.095360994 0.73227906 -0.61277694 0.8776845 -0.73845565 -0.7763584 -0.39365184
  -0.86089706 0.34468555 0.6651021 -0.49041712 0 0 -0.8944801 0.39836168 0 0
out Y_h float32 [2, 2, 2] 0.6651021 -0.49041712 0.8776845 -0.73845565 -0.96661633 0.19360578
  -0.8213521 0.095360994
)")
