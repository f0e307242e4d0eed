// Keys of groups: equal for equal contents whatever the names, and another one for any change.
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <random>
#include <set>
#include <span>

#include "heddle/read_only.h"
#include "offload/digest.h"
#include "offload/group_description.h"
#include "offload/group_key.h"
#include "offload/split.h"
#include "tests/offload/cache_subjects.h"
#include "tests/offload/random_targets.h"

namespace heddle::testing {
namespace {

using offload::Group;

// ---- the digest ---------------------------------------------------------------------------------

std::string DigestOf(size_t bytes, size_t part) {
  std::string text;
  for (size_t i = 0; i < bytes; ++i) text += static_cast<char>(i * 7 + bytes);
  offload::Digest digest;
  for (size_t at = 0; at < bytes; at += part)
    digest.Add(text.data() + at, std::min(part, bytes - at));
  return offload::HexOf(std::move(digest).Finish());
}

// As Python's hashlib says, of eight parts and a root:
//   blake2s(fanout=8, depth=2, inner_size=32, node_offset=part, last_node=part == 7)
//   blake2s(fanout=8, depth=2, inner_size=32, node_depth=1, last_node=True)
TEST(Digests, AreBlake2sp) {
  const std::pair<size_t, const char*> kKnown[] = {
      {0, "dd0e891776933f43c7d032b08a917e25741f8aa9a12c12e1cac8801500f2ca4f"},
      {1, "ea31a9c7fb61fc5d0a5ab2e5d6c781cef1c5c2aacc14cbabe69f921c0e5116fa"},
      {3, "8eb24ffc24eb938e92845060890ef88de9cea9d498d1c5fd082dc9dc60abdaf3"},
      {63, "65834bb80d896b0a284f46a6e52ed521b38b305cdbabd50037e6a69c80afa8eb"},
      {64, "8c43f324e5345839a3b74406ae891211db3a1c625258f574caba18e0cd8d8928"},
      {65, "daaf597baf18435fa8fc1177407ee979b0a99c7f983e3276668bd64a8b5ec079"},
      {500, "7204f543c8e044f10398e2d4e94a15bb81fc106b298c97b07fee4c0afee726e7"},
      {511, "a318ff562dd4d46854f1e1a3da69a84b40eb80008759e8fa9ef9624d9ddc91f6"},
      {512, "90f6dd8ebe5eb20cbdd81ceddc069fd64c4bfc2e1a29eaf45034c0ca325da579"},
      {513, "535c2376d696f385e60aa2082c59b7fe463f5d18f133a003230ce0b4687ebd6e"},
      {576, "ff9dfd424a8b8c70682dd6647dc01c7834ce59eb081997442f2499e1ce7ee12f"},
      {1000, "26bff69ac556de559e5eee3f895575d21a324bae86777ff9c6f1abd7083cce5b"},
      {1023, "57bc09dd9d2a86fa759c1049a5a118770dd484d20074342a73ee696dd93a44a6"},
      {1024, "147f27271d5e3979a45811c60691ff2fc6540e021efecfc7c73d866e986b02a4"},
      {1025, "3123cdb81492d7db0c94f1329946d46b9d21b7410d9a7258752b41478d14cef1"},
      {1500, "57f6c1d72537fbafbf2b51e54e1ab8509f5911c0f4c731dfd567bf770c1f46a3"},
      {1536, "5c1ce0861fbd0a04e6c314162516457357774f5db7b36657d126ec6ceac0086b"},
      {2048, "29a8ee8673c35840cf58450ed85fd47f31e39f063ea10ccc3a5cec4dee0d2c26"},
      {5000, "cbab26a93b1d7f6c518cda72c543f43140405f2a8266a68a12c0e24b2e41c14e"},
      {100001, "9b71bc87b806a837217194066364c775146e6b34d537f9a92fde4fca98318a47"},
  };
  for (const auto& [bytes, digest] : kKnown)
    for (const size_t part : {1, 3, 63, 64, 65, 511, 512, 513, 1024, 1500, 1000000})
      EXPECT_EQ(DigestOf(bytes, part), digest) << bytes << " bytes by " << part;
}

// However the same bytes come.
TEST(Digests, DoNotHangOnParts) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text(random() % 6000, '\0');
    for (char& c : text) c = static_cast<char>(random());
    offload::Digest whole, parts;
    whole.Add(text.data(), text.size());
    for (size_t at = 0; at < text.size();) {
      const size_t part = std::min<size_t>(random() % (1 << random() % 13), text.size() - at);
      parts.Add(text.data() + at, part);
      at += part;
    }
    ASSERT_EQ(offload::HexOf(std::move(whole).Finish()), offload::HexOf(std::move(parts).Finish()))
        << round;
  }
}

