// Examples of onnx_resize.
#include "core/op_def.h"

HEDDLE_EXAMPLES(onnx_resize, R"(
example a size that float rounds up
attr nearest_mode STRING "floor"
in X float32 [10] 0 1 2 3 4 5 6 7 8 9
in scales float32 [1] 0.7
out Y float32 [7] 0 1 3 4 5 7 8

example bytes between others, whole results
attr mode STRING "linear"
attr coordinate_transformation_mode STRING "align_corners"
in X uint8 [2, 4] 50 75 0 255 100 25 200 1
in sizes int64 [2] 3 7
out Y uint8 [3, 7] 50 62 75 37 0 127 255 75 62 50 75 100 114 128 100 62 25 112 200 100 1

example integers, antialias
attr mode STRING "linear"
attr antialias INT 1
in X int32 [1, 1, 4, 4] 1 2 3 4 5 6 7 8 9 10 -11 12 13 14 15 17
in scales float32 [4] 1 1 0.5 0.6
out Y int32 [1, 1, 2, 2] 4 4 11 8

example half_pixel_symmetric, positions that float rounds up
attr coordinate_transformation_mode STRING "half_pixel_symmetric"
attr nearest_mode STRING "floor"
in X float32 [3] 0 1 2
in scales float32 [1] 2.4
out Y float32 [7] 0*4 1 1 2

example tf_crop_and_resize, a begin that is rounded before it is added
attr coordinate_transformation_mode STRING "tf_crop_and_resize"
attr nearest_mode STRING "ceil"
in X float32 [11] 0 1 2 3 4 5 6 7 8 9 10
in roi float32 [2] -0.2 0.4
in sizes int64 [1] 3
out Y float32 [3] 0 1 4

example near the middle of two
attr nearest_mode STRING "round_prefer_ceil"
attr coordinate_transformation_mode STRING "asymmetric"
in X float32 [13] 0 1 2 3 4 5 6 7 8 9 10 11 12
in sizes int64 [1] 8
out Y float32 [8] 0 2 3 5 7 8 10 11

example nearest up
in X float32 [1, 1, 2, 2] 1 2 3 4
in scales float32 [4] 1 1 2 3.0
out Y float32 [1, 1, 4, 6] 1 1 1 2 2 2 1 1 1 2 2 2 3 3 3 4 4 4 3 3 3 4 4 4

example nearest, asymmetric, floor
attr coordinate_transformation_mode STRING "asymmetric"
attr nearest_mode STRING "floor"
in X float32 [1, 1, 1, 4] 0 1 4 9
in scales float32 [4] 1 1 1 1.6
out Y float32 [1, 1, 1, 6] 0 0 1 1 4 9

example nearest, align_corners, ceil
attr coordinate_transformation_mode STRING "align_corners"
attr nearest_mode STRING "ceil"
in X float32 [1, 1, 1, 4] 0 1 4 9
in scales float32 [4] 1 1 1 1.5
out Y float32 [1, 1, 1, 6] 0 1 4 4 9 9

example nearest down, round_prefer_ceil
attr nearest_mode STRING "round_prefer_ceil"
in X float32 [1, 1, 3, 4] 1 5 3 4 0 6 7 8 9 2 11 -3
in sizes int64 [4] 1 1 2 3
out Y float32 [1, 1, 2, 3] 1 3 4 9 11 -3

example nearest, tf_half_pixel_for_nn, floor
attr coordinate_transformation_mode STRING "tf_half_pixel_for_nn"
attr nearest_mode STRING "floor"
in X float32 [1, 1, 3, 4] 0 1 2 3 4 5 6 7 8 9 10 11
in scales float32 [4] 1 1 2 1.5
out Y float32 [1, 1, 6, 6] 0 1 1 2 3 3 0 1 1 2 3 3 4 5 5 6 7 7 4 5 5 6 7 7 8 9 9 10 11 11 8 9 9 10
  11 11

example nearest, tf_half_pixel_for_nn, ceil
attr coordinate_transformation_mode STRING "tf_half_pixel_for_nn"
attr nearest_mode STRING "ceil"
in X float32 [1, 1, 3, 4] 0 1 2 3 4 5 6 7 8 9 10 11
in scales float32 [4] 1 1 2 1.5
out Y float32 [1, 1, 6, 6] 5 5 6 7 7 7 5 5 6 7 7 7 9 9 10 11 11 11 9 9 10 11 11 11 9 9 10 11 11 11 9
  9 10 11 11 11

example nearest down, ceil_when_shrinking
# given
attr coordinate_transformation_mode STRING "asymmetric"
attr nearest_mode STRING "ceil_when_shrinking"
in X float32 [1, 1, 1, 8] 0 1 2 3 4 5 6 7
in scales float32 [4] 1 1 1 0.6
out Y float32 [1, 1, 1, 4] 0 2 4 5

example nearest of integers
# oracle reference
attr coordinate_transformation_mode STRING "asymmetric"
attr nearest_mode STRING "floor"
in X int64 [1, 1, 2, 2] 1 2 3 4
in scales float32 [4] 1 1 2 2
out Y int64 [1, 1, 4, 4] 1 1 2 2 1 1 2 2 3 3 4 4 3 3 4 4

example linear up
attr mode STRING "linear"
in X float32 [1, 1, 2, 2] 1 2 3 4
in scales float32 [4] 1 1 2 2
out Y float32 [1, 1, 4, 4] 1 1.25 1.75 2 1.5 1.75 2.25 2.5 2.5 2.75 3.25 3.5 3 3.25 3.75 4

example linear, asymmetric, a broken scale
attr mode STRING "linear"
attr coordinate_transformation_mode STRING "asymmetric"
in X float32 [1, 1, 1, 4] 0 1 4 9
in scales float32 [4] 1 1 1 1.3
out Y float32 [1, 1, 1, 5] 0 0.7692308 2.6153846 5.5384617 9

example linear, align_corners
attr mode STRING "linear"
attr coordinate_transformation_mode STRING "align_corners"
in X float32 [1, 1, 3, 4] 1 5 3 4 0 6 7 8 9 2 11 -3
in sizes int64 [4] 1 1 5 3
out Y float32 [1, 1, 5, 3] 1 4 4 0.5 5.25 6 0 6.5 8 4.5 6.5 2.5 9 6.5 -3

example linear, align_corners, scale below 1
# oracle reference
attr mode STRING "linear"
attr coordinate_transformation_mode STRING "align_corners"
in X float32 [1, 1, 1, 4] 0 1 4 9
in scales float32 [4] 1 1 1 0.6
out Y float32 [1, 1, 1, 2] 0 4.714285

example linear, pytorch_half_pixel to one
attr mode STRING "linear"
attr coordinate_transformation_mode STRING "pytorch_half_pixel"
in X float32 [1, 1, 3, 4] 1 5 3 4 0 6 7 8 9 2 11 -3
in sizes int64 [4] 1 1 1 1
out Y float32 [1, 1, 1, 1] 1

example linear, half_pixel_symmetric
# oracle reference
attr mode STRING "linear"
attr coordinate_transformation_mode STRING "half_pixel_symmetric"
in X float32 [1, 1, 1, 4] 0 1 4 9
in scales float32 [4] 1 1 1 0.6
out Y float32 [1, 1, 1, 2] 0.6666667 5.6666665

example linear, antialias
# oracle reference
attr mode STRING "linear"
attr antialias INT 1
in X float32 [1, 1, 3, 4] 1 5 3 4 0 6 7 8 9 2 11 -3
in scales float32 [4] 1 1 0.6 0.5
out Y float32 [1, 1, 1, 2] 2.890625 5.109375

example linear of one axis, not_larger
# oracle reference
attr mode STRING "linear"
attr axes INTS [3, 2]
attr keep_aspect_ratio_policy STRING "not_larger"
in X float32 [1, 1, 3, 4] 1 5 3 4 0 6 7 8 9 2 11 -3
in sizes int64 [2] 7 4
out Y float32 [1, 1, 4, 5] 1 3.5 4.25 3.125 3.875 0.375 3.65625 5.578125 5.625 6.375 3.375 4.078125
  6 7.921875 4.453125 9 4.625 5.375 9.25 -1.25

example linear, tf_crop_and_resize
# oracle reference
attr mode STRING "linear"
attr coordinate_transformation_mode STRING "tf_crop_and_resize"
attr extrapolation_value FLOAT 10
in X float32 [1, 1, 3, 4] 1 5 3 4 0 6 7 8 9 2 11 -3
in roi float32 [8] 0 0 0.4 0.6 1 1 1.2 1.7
in sizes int64 [4] 1 1 3 3
out Y float32 [1, 1, 3, 3] 6.12 10 10 8.240001 10*5

example cubic up
attr mode STRING "cubic"
in X float32 [1, 1, 1, 4] 0 1 4 9
in scales float32 [4] 1 1 1 2
out Y float32 [1, 1, 1, 8] -0.10546875 0.12109375 0.45703125 1.609375 2.828125 5.4492188 7.9726562
  9.527344

example cubic up, exclude_outside
attr mode STRING "cubic"
attr exclude_outside INT 1
attr cubic_coeff_a FLOAT -0.5
in X float32 [1, 1, 3, 4] 1 5 3 4 0 6 7 8 9 2 11 -3
in scales float32 [4] 1 1 1.5 2
out Y float32 [1, 1, 4, 8] 0.72445786 1.8480599 4.2288074 4.7364316 3.2035372 2.8072531 3.4989448
  3.8250782 -0.5034602 1.1060541 4.515492 5.847886 4.863511 4.9910192 6.148991 6.6955013 0.726813
  1.9067959 4.405087 6.3185244 7.471448 7.691004 7.024086 6.7096515 8.450187 6.7435365 3.1253614
  4.0174546 9.674218 8.425261 0.80629003 -2.789291

example cubic down, antialias
# oracle reference
attr mode STRING "cubic"
attr antialias INT 1
in X float32 [1, 1, 3, 4] 1 5 3 4 0 6 7 8 9 2 11 -3
in scales float32 [4] 1 1 0.7 0.5
out Y float32 [1, 1, 2, 2] 2.5594072 5.4304256 5.4443846 5.1658792

example three axes
# oracle reference
attr mode STRING "linear"
attr axes INTS [2, 0, 1]
in X float64 [2, 2, 2] 1 2 3 4 5 6 7 8
in scales float32 [3] 2 1.5 0.5
out Y float64 [3, 1, 4] 2 2.25 2.75 3 4 4.25 4.75 5 6 6.25 6.75 7
)")
