#include "tests/offload/onnx_round_trip.h"

#include "core/error.h"
#include "core/programs/ir.h"
#include "heddle/model_files.h"
#include "offload/onnx/write.h"
#include "tests/ops/compare.h"

namespace heddle::testing {
namespace {

// Of variables that no operator writes, as groups have them.
offload::OnnxWriter::Parameters ParametersOf(const ir::Program& program, const Scope& scope) {
  offload::OnnxWriter::Parameters all;
  for (ir::VarId v = 0; v < program.vars.size(); ++v) {
    const Value* value = program.vars[v].persistable ? scope.Find(program.vars[v].name) : nullptr;
    if (value != nullptr && value->is_tensor() && value->initialized())
      all.emplace_back(v, value->tensor().Contiguous());
  }
  return all;
}

std::string Differs(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype() != want.dtype())
    return StrCat("is ", Name(got.dtype()), " and not ", Name(want.dtype()));
  if (got.shape() != want.shape())
    return StrCat("has shape ", got.shape().ToString(), " and not ", want.shape().ToString());
  if (!IsFloat(want.dtype())) return SameElements(got, want);
  const double scale = want.dtype() == DType::kF64 ? 1e-3 : 1;
  return Near(got, want, {rtol * scale, atol * scale});
}

std::vector<Value> Copied(const std::vector<Value>& values) {
  std::vector<Value> copies;
  for (const Value& v : values)
    copies.push_back(v.is_tensor() && v.initialized() ? Value(v.tensor().Clone()) : v);
  return copies;
}

}  // namespace

RoundTrip TryRoundTrip(Executor& executor, const Program& program,
                       const std::shared_ptr<Scope>& scope, const std::vector<Feed>& feeds,
                       double rtol, double atol) {
  RoundTrip trip;
  const auto parameters = ParametersOf(program.ir(), *scope);
  offload::OnnxWriter writer(program.ir(), parameters);
  const auto written = writer.Write();
  if (!written.ok()) trip.refused = written.status().message();
  const auto compiled = executor.Compile(program, scope, {.opt_level = 0});
  if (!compiled.ok()) return trip;
  auto outputs = executor.RunValues(*compiled, feeds);
  if (!outputs.ok()) return trip;
  const std::vector<Value> want = Copied(*outputs);
  for (const Value& v : want)
    if (!v.is_tensor() || !v.initialized() || v.tensor().has_lod()) return trip;
  trip.ran = true;
  if (!trip.refused.empty()) return trip;
  trip.model = *written;
  for (const Value& v : want) trip.outputs.push_back(v.tensor());
  CompileOptions options{.opt_level = 0};
  for (const ir::Port& fetch : program.ir().fetches)
    options.fetches.push_back(program.ir().vars[fetch.var].name);
  const auto model = ParseModel(*written, "", "written.onnx");
  if (!model.ok()) {
    trip.wrong = StrCat("it is not read: ", model.status().ToString());
    return trip;
  }
  const auto read = executor.Compile(model->program, model->scope, options);
  if (!read.ok()) {
    trip.wrong = StrCat("it is not compiled: ", read.status().ToString());
    return trip;
  }
  const auto got = executor.RunValues(*read, feeds);
  if (!got.ok()) {
    trip.wrong = StrCat("it does not run: ", got.status().ToString());
    return trip;
  }
  for (size_t k = 0; k < want.size() && trip.wrong.empty(); ++k) {
    const std::string differs = Differs((*got)[k].tensor(), want[k].tensor(), rtol, atol);
    if (!differs.empty()) trip.wrong = StrCat("output ", k, ": ", differs);
  }
  return trip;
}

Program Opened(const Program& program, bool all) {
  auto copy = std::make_shared<ir::Program>(program.ir());
  for (const ir::Port& feed : copy->feeds) {
    Shape& shape = copy->vars[feed.var].shape;
    for (int i = 0; i < shape.rank(); ++i)
      if (all || i % 2 == 0) shape[i] = -1;
  }
  return Program(std::move(copy));
}

}  // namespace heddle::testing