// ---- groups -------------------------------------------------------------------------------------

std::string KeyOf(const Group& group) {
  const auto nameless = offload::WithoutNames(group);
  EXPECT_TRUE(nameless.ok()) << nameless.status().ToString();
  const offload::GroupDescription description(**nameless);
  return offload::HexOf(offload::KeyOf(description, "about"));
}

Result<std::unique_ptr<offload::Split>> SplitOf(const CacheSubject& subject, uint32_t seed) {
  HEDDLE_ASSIGN_OR_RETURN(const Model model, subject.Load());
  HEDDLE_ASSIGN_OR_RETURN(const Program types, Program::Parse(subject.bytes));
  const std::string text = RandomTargets(seed).For(types, "t");
  HEDDLE_ASSIGN_OR_RETURN(const HardwareTarget target, HardwareTarget::Parse(text, "t"));
  return offload::Split::Make(model, {}, {target.impl()});
}

TEST(Keys, DoNotDependOnNames) {
  int groups = 0;
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const CacheSubject subject = SubjectOf(seed);
    const auto split = SplitOf(subject, seed);
    const auto renamed = SplitOf(Renaming(seed + 1).Of(subject), seed);
    ASSERT_TRUE(split.ok() && renamed.ok())
        << split.status().ToString() << renamed.status().ToString();
    ASSERT_EQ((*split)->groups().size(), (*renamed)->groups().size());
    for (size_t k = 0; k < (*split)->groups().size(); ++k, ++groups) {
      const Group &a = *(*split)->groups()[k], &b = *(*renamed)->groups()[k];
      ASSERT_EQ(a.refused.empty(), b.refused.empty());
      if (!a.refused.empty()) continue;
      ASSERT_EQ(KeyOf(a), KeyOf(b)) << a.symbol;
    }
  }
  EXPECT_GT(groups, 300);
}

// All groups that differ from `group` in one thing.
class Changes {
 public:
  explicit Changes(const Group& group) : group_(group) {}

  template <typename Fn>
  void ForEach(Fn&& check) {
    const ir::Program& program = *group_.program;
    for (size_t v = 0; v < program.vars.size(); ++v) {
      const bool parameter = program.vars[v].persistable;
      if (parameter) continue;  // those go by their tensors
      check("dtype", With([v](ir::Program* p) { p->vars[v].dtype = Other(p->vars[v].dtype); }));
      check("shape", With([v](ir::Program* p) { p->vars[v].shape = Other(p->vars[v].shape); }));
    }
    const auto& ops = program.blocks[0].ops;
    for (size_t i = 0; i < ops.size(); ++i) {
      for (size_t a = 0; a < ops[i].attrs.size(); ++a)
        if (auto other = Other(ops[i].attrs[a]); other && !Held(ops[i], a))
          check("attribute " + ops[i].def->attrs()[a].name + " of " + ops[i].type(),
                With([&](ir::Program* p) { p->blocks[0].ops[i].attrs[a] = *other; }));
      for (auto member : {&ir::Op::inputs, &ir::Op::outputs})
        for (size_t s = 0; s < (ops[i].*member).size(); ++s)
          for (size_t k = 0; k < (ops[i].*member)[s].size(); ++k)
            if ((ops[i].*member)[s][k] != ir::kNoVar && program.vars.size() > 1)
              check("an argument of " + ops[i].type(), With([&](ir::Program* p) {
                      ir::VarId& var = (p->blocks[0].ops[i].*member)[s][k];
                      var = (var + 1) % static_cast<ir::VarId>(p->vars.size());
                    }));
    }
    if (ops.size() > 1)
      check("an operator less", With([](ir::Program* p) { p->blocks[0].ops.pop_back(); }));
    for (auto ports : {&ir::Program::feeds, &ir::Program::fetches}) {
      if ((program.*ports).size() > 1)
        check("order",
              With([&](ir::Program* p) { std::swap((p->*ports)[0].var, (p->*ports)[1].var); }));
      if (!(program.*ports).empty())
        check("a port less", With([&](ir::Program* p) { (p->*ports).pop_back(); }));
    }
    for (size_t k = 0; k < group_.parameters.size(); ++k) {
      const Tensor& t = group_.parameters[k].second;
      for (const size_t at : {size_t{0}, t.bytes() / 2, t.bytes() - 1})
        for (const uint8_t bit : {1, 0x80}) {
          Group other = group_;
          Tensor changed = t.Clone();
          static_cast<uint8_t*>(changed.mutable_raw())[at] ^= bit;
          other.parameters[k].second = changed;
          check("a bit of a parameter", other);
        }
      Group other = group_;
      other.parameters[k].second = t.Reshaped({t.numel(), 1, 1, 1, 1});
      check("a parameter's shape", other);
    }
  }

