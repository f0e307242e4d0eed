// What is written is read again as the same program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core/programs/ir.h"
#include "heddle/program_builder.h"
#include "passes/ir_text.h"
#include "tests/support/random_program.h"

namespace heddle::testing {
namespace {

// Text of the program as it is, and as it is after writing and reading.
void ExpectSame(const Program& program) {
  auto bytes = program.Serialize();
  ASSERT_TRUE(bytes.ok()) << bytes.status().ToString();
  auto again = Program::Parse(*bytes);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_EQ(ir::ToText(program.ir()), ir::ToText(again->ir()));
  auto twice = again->Serialize();
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(*bytes, *twice);
}

TEST(ProgramWrite, RandomProgramsWithBlocks) {
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    ExpectSame(*Program::Parse(RandomProgram(seed, {}).bytes()));
  }
}

TEST(ProgramWrite, KeepsWhatHeddleDoesNotLookAt) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 4});
  b.Scale("x", "y", 2).Fetch("y");
  auto* op = b.desc().mutable_blocks(0)->mutable_ops(1);
  auto* role = op->add_attrs();
  role->set_name("op_role");
  role->set_type(proto::INT);
  role->set_i(7);
  auto* wide = op->add_attrs();
  wide->set_name("bias_after_scale");
  wide->set_type(proto::INT);  // an integer where others write a bool
  wide->set_i(0);
  auto* x = b.desc().mutable_blocks(0)->mutable_vars(1);
  ASSERT_EQ(x->name(), "x");
  x->mutable_type()->mutable_lod_tensor()->set_lod_level(1);
  x->set_need_check_feed(true);
  proto::ProgramDesc again;
  ASSERT_TRUE(again.ParseFromString(*b.Build().Serialize()));
  const auto& written = again.blocks(0).ops(1);
  ASSERT_EQ(written.type(), "scale");
  const auto attr = [&](const std::string& name) {
    for (const auto& a : written.attrs())
      if (a.name() == name) return a;
    return proto::OpDesc_Attr();
  };
  EXPECT_EQ(attr("op_role").i(), 7);
  EXPECT_EQ(attr("bias_after_scale").type(), proto::INT);
  EXPECT_EQ(again.blocks(0).vars(1).name(), "x");
  EXPECT_EQ(again.blocks(0).vars(1).type().lod_tensor().lod_level(), 1);
  EXPECT_TRUE(again.blocks(0).vars(1).need_check_feed());
}

TEST(ProgramWrite, WritesWhatHasChanged) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 4});
  b.Scale("x", "y", 2);
  b.Op("transpose2", {{"X", {"y"}}}, {{"Out", {"z"}}}, {{"axis", Ints{1, 0}}}).Fetch("z");
  const Program program = b.Build();
  auto changed = std::make_shared<ir::Program>(program.ir());
  auto& ops = changed->blocks[0].ops;
  ops[0].attrs[ops[0].def->FindAttr("scale")] = 5.0;
  ops[0].attrs[ops[0].def->FindAttr("bias_after_scale")] = false;  // the file does not name it
  ops[1].attrs[ops[1].def->FindAttr("axis")] = Ints{0, 1};
  ir::Var var;
  var.name = "w";
  var.dtype = DType::kI64;
  var.shape = {3};
  var.persistable = true;
  const ir::VarId w = changed->AddVar(var);
  ops[1].inputs[0] = {w};
  ExpectSame(Program(changed));
  const std::string text = ir::ToText(Program::Parse(*Program(changed).Serialize())->ir());
  EXPECT_THAT(text, ::testing::HasSubstr("scale=5"));
  EXPECT_THAT(text, ::testing::HasSubstr("bias_after_scale=false"));
  EXPECT_THAT(text, ::testing::HasSubstr("axis=[0, 1]"));
  EXPECT_THAT(text, ::testing::HasSubstr("var w: int64 [3] persistable"));
  EXPECT_THAT(text, ::testing::HasSubstr("transpose2(X=[w])"));
}

// Places and hints that passes hand on to operators of their own, or change of the file's.
TEST(ProgramWrite, WritesPlacesAndHints) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 4});
  b.Op("relu", {{"X", {"x"}}}, {{"Out", {"y"}}},
       {{"op_device", std::string("gpu:1")}, {"execution_stream", std::string("DefaultStream")}});
  b.Op("tanh", {{"X", {"y"}}}, {{"Out", {"z"}}}, {{"op_device", std::string("gpu:1")}}).Fetch("z");
  const Program program = b.Build();
  const ir::Program plain = program.ir();
  ASSERT_EQ(plain.blocks[0].ops[0].device, "gpu:1");
  auto changed = std::make_shared<ir::Program>(plain);
  auto& ops = changed->blocks[0].ops;
  ops[0].device = "cpu";
  ir::StreamHints hints;
  hints.execution_stream = "s";
  hints.stream_priority = -1;
  hints.scheduling_priority = 3;
  hints.event_to_record = "e";
  hints.events_to_wait = {"f", "g"};
  ops[1].index = -1;  // of no file
  ops[1].hints = std::make_shared<const ir::StreamHints>(hints);
  auto again = Program::Parse(*Program(changed).Serialize());
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  const auto& read = again->ir().blocks[0].ops;
  EXPECT_EQ(read[0].device, "cpu");
  EXPECT_EQ(read[1].device, "gpu:1");
  ASSERT_NE(read[1].hints, nullptr);
  EXPECT_EQ(read[1].hints->execution_stream, "s");
  EXPECT_EQ(read[1].hints->stream_priority, -1);
  EXPECT_EQ(read[1].hints->scheduling_priority, 3);
  EXPECT_EQ(read[1].hints->event_to_record, "e");
  EXPECT_EQ(read[1].hints->events_to_wait, (std::vector<std::string>{"f", "g"}));
  EXPECT_EQ(*Program(std::make_shared<ir::Program>(plain)).Serialize(), *program.Serialize());
}

