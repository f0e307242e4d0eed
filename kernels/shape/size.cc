// size: the number of elements.

namespace heddle {
namespace {

Status SizeShape(ShapeContext& ctx) {
  ctx.SetOut("Out", {}, DType::kI64);
  return Status::Ok();
}

Status RunSize(KernelContext& ctx) {
  ctx.Out("Out").mutable_data<int64_t>()[0] = ctx.In("Input").numel();
  return Status::Ok();
}

}  // namespace
}  // namespace heddle

HEDDLE_OP(size) {
  op.Doc("Number of elements, as int64.").Input("Input", kNoBuffer).Output("Out");
  op.InferShape(SizeShape).AnyKernel(RunSize);
}

HEDDLE_EXAMPLES(size, R"(
example float64 4x3
in Input float64 [4, 3] 0.768 0.922 0.077 0.384 0.538 0.615 0.307 0.845 0.154 0.231 0.692 0.461
out Out int64 [] 12

example float32 3x1x3x4
in Input float32 [3, 1, 3, 4] 0.38 0.54 -0.62 -0.67 0.91 0.75 -0.25 0.8 -0.88 -0.46 0.17 0.7 -0.35
  0.02 -0.41 0.12 0.07 -0.56 -0.14 -0.3 0.23 -0.93 0.49 -0.72 0.28 -0.51 0.59 0.33 0.86 0.44 -0.04
  -0.2 -0.77 0.65 -0.09 -0.83
out Out int64 [] 36

example bool 2x3
in Input bool [2, 3] 1 1 0 1 0 1
out Out int64 [] 6

example bool 4
in Input bool [4] 1 1 1 0
out Out int64 [] 4

example int32 4x3
in Input int32 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1
out Out int64 [] 12

example int64 4x3
in Input int64 [4, 3] 1 1 0 0 1 1 0 1 0 1 1 1
out Out int64 [] 12

example complex64 4x3
in Input complex64 [4, 3] 0.768+0.8j 0.922+0.3j 0.077+0.5j 0.384-0.7j 0.538-0.8j 0.615+0.6j
  0.307-0.3j 0.845+0.1j 0.154-0.5j 0.231+0.1j 0.692-0.2j 0.461+0.4j
out Out int64 [] 12

example bfloat16 4x3
in Input bfloat16 [4, 3] 0.77 0.92 0.077 0.385 0.54 0.613 0.307 0.844 0.154 0.231 0.69 0.46
out Out int64 [] 12

example float16 4x3
in Input float16 [4, 3] 0.768 0.922 0.077 0.384 0.538 0.615 0.307 0.845 0.154 0.231 0.692 0.461
out Out int64 [] 12
)")
