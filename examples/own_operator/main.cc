// An operator that heddle lacks, com.acme.ScaleShift of an ONNX file, added by the program that
// runs the file: own_operator scale.onnx
#include <heddle/executor.h>
#include <heddle/operators/own_operator.h>

#include <cstdint>
#include <iostream>
#include <utility>

namespace {

// y = x * factor + shift, where shift has one element for each of x's last axis.
heddle::Status ScaleShift(heddle::OwnKernelCall& call) {
  const heddle::Tensor& x = call.input("X");
  const heddle::Tensor& shift = call.input("Shift");
  const auto factor = static_cast<float>(call.attribute<double>("factor"));
  const int64_t width = shift.numel();
  const float* from = x.data<float>();
  const float* add = shift.data<float>();
  float* to = call.output("Y").mutable_data<float>();
  constexpr int64_t kGrain = 4096;  // elements that are worth a thread
  call.ParallelFor(x.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) to[i] = from[i] * factor + add[i % width];
  });
  return heddle::Status::Ok();
}

// Called before a run with what is known of the operands, and in it if that was not all.
heddle::Status Shapes(heddle::OwnShapeCall& call) {
  const heddle::Shape x = call.shape("X"), shift = call.shape("Shift");
  if (shift.known_rank() && shift.rank() != 1)
    return {heddle::StatusCode::kInvalidArgument,
            "'Shift' has shape " + shift.ToString() + "; one dimension is expected"};
  if (x.known_rank() && x.rank() == 0)
    return {heddle::StatusCode::kInvalidArgument, "'X' is a scalar; it must have an axis"};
  if (x.known_rank() && shift.known_rank() && x.dim(-1) >= 0 && shift[0] >= 0 &&
      x.dim(-1) != shift[0])
    return {heddle::StatusCode::kInvalidArgument,
            "'Shift' has shape " + shift.ToString() + ", and 'X' " + x.ToString()};
  call.SetOutput("Y", call.dtype("X"), x);
  return heddle::Status::Ok();
}

heddle::Status AddScaleShift() {
  heddle::OwnOperator op;
  op.name = "acme_scale_shift";
  op.doc = "y = x * factor + shift";
  op.names_in_files = {"com.acme.ScaleShift"};  // of ONNX: domain and type
  op.inputs = {{.name = "X", .dtypes = {heddle::DType::kF32}}, {.name = "Shift", .same_as = "X"}};
  op.outputs = {{.name = "Y"}};
  op.attributes = {{"factor", 1.0}};
  op.shapes = Shapes;
  op.kernel = ScaleShift;
  return heddle::AddOperator(std::move(op));
}

// Another kernel of the operator, for one executor: zeros.
heddle::Result<heddle::OwnKernel> CreateZeros(const heddle::OwnNode& node) {
  if (node.op != "acme_scale_shift") return heddle::OwnKernel();
  return heddle::OwnKernel([](heddle::OwnKernelCall& call) {
    heddle::Tensor& y = call.output("Y");
    float* to = y.mutable_data<float>();
    for (int64_t i = 0; i < y.numel(); ++i) to[i] = 0;
    return heddle::Status::Ok();
  });
}

heddle::Status Run(const char* path, const heddle::ExecutorOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const heddle::Model model, heddle::LoadModel(path));
  heddle::Executor executor(options);
  HEDDLE_ASSIGN_OR_RETURN(const heddle::CompiledProgram compiled, executor.Compile(model));
  const auto x = heddle::Tensor::Of<float>(heddle::DType::kF32, {2, 3}, {1, 2, 3, 4, 5, 6});
  HEDDLE_ASSIGN_OR_RETURN(const auto outputs, executor.Run(compiled, {{"x", x}}));
  for (int64_t i = 0; i < outputs[0].numel(); ++i)
    std::cout << (i > 0 ? " " : "") << outputs[0].data<float>()[i];
  std::cout << "\n";
  return heddle::Status::Ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: own_operator scale.onnx\n";
    return 2;
  }
  heddle::Status status = AddScaleShift();
  if (status.ok()) status = Run(argv[1], {.threads = 2});
  if (status.ok()) status = Run(argv[1], {.threads = 1, .kernel_creator = CreateZeros});
  if (!status.ok()) std::cerr << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}
