// Runs that go as earlier ones did take nothing from the heap, whatever the program does: loops,
// arrays, records of steps, rows, parameters that are updated, results that are copied.
#include <gtest/gtest.h>

#include "heddle/bound_run.h"
#include "tests/support/program_builder.h"
#include "tools/alloc_count.cc"  // NOLINT(bugprone-suspicious-include): the tool is no library

namespace heddle::testing {
namespace {

constexpr int kRuns = 4;
// A thread that takes part for the first time has something to set up, and may come to it late;
// what a run takes is taken in every batch.
constexpr int kBatches = 30;

template <typename Run>
int64_t FewestCalls(Run&& run) {
  int64_t fewest = INT64_MAX;
  for (int batch = 0; batch < kBatches && fewest > 0; ++batch) {
    tools::StartCountingAllocations();
    for (int k = 0; k < kRuns; ++k) run();
    fewest = std::min(fewest, tools::StopCountingAllocations());
  }
  return fewest;
}

struct Way {
  int threads;
  Schedule schedule;
  int opt_level;
};

using Doubles = std::vector<double>;

class NoHeapMemoryInSteadyRuns : public ::testing::TestWithParam<Way> {
 protected:
  void Expect(ProgramBuilder& b, const std::vector<heddle::Feed>& feeds,
              std::shared_ptr<Scope> scope = nullptr) {
    if (!tools::CanCountAllocations()) GTEST_SKIP() << "the heap cannot be watched in this build";
    const Way& way = GetParam();
    Executor executor({.threads = way.threads});
    const CompiledProgram compiled = MustCompile(
        executor, b.Build(), scope, {.opt_level = way.opt_level, .schedule = way.schedule});
    BoundRun bound(compiled, feeds);
    const Status status = bound.Run();
    ASSERT_TRUE(status.ok()) << status.ToString();
    bool ok = true;
    EXPECT_EQ(FewestCalls([&] { ok = bound.Run().ok() && ok; }), 0);
    // The lists that are returned are the caller's.
    EXPECT_LE(FewestCalls([&] { ok = executor.Run(compiled, feeds).ok() && ok; }), 2 * kRuns);
    EXPECT_TRUE(ok);
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, NoHeapMemoryInSteadyRuns,
                         ::testing::Values(Way{1, Schedule::kSerial, 0}, Way{1, Schedule::kAuto, 2},
                                           Way{2, Schedule::kLanes, 0},
                                           Way{2, Schedule::kLanes, 2}),
                         [](const auto& info) {
                           return ScheduleName(info.param.schedule) +
                                  std::to_string(info.param.threads) + "Opt" +
                                  std::to_string(info.param.opt_level);
                         });

// for (i = 0; i < 3; ++i) { body }: the caller fills the body between the two.
int BeginLoop(ProgramBuilder& b) {
  b.Fill("i", {1}, 0).Fill("n", {1}, 3).Binary("less_than", "i", "n", "go");
  const int body = b.Block(0);
  b.In(body);
  return body;
}
void EndLoop(ProgramBuilder& b, int body, std::vector<std::string> reads,
             std::vector<std::string> writes, const std::string& scopes = "") {
  b.Increment("i").Binary("less_than", "i", "n", "go").In(0);
  for (const char* name : {"i", "n"}) reads.emplace_back(name);
  for (const char* name : {"i", "go"}) writes.emplace_back(name);
  b.Op("while", {{"X", reads}, {"Condition", {"go"}}},
       {{"Out", writes},
        {"StepScopes", scopes.empty() ? std::vector<std::string>() : std::vector{scopes}}},
       {{"sub_block", BlockRef{body}}});
}

TEST_P(NoHeapMemoryInSteadyRuns, OfALoop) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Scale("x", "s", 1);
  const int body = BeginLoop(b);
  b.Unary("tanh", "s", "t").Binary("elementwise_add", "t", "x", "s");
  EndLoop(b, body, {"x", "s"}, {"s"});
  b.Fetch("s");
  Expect(b, {{"x", F32({3}, {1, 2, 3})}});
}

// With two threads, lanes share the body.
TEST_P(NoHeapMemoryInSteadyRuns, OfALoopWithLanes) {
  constexpr int64_t kSize = 40;
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {kSize, kSize}).Scale("x", "s", 1).Scale("x", "t", 1);
  const int body = BeginLoop(b);
  for (const std::string name : {"s", "t"}) {
    b.Op("matmul_v2", {{"X", {name}}, {"Y", {"x"}}}, {{"Out", {name + "0"}}});
    b.Op("matmul_v2", {{"X", {name + "0"}}, {"Y", {"x"}}}, {{"Out", {name + "1"}}});
    b.Unary("tanh", name + "1", name);
  }
  EndLoop(b, body, {"x", "s", "t"}, {"s", "t"});
  b.Fetch("s").Fetch("t");
  Expect(b, {{"x", RandomF32({kSize, kSize}, 1, 0.1F)}});
}

TEST_P(NoHeapMemoryInSteadyRuns, OfArrays) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Array("items").Fill("at", {1}, 0, DType::kI64);
  b.Op("write_to_array", {{"X", {"x"}}, {"I", {"at"}}}, {{"Out", {"items"}}});
  const int body = BeginLoop(b);
  b.Op("read_from_array", {{"X", {"items"}}, {"I", {"at"}}}, {{"Out", {"t"}}});
  b.Scale("t", "u", 2).Increment("at");
  b.Op("write_to_array", {{"X", {"u"}}, {"I", {"at"}}}, {{"Out", {"items"}}});
  EndLoop(b, body, {"items", "at"}, {"items", "at"});
  b.Op("read_from_array", {{"X", {"items"}}, {"I", {"at"}}}, {{"Out", {"y"}}});
  b.Unary("lod_array_length", "items", "length").Fetch("y").Fetch("length");
  Expect(b, {{"x", F32({2}, {1, 2})}});
}

