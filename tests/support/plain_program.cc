#include "tests/support/plain_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "core/shapes.h"

namespace heddle::testing {
namespace {

[[noreturn]] void Unknown(const std::string& type) {
  std::fprintf(stderr, "no plain evaluation of %s\n", type.c_str());
  std::abort();
}

float Apply(const std::string& type, float x) {
  if (type == "assign") return x;
  if (type == "relu") return std::max(x, 0.f);
  if (type == "tanh") return std::tanh(x);
  if (type == "sigmoid") return 1 / (1 + std::exp(-x));
  if (type == "logical_not") return x == 0 ? 1.f : 0.f;
  Unknown(type);
}

float Apply(const std::string& type, float x, float y) {
  if (type == "elementwise_add") return x + y;
  if (type == "elementwise_sub") return x - y;
  if (type == "elementwise_mul") return x * y;
  if (type == "less_than") return x < y ? 1.f : 0.f;
  if (type == "equal") return x == y ? 1.f : 0.f;
  Unknown(type);
}

void RunAll(const std::vector<PlainProgram::Step>& steps, PlainProgram::Values& values) {
  for (const auto& step : steps) step(values);
}

}  // namespace

PlainProgram::Values PlainProgram::Evaluate(Values values) const {
  RunAll(steps_, values);
  return values;
}

PlainProgram& PlainProgram::Var(const std::string& name, const Shape& shape, DType dtype) {
  b_.Var(name, dtype, shape);
  return *this;
}

PlainProgram& PlainProgram::Unary(const std::string& type, const std::string& x,
                                  const std::string& out) {
  b_.Unary(type, x, out);
  Then([=](Values& v) {
    Numbers y = v.at(x);
    for (float& e : y) e = Apply(type, e);
    v[out] = y;
  });
  return *this;
}

PlainProgram& PlainProgram::Binary(const std::string& type, const std::string& x,
                                   const std::string& y, const std::string& out) {
  b_.Binary(type, x, y, out);
  Then([=](Values& v) {
    Numbers z = v.at(x);
    const Numbers& other = v.at(y);
    for (size_t i = 0; i < z.size(); ++i)
      z[i] = Apply(type, z[i], other.at(other.size() == 1 ? 0 : i));
    v[out] = z;
  });
  return *this;
}

PlainProgram& PlainProgram::Scale(const std::string& x, const std::string& out, float scale,
                                  float bias) {
  b_.Scale(x, out, scale, bias);
  Then([=](Values& v) {
    Numbers y = v.at(x);
    for (float& e : y) e = e * scale + bias;
    v[out] = y;
  });
  return *this;
}

PlainProgram& PlainProgram::Fill(const std::string& out, const Ints& shape, float value,
                                 DType dtype) {
  b_.Fill(out, shape, value, dtype);
  size_t count = 1;
  for (int64_t d : shape) count *= static_cast<size_t>(d);
  Then([=](Values& v) { v[out] = Numbers(count, value); });
  return *this;
}

PlainProgram& PlainProgram::Increment(const std::string& x, float step) {
  b_.Increment(x, static_cast<double>(step));
  Then([=](Values& v) {
    for (float& e : v.at(x)) e += step;
  });
  return *this;
}

PlainProgram& PlainProgram::Cast(const std::string& x, const std::string& out, DType from,
                                 DType to) {
  b_.Op("cast", {{"X", {x}}}, {{"Out", {out}}},
        {{"in_dtype", DTypeToProto(from)}, {"out_dtype", DTypeToProto(to)}});
  Then([=](Values& v) { v[out] = v.at(x); });
  return *this;
}

void PlainProgram::EndWhile(const std::string& condition, Inner inner) {
  std::vector<std::string> written, read;
  ListOuter(inner.block, &written, &read);
  b_.Op("while", {{"X", read}, {"Condition", {condition}}}, {{"Out", written}, {"StepScopes", {}}},
        {{"sub_block", BlockRef{inner.block}}});
  Then([condition, steps = std::move(inner.steps)](Values& v) {
    while (v.at(condition)[0] != 0) RunAll(steps, v);
  });
}

void PlainProgram::EndBranch(const std::string& condition, Inner inner) {
  std::vector<std::string> written, read;
  ListOuter(inner.block, &written, &read);
  b_.Op("conditional_block", {{"Cond", {condition}}, {"Input", read}},
        {{"Out", written}, {"Scope", {}}},
        {{"sub_block", BlockRef{inner.block}}, {"is_scalar_condition", true}});
  Then([condition, steps = std::move(inner.steps)](Values& v) {
    if (v.at(condition)[0] != 0) RunAll(steps, v);
  });
}

void PlainProgram::ListOuter(int block, std::vector<std::string>* written,
                             std::vector<std::string>* read) const {
  const proto::ProgramDesc& desc = b_.desc();
  std::set<std::string> own;
  for (const auto& var : desc.blocks(block).vars()) own.insert(var.name());
  const auto add = [&own](const auto& slots, std::vector<std::string>* to) {
    for (const auto& slot : slots)
      for (const std::string& name : slot.arguments())
        if (own.count(name) == 0 && std::find(to->begin(), to->end(), name) == to->end())
          to->push_back(name);
  };
  // Operators that run blocks list what those read and write.
  for (const auto& op : desc.blocks(block).ops()) {
    add(op.inputs(), read);
    add(op.outputs(), written);
  }
}

PlainProgram::Numbers NumbersOf(const Tensor& t) {
  if (t.dtype() != DType::kI64) return Floats(t);
  return {t.data<int64_t>(), t.data<int64_t>() + t.numel()};
}

PlainProgram::Values ValuesOf(const std::vector<heddle::Feed>& feeds) {
  PlainProgram::Values values;
  for (const heddle::Feed& feed : feeds) values[feed.name] = NumbersOf(feed.value.tensor());
  return values;
}

void ExpectPlain(const Tensor& got, const PlainProgram::Numbers& expected,
                 const std::string& what) {
  const PlainProgram::Numbers numbers = NumbersOf(got);
  ASSERT_EQ(numbers.size(), expected.size()) << what;
  for (size_t i = 0; i < numbers.size(); ++i)
    ASSERT_NEAR(numbers[i], expected[i], 1e-5 * std::max(1.f, std::abs(expected[i])))
        << what << " at " << i;
}

}  // namespace heddle::testing
