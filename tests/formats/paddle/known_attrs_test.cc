// What is parsed lacks the attributes that no definition has, and nothing else.
#include "formats/paddle/known_attrs.h"

#include <gtest/gtest.h>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

void AddText(proto::OpDesc* op, std::string_view name) {
  auto* attr = op->add_attrs();
  attr->set_name(std::string(name));
  attr->set_type(proto::STRING);
  attr->set_s("text");
}

ProgramBuilder WithOthersAttrs() {
  ProgramBuilder b;
  b.Feed("x", DType::kF32, {-1, 2});
  b.Scale("x", "y", 2).Fetch("y");
  for (auto& op : *b.desc().mutable_blocks(0)->mutable_ops())
    for (const char* name : {"op_namescope", "use_mkldnn", "op_device", "events_to_wait"})
      AddText(&op, name);
  return b;
}

std::vector<std::string> NamesOf(const proto::OpDesc& op) {
  std::vector<std::string> names;
  for (const auto& attr : op.attrs()) names.push_back(attr.name());
  return names;
}

TEST(KnownAttrs, OthersAreTakenOut) {
  const ProgramBuilder b = WithOthersAttrs();
  proto::ProgramDesc got;
  ASSERT_TRUE(got.ParseFromString(paddle::WithKnownAttrs(b.Bytes())));
  ASSERT_EQ(got.blocks(0).ops_size(), 3);
  auto want = NamesOf(ProgramBuilder(b).desc().blocks(0).ops(1));
  EXPECT_EQ(std::erase(want, "op_namescope") + std::erase(want, "use_mkldnn"), 2u);
  EXPECT_EQ(NamesOf(got.blocks(0).ops(1)), want);
  for (int op : {0, 2})  // those of feeds and fetches stay
    EXPECT_EQ(got.blocks(0).ops(op).SerializeAsString(),
              ProgramBuilder(b).desc().blocks(0).ops(op).SerializeAsString());
  EXPECT_EQ(got.blocks(0).vars_size(), ProgramBuilder(b).desc().blocks(0).vars_size());
}

TEST(KnownAttrs, OfAnUnknownOperatorAllStay) {
  ProgramBuilder b = WithOthersAttrs();
  b.desc().mutable_blocks(0)->mutable_ops(1)->set_type("no_such_operator");
  EXPECT_EQ(paddle::WithKnownAttrs(b.Bytes()), b.Bytes());
}

// The meaning of leaky_relu depends on its version, that of scale does not.
TEST(KnownAttrs, VersionsAreKeptWhereAnOperatorDependsOnThem) {
  for (const bool depends : {false, true}) {
    ProgramBuilder b = WithOthersAttrs();
    auto* pair = b.desc().mutable_op_version_map()->add_pair();
    pair->set_op_name("leaky_relu");
    pair->mutable_op_version()->set_version(1);
    if (depends) b.Unary("leaky_relu", "x", "z");
    proto::ProgramDesc got;
    ASSERT_TRUE(got.ParseFromString(paddle::WithKnownAttrs(b.Bytes())));
    EXPECT_EQ(got.op_version_map().pair_size(), depends ? 1 : 0);
  }
}

TEST(KnownAttrs, WithoutATypeIsAnError) {
  ProgramBuilder b = WithOthersAttrs();
  for (auto& attr : *b.desc().mutable_blocks(0)->mutable_ops(1)->mutable_attrs())
    if (attr.name() == "use_mkldnn") attr.clear_type();
  EXPECT_EQ(Program::Parse(b.desc().SerializePartialAsString()).status().code(),
            StatusCode::kDataLoss);
}

// Cut anywhere or with a bit changed: no crash, and no program of another shape.
TEST(KnownAttrs, DamagedFiles) {
  const std::string bytes = WithOthersAttrs().Bytes();
  for (size_t n = 0; n < bytes.size(); ++n) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = bytes;
      changed[n] = static_cast<char>(changed[n] ^ 1 << bit);
      const std::string known = paddle::WithKnownAttrs(changed);
      proto::ProgramDesc want, got;
      if (known.empty() || !want.ParsePartialFromString(changed)) continue;
      ASSERT_TRUE(got.ParsePartialFromString(known));
      ASSERT_EQ(got.blocks_size(), want.blocks_size());
      for (int b = 0; b < got.blocks_size(); ++b)
        ASSERT_EQ(got.blocks(b).ops_size(), want.blocks(b).ops_size());
    }
    proto::ProgramDesc cut;
    const std::string known = paddle::WithKnownAttrs(std::string_view(bytes).substr(0, n));
    EXPECT_TRUE(known.empty() || cut.ParsePartialFromString(known));
  }
}

}  // namespace
}  // namespace heddle::testing