 private:
  template <typename Fn>
  Group With(Fn&& change) const {
    Group other = group_;
    auto program = std::make_shared<ir::Program>(*group_.program);
    change(program.get());
    other.program = std::move(program);
    return other;
  }
  static bool Held(const ir::Op& op, size_t a) {
    return std::find(op.var_attrs.begin(), op.var_attrs.end(), static_cast<int>(a)) !=
           op.var_attrs.end();
  }
  static DType Other(DType dtype) { return dtype == DType::kF64 ? DType::kF32 : DType::kF64; }
  static Shape Other(const Shape& shape) {
    if (!shape.known_rank()) return Shape({3});
    std::vector<int64_t> dims(shape.begin(), shape.end());
    if (dims.empty()) return Shape({1});
    dims.back() = dims.back() == -1 ? 7 : -1;
    return Shape(std::span<const int64_t>(dims));
  }
  static std::optional<AttrValue> Other(const AttrValue& value) {
    return std::visit(
        [](const auto& v) -> std::optional<AttrValue> {
          using T = std::decay_t<decltype(v)>;
          if constexpr (std::is_same_v<T, bool>) return AttrValue(!v);
          if constexpr (std::is_same_v<T, int64_t>) return AttrValue(v + 1);
          if constexpr (std::is_same_v<T, double>)
            return AttrValue(v == 0 ? -v : std::nextafter(v, 9e9));
          if constexpr (std::is_same_v<T, std::string>) return AttrValue(v + "x");
          if constexpr (std::is_same_v<T, heddle::Ints> || std::is_same_v<T, heddle::Floats> ||
                        std::is_same_v<T, heddle::Strings>) {
            T longer = v;
            longer.emplace_back();
            return AttrValue(longer);
          }
          return std::nullopt;
        },
        value);
  }

  const Group& group_;
};

TEST(Keys, DependOnEverythingElse) {
  std::map<std::string, int> checked;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto split = SplitOf(SubjectOf(seed), seed);
    ASSERT_TRUE(split.ok()) << split.status().ToString();
    for (const auto& group : (*split)->groups()) {
      if (!group->refused.empty()) continue;
      const std::string own = KeyOf(*group);
      ASSERT_EQ(own, KeyOf(Group(*group)));
      Changes(*group).ForEach([&](const std::string& what, const Group& other) {
        EXPECT_NE(KeyOf(other), own) << what;
        ++checked[what.substr(0, what.find(' '))];
      });
      if (::testing::Test::HasFailure()) return;
    }
  }
  for (const char* what : {"dtype", "shape", "attribute", "an", "order", "a"})
    EXPECT_GT(checked[what], 20) << what;
}

// Memory that goes when its user says so must not be what a shared module points to.
TEST(Tensors, SayWhoseMemoryTheyHave) {
  float x = 1;
  EXPECT_TRUE(IsBorrowed(Tensor::Wrap(&x, DType::kF32, {1})));
  EXPECT_TRUE(IsBorrowed(Tensor(DType::kF32, {1}, WrapReadOnly(&x, 4, {}))));
  EXPECT_FALSE(IsBorrowed(Tensor::Wrap(&x, DType::kF32, {1}, [] {})));
  EXPECT_FALSE(IsBorrowed(Tensor(DType::kF32, {1}, WrapReadOnly(&x, 4, [] {}))));
  EXPECT_FALSE(IsBorrowed(F32({1}, {1})));
  EXPECT_FALSE(IsBorrowed(Tensor()));
}

// Lists whose borders are all that tells them apart.
TEST(Keys, TellBorders) {
  std::set<std::string> keys;
  const auto add = [&](const heddle::Strings& texts) {
    offload::Digest digest;
    digest.AddNumber(static_cast<int64_t>(texts.size()));
    for (const std::string& text : texts) digest.AddText(text);
    EXPECT_TRUE(keys.insert(offload::HexOf(std::move(digest).Finish())).second);
  };
  add({"ab", "c"});
  add({"a", "bc"});
  add({"abc"});
  add({"abc", ""});
  add({"", "abc"});
}

}  // namespace
}  // namespace heddle::testing