// s = w tanh(s), and w@GRAD of its sum.
TEST_P(NoHeapMemoryInSteadyRuns, OfALoopAndItsGradient) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Param("w", DType::kF32, {2});
  b.Scale("x", "s", 1);
  auto* const scopes = b.desc().mutable_blocks(0)->add_vars();
  scopes->set_name("scopes");
  scopes->mutable_type()->set_type(proto::VarType::STEP_SCOPES);
  const int body = BeginLoop(b);
  b.Unary("tanh", "s", "t").Binary("elementwise_mul", "t", "w", "u").Unary("assign", "u", "s");
  EndLoop(b, body, {"w", "s"}, {"s"}, "scopes");
  b.Op("fill_any_like", {{"X", {"s"}}}, {{"Out", {"s@GRAD"}}}, {{"value", 1.0}});
  const int back = b.Block(body);
  b.desc().mutable_blocks(back)->set_forward_block_idx(body);
  b.In(back).Var("w@GRAD", DType::kF32, {2}).Var("t@GRAD", DType::kF32, {-1});
  b.Op("elementwise_mul_grad", {{"X", {"t"}}, {"Y", {"w"}}, {"Out@GRAD", {"s@GRAD"}}},
       {{"X@GRAD", {"t@GRAD"}}, {"Y@GRAD", {"w@GRAD"}}});
  b.Op("tanh_grad", {{"Out", {"t"}}, {"Out@GRAD", {"t@GRAD"}}}, {{"X@GRAD", {"s@GRAD"}}});
  b.In(0).Op(
      "while_grad",
      {{"X", {"w", "s"}}, {"Out", {"s"}}, {"Out@GRAD", {"s@GRAD"}}, {"StepScopes", {"scopes"}}},
      {{"X@GRAD", {"w@GRAD0", "s@GRAD"}}},
      {{"sub_block", BlockRef{back}}, {"original_output_grad", Strings{"s@GRAD"}}});
  b.Fetch("s").Fetch("w@GRAD0");
  auto scope = std::make_shared<Scope>();
  scope->Set("w", F32({2}, {0.5, 2}));
  Expect(b, {{"x", F32({2}, {1, 2})}}, scope);
}

// Parameters with names that are too long for a string without memory of its own.
TEST_P(NoHeapMemoryInSteadyRuns, OfUpdates) {
  const std::string w = "a_parameter_with_a_long_name.w_0", rate = "a_learning_rate_of_it.w_0";
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Param(w, DType::kF32, {2}).Param(rate, DType::kF32, {1});
  b.Binary("elementwise_mul", "x", w, "y").Fetch("y");
  b.Op("sgd", {{"Param", {w}}, {"Grad", {"x"}}, {"LearningRate", {rate}}}, {{"ParamOut", {w}}});
  auto scope = std::make_shared<Scope>();
  scope->Set(w, F32({2}, {0.5, 2}));
  scope->Set(rate, F32({1}, {0.01}));
  Expect(b, {{"x", F32({2}, {1, 2})}}, scope);
}