// Without a file to take it from, the writer adds what Paddle's definitions demand.
TEST(ProgramWrite, PaddleGetsWhatItDemands) {
  heddle::ProgramBuilder b;
  const Variable x = *b.Feed("x", DType::kF32, {2, 3, 4, 4});
  const Variable list = *b.Parameter("list", Tensor::Of<int64_t>(DType::kI64, {1}, {3}));
  const std::vector<int64_t> size = {3}, axes = {0};
  ASSERT_TRUE(b.Add("layer_norm", {{"X", {x}}}).ok());
  ASSERT_TRUE(b.Add("nearest_interp_v2", {{"X", {x}}}, {{"out_h", 8}, {"out_w", 8}}).ok());
  ASSERT_TRUE(b.Add("strided_slice", {{"Input", {x}}},
                    {{"axes", axes}, {"starts", axes}, {"ends", size}, {"strides", size}})
                  .ok());
  ASSERT_TRUE(b.Add("fill_constant", {}, {{"shape", size}, {"value", 1.0}}).ok());
  ASSERT_TRUE(b.Add("linspace", {{"Start", {*b.Parameter("a", F32({1}, {0}))}},
                                 {"Stop", {*b.Parameter("z", F32({1}, {1}))}},
                                 {"Num", {list}}})
                  .ok());
  const auto model = std::move(b).Finish();
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  proto::ProgramDesc desc;
  ASSERT_TRUE(desc.ParseFromString(*model->program.Serialize()));
  std::map<std::string, proto::OpDesc> ops;
  for (const auto& op : desc.blocks(0).ops()) ops[op.type()] = op;
  std::set<std::string> declared, slots;
  for (const auto& var : desc.blocks(0).vars()) declared.insert(var.name());
  for (const auto& out : ops["layer_norm"].outputs()) {
    slots.insert(out.parameter());
    ASSERT_EQ(out.arguments_size(), 1) << out.parameter();
    EXPECT_TRUE(declared.count(out.arguments(0))) << out.arguments(0);
  }
  EXPECT_EQ(slots, (std::set<std::string>{"Y", "Mean", "Variance"}));
  const auto attr = [&](const std::string& op, const std::string& name) {
    for (const auto& a : ops[op].attrs())
      if (a.name() == name) return a;
    return proto::OpDesc_Attr();
  };
  EXPECT_EQ(attr("nearest_interp_v2", "interp_method").s(), "nearest");
  ASSERT_EQ(attr("strided_slice", "infer_flags").ints_size(), 1);
  EXPECT_EQ(attr("strided_slice", "infer_flags").ints(0), 1);
  EXPECT_EQ(attr("fill_constant", "shape").type(), proto::LONGS);
  EXPECT_EQ(ops.count("cast"), 1u) << "Paddle's linspace counts in int32";
  // Read again, it is the same as far as heddle looks.
  const auto again = Program::Parse(*model->program.Serialize(), "again");
  ASSERT_TRUE(again.ok()) << again.status().ToString();
}

TEST(ProgramWrite, UnusedVariablesStayWhereTheyAreWanted) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Var("wanted", DType::kF32, {2}).Var("unused", DType::kF32, {2});
  b.Var("y", DType::kF32, {2}).Scale("x", "y", 2).Fetch("y");
  auto program = std::make_shared<ir::Program>(b.Build().ir());
  program->DropUnusedVars({program->Find(0, "wanted")});
  EXPECT_EQ(program->Find(0, "unused"), ir::kNoVar);
  const ir::VarId wanted = program->Find(0, "wanted");
  ASSERT_NE(wanted, ir::kNoVar);
  EXPECT_EQ(program->vars[wanted].name, "wanted");
}

// The table of names grows; of variables with one name, the first one has it.
TEST(ProgramWrite, ManyVariablesAreFoundByName) {
  ir::Program program;
  program.blocks.resize(1);
  constexpr int kVars = 1000;
  for (int i = 0; i < kVars; ++i) {
    ir::Var var;
    var.name = "v" + std::to_string(i % (kVars / 2));
    program.AddVar(std::move(var));
  }
  for (int i = 0; i < kVars / 2; ++i)
    EXPECT_EQ(program.Find(0, "v" + std::to_string(i)), static_cast<ir::VarId>(i));
  EXPECT_EQ(program.Find(0, "v" + std::to_string(kVars / 2)), ir::kNoVar);
}

TEST(ProgramWrite, UnusedVariablesAreDropped) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {2}).Param("unused", DType::kF32, {2});
  b.Var("also_unused", DType::kF32, {2}).Var("y", DType::kF32, {2});
  b.Scale("x", "y", 2).Fetch("y");
  auto program = std::make_shared<ir::Program>(b.Build().ir());
  program->DropUnusedVars();
  EXPECT_TRUE(Program(program).persistables().empty());
  EXPECT_EQ(program->Find(0, "also_unused"), ir::kNoVar);
  ASSERT_NE(program->Find(0, "y"), ir::kNoVar);
  EXPECT_EQ(program->fetches[0].var, program->Find(0, "y"));
  Executor executor;
  const auto compiled = MustCompile(executor, *Program::Parse(*Program(program).Serialize()));
  EXPECT_EQ(Floats(MustRun(executor, compiled, {{"x", F32({2}, {1, 2})}})[0]),
            (std::vector<float>{2, 4}));
}

}  // namespace
}  // namespace heddle::testing
