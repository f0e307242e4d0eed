// Operators that sort by scores: a NaN among them has one place, in whatever order they come.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <random>

#include "tests/support/program_builder.h"

namespace heddle::testing {
namespace {

using Scores = std::vector<float>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

bool Before(float a, float b) { return a > b || (std::isnan(a) && !std::isnan(b)); }

Scores Descending(Scores s) {
  std::sort(s.begin(), s.end(), Before);
  return s;
}
Scores Ascending(Scores s) {
  s = Descending(std::move(s));
  std::reverse(s.begin(), s.end());
  return s;
}

Tensor WithLod(Tensor t, const LoD& lod) {
  t.set_lod(lod);
  return t;
}

int64_t Count(const Scores& s) { return static_cast<int64_t>(s.size()); }
Tensor Row(const Scores& s) { return F32({1, Count(s)}, s); }

// Boxes that do not overlap, each at a place that its score has among all.
std::vector<float> Boxes(const Scores& s, float width) {
  const Scores order = Ascending(s);
  std::vector<float> boxes;
  for (const float score : s) {
    const auto rank =
        std::find_if(order.begin(), order.end(),
                     [&](float o) { return !Before(o, score) && !Before(score, o); }) -
        order.begin();
    const float at = static_cast<float>(rank) / static_cast<float>(s.size());
    boxes.insert(boxes.end(), {at, 0, at + width / static_cast<float>(s.size()), width});
  }
  return boxes;
}

// Runs what `add` adds to a program of these feeds.
Tensor RunOf(const std::vector<Feed>& feeds, const std::function<void(ProgramBuilder&)>& add) {
  ProgramBuilder b;
  for (const Feed& f : feeds) b.Feed(f.name, f.value.tensor().dtype(), f.value.tensor().shape());
  add(b);
  b.Fetch("result");
  static Executor executor({.threads = 1});
  return MustRun(executor, MustCompile(executor, b.Build()), feeds)[0];
}

Tensor RunOf(const std::vector<Feed>& feeds, const std::string& type, const Slots& in,
             const std::string& out, const Attrs& attrs, const Slots& others = {}) {
  return RunOf(feeds, [&](ProgramBuilder& b) {
    Slots outs{{out, {"result"}}};
    outs.insert(outs.end(), others.begin(), others.end());
    b.Op(type, in, outs, attrs);
  });
}

Scores Column(const Tensor& t, int64_t column) {
  Scores all = Floats(t), out;
  for (int64_t i = column; i < t.numel(); i += t.dim(1)) out.push_back(all[static_cast<size_t>(i)]);
  return out;
}

struct Case {
  const char* name;
  std::function<Scores(const Scores&)> run, expected;  // no expectation: the same for any order
};

Scores Argsort(const Scores& s, bool descending) {
  return Floats(RunOf({{"x", Row(s)}}, "argsort", {{"X", {"x"}}}, "Out",
                      {{"descending", descending}}, {{"Indices", {"i"}}}));
}

Scores MatrixNms(const Scores& s) {
  return Column(
      RunOf({{"b", F32({1, Count(s), 4}, Boxes(s, 0.5f))}, {"s", F32({1, 1, Count(s)}, s)}},
            "matrix_nms", {{"BBoxes", {"b"}}, {"Scores", {"s"}}}, "Out",
            {{"score_threshold", -kInf},
             {"post_threshold", -kInf},
             {"background_label", int64_t{-1}}},
            {{"Index", {"i"}}}),
      1);
}

Scores MulticlassNms(const Scores& s) {
  return Column(
      RunOf({{"b", F32({1, Count(s), 4}, Boxes(s, 0.5f))}, {"s", F32({1, 1, Count(s)}, s)}},
            "multiclass_nms3", {{"BBoxes", {"b"}}, {"Scores", {"s"}}}, "Out",
            {{"score_threshold", -1e30}, {"background_label", int64_t{-1}}}, {{"Index", {"i"}}}),
      1);
}

// The regions' places are those of their scores among all.
Scores Collect(const Scores& s) {
  const LoD lod{{0, s.size()}};
  return Column(
      RunOf({{"r", WithLod(F32({Count(s), 4}, Boxes(s, 0.5f)), lod)},
             {"s", WithLod(F32({Count(s), 1}, s), lod)}},
            "collect_fpn_proposals", {{"MultiLevelRois", {"r"}}, {"MultiLevelScores", {"s"}}},
            "FpnRois", {{"post_nms_topN", int64_t{1000}}}),
      0);
}
Scores PlacesDescending(const Scores& s) {
  Scores places;
  for (size_t i = s.size(); i-- > 0;)
    places.push_back(static_cast<float>(i) / static_cast<float>(s.size()));
  return places;
}

// Every third place has a truth.
Scores DetectionMap(const Scores& s) {
  const auto n = s.size();
  const std::vector<float> boxes = Boxes(s, 0.5f), ranked = Boxes(Ascending(s), 0.5f);
  std::vector<float> found, truths;
  for (size_t i = 0; i < n; ++i) {
    found.insert(found.end(), {1, s[i]});
    found.insert(found.end(), boxes.begin() + static_cast<int64_t>(4 * i),
                 boxes.begin() + static_cast<int64_t>(4 * i + 4));
    if (i % 3 != 0) continue;
    truths.insert(truths.end(), {1, 0});
    truths.insert(truths.end(), ranked.begin() + static_cast<int64_t>(4 * i),
                  ranked.begin() + static_cast<int64_t>(4 * i + 4));
  }
  const auto count = truths.size() / 6;
  return Floats(
      RunOf({{"d", WithLod(F32({Count(s), 6}, found), {{0, n}})},
             {"l", WithLod(F32({static_cast<int64_t>(count), 6}, truths), {{0, count}})}},
            "detection_map", {{"DetectRes", {"d"}}, {"Label", {"l"}}}, "MAP",
            {{"class_num", int64_t{2}}, {"background_label", int64_t{0}}},
            {{"AccumPosCount", {"p"}}, {"AccumTruePos", {"t"}}, {"AccumFalsePos", {"f"}}}));
}

// Sentences of one token each.
Scores BeamSearchDecode(const Scores& s) {
  const LoD lod{{0, 1}, {0, s.size()}};
  std::vector<int64_t> ids(s.size());
  std::iota(ids.begin(), ids.end(), int64_t{1});
  return Floats(RunOf(
      {{"i", WithLod(I64({Count(s), 1}, ids), lod)}, {"s", WithLod(F32({Count(s), 1}, s), lod)}},
      [](ProgramBuilder& b) {
        b.Fill("at", {1}, 0, DType::kI64).Array("all_i").Array("all_s");
        b.Op("write_to_array", {{"X", {"i"}}, {"I", {"at"}}}, {{"Out", {"all_i"}}});
        b.Op("write_to_array", {{"X", {"s"}}, {"I", {"at"}}}, {{"Out", {"all_s"}}});
        b.Op("beam_search_decode", {{"Ids", {"all_i"}}, {"Scores", {"all_s"}}},
             {{"SentenceIds", {"ids"}}, {"SentenceScores", {"result"}}},
             {{"beam_size", int64_t{1}}, {"end_id", int64_t{0}}});
      }));
}

Scores TopK(const std::string& type, const Scores& s, const Attrs& attrs) {
  Attrs with = attrs;
  with.emplace_back("k", Count(s));
  return Floats(RunOf({{"x", Row(s)}}, type, {{"X", {"x"}}}, "Out", with, {{"Indices", {"i"}}}));
}

// The element in the middle.
Scores Middle(Scores s) { return {Ascending(s)[s.size() / 2]}; }
Scores Kthvalue(const Scores& s) {
  return Floats(RunOf({{"x", Row(s)}}, "kthvalue", {{"X", {"x"}}}, "Out", {{"k", Count(s) / 2 + 1}},
                      {{"Indices", {"i"}}}));
}
Scores NthElement(const Scores& s) {
  return Floats(RunOf({{"x", Row(s)}}, [&](ProgramBuilder& b) {
    b.Fill("n", {}, static_cast<double>(s.size() / 2), DType::kI32);
    b.Op("nth_element", {{"input", {"x"}}, {"n", {"n"}}}, {{"values", {"result"}}});
  }));
}

Scores Unique(const Scores& s) {
  return Floats(RunOf({{"x", F32({Count(s)}, s)}}, "unique", {{"X", {"x"}}}, "Out",
                      {{"is_sorted", true}}, {{"Index", {"i"}}}));
}

Scores WithoutNan(Scores s) {
  s.erase(std::remove_if(s.begin(), s.end(), [](float v) { return std::isnan(v); }), s.end());
  return s;
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases{
      {"argsort", [](const Scores& s) { return Argsort(s, false); }, Ascending},
      {"argsort descending", [](const Scores& s) { return Argsort(s, true); }, Descending},
      {"matrix_nms", MatrixNms, Descending},
      {"multiclass_nms3", MulticlassNms, [](const Scores& s) { return Descending(WithoutNan(s)); }},
      {"collect_fpn_proposals", Collect, PlacesDescending},
      {"detection_map", DetectionMap, nullptr},
      {"beam_search_decode", BeamSearchDecode, Descending},
      {"top_k_v2", [](const Scores& s) { return TopK("top_k_v2", s, {}); }, Descending},
      {"top_k_v2 smallest",
       [](const Scores& s) {
         return TopK("top_k_v2", s, {{"largest", false}});
       },
       Ascending},
      {"kthvalue", Kthvalue, Middle},
      {"nth_element", NthElement, Middle},
      {"unique", Unique, Ascending},
  };
  return cases;
}

std::string Text(const Scores& s) {
  std::string text;
  for (const float v : s) text += std::to_string(v) + " ";
  return text;
}

// Different numbers, one NaN, and mostly an infinity, shuffled.
Scores Draw(std::mt19937& random) {
  const size_t n = 3 + random() % 40;
  Scores s(n);
  for (size_t i = 0; i < n; ++i) s[i] = static_cast<float>(i + 1) / static_cast<float>(n + 2);
  s[0] = random() % 2 == 0 ? kNan : -kNan;
  if (random() % 4 != 0) s[1] = kInf;
  std::shuffle(s.begin(), s.end(), random);
  return s;
}

TEST(ScoreOrder, NanHasOnePlaceAmongScores) {
  for (const Case& c : Cases()) {
    int wrong = 0;
    for (uint32_t seed = 0; seed < 40 && wrong < 3; ++seed) {
      std::mt19937 random(seed);
      const Scores drawn = Draw(random);
      const Scores expected = c.expected ? c.expected(drawn) : c.run(Descending(drawn));
      const Scores got = c.run(drawn);
      const bool same =
          std::equal(got.begin(), got.end(), expected.begin(), expected.end(),
                     [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); });
      wrong += !same;
      EXPECT_TRUE(same) << c.name << ", seed " << seed << ": " << Text(drawn) << "\n gives "
                        << Text(got) << "\n not   " << Text(expected);
    }
  }
}

}  // namespace
}  // namespace heddle::testing