TEST_P(NoHeapMemoryInSteadyRuns, OfSparseGradients) {
  ProgramBuilder b;
  b.Feed("ids", DType::kI64, {-1}).Feed("grad", DType::kF32, {-1, 2});
  b.Param("table", DType::kF32, {4, 2});
  for (const char* name : {"g0", "g1", "rows"}) {
    auto* const var = b.desc().mutable_blocks(0)->add_vars();
    var->set_name(name);
    var->mutable_type()->set_type(proto::VarType::SELECTED_ROWS);
  }
  for (const char* name : {"g0", "g1"})
    b.Op("lookup_table_v2_grad", {{"Ids", {"ids"}}, {"W", {"table"}}, {"Out@GRAD", {"grad"}}},
         {{"W@GRAD", {name}}}, {{"is_sparse", true}});
  b.Op("sum", {{"X", {"g0", "g1"}}}, {{"Out", {"rows"}}});
  b.Unary("get_tensor_from_selected_rows", "rows", "values").Fetch("values");
  auto scope = std::make_shared<Scope>();
  scope->Set("table", F32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}));
  Expect(b, {{"ids", I64({3}, {2, 0, 2})}, {"grad", F32({3, 2}, {1, 2, 3, 4, 5, 6})}}, scope);
}

// What a run may not hand over, it copies: a feed, and a value that is fetched twice.
TEST_P(NoHeapMemoryInSteadyRuns, OfCopiedResults) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Scale("x", "y", 2).Fetch("x").Fetch("y").Fetch("y");
  Expect(b, {{"x", F32({3}, {1, 2, 3})}});
}

// Kernels that keep lists during a call.
TEST_P(NoHeapMemoryInSteadyRuns, OfKernelsWithLists) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 4}).Feed("boxes", DType::kF32, {-1, 4});
  b.Op("argsort", {{"X", {"x"}}}, {{"Out", {"sorted"}}, {"Indices", {"order"}}},
       {{"axis", int64_t{-1}}});
  b.Op("unique", {{"X", {"x"}}}, {{"Out", {"distinct"}}, {"Index", {"index"}}},
       {{"dtype", int64_t{3}}, {"is_sorted", true}, {"return_inverse", true}});
  b.Op("nanmedian", {{"X", {"x"}}}, {{"Out", {"median"}}, {"MedianIndex", {"at"}}},
       {{"axis", Ints{1}}});
  b.Op("nms", {{"Boxes", {"boxes"}}}, {{"KeepBoxesIdxs", {"kept"}}}, {{"iou_threshold", 0.5}});
  b.Op("sum", {{"X", {"x", "sorted", "x"}}}, {{"Out", {"total"}}});
  for (const char* name : {"order", "distinct", "index", "median", "kept", "total"}) b.Fetch(name);
  std::vector<float> x(400);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101);
  Expect(b, {{"x", F32({100, 4}, x)}, {"boxes", F32({100, 4}, x)}});
}

