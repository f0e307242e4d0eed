#include "kernels/resize/interp.h"

HEDDLE_OP(bicubic_interp) {
  op.Doc("resizes images, cubic");
  DefineInterp<InterpKind::kCubic, true, 2>(op);
}
HEDDLE_OP(bicubic_interp_grad) { DefineInterpGrad<InterpKind::kCubic, true, 2>(op); }
HEDDLE_OP(bicubic_interp_v2) {
  op.Doc("resizes images, cubic");
  DefineInterp<InterpKind::kCubic, false, 2>(op);
}
HEDDLE_OP(bicubic_interp_v2_grad) { DefineInterpGrad<InterpKind::kCubic, false, 2>(op); }

HEDDLE_EXAMPLES(bicubic_interp, R"(
example float64 1x1x4x3, no align_corners, out_h 3, out_w 4
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in OutSize int32 [2] 3 4
in X float64 [1, 1, 4, 3] 0.922 0.077 0.538 0.846 0.769 0.231 0.384 0.461 0.692 0.308 0.154 0.615
out Out float64 [1, 1, 3, 4] 0.9720457270307122 0.4139752353476576 0.21028893710702834
  0.5077763348830682 0.608277573558191 0.7044293644594007 0.622112408697115 0.42064962143127776
  0.3193687651354448 0.18680977478848226 0.3387680745617021 0.6657326986787654

example float64 4x1x3x2, out_h 1, out_w 1
attr interp_method STRING "bicubic"
attr out_h INT 1
attr out_w INT 1
in X float64 [4, 1, 3, 2] 0.241 0.914 0.162 0.281 0.953 0.835 0.122 0.716 0.756 0.676 0.597 0.439
  0.637 0.201 0.478 0.518 0.399 0.36 0.558 0.874 0.083 0.043 0.32 0.795
out Out float64 [4, 1, 1, 1] 0.241 0.122 0.637 0.558

example float32 1x1x4x3, no align_corners, out_h 3, out_w 4
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in OutSize int32 [2] 3 4
in X float32 [1, 1, 4, 3] 0.922 0.077 0.538 0.846 0.769 0.231 0.384 0.461 0.692 0.308 0.154 0.615
out Out float32 [1, 1, 3, 4] 0.9720459 0.41397527 0.21028893 0.50777644 0.6082776 0.7044294
  0.6221124 0.4206496 0.31936908 0.1868101 0.33876827 0.6657327
)")

HEDDLE_EXAMPLES(bicubic_interp_grad, R"(
example float64 1x1x3x4, no align_corners, out_h 3, out_w 4
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in Out@GRAD float64 [1, 1, 3, 4] 0.7 -0 -0.6 0.5 0.3 -0.9 -0.9 -0.2 1 -0.8 -0.8 0.1
in OutSize int32 [2] 3 4
in X float64 [1, 1, 4, 3] 0.923 0.077 0.538 0.846 0.769 0.231 0.385 0.461 0.692 0.308 0.154 0.615
out X@GRAD float64 [1, 1, 4, 3] 0.6900189290379514 -0.3317838930303188 0.3150288224580496
  0.17323130758531352 -0.8693175568549666 -0.20808028005797363 0.18307446086224435
  -1.001631744821372 -0.28167427583623633 0.7373178806394906 -0.9675793052933424
  -0.038604344688839776

example float64 4x1x3x2, out_h 1, out_w 1
attr interp_method STRING "bicubic"
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float64 [4, 1, 1, 1] -0.7 -0.7 1 0.8
in X float64 [4, 1, 3, 2] 0.718 0.678 0.638 0.281 0.48 0.758 0.599 0.241 0.321 0.122 0.519 0.042
  0.162 0.36 0.201 0.082 0.797 0.917 0.837 0.4 0.956 0.559 0.44 0.877
out X@GRAD float64 [4, 1, 3, 2] -0.7 0*5 -0.7 0*5 1 0*5 0.8 0*5

example float32 1x1x3x4, no align_corners, out_h 3, out_w 4
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in Out@GRAD float32 [1, 1, 3, 4] 0.7 -0 -0.6 0.5 0.3 -0.9 -0.9 -0.2 1 -0.8 -0.8 0.1
in OutSize int32 [2] 3 4
in X float32 [1, 1, 4, 3] 0.923 0.077 0.538 0.846 0.769 0.231 0.385 0.461 0.692 0.308 0.154 0.615
out X@GRAD float32 [1, 1, 4, 3] 0.69001913 -0.33178395 0.31502888 0.17323166 -0.8693181 -0.20808035
  0.1830744 -1.0016316 -0.28167424 0.7373179 -0.9675794 -0.038604334
)")

