// Pickled parameters: what Paddle 2.6.2 wrote (tests/formats/paddle/pickles,
// scripts/make_pickles.py) is read, and nothing a file says is executed.
#include "formats/paddle/pickle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "heddle/params.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFolder = HEDDLE_SOURCE_DIR "/tests/formats/paddle/pickles/";

std::map<std::string, Tensor> MustRead(const std::string& file) {
  auto tensors = ReadPickledTensors(kFolder + file);
  EXPECT_TRUE(tensors.ok()) << file << ": " << tensors.status().ToString();
  std::map<std::string, Tensor> map;
  if (tensors.ok()) map.insert(tensors->begin(), tensors->end());
  return map;
}

class PickleOfProtocol : public ::testing::TestWithParam<int> {
 protected:
  std::string File(const std::string& stem, const std::string& end) const {
    return stem + std::to_string(GetParam()) + end;
  }
};
INSTANTIATE_TEST_SUITE_P(All, PickleOfProtocol, ::testing::Values(2, 3, 4));

TEST_P(PickleOfProtocol, StructuredNamesBecomeThoseOfVariables) {
  const auto tensors = MustRead(File("linear", ".pdparams"));
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors.at("linear_0.w_0").shape(), (Shape{3, 2}));
  EXPECT_THAT(Floats(tensors.at("linear_0.w_0")), ElementsAre(0, .25, .5, .75, 1, 1.25));
  EXPECT_THAT(Floats(tensors.at("linear_0.b_0")), ElementsAre(1, -1));
}

TEST_P(PickleOfProtocol, OptimizerStateIsReadAndTheSchedulersNotesAreNot) {
  const auto tensors = MustRead(File("linear", ".pdopt"));
  EXPECT_EQ(tensors.size(), 8u);
  ASSERT_TRUE(tensors.contains("linear_0.b_0_moment1_0"));
  EXPECT_NEAR(Floats(tensors.at("linear_0.b_0_moment1_0"))[1], 0.1, 1e-6);
  EXPECT_NEAR(Floats(tensors.at("linear_0.w_0_beta2_pow_acc_0"))[0], 0.998001, 1e-6);
}

TEST_P(PickleOfProtocol, EveryDTypeAndOrder) {
  const auto t = MustRead(File("mixed", ".pdparams"));
  ASSERT_EQ(t.size(), 10u);
  EXPECT_THAT(Floats(t.at("f32")), ElementsAre(1.5, 2));
  EXPECT_EQ(t.at("f16").dtype(), DType::kF16);
  EXPECT_EQ(Bits(t.at("f16")), std::string("\0\x3c\0\xc0", 4));
  EXPECT_EQ(t.at("bf16").dtype(), DType::kBF16);
  EXPECT_EQ(Bits(t.at("bf16")), std::string("\x80\x3f\0\xc0", 4));
  EXPECT_TRUE(SameBits(Value(t.at("i64")), Value(I64({1, 2}, {1, -2}))));
  EXPECT_EQ(t.at("bool").dtype(), DType::kBool);
  EXPECT_EQ(Bits(t.at("bool")), std::string("\1\0", 2));
  EXPECT_EQ(t.at("scalar").rank(), 0);
  EXPECT_EQ(t.at("empty").shape(), (Shape{0, 3}));
  EXPECT_EQ(t.at("u8").data<uint8_t>()[0], 200);
  ASSERT_EQ(t.at("columns").dtype(), DType::kF64);  // written column by column
  for (int i = 0; i < 6; ++i) EXPECT_EQ(t.at("columns").data<double>()[i], i);
  EXPECT_THAT(Floats(t.at("number")), ElementsAre(4.5));
}

TEST_P(PickleOfProtocol, NumbersAndTextsAreUnderstood) {
  const std::string bytes = ReadAll(kFolder + File("mixed", ".pdparams"));
  paddle::Pickle pickle;
  ASSERT_TRUE(pickle.Parse(bytes, "mixed").ok());
  const paddle::PickleObject* notes = pickle.root()->Get("notes");
  ASSERT_NE(notes, nullptr);
  ASSERT_EQ(notes->items.size(), 8u);
  EXPECT_EQ(notes->items[0]->number, 1);
  ASSERT_EQ(notes->items[1]->kind, paddle::PickleObject::Kind::kTuple);
  EXPECT_EQ(notes->items[1]->items[1]->number, 3);
  EXPECT_EQ(notes->items[2]->kind, paddle::PickleObject::Kind::kNone);
  EXPECT_EQ(notes->items[4]->real, 2.5);
  EXPECT_EQ(notes->items[5]->number, int64_t{1} << 40);
  EXPECT_EQ(notes->items[6]->number, -1);
  EXPECT_EQ(notes->items[7]->bytes, "é");
  ASSERT_NE(pickle.root()->Get("ordered"), nullptr);
  EXPECT_EQ(pickle.root()->Get("ordered")->Get("a")->number, 1);
}

