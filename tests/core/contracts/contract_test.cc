// What a contract demands of a call, and what it says of the outputs.
#include "core/contracts/contract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/bound_op.h"

namespace heddle::contracts {
namespace {

using ::testing::HasSubstr;

struct Given {
  DType dtype;
  Shape shape;
};

// A call of an operator with inputs X, Y and the list Zs, the outputs Out and Other, and some
// attributes.
class ContractTest : public ::testing::Test {
 protected:
  ContractTest() : def_("tested") {
    def_.Input("X").Input("Y", kOptional).Input("Zs", kList | kOptional);
    def_.Output("Out").Output("Other", kOptional);
    def_.Attr("groups", 1).Attr("axis", -1).Attr("mode", "mean").Attr("strides", Ints{1, 1});
    def_.Attr("epsilon", 1e-5);
    for (const AttrDef& attr : def_.attrs()) attrs_.push_back(attr.default_value);
  }

  template <typename T>
  void Set(const std::string& attr, T value) {
    attrs_[static_cast<size_t>(def_.FindAttr(attr))] = std::move(value);
  }

  // The error of a call under a contract; "" if there is none.
  std::string Check(std::string_view text, std::vector<Given> x, std::vector<Given> y = {},
                    std::vector<Given> zs = {}) {
    return Call(text, {std::move(x), std::move(y), std::move(zs)}, nullptr);
  }
  // The outputs that it tells.
  std::vector<ShapeContext::OutMeta> Infer(std::string_view text, std::vector<Given> x,
                                           std::vector<Given> y = {}) {
    std::vector<ShapeContext::OutMeta> outs;
    EXPECT_EQ(Call(text, {std::move(x), std::move(y), {}}, &outs), "");
    return outs;
  }

  std::string Call(std::string_view text, const std::vector<std::vector<Given>>& inputs,
                   std::vector<ShapeContext::OutMeta>* outs) {
    const auto contract = Contract::Parse(text, def_);
    if (!contract.ok()) return contract.status().message();
    BoundOp op;
    op.def = &def_;
    op.attrs = attrs_.data();
    std::vector<std::unique_ptr<Value>> values;
    std::vector<Value*> frame;
    std::vector<uint32_t> in, in_begin{0}, out, out_begin{0};
    const auto add = [&](const Given* given) {
      values.push_back(std::make_unique<Value>());
      if (given != nullptr) {
        Tensor t;
        t.SetMeta(given->dtype, given->shape);
        *values.back() = Value(std::move(t));
      }
      frame.push_back(values.back().get());
      return static_cast<uint32_t>(frame.size() - 1);
    };
    for (const auto& slot : inputs) {
      for (const Given& given : slot) in.push_back(add(&given));
      in_begin.push_back(static_cast<uint32_t>(in.size()));
    }
    for (size_t o = 0; o < 2; ++o) {
      out.push_back(add(nullptr));
      out_begin.push_back(static_cast<uint32_t>(out.size()));
    }
    op.in = IdList(in);
    op.in_begin = IdList(in_begin);
    op.out = IdList(out);
    op.out_begin = IdList(out_begin);
    ShapeContext ctx(op, frame.data());
    const Status status = outs != nullptr ? (*contract)->Infer(ctx) : (*contract)->Check(ctx);
    if (outs != nullptr) *outs = ctx.outs();
    return status.ok() ? "" : status.message();
  }