// The same of ONNX, and a softmax along another axis than the last.
TEST_P(NoHeapMemoryInSteadyRuns, OfOnnxKernelsWithLists) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 3, 40}).Feed("boxes", DType::kF32, {1, 30, 4});
  b.Feed("scores", DType::kF32, {1, 2, 30}).Feed("some", DType::kBool, {30});
  b.Feed("most", DType::kI64, {1})
      .Feed("labels", DType::kI64, {2, 1, 40})
      .Feed("pair", DType::kF32, {2});
  b.Feed("bytes", DType::kU8, {3, 3}).Feed("scale", DType::kF32, {1}).Feed("zero", DType::kU8, {1});
  b.Op("top_k_v2", {{"X", {"x"}}, {"K", {"most"}}}, {{"Out", {"top"}}, {"Indices", {"at"}}});
  b.Op("non_max_suppression",
       {{"boxes", {"boxes"}}, {"scores", {"scores"}}, {"max_output_size", {"most"}}},
       {{"selected_indices", {"kept"}}});
  b.Op("where_index", {{"Condition", {"x"}}}, {{"Out", {"places"}}}, {{"by_axis", true}});
  b.Op("unique", {{"X", {"x"}}}, {{"Out", {"distinct"}}, {"Counts", {"counts"}}},
       {{"return_counts", true}});
  b.Op("compress", {{"input", {"x"}}, {"condition", {"some"}}}, {{"output", {"chosen"}}});
  b.Op("one_hot_v2", {{"X", {"labels"}}, {"depth_tensor", {"most"}}, {"Values", {"pair"}}},
       {{"Out", {"hot"}}});
  b.Op("mean_variance_norm", {{"X", {"x"}}}, {{"Out", {"even"}}}, {{"axes", Ints{0}}});
  b.Op("onnx_q_linear_mat_mul",
       {{"a", {"bytes"}},
        {"a_scale", {"scale"}},
        {"a_zero_point", {"zero"}},
        {"b", {"bytes"}},
        {"b_scale", {"scale"}},
        {"b_zero_point", {"zero"}},
        {"y_scale", {"scale"}},
        {"y_zero_point", {"zero"}}},
       {{"y", {"product"}}});
  b.Op("grouped_query_attention", {{"Q", {"x"}}, {"K", {"x"}}, {"V", {"x"}}}, {{"Y", {"seen"}}},
       {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{4}}});
  b.Op("softmax_with_cross_entropy", {{"Logits", {"x"}}, {"Label", {"labels"}}},
       {{"Softmax", {"shares"}}, {"Loss", {"loss"}}}, {{"axis", int64_t{1}}});
  for (const char* name : {"top", "at", "kept", "places", "distinct", "counts", "chosen", "hot",
                           "even", "product", "seen", "loss"})
    b.Fetch(name);
  const auto numbers = [](size_t n) {
    std::vector<float> v(n);
    for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>(i * 37 % 101);
    return v;
  };
  Tensor some = Tensor::Empty(DType::kBool, {30}), bytes = Tensor::Empty(DType::kU8, {3, 3});
  for (int64_t i = 0; i < 30; ++i) some.mutable_data<bool>()[i] = i % 3 != 1;
  for (int64_t i = 0; i < 9; ++i) bytes.mutable_data<uint8_t>()[i] = static_cast<uint8_t>(i);
  Tensor zero = Tensor::Empty(DType::kU8, {1});
  *zero.mutable_data<uint8_t>() = 0;
  Expect(b, {{"x", F32({2, 3, 40}, numbers(240))},
             {"boxes", F32({1, 30, 4}, numbers(120))},
             {"scores", F32({1, 2, 30}, numbers(60))},
             {"some", some},
             {"most", I64({1}, {5})},
             {"labels", I64({2, 1, 40}, std::vector<int64_t>(80, 2))},
             {"bytes", bytes},
             {"scale", F32({1}, {0.5})},
             {"zero", zero},
             {"pair", F32({2}, {0, 1})}});
}

// Kernels that convert their operands, or keep a state per head or channel.
TEST_P(NoHeapMemoryInSteadyRuns, OfKernelsWithStates) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2, 2, 4}).Feed("s", DType::kF32, {2}).Feed("w", DType::kF32, {2, 1, 2});
  b.Op("batch_norm",
       {{"X", {"x"}}, {"Scale", {"s"}}, {"Bias", {"s"}}, {"Mean", {"s"}}, {"Variance", {"s"}}},
       {{"Y", {"normal"}}, {"MeanOut", {"mean"}}}, {{"lone_passes", false}});
  b.Op("linear_attention", {{"query", {"x"}}, {"key", {"x"}}, {"value", {"x"}}},
       {{"output", {"seen"}}, {"present_state", {"state"}}},
       {{"update_rule", "linear"}, {"q_num_heads", int64_t{2}}, {"kv_num_heads", int64_t{2}}});
  b.Op("causal_conv", {{"input", {"x"}}, {"weight", {"w"}}},
       {{"output", {"convolved"}}, {"present_state", {"last"}}});
  b.Op("set_value", {{"Input", {"x"}}}, {{"Out", {"set"}}},
       {{"axes", Ints{2}},
        {"starts", Ints{1}},
        {"ends", Ints{3}},
        {"steps", Ints{1}},
        {"shape", Ints{1}},
        {"fp32_values", Doubles{7}}});
  for (const char* name : {"normal", "mean", "seen", "state", "convolved", "set"}) b.Fetch(name);
  Expect(b, {{"x", F32({2, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2})},
             {"s", F32({2}, {1, 2})},
             {"w", F32({2, 1, 2}, {1, 2, 3, 4})}});
}