TEST_P(PickleOfProtocol, DenseTensorsOfAStaticProgram) {
  EXPECT_THAT(Floats(MustRead(File("dense", ".pdparams")).at("fc_0.w_0")),
              ElementsAre(.5, .5, .5, .5, .5, .5));
}

TEST_P(PickleOfProtocol, AProgramTakesParametersAndOptimizerState) {
  ProgramBuilder b;
  b.Param("fc_0.w_0", DType::kF32, {2, 3}).Param("fc_0.b_0", DType::kF32, {3});
  b.Param("fc_0.w_0_velocity_0", DType::kF32, {2, 3});
  b.Param("fc_0.b_0_velocity_0", DType::kF32, {3}).Param("learning_rate_0", DType::kF32, {});
  const Program program = b.Build();
  Scope scope;
  const Status alone = LoadParameters(program, kFolder + File("program", ".pdparams"), scope);
  EXPECT_EQ(alone.code(), StatusCode::kNotFound);
  EXPECT_THAT(alone.message(), HasSubstr("learning_rate_0"));
  EXPECT_TRUE(scope.Names().empty()) << "a failed load must change nothing";
  for (const TensorInfo& info : program.persistables())
    scope.Set(info.name, Tensor::Zeros(info.dtype, info.shape));
  for (const char* end : {".pdparams", ".pdopt"}) {
    const Status s = LoadParameters(program, kFolder + File("program", end), scope);
    ASSERT_TRUE(s.ok()) << s.ToString();
  }
  EXPECT_EQ(Floats(scope.Find("fc_0.w_0")->tensor())[5], 0.5);
  EXPECT_EQ(Floats(scope.Find("learning_rate_0")->tensor())[0], 0.25);
}

TEST(Pickles, AWrongShapeNamesTheParameter) {
  ProgramBuilder b;
  b.Param("linear_0.w_0", DType::kF32, {2, 3}).Param("linear_0.b_0", DType::kF32, {2});
  Scope scope;
  const Status s = LoadParameters(b.Build(), kFolder + "linear4.pdparams", scope);
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  for (const char* part : {"linear4.pdparams", "linear_0.w_0", "float32 [2, 3]", "float32 [3, 2]"})
    EXPECT_THAT(s.message(), HasSubstr(part));
  EXPECT_TRUE(scope.Names().empty());
}