HEDDLE_EXAMPLES(bicubic_interp_v2, R"(
example float32 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X float32 [1, 1, 4, 4] 0.33 0.12 -0.42 -0.21 0.66 0.77 -0.86 -0.53 -0.1 0.23 -0.75 -0.64 0.44
  0.01 -0.32 0.55
out Out float32 [1, 1, 3, 2] 0.37295762 -0.43588582 0.5585742 -0.94419914 0.2293779 -0.039875463

example float64 1x1x4x3, no align_corners, out_h 3, out_w 4
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_h INT 3
attr out_w INT 4
in OutSize int32 [2] 3 4
in X float64 [1, 1, 4, 3] 0.231 0.308 0.692 0.769 0.922 0.538 0.461 0.077 0.154 0.384 0.615 0.846
out Out float64 [1, 1, 3, 4] 0.30658126193485064 0.3465545881680476 0.5172447473074768
  0.6956413858300193 0.6845735094383136 0.5928148834785566 0.40192234832897733 0.24946539453350974
  0.38012765247123426 0.4512117629375954 0.6159350239392308 0.755587214152013

example float32 2x3x2x1, no align_corners, data_layout NHWC, out_d -1, out_h 4, out_w 3
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr data_layout STRING "NHWC"
attr out_d INT -1
attr out_h INT 4
attr out_w INT 3
in X float32 [2, 3, 2, 1] 0 -0.22 -0.11 -0.43 0.33 0.43 -0.54 0.54 0.22 -0.32 -0.65 0.11
out Out float32 [2, 4, 3, 1] 0.02636967 -0.09851563 -0.22340089 -0.090046056 -0.2837549 -0.47746375
  0.052063398 -0.053349607 -0.15876257 0.35028476 0.4266553 0.503026 -0.6983947 0.003588859
  0.70557207 0.05031219 -0.007812502 -0.06593716 0.011650074 -0.13477048 -0.2811911 -0.78651863
  -0.285791 0.21493617

example float64 4x1x3x2, out_h 1, out_w 1
attr interp_method STRING "bicubic"
attr out_h INT 1
attr out_w INT 1
in OutSize int32 [2] 2 2
in X float64 [4, 1, 3, 2] 0.835 0.241 0.597 0.518 0.439 0.478 0.756 0.281 0.953 0.043 0.914 0.558
  0.874 0.637 0.083 0.201 0.399 0.162 0.676 0.122 0.36 0.795 0.716 0.32
out Out float64 [4, 1, 2, 2] 0.835 0.241 0.439 0.478 0.756 0.281 0.914 0.558 0.874 0.637 0.399 0.162
  0.676 0.122 0.716 0.32

example float16 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X float16 [1, 1, 4, 4] 0.33 0.12 -0.42 -0.21 0.66 0.77 -0.86 -0.53 -0.1 0.23 -0.75 -0.64 0.44
  0.01 -0.32 0.55
out Out float16 [1, 1, 3, 2] 0.3728 -0.4358 0.5586 -0.944 0.2292 -0.03998

example bfloat16 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X bfloat16 [1, 1, 4, 4] 0.33 0.12 -0.42 -0.21 0.66 0.77 -0.86 -0.53 -0.1 0.23 -0.75 -0.64 0.44
  0.01 -0.32 0.55
out Out bfloat16 [1, 1, 3, 2] 0.371 -0.436 0.555 -0.94 0.229 -0.0396
)")

