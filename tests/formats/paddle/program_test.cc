// Reading programs: the wire format, attributes, ports, names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/programs/ir.h"
#include "formats/paddle/attr_convert.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

TEST(WireFormat, EveryRecordedProgramIsRewrittenByteForByte) {
  const std::vector<std::string> files = ModelFiles(".pdmodel");
  ASSERT_FALSE(files.empty());
  for (const std::string& file : files) {
    const std::string bytes = ReadAll(file);
    proto::ProgramDesc desc;
    ASSERT_TRUE(desc.ParseFromString(bytes)) << file;
    ASSERT_EQ(desc.SerializeAsString() == bytes, true) << file;
    auto program = Program::Parse(bytes, file);
    if (!program.ok()) {  // only operators that are not there yet are an excuse
      EXPECT_EQ(program.status().code(), StatusCode::kUnimplemented) << program.status().ToString();
      continue;
    }
    int ops = 0;
    for (const auto& block : desc.blocks())
      for (const auto& op : block.ops()) ops += op.type() != "feed" && op.type() != "fetch";
    EXPECT_EQ(program->num_ops(), ops) << file;
    EXPECT_EQ(program->num_blocks(), desc.blocks_size()) << file;
    EXPECT_EQ(program->version(), desc.version().version()) << file;
  }
  if (SharedDir().empty()) std::printf("no shared folder: only the repository's own programs\n");
}

TEST(Program, InputsAndOutputsComeInTheOrderOfCol) {
  ProgramBuilder b;
  b.Feed("first", DType::kF32, {-1, 3}).Feed("second", DType::kI64, {2});
  b.Scale("first", "y", 2).Scale("first", "z", 3).Fetch("z").Fetch("y");
  auto* ops = b.desc().mutable_blocks(0)->mutable_ops();
  ops->SwapElements(0, 1);  // the file may hold them in any order
  ops->SwapElements(4, 5);
  const Program p = b.Build();
  ASSERT_EQ(p.inputs().size(), 2u);
  EXPECT_EQ(p.inputs()[0].name, "first");
  EXPECT_EQ(p.inputs()[0].shape, (Shape{-1, 3}));
  EXPECT_EQ(p.inputs()[1].name, "second");
  EXPECT_EQ(p.inputs()[1].dtype, DType::kI64);
  ASSERT_EQ(p.outputs().size(), 2u);
  EXPECT_EQ(p.outputs()[0].name, "z");
  EXPECT_EQ(p.outputs()[1].name, "y");
  EXPECT_EQ(p.num_ops(), 2);
}

TEST(Program, PersistablesAreSortedBytewise) {
  ProgramBuilder b;
  for (const char* name : {"b", "B", "a_10", "a_2", "_x", "a"}) b.Param(name, DType::kF32, {1});
  std::vector<std::string> names;
  for (const TensorInfo& info : b.Build().persistables()) names.push_back(info.name);
  EXPECT_EQ(names, (std::vector<std::string>{"B", "_x", "a", "a_10", "a_2", "b"}));
}

TEST(Program, ANameMayMeanAnotherVariableInAnInnerBlock) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  const int inner = b.Block(0);
  b.In(inner).Var("x", DType::kI64, {7});
  const Program p = b.In(0).Build();
  const ir::Program& ir = p.ir();
  EXPECT_NE(ir.Find(0, "x"), ir.Find(inner, "x"));
  EXPECT_EQ(ir.vars[ir.Find(inner, "x")].dtype, DType::kI64);
  EXPECT_EQ(ir.Find(inner, "nobody"), ir::kNoVar);
  EXPECT_EQ(ir.Find(inner, "feed"), ir.Find(0, "feed"));
}

TEST(Program, HashFollowsTheBytes) {
  ProgramBuilder a, b;
  a.Fill("x", {1}, 1);
  b.Fill("x", {1}, 2);
  EXPECT_EQ(a.Build().hash(), a.Build().hash());
  EXPECT_NE(a.Build().hash(), b.Build().hash());
}