// Shapes and counts that the runs feed.
TEST_P(NoHeapMemoryInSteadyRuns, OfSizesThatAreFed) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {3, 4}).Feed("dims", DType::kI64, {2}).Feed("n", DType::kI32, {1});
  b.Fill("from", {1}, 0).Fill("to", {1}, 1);
  b.Op("fill_constant", {{"ShapeTensor", {"dims"}}}, {{"Out", {"filled"}}},
       {{"dtype", int64_t{5}}, {"value", 2.0}});
  b.Op("fill_constant", {{"ShapeTensorList", {"n", "n"}}}, {{"Out", {"square"}}},
       {{"dtype", int64_t{5}}, {"value", 3.0}});
  b.Op("linspace", {{"Start", {"from"}}, {"Stop", {"to"}}, {"Num", {"n"}}}, {{"Out", {"line"}}},
       {{"dtype", int64_t{5}}});
  b.Op("top_k_v2", {{"X", {"x"}}, {"K", {"n"}}}, {{"Out", {"top"}}, {"Indices", {"at"}}});
  for (const char* name : {"filled", "square", "line", "top"}) b.Fetch(name);
  Tensor n = Tensor::Empty(DType::kI32, {1});
  *n.mutable_data<int32_t>() = 3;
  Expect(b, {{"x", F32({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})},
             {"dims", I64({2}, {2, 3})},
             {"n", n}});
}

// Operators whose plan is made once for known shapes.
TEST_P(NoHeapMemoryInSteadyRuns, OfEinsum) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 3, 4})
      .Feed("y", DType::kF32, {-1, 4, 2})
      .Feed("z", DType::kF32, {5});
  const auto var = [&](const char* name) { return std::vector<std::string>{name}; };
  b.Op("einsum", {{"Operands", {"x", "y"}}},
       {{"Out", var("product")}, {"InnerCache", {"cx", "cy"}}}, {{"equation", "bij,bjk->kbi"}});
  b.Op("einsum", {{"Operands", {"x"}}}, {{"Out", var("sums")}}, {{"equation", "bij->ji"}});
  b.Op("fill_any_like", {{"X", {"product"}}}, {{"Out", {"product@GRAD"}}}, {{"value", 1.0}});
  b.Op("einsum_grad", {{"InnerCache", {"cx", "cy"}}, {"Out@GRAD", {"product@GRAD"}}},
       {{"Operands@GRAD", {"x@GRAD", "y@GRAD"}}}, {{"equation", "bij,bjk->kbi"}});
  b.Op("einsum", {{"Operands", {"x", "y", "z"}}}, {{"Out", var("three")}},
       {{"equation", "bij,bjk,l->il"}});
  for (const char* name : {"product", "sums", "x@GRAD", "y@GRAD", "three"}) b.Fetch(name);
  std::vector<float> x(24), y(16);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (size_t i = 0; i < y.size(); ++i) y[i] = static_cast<float>(i % 5);
  Expect(b, {{"x", F32({2, 3, 4}, x)}, {"y", F32({2, 4, 2}, y)}, {"z", F32({5}, {1, 2, 3, 4, 5})}});
}

// Shapes that depend on what is fed: each run infers them anew, and lists come with each call.
TEST_P(NoHeapMemoryInSteadyRuns, OfOperandsThatAreLists) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1, 2, 3, 4}).Feed("pads", DType::kI64, {8});
  b.Feed("sizes", DType::kI64, {4})
      .Feed("repeats", DType::kI64, {4})
      .Feed("axes", DType::kI64, {2});
  b.Feed("two", DType::kI64, {2}).Feed("steps", DType::kI64, {2});
  b.Feed("sizes2", DType::kI64, {2});
  b.Op("pad", {{"X", {"x"}}, {"Paddings", {"pads"}}}, {{"Out", {"padded"}}},
       {{"mode", "reflect"}, {"before_first", true}});
  b.Op("onnx_resize", {{"X", {"x"}}, {"sizes", {"sizes"}}}, {{"Y", {"resized"}}},
       {{"mode", "cubic"}});
  b.Op("onnx_resize", {{"X", {"x"}}, {"sizes", {"sizes"}}}, {{"Y", {"nearest"}}});
  b.Op("tile", {{"X", {"x"}}, {"RepeatTimes", {"repeats"}}}, {{"Out", {"tiled"}}});
  b.Op("strided_slice",
       {{"Input", {"x"}},
        {"StartsTensor", {"axes"}},
        {"EndsTensor", {"sizes2"}},
        {"AxesTensor", {"axes"}}},
       {{"Out", {"cut"}}}, {{"bounds", "from_end"}});
  b.Op("split", {{"X", {"x"}}, {"SectionsTensor", {"two"}}}, {{"Out", {"left", "right"}}},
       {{"axis", int64_t{3}}});
  b.Op("masked_slice",
       {{"input", {"x"}}, {"begin", {"axes"}}, {"end", {"sizes2"}}, {"strides", {"steps"}}},
       {{"output", {"strided"}}});
  for (const char* name :
       {"padded", "resized", "nearest", "tiled", "cut", "left", "right", "strided"})
    b.Fetch(name);
  std::vector<float> x(24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  Expect(b, {{"x", F32({1, 2, 3, 4}, x)},
             {"pads", I64({8}, {0, 1, 1, 2, 0, 0, 2, 3})},
             {"sizes", I64({4}, {1, 2, 5, 7})},
             {"repeats", I64({4}, {2, 1, 1, 3})},
             {"axes", I64({2}, {0, 1})},
             {"two", I64({2}, {0, 4})},
             {"steps", I64({2}, {1, 1})},
             {"sizes2", I64({2}, {1, 2})}});
}