TEST(Pickles, OfAnotherModelAreRefused) {
  ProgramBuilder b;
  b.Param("conv2d_0.w_0", DType::kF32, {1});
  Scope scope;
  const Status s = LoadParameters(b.Build(), kFolder + "linear4.pdparams", scope);
  EXPECT_EQ(s.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(s.message(), HasSubstr("conv2d_0.w_0"));
}

// A file with these bytes, read as parameters.
Status ReadBytes(const std::string& bytes) {
  TempDir dir;
  WriteAll(dir / "p.pdparams", bytes);
  return ReadPickledTensors(dir / "p.pdparams").status();
}

TEST(Pickles, CallablesAreNotCalled) {
  struct Case {
    std::string bytes, told;
  };
  const std::string text = std::string("X\x05\0\0\0", 5);  // a text of five bytes follows
  const Case cases[] = {
      {"\x80\x02"
       "cos\nsystem\n" +
           text + "touch\x85R.",
       "os.system"},
      {"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.", "posix.system"},
      {"\x80\x02"
       "cbuiltins\nexec\n" +
           text + "1 + 1\x85R.",
       "builtins.exec"},
      {"\x80\x02"
       "c__builtin__\neval\n" +
           text + "1 + 1}\x86R.",
       "builtins.eval"},
      {"\x80\x02"
       "cpaddle\nTensor\n).",
       "paddle.Tensor"},
      {"\x80\x02"
       "cnumpy\nload\n" +
           text + "a.npy\x85R.",
       "numpy.load"},
  };
  for (const Case& c : cases) {
    const Status s = ReadBytes(c.bytes);
    EXPECT_EQ(s.code(), StatusCode::kUnimplemented) << s.ToString();
    EXPECT_THAT(s.message(), HasSubstr(c.told));
    EXPECT_THAT(s.message(), HasSubstr("p.pdparams"));
  }
}

TEST(Pickles, OtherProtocolsAndInstructionsAreNamed) {
  EXPECT_THAT(ReadBytes("\x80\x05}.").message(), HasSubstr("protocol 5"));
  EXPECT_THAT(ReadBytes("\x80\x02)\x81.").message(), HasSubstr("129"));     // NEWOBJ
  EXPECT_THAT(ReadBytes("\x80\x02P1\n.").message(), HasSubstr("80"));       // PERSID
  EXPECT_EQ(ReadBytes("\x80\x02].").code(), StatusCode::kInvalidArgument);  // no dict
}

TEST(Pickles, WrongFormsAreDamage) {
  for (const std::string& bytes :
       {std::string("\x80\x02."), std::string("\x80\x02u."), std::string("\x80\x02(}u."),
        std::string("\x80\x02h\x07."), std::string("\x80\x02}K\x01s."), std::string("\x80\x02NNR."),
        std::string("\x80\x02"
                    "cnumpy\nndarray\n)R."),
        std::string("\x80\x02N)b."), std::string("\x80\x02(K\x01}K\x02s."),
        std::string("\x80\x02(0.")}) {
    const Status s = ReadBytes(bytes);
    EXPECT_FALSE(s.ok());
  }
}

TEST(Pickles, CutAnywhereFails) {
  for (const char* file : {"mixed2.pdparams", "mixed4.pdparams"}) {
    const std::string all = ReadAll(kFolder + file);
    for (size_t n = 0; n < all.size(); ++n) {
      const std::string part = all.substr(0, n);
      paddle::Pickle pickle;
      const Status s = pickle.Parse(part, file);
      ASSERT_FALSE(s.ok()) << n;
      ASSERT_EQ(s.code(), StatusCode::kDataLoss) << n << ": " << s.ToString();
    }
  }
}

// What a damaged file leads to does not matter, as long as it is a value or an error.
TEST(Pickles, DamageIsSurvived) {
  std::mt19937 random(1);
  for (const char* file : {"mixed2.pdparams", "mixed4.pdparams", "linear4.pdopt"}) {
    const std::string all = ReadAll(kFolder + file);
    int failed = 0;
    for (int i = 0; i < 3000; ++i) {
      std::string bytes = all;
      for (int k = 0; k < 1 + i % 3; ++k)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      paddle::Pickle pickle;
      failed += !pickle.Parse(bytes, file).ok();
    }
    EXPECT_GT(failed, 0);
  }
}

// Parts of an array that was too large for protocol 2 or 3, as paddle.save cuts it.
TEST(Pickles, ArraysInPartsAreJoined) {
  const auto text = [](const std::string& s) {
    return "\x8c" + std::string(1, static_cast<char>(s.size())) + s;
  };
  const auto array = [&](float a, float b) {
    std::string data(8, '\0');
    std::memcpy(data.data(), &a, 4);
    std::memcpy(data.data() + 4, &b, 4);
    return text("numpy.core.multiarray") + text("_reconstruct") + "\x93" + text("numpy") +
           text("ndarray") + "\x93" + std::string("K\0\x85", 3) + "C\1b\x87R(K\1K\2\x85" +
           text("numpy") + text("dtype") + "\x93" + text("f4") + "\x89\x88\x87R\x89" + "C\x08" +
           data + "tb";
  };
  const auto pickled = [&](const std::string& rows) {
    return "\x80\x04}(" + text("w@@.0") + array(1, 2) + text("w@@.1") + array(3, 4) +
           text("UnpackBigParamInfor@@") + "}" + text("w") + "}(" + text("OriginShape") + "K" +
           rows + "K\2\x86" + text("slices") + "](" + text("w@@.0") + text("w@@.1") + "eusu.";
  };
  TempDir dir;
  WriteAll(dir / "w", pickled("\2"));
  const auto tensors = ReadPickledTensors(dir / "w");
  ASSERT_TRUE(tensors.ok()) << tensors.status().ToString();
  ASSERT_EQ(tensors->size(), 1u);
  EXPECT_EQ((*tensors)[0].first, "w");
  EXPECT_EQ((*tensors)[0].second.shape(), (Shape{2, 2}));
  EXPECT_THAT(Floats((*tensors)[0].second), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(ReadBytes(pickled("\3")).message(), HasSubstr("'w'"));
}

}  // namespace
}  // namespace heddle::testing
