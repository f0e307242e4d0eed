// Examples of the operators in sparse_coo.cc.
#include "core/op_def.h"

HEDDLE_EXAMPLES(sparse_sparse_coo_tensor, R"(
example made dense
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
op sparse_to_dense x=s -> out=d
out d float32 [3, 3] 1 0 -2 0 3 0 0 0 -0.5
)")

HEDDLE_EXAMPLES(sparse_to_dense, R"(
example three by three
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
op sparse_to_dense x=s -> out=d
out d float32 [3, 3] 1 0 -2 0 3 0 0 0 -0.5

example float64, two dense columns
in v float64 [2, 2] 1 -2 3 -0.5
in i int64 [1, 2] 2 0
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 2]
op sparse_to_dense x=s -> out=d
out d float64 [3, 2] 3 -0.5 0 0 1 -2
)")

HEDDLE_EXAMPLES(sparse_values, R"(
example values
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
op sparse_values x=s -> out=d
out d float32 [4] 1 -2 3 -0.5
)")

HEDDLE_EXAMPLES(sparse_indices, R"(
example indices
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
op sparse_indices x=s -> out=d
out d int64 [2, 4] 0 0 1 2 0 2 1 2
)")

HEDDLE_EXAMPLES(sparse_relu, R"(
example made dense
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
var r sparse_coo
op sparse_relu x=s -> out=r
op sparse_to_dense x=r -> out=d
out d float32 [3, 3] 1 0 0 0 3 0*4
)")

HEDDLE_EXAMPLES(sparse_isnan, R"(
example made dense
in v float32 [4] 1 -2 3 nan
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
var r sparse_coo
op sparse_isnan x=s -> out=r
op sparse_to_dense x=r -> out=d
out d bool [3, 3] 0*8 1

example float16
in v float16 [4] 1 -2 nan 3
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
var r sparse_coo
op sparse_isnan x=s -> out=r
op sparse_to_dense x=r -> out=d
out d bool [3, 3] 0*4 1 0*4
)")

HEDDLE_EXAMPLES(sparse_softmax, R"(
example rows
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
var r sparse_coo
op sparse_softmax x=s -> out=r
attr axis INT -1
op sparse_to_dense x=r -> out=d
out d float32 [3, 3] 0.95257413 0 0.047425874 0 1 0 0 0 1
)")

HEDDLE_EXAMPLES(sparse_add, R"(
example the same places
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
in v2 float32 [4] 5 6 7 8
op sparse_sparse_coo_tensor values=v2 indices=i -> out=s2
attr shape LONGS [3, 3]
var s2 sparse_coo
var r sparse_coo
op sparse_add x=s y=s2 -> out=r
op sparse_to_dense x=r -> out=d
out d float32 [3, 3] 6 0 4 0 10 0 0 0 7.5

example int16
in v int16 [4] 1 -2 3 -5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
in v2 int16 [4] 5 6 7 8
op sparse_sparse_coo_tensor values=v2 indices=i -> out=s2
attr shape LONGS [3, 3]
var s2 sparse_coo
var r sparse_coo
op sparse_add x=s y=s2 -> out=r
op sparse_to_dense x=r -> out=d
out d int16 [3, 3] 6 0 4 0 10 0 0 0 3
)")

HEDDLE_EXAMPLES(sparse_sum, R"(
example of columns
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
var r sparse_coo
op sparse_sum x=s -> out=r
attr axis LONGS [0]
attr keepdim BOOLEAN false
op sparse_to_dense x=r -> out=d
out d float32 [3] 1 3 -2.5

example int16, of rows
in v int16 [4] 1 -2 3 -5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
var r sparse_coo
op sparse_sum x=s -> out=r
attr axis LONGS [1]
attr keepdim BOOLEAN false
op sparse_to_dense x=r -> out=d
out d int16 [3] -1 3 -5
)")

HEDDLE_EXAMPLES(sparse_slice, R"(
example two by two
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
var r sparse_coo
op sparse_slice x=s -> out=r
attr axes LONGS [0, 1]
attr starts LONGS [0, 1]
attr ends LONGS [2, 3]
op sparse_to_dense x=r -> out=d
out d float32 [2, 2] 0 -2 3 0
)")

HEDDLE_EXAMPLES(sparse_reshape, R"(
example to one row
in v float32 [4] 1 -2 3 -0.5
in i int64 [2, 4] 0 0 1 2 0 2 1 2
var s sparse_coo
op sparse_sparse_coo_tensor values=v indices=i -> out=s
attr shape LONGS [3, 3]
var r sparse_coo
op sparse_reshape x=s -> out=r
attr shape LONGS [1, 9]
op sparse_to_dense x=r -> out=d
out d float32 [1, 9] 1 0 -2 0 3 0 0 0 -0.5
)")