// Resizes, segments, distinct values and lists of TensorFlow.
TEST_P(NoHeapMemoryInSteadyRuns, OfTensorFlowsLists) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {4, 3}).Feed("image", DType::kF32, {1, 3, 3, 2});
  b.Feed("size", DType::kI64, {2}).Feed("ids", DType::kI64, {4}).Array("items");
  b.Op("resize_images", {{"images", {"image"}}, {"size", {"size"}}},
       {{"resized_images", {"linear"}}});
  b.Op("resize_images", {{"images", {"image"}}, {"size", {"size"}}},
       {{"resized_images", {"nearest"}}}, {{"method", "nearest"}});
  b.Op("segment_pool", {{"X", {"x"}}, {"SegmentIds", {"ids"}}}, {{"Out", {"means"}}},
       {{"pooltype", "MEAN"}});
  b.Op("unique", {{"X", {"ids"}}}, {{"Out", {"distinct"}}, {"Index", {"where"}}},
       {{"nan_differs", true}});
  b.Op("list_split", {{"tensor", {"x"}}}, {{"Out", {"items"}}}, {{"keepdims", false}});
  b.Op("list_stack", {{"list", {"items"}}}, {{"Out", {"stacked"}}});
  b.Feed("pads", DType::kI64, {2, 2})
      .Feed("places", DType::kI64, {3})
      .Feed("one", DType::kI64, {1})
      .Feed("five", DType::kI64, {1});
  b.Op("dynamic_stitch", {{"indices", {"places", "places"}}, {"data", {"places", "places"}}},
       {{"merged", {"merged"}}});
  b.Op("reduce_sum", {{"X", {"x"}}, {"Axes", {"one"}}}, {{"Out", {"sums"}}});
  b.Op("pad", {{"X", {"x"}}, {"Paddings", {"pads"}}}, {{"Out", {"mirrored"}}},
       {{"mode", "symmetric"}});
  b.Op("setdiff1d", {{"x", {"ids"}}, {"y", {"places"}}}, {{"out", {"others"}}, {"idx", {"at"}}});
  b.Op("coo_to_dense",
       {{"sparse_indices", {"places"}},
        {"output_shape", {"five"}},
        {"sparse_values", {"places"}},
        {"default_value", {"five"}}},
       {{"dense", {"dense"}}});
  for (const char* name : {"linear", "nearest", "means", "distinct", "where", "stacked", "merged",
                           "sums", "mirrored", "others", "dense"})
    b.Fetch(name);
  std::vector<float> x(12), image(18);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 7);
  Expect(b, {{"x", F32({4, 3}, x)},
             {"image", F32({1, 3, 3, 2}, image)},
             {"size", I64({2}, {5, 4})},
             {"ids", I64({4}, {0, 1, 1, 2})},
             {"pads", I64({2, 2}, {1, 2, 0, 1})},
             {"places", I64({3}, {0, 2, 4})},
             {"one", I64({1}, {0})},
             {"five", I64({1}, {5})}});
}