HEDDLE_EXAMPLES(bicubic_interp_v2_grad, R"(
example float64 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in Out@GRAD float64 [1, 1, 3, 2] 0.2 -0.7 -0.7 -0.9 0.2 0.2
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X float64 [1, 1, 4, 4] 0.01 -0.42 -0.53 -0.75 0.33 -0.21 0.66 -0.86 0.77 0.12 0.44 -0.32 0.55
  -0.1 -0.64 0.23
# Paddle computes with constants of single precision.
close 1e-06 1e-06
out X@GRAD float64 [1, 1, 4, 4] 0.11846064624411085 0.18896845713757934 -0.3280888227478565
  -0.25758101185438803 -0.19346064289135048 -0.16875360972049763 -0.3499385196400852
  -0.32523148646923233 -0.1934606667332053 -0.18379269829752667 -0.25469113349250333
  -0.24502316505682467 0.11846066338044499 0.11670285088044498 0.129593475880445 0.127835663380445

example float64 4x1x3x2, out_h 1, out_w 1
attr interp_method STRING "bicubic"
attr out_h INT 1
attr out_w INT 1
in Out@GRAD float64 [4, 1, 2, 2] 0.3 -0.3 -0.6 0.7 0.6 -0.7 0 0.9 -0.9 0.9 -0.3 -0.7 -0.2 -0.7 -0.9
  0.2
in OutSize int32 [2] 2 2
in X float64 [4, 1, 3, 2] 0.599 0.917 0.241 0.4 0.48 0.956 0.877 0.559 0.321 0.718 0.638 0.042 0.44
  0.082 0.162 0.36 0.519 0.678 0.122 0.837 0.797 0.201 0.758 0.281
out X@GRAD float64 [4, 1, 3, 2] 0.3 -0.3 0 0 -0.6 0.7 0.6 -0.7 0 0 0 0.9 -0.9 0.9 0 0 -0.3 -0.7 -0.2
  -0.7 0 0 -0.9 0.2

example float64 2x4x3x1, no align_corners, data_layout NHWC, out_d -1, out_h 4, out_w 3
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr data_layout STRING "NHWC"
attr out_d INT -1
attr out_h INT 4
attr out_w INT 3
in Out@GRAD float64 [2, 4, 3, 1] 0.5 0.1 -0.4 0.6 -0 -0.8 -0.2 -0.2 -0.3 -0.8 -0.3 -0.2 0.9 -0.4 0.7
  1 -0.2 0.4 0.9 -0.1 0.4 -0.4 1 0.4
in X float64 [2, 3, 2, 1] -0.43 0.33 0.22 -0.11 -0.54 -0.22 0 0.54 -0.65 0.43 0.11 -0.32
# Paddle computes with constants of single precision.
close 1e-06 1e-06
out X@GRAD float64 [2, 3, 2, 1] 0.9652191307960438 -0.7460296776710446 0.3492879415857052
  -0.9448934103357054 -1.2582570304722456 -0.36532695390275394 1.0137839174014367 0.5729348325985624
  1.329529978148379 0.3113879906016198 0.2500888275903827 1.1222744536596176

example float32 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in Out@GRAD float32 [1, 1, 3, 2] 0.2 -0.7 -0.7 -0.9 0.2 0.2
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X float32 [1, 1, 4, 4] 0.01 -0.42 -0.53 -0.75 0.33 -0.21 0.66 -0.86 0.77 0.12 0.44 -0.32 0.55
  -0.1 -0.64 0.23
out X@GRAD float32 [1, 1, 4, 4] 0.11846067 0.18896848 -0.3280889 -0.25758108 -0.19346058 -0.16875355
  -0.34993848 -0.32523146 -0.19346066 -0.1837927 -0.2546911 -0.24502313 0.118460655 0.11670285
  0.12959348 0.12783566

example float16 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in Out@GRAD float16 [1, 1, 3, 2] 0.2 -0.7 -0.7 -0.9 0.2 0.2
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X float16 [1, 1, 4, 4] 0.01 -0.42 -0.53 -0.75 0.33 -0.21 0.66 -0.86 0.77 0.12 0.44 -0.32 0.55
  -0.1 -0.64 0.23
out X@GRAD float16 [1, 1, 4, 4] 0.11835 0.1887 -0.3276 -0.257 -0.1934 -0.1686 -0.3494 -0.3245
  -0.1934 -0.1836 -0.2542 -0.2445 0.11835 0.11646 0.1294 0.1276

example bfloat16 1x1x4x4, no align_corners, out_d -1, out_h -1, out_w -1
attr interp_method STRING "bicubic"
attr align_corners BOOLEAN false
attr out_d INT -1
attr out_h INT -1
attr out_w INT -1
in Out@GRAD bfloat16 [1, 1, 3, 2] 0.2 -0.7 -0.7 -0.9 0.2 0.2
in SizeTensor int32 [1] 3
in SizeTensor int32 [1] 2
in X bfloat16 [1, 1, 4, 4] 0.01 -0.42 -0.53 -0.75 0.33 -0.21 0.66 -0.86 0.77 0.12 0.44 -0.32 0.55
  -0.1 -0.64 0.23
out X@GRAD bfloat16 [1, 1, 4, 4] 0.1177 0.186 -0.324 -0.252 -0.192 -0.167 -0.346 -0.32 -0.192 -0.183
  -0.252 -0.241 0.117 0.115 0.128 0.126
)")