  OpDef def_;
  std::vector<AttrValue> attrs_;
};

constexpr DType kF = DType::kF32, kI = DType::kI64;

TEST_F(ContractTest, DTypesAreOfAGroupOrThoseOfAnotherOperand) {
  EXPECT_EQ(Check("X: float", {{kF, {2}}}), "");
  EXPECT_EQ(Check("X: float", {{kI, {2}}}), "X has dtype int64, expected float");
  EXPECT_EQ(Check("X: float32|index", {{kI, {2}}}), "");
  EXPECT_EQ(Check("X: float; Y: as X", {{kF, {2}}}, {{kF, {3}}}), "");
  EXPECT_EQ(Check("X: float; Y: as X", {{kF, {2}}}, {{kI, {3}}}),
            "Y has dtype int64, expected float32 as X");
  EXPECT_EQ(Check("X: float; Y: as X", {{DType::kUnknown, {2}}}, {{kI, {3}}}), "");
}

TEST_F(ContractTest, LettersStandForOneDimension) {
  const auto text = "X: any [N, C, ...]; Y: as X [C]";
  EXPECT_EQ(Check(text, {{kF, {2, 3, 4, 5}}}, {{kF, {3}}}), "");
  EXPECT_EQ(Check(text, {{kF, {2, 3}}}), "");  // Y is absent
  EXPECT_EQ(Check(text, {{kF, {2, 3, 4}}}, {{kF, {4}}}),
            "Y has shape [4], expected 3 as dimension 0 of [C]");
  EXPECT_EQ(Check(text, {{kF, {2}}}), "X has shape [2], expected rank 2 or more, [N, C, ...]");
  EXPECT_EQ(Check(text, {{kF, {2, 3}}}, {{kF, {3, 1}}}),
            "Y has shape [3, 1], expected rank 1, [C]");
}

TEST_F(ContractTest, WhatIsNotKnownIsNotChecked) {
  const auto text = "X: any [N, C]; Y: as X [C]";
  EXPECT_EQ(Check(text, {{kF, {2, -1}}}, {{kF, {4}}}), "");
  EXPECT_EQ(Check(text, {{kF, Shape::Unknown()}}, {{kF, {4}}}), "");
  EXPECT_EQ(Check(text, {{kF, {2, 3}}}, {{kF, {-1}}}), "");
}

TEST_F(ContractTest, DimensionsAreProductsAndQuotients) {
  Set("groups", int64_t{2});
  const auto text = "X: any [N, C]; Y: as X [2*N, C/groups]";
  EXPECT_EQ(Check(text, {{kF, {3, 8}}}, {{kF, {6, 4}}}), "");
  EXPECT_THAT(Check(text, {{kF, {3, 8}}}, {{kF, {6, 8}}}),
              HasSubstr("expected 4 as dimension 1 of [2*N, C/groups]"));
  EXPECT_THAT(Check(text, {{kF, {3, 7}}}, {{kF, {6, 3}}}),
              HasSubstr("C/groups is no whole number"));
}

TEST_F(ContractTest, DotsStandForTheSameDimensions) {
  EXPECT_EQ(Check("X: any [..., K]; Y: any [..., L]", {{kF, {2, 3, 4}}}, {{kF, {2, 3, 5}}}), "");
  EXPECT_EQ(Check("X: any [..., K]; Y: any [..., L]", {{kF, {2, 3, 4}}}, {{kF, {2, 4, 5}}}),
            "Y has shape [2, 4, 5], expected [..., L] with [2, 3] for the dots");
  EXPECT_EQ(Check("X: any [..., K]; Y: any [..._, K]", {{kF, {2, 3, 4}}}, {{kF, {9, 4}}}), "");
}

TEST_F(ContractTest, CountsAndLikeness) {
  EXPECT_EQ(Check("Y: count X", {{kF, {2, 3}}}, {{kF, {6}}}), "");
  EXPECT_EQ(Check("Y: count X", {{kF, {2, 3}}}, {{kF, {5}}}),
            "Y has shape [5], expected as many elements as X [2, 3]");
  EXPECT_EQ(Check("X: any [N, C]; Y: count 2*C", {{kF, {2, 3}}}, {{kF, {5, 1}}}),
            "Y has shape [5, 1], expected 6 elements (2*C)");
  EXPECT_EQ(Check("X: any [N, C]; Y: count N", {{kF, {2, 3}}}, {{kF, {1, 2}}}), "");
  EXPECT_EQ(Check("Y: like X", {{kF, {2, 3}}}, {{kF, {3, 2}}}),
            "Y has shape [3, 2], expected [2, 3] as X");
  EXPECT_EQ(Check("Y: one", {{kF, {2}}}, {{kF, {1, 1}}}), "");
  EXPECT_EQ(Check("Y: one", {{kF, {2}}}, {{kF, {0}}}), "Y has shape [0], expected one element");
  EXPECT_EQ(Check("Zs: like X", {{kF, {2}}}, {}, {{kF, {2}}, {kF, {3}}}),
            "Zs[1] has shape [3], expected [2] as X");
}

TEST_F(ContractTest, AttributesHaveRanges) {
  EXPECT_EQ(Check("X: any [N, C]; groups: 1.. divides C", {{kF, {2, 6}}}), "");
  Set("groups", int64_t{4});
  EXPECT_EQ(Check("X: any [N, C]; groups: 1.. divides C", {{kF, {2, 6}}}),
            "attribute groups is 4, expected a divisor of C, which is 6");
  Set("groups", int64_t{0});
  EXPECT_EQ(Check("groups: 1..", {{kF, {2}}}), "attribute groups is 0, expected 1 or more");
  EXPECT_EQ(Check("groups: 1..8", {{kF, {2}}}), "attribute groups is 0, expected 1 to 8");
  EXPECT_EQ(Check("epsilon: >0", {{kF, {2}}}), "");
  Set("epsilon", 0.0);
  EXPECT_EQ(Check("epsilon: >0", {{kF, {2}}}), "attribute epsilon is 0, expected more than 0");
  Set("axis", int64_t{2});
  EXPECT_EQ(Check("axis: axis X", {{kF, {2, 3, 4}}}), "");
  EXPECT_EQ(Check("axis: axis X", {{kF, {2, 3}}}),
            "attribute axis is 2, expected an axis of X [2, 3]");
  Set("strides", Ints{1, 0});
  EXPECT_EQ(Check("strides: 1..", {{kF, {2}}}), "attribute strides[1] is 0, expected 1 or more");
  EXPECT_EQ(Check("strides: length 3", {{kF, {2}}}),
            "attribute strides has 2 elements, expected 3");
  EXPECT_EQ(Check("mode: mean|sum|none", {{kF, {2}}}), "");
  Set("mode", std::string("most"));
  EXPECT_EQ(Check("mode: mean|sum", {{kF, {2}}}),
            "attribute mode is 'most', expected one of mean, sum");
}

TEST_F(ContractTest, OutputsAreTold) {
  const auto outs =
      Infer("X: any [N, C, ...]; Out: as X [N, ..., 2*C]; Other: int64 [C]", {{kF, {2, 3, 4, 5}}});
  ASSERT_EQ(outs.size(), 2u);
  EXPECT_EQ(outs[0].shape, (Shape{2, 4, 5, 6}));
  EXPECT_EQ(outs[0].dtype, kF);
  EXPECT_EQ(outs[1].shape, (Shape{3}));
  EXPECT_EQ(outs[1].dtype, kI);
  EXPECT_EQ(Infer("Out: like X; Other: like X", {{kI, {2, -1}}})[0].shape, (Shape{2, -1}));
  // Y and Zs are absent, and Zs is the last slot.
  EXPECT_EQ(Infer("Out: like X; Other: like Zs", {{kF, {2}}})[1].dtype, DType::kUnknown);
  EXPECT_EQ(Infer("Out: like Y; Other: like X", {{kF, {2}}})[0].shape, Shape::Unknown());
  EXPECT_EQ(Infer("X: any [N, ...]; Out: as X [N, ...]; Other: like X", {{kF, Shape::Unknown()}})[0]
                .shape,
            Shape::Unknown());
}

TEST_F(ContractTest, LikenessMayBeOfTheShapeAlone) {
  EXPECT_EQ(Check("Y: int64 like X", {{kF, {2, 3}}}, {{kI, {2, 3}}}), "");
  EXPECT_EQ(Check("Y: int64 like X", {{kF, {2, 3}}}, {{kF, {2, 3}}}),
            "Y has dtype float32, expected int64");
  const auto outs = Infer("Out: like X; Other: int64 like X", {{kF, {2, 3}}});
  EXPECT_EQ(outs[1].shape, (Shape{2, 3}));
  EXPECT_EQ(outs[1].dtype, kI);
  EXPECT_EQ(
      Infer("X: any [N, ...]; Out: as X [N, ...] lod X; Other: like X", {{kF, {2, 3}}})[0].shape,
      (Shape{2, 3}));
}

TEST_F(ContractTest, AxesOfAListMayHaveToDiffer) {
  const auto text = "strides: axis X distinct";
  Set("strides", Ints{1, -1});
  EXPECT_EQ(Check(text, {{kF, {2, 3, 4}}}), "");
  EXPECT_EQ(Check(text, {{kF, {2, 3}}}),
            "attribute strides[1] is -1, expected another axis than [0]");
  EXPECT_EQ(Check(text, {{kF, Shape::Unknown()}}), "");
  EXPECT_THAT(Check("strides: distinct", {{kF, {2}}}), HasSubstr("'distinct' without 'axis'"));
  EXPECT_THAT(Check("X: lod Y", {{kF, {2}}}), HasSubstr("says the LoD of an input"));
}

TEST_F(ContractTest, TextsThatFollowNoRuleAreRefused) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"X", "has no ':'"},
           {"X:", "demands nothing"},
           {"Q: float", "names 'Q', which is no slot or attribute"},
           {"X: flaot", "has the word 'flaot'"},
           {"X: as Q", "names no input 'Q'"},
           {"X: [N, C", "has no ']'"},
           {"X: [..., N, ...]", "has dots twice"},
           {"X: [mode]", "counts with 'mode', which is no integer"},
           {"X: [N-1]", "has the dimension 'N-1'"},
           {"Out: as X one", "counts elements of an output"},
           {"groups: >x", "has no number in '>x'"},
           {"groups: a..b", "has no numbers in 'a..b'"},
           {"groups: many", "has words for an attribute that is no text"}})
    EXPECT_THAT(Check(text, {{kF, {2}}}), HasSubstr(why)) << text;
}

}  // namespace
}  // namespace heddle::contracts