// General weights, and constant ones, which are packed.
TEST_P(NoHeapMemoryInSteadyRuns, OfRecurrentNetworks) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {3, 2, 4}).Feed("w", DType::kF32, {2, 12, 4});
  b.Feed("r", DType::kF32, {2, 12, 3}).Feed("lengths", DType::kI64, {2});
  b.Param("pw", DType::kF32, {2, 12, 4}).Param("pr", DType::kF32, {2, 12, 3});
  for (const bool packed : {false, true})
    b.Op("recurrent_network",
         {{"X", {"x"}},
          {"W", {packed ? "pw" : "w"}},
          {"R", {packed ? "pr" : "r"}},
          {"sequence_lens", {"lengths"}}},
         {{"Y", {packed ? "py" : "y"}}, {"Y_h", {packed ? "ph" : "h"}}},
         {{"direction", "bidirectional"}, {"hidden_size", int64_t{3}}});
  for (const char* name : {"y", "h", "py", "ph"}) b.Fetch(name);
  const auto numbers = [](std::vector<int64_t> shape, float step) {
    Tensor t = Tensor::Empty(DType::kF32, Shape(std::span<const int64_t>(shape)));
    for (int64_t i = 0; i < t.numel(); ++i)
      t.mutable_data<float>()[i] = step * static_cast<float>(i % 7 - 3);
    return t;
  };
  auto scope = std::make_shared<Scope>();
  scope->Set("pw", numbers({2, 12, 4}, 0.1F));
  scope->Set("pr", numbers({2, 12, 3}, 0.2F));
  Expect(b,
         {{"x", numbers({3, 2, 4}, 0.3F)},
          {"w", numbers({2, 12, 4}, 0.1F)},
          {"r", numbers({2, 12, 3}, 0.2F)},
          {"lengths", I64({2}, {3, 2})}},
         scope);
}

// Classical models of ONNX: sums, kernels, trees, and features changed one by one.
TEST_P(NoHeapMemoryInSteadyRuns, OfClassicalModels) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 2}).Feed("numbers", DType::kI64, {-1});
  const auto model = [&](const std::string& op, const std::vector<std::string>& x,
                         const Attrs& attrs, bool classes = false) {
    Slots outs = {{"Y", {op + "_y"}}};
    if (classes) outs.push_back({"Z", {op + "_z"}});
    b.Op("onnx_ml_" + op, {{"X", x}}, outs, attrs);
    b.Fetch(op + "_y");
    if (classes) b.Fetch(op + "_z");
  };
  model("scaler", {"x"}, {{"offset", Doubles{1, -2}}, {"scale", Doubles{0.5, 3}}});
  model("normalizer", {"x"}, {{"norm", "L2"}});
  model("imputer", {"x"}, {{"imputed_value_floats", Doubles{1.5, 2.5}}});
  model("feature_vectorizer", {"x", "x"}, {{"inputdimensions", Ints{1, 3}}});
  model("one_hot_encoder", {"numbers"}, {{"cats_int64s", Ints{3, 1, 7}}});
  model("label_encoder", {"numbers"},
        {{"keys_int64s", Ints{1, 5, 9}}, {"values_floats", Doubles{0.5, 1.5, -2}}});
  model("linear_regressor", {"x"},
        {{"coefficients", Doubles{1, 2, 0.5, -1}}, {"targets", int64_t{2}}});
  model("linear_classifier", {"x"},
        {{"classlabels_ints", Ints{4, 7}},
         {"coefficients", Doubles{1, 2}},
         {"post_transform", "LOGISTIC"}},
        true);
  const Attrs vectors = {{"kernel_type", "RBF"},
                         {"kernel_params", Doubles{0.5, 0, 3}},
                         {"support_vectors", Doubles{0, 1, 1, -1, 2, 0.5, -1, -1}}};
  Attrs regression = vectors, classification = vectors;
  regression.insert(regression.end(), {{"n_supports", int64_t{4}},
                                       {"coefficients", Doubles{1.5, -2, 0.5, 1}},
                                       {"rho", Doubles{0.25}}});
  model("svm_regressor", {"x"}, regression);
  classification.insert(classification.end(),
                        {{"classlabels_ints", Ints{3, 5, 7}},
                         {"vectors_per_class", Ints{1, 2, 1}},
                         {"coefficients", Doubles{1, -0.5, -0.5, 0.75, 0.25, 1.5, -1, -2}},
                         {"rho", Doubles{0.1, -0.2, 0.3}},
                         {"prob_a", Doubles{-1, -1.5, -2}},
                         {"prob_b", Doubles{0.1, 0.2, -0.1}}});
  model("svm_classifier", {"x"}, classification, true);
  const Attrs nodes = {{"nodes_treeids", Ints{0, 0, 0}},
                       {"nodes_nodeids", Ints{0, 1, 2}},
                       {"nodes_featureids", Ints{1, 0, 0}},
                       {"nodes_values", Doubles{0.5, 0, 0}},
                       {"nodes_modes", Strings{"BRANCH_LEQ", "LEAF", "LEAF"}},
                       {"nodes_truenodeids", Ints{1, 0, 0}},
                       {"nodes_falsenodeids", Ints{2, 0, 0}}};
  for (const std::string leaves : {"target", "class"}) {
    Attrs attrs = nodes;
    attrs.insert(attrs.end(), {{leaves + "_treeids", Ints{0, 0, 0}},
                               {leaves + "_nodeids", Ints{1, 2, 2}},
                               {leaves + "_ids", Ints{0, 1, 0}},
                               {leaves + "_weights", Doubles{1, 2, 3}}});
    if (leaves == "target") {
      attrs.emplace_back("n_targets", int64_t{2});
      model("tree_ensemble_regressor", {"x"}, attrs);
    } else {
      attrs.emplace_back("classlabels_int64s", Ints{5, 6});
      model("tree_ensemble_classifier", {"x"}, attrs, true);
    }
  }
  std::vector<float> x(600);  // more than the stack has room for
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  Expect(b, {{"x", F32({300, 2}, x)}, {"numbers", I64({4}, {1, 3, 7, 1})}});
}