TEST(Program, AttributesHaveTheirDefaultsAndTheirDeclaredTypes) {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {1});
  b.Op("scale", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"scale", 3}});  // an int for a float
  b.Op("scale", {{"X", {"x"}}}, {{"Out", {"z"}}}, {{"no_such_attribute", "ignored"}});
  const Program p = b.Build();
  const auto& ops = p.ir().blocks[0].ops;
  EXPECT_EQ(ops[0].Attr<double>("scale"), 3.0);
  EXPECT_EQ(ops[0].Attr<bool>("bias_after_scale"), true);
  EXPECT_EQ(ops[1].Attr<double>("scale"), 1.0);
  EXPECT_EQ(ops[0].index, 1);  // as in the file, feeds included
}

// --- attributes ---
proto::OpDesc_Attr Attr(proto::AttrType type) {
  proto::OpDesc_Attr a;
  a.set_name("a");
  a.set_type(type);
  return a;
}

template <typename T>
T Converted(const proto::OpDesc_Attr& a, const T& like) {
  auto r = paddle::ConvertAttr(a, AttrValue(like));
  EXPECT_TRUE(r.ok()) << r.status().ToString();
  return r.ok() ? std::get<T>(*r) : T{};
}

TEST(Attributes, NumbersOfEveryWidth) {
  auto a = Attr(proto::INT);
  a.set_i(-7);
  EXPECT_EQ(Converted<int64_t>(a, 0), -7);
  EXPECT_EQ(Converted<double>(a, 0), -7.0);
  EXPECT_EQ(Converted<Ints>(a, {}), (Ints{-7}));
  EXPECT_EQ(Converted<bool>(a, false), true);
  a = Attr(proto::LONG);
  a.set_l(int64_t{1} << 40);
  EXPECT_EQ(Converted<int64_t>(a, 0), int64_t{1} << 40);
  a = Attr(proto::FLOAT);
  a.set_f(0.1f);
  EXPECT_FLOAT_EQ(static_cast<float>(Converted<double>(a, 0)), 0.1f);
  a = Attr(proto::FLOAT64);
  a.set_float64(0.1);
  EXPECT_EQ(Converted<double>(a, 0), 0.1);
  a = Attr(proto::BOOLEAN);
  a.set_b(true);
  EXPECT_EQ(Converted<bool>(a, false), true);
  EXPECT_EQ(Converted<int64_t>(a, 0), 1);
}

TEST(Attributes, ScalarsOfEveryKind) {
  auto a = Attr(proto::SCALAR);
  a.mutable_scalar()->set_type(proto::Scalar::LONG);
  a.mutable_scalar()->set_i(5);
  EXPECT_EQ(Converted<int64_t>(a, 0), 5);
  EXPECT_EQ(Converted<double>(a, 0), 5.0);
  a.mutable_scalar()->set_type(proto::Scalar::FLOAT64);
  a.mutable_scalar()->set_r(2.5);
  EXPECT_EQ(Converted<double>(a, 0), 2.5);
  a.mutable_scalar()->set_type(proto::Scalar::BOOLEAN);
  a.mutable_scalar()->set_b(true);
  EXPECT_EQ(Converted<bool>(a, false), true);
  a = Attr(proto::SCALARS);
  for (int k = 0; k < 3; ++k) {
    a.add_scalars()->set_type(proto::Scalar::LONG);
    a.mutable_scalars(k)->set_i(k);
  }
  EXPECT_EQ(Converted<Ints>(a, {}), (Ints{0, 1, 2}));
  EXPECT_EQ(Converted<std::vector<double>>(a, {}), (std::vector<double>{0, 1, 2}));
}