// Shapes that values decide, of fused loops and of what ONNX reshapes.
TEST_P(NoHeapMemoryInSteadyRuns, OfShapesFoundWhileRunning) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {6}).Feed("mask", DType::kBool, {6}).Feed("row", DType::kF32, {1});
  b.Feed("shape", DType::kI64, {2}).Feed("axes", DType::kI64, {1});
  b.Op("masked_select", {{"X", {"x"}}, {"Mask", {"mask"}}}, {{"Y", {"some"}}});
  b.Op("fused_elementwise", {{"X", {"some", "row"}}}, {{"Out", {"loop"}}},
       {{"ops", Strings{"elementwise_add", "relu"}},
        {"values", Doubles{-1, 0}},
        {"code", Ints{0, 0, 1, 1, 2}},
        {"outs", Ints{3}}});
  b.Op("reshape2", {{"X", {"x"}}, {"Shape", {"shape"}}}, {{"Out", {"table"}}});
  b.Op("unsqueeze2", {{"X", {"x"}}, {"AxesTensor", {"axes"}}}, {{"Out", {"wide"}}});
  b.Op("squeeze2", {{"X", {"wide"}}, {"AxesTensor", {"axes"}}}, {{"Out", {"flat"}}});
  b.Feed("from", DType::kI64, {1}).Feed("to", DType::kI64, {1});
  b.Op("range", {{"Start", {"from"}}, {"End", {"to"}}, {"Step", {"to"}}}, {{"Out", {"one"}}});
  b.Op("range", {{"Start", {"from"}}, {"End", {"to"}}, {"Step", {"to"}}}, {{"Out", {"other"}}},
       {{"by_product", true}});
  for (const char* name : {"loop", "table", "wide", "flat", "one", "other"}) b.Fetch(name);
  Tensor mask = Tensor::Empty(DType::kBool, {6});
  for (int64_t i = 0; i < 6; ++i) mask.mutable_data<bool>()[i] = i % 3 != 1;
  Expect(b, {{"x", F32({6}, {1, -2, 3, -4, 5, -6})},
             {"mask", mask},
             {"row", F32({1}, {0.5})},
             {"shape", I64({2}, {-1, 2})},
             {"axes", I64({1}, {0})},
             {"from", I64({1}, {0})},
             {"to", I64({1}, {3})}});
}

// An array that only a branch fills.
TEST_P(NoHeapMemoryInSteadyRuns, OfArraysInBranches) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1}).Feed("go", DType::kBool, {1}).Array("items");
  b.Fill("at", {1}, 0, DType::kI64).Var("y", DType::kF32, {-1});
  const int body = b.Block(0);
  b.In(body);
  b.Op("write_to_array", {{"X", {"x"}}, {"I", {"at"}}}, {{"Out", {"items"}}});
  b.Op("read_from_array", {{"X", {"items"}}, {"I", {"at"}}}, {{"Out", {"item"}}});
  b.Scale("item", "y", 2);
  b.In(0).Op("conditional_block", {{"Cond", {"go"}}, {"Input", {"x", "at"}}}, {{"Out", {"y"}}},
             {{"sub_block", BlockRef{body}}, {"is_scalar_condition", true}});
  b.Fetch("y");
  Expect(b, {{"x", F32({2}, {1, 2})}, {"go", Bool(true)}});
}

}  // namespace
}  // namespace heddle::testing