TEST(Attributes, ListsAndTexts) {
  auto a = Attr(proto::INTS);
  a.add_ints(1);
  a.add_ints(-2);
  EXPECT_EQ(Converted<Ints>(a, {}), (Ints{1, -2}));
  EXPECT_FALSE(paddle::ConvertAttr(a, AttrValue(int64_t{0})).ok());  // two for one
  a = Attr(proto::FLOATS);
  a.add_floats(0.5f);
  EXPECT_EQ(Converted<std::vector<double>>(a, {}), (std::vector<double>{0.5}));
  EXPECT_EQ(Converted<double>(a, 0), 0.5);
  a = Attr(proto::BOOLEANS);
  a.add_bools(true);
  a.add_bools(false);
  EXPECT_EQ(Converted<Ints>(a, {}), (Ints{1, 0}));
  a = Attr(proto::STRING);
  a.set_s("text");
  EXPECT_EQ(Converted<std::string>(a, ""), "text");
  EXPECT_EQ(Converted<Strings>(a, {}), (Strings{"text"}));
  auto wrong = paddle::ConvertAttr(a, AttrValue(int64_t{0}));
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(wrong.status().message(), ::testing::HasSubstr("'a'"));
  a = Attr(proto::BLOCK);
  a.set_block_idx(3);
  EXPECT_EQ(Converted<BlockRef>(a, {}).id, 3);
}

// Programs with fused loops from before operators got the attributes that come last.
TEST(Program, FusedLoopsOfEarlierBuildsHaveTheDefaultsOfLaterAttributes) {
  const auto run = [](const Strings& ops, const std::vector<double>& values, const Ints& code) {
    ProgramBuilder b;
    b.Feed("x", DType::kF32, {2, 2});
    const auto last = static_cast<int64_t>(ops.size());
    b.Op("fused_elementwise", {{"X", {"x"}}}, {{"Out", {"y"}}},
         {{"ops", ops}, {"values", values}, {"code", code}, {"outs", Ints{last}}});
    b.Fetch("y");
    Executor executor({.threads = 1});
    auto compiled = executor.Compile(b.Build(), nullptr, {});
    if (!compiled.ok()) return compiled.status().ToString();
    const Tensor x = F32({2, 2}, {-1, std::numeric_limits<float>::quiet_NaN(), 2, 1e38F});
    const auto out = executor.Run(*compiled, {{"x", x}});
    if (!out.ok()) return out.status().ToString();
    std::string text;
    for (const float v : Floats((*out)[0])) text += std::isnan(v) ? "nan " : StrCat(v, " ");
    return text;
  };
  EXPECT_EQ(run({"relu"}, {}, {0, 0}), "0 0 2 1e+38 ");
  EXPECT_EQ(run({"relu"}, {0}, {0, 0}), "0 0 2 1e+38 ");
  EXPECT_EQ(run({"relu"}, {1}, {0, 0}), "0 nan 2 1e+38 ");
  EXPECT_EQ(run({"hard_swish"}, {6, 6, 3}, {0, 0}), run({"hard_swish"}, {6, 6, 3, 0}, {0, 0}));
  EXPECT_NE(run({"hard_swish"}, {6, 6, 3}, {0, 0}), run({"hard_swish"}, {6, 6, 3, 1}, {0, 0}));
  // One kind after another, reshapes and operators without such an attribute among them.
  const Ints code{0, 0, 1, 1, 2, 2, 3, 3, 0};
  EXPECT_EQ(
      run({"relu", "reshape2", "scale", "elementwise_max"}, {2, 2, 2, 3, -1, 1, -1}, code),
      run({"relu", "reshape2", "scale", "elementwise_max"}, {0, 2, 2, 2, 3, -1, 1, -1, 0}, code));
  // Neither form.
  EXPECT_NE(run({"relu"}, {0, 0}, {0, 0}).find("attribute values"), std::string::npos);
  EXPECT_NE(run({"relu", "reshape2"}, {1e300}, {0, 0, 1, 1}).find("attribute values"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
