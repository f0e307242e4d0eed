// Random programs of a few kinds of operators, and random targets for them.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/partition/program_text.h"

namespace heddle::partition {

class RandomPrograms {
 public:
  explicit RandomPrograms(uint32_t seed) : random_(seed) {}

  // A ProgramDesc with `size` operators besides feeds and fetches.
  std::string Program(int size) {
    ProgramText text;
    live_.clear();
    made_ = 0;
    for (const char* parameter : {"w", "b"}) text.Parameter(parameter, {4});
    for (int k = Below(2) + 1; k > 0; --k) {
      live_.push_back("x" + std::to_string(made_++));
      text.Feed(live_.back());
    }
    std::vector<std::string> read;
    for (int k = 0; k < size; ++k) AddOp(&text, &read);
    for (const std::string& name : live_)
      if (Below(4) == 0 || std::find(read.begin(), read.end(), name) == read.end())
        text.Fetch(name);
    return text.Text();
  }

  // Operators that read any two of those before them: groups easily wait for each other.
  std::string Crossing(int size) {
    ProgramText text;
    text.Feed("x0");
    for (int k = 1; k <= size; ++k) {
      const std::string out = "x" + std::to_string(k);
      text.Tensor(out);
      text.Op(Below(2) == 0 ? "relu" : "elementwise_add",
              {{"X", {"x" + std::to_string(Below(k))}}, {"Y", {"x" + std::to_string(Below(k))}}},
              {{"Out", {out}}});
    }
    text.Fetch("x" + std::to_string(size));
    return text.Text();
  }
  // A target with one unit, which takes them in small groups.
  std::string SmallGroups() {
    std::string text = R"({"name": "t", "links": [["u", "u"]], "start": ["u"], "objective": ")";
    text += Below(2) == 0 ? "cover" : "cost";
    return text + R"(", "units": [{"name": "u", "ops": [{"type": "elementwise_add"}, )" +
           R"({"type": "relu", "cost": )" + Price(20) + R"(}]}], "limits": {"min_group": )" +
           std::to_string(Below(2) + 1) + R"(, "max_group": )" + std::to_string(Below(2) + 2) +
           R"(}, "cost": {"group": 1, "byte": 1e-3}, "host": {"call": 2}})";
  }

  // A target file.
  std::string Target() {
    const int units = Below(4) + 1;
    std::string text = R"({"name": "t", "version": 1, "objective": ")";
    text += Below(2) == 0 ? "cover" : "cost";
    text += R"(", "units": [)";
    for (int u = 0; u < units; ++u) {
      text += (u == 0 ? "" : ", ") + (R"({"name": "u)" + std::to_string(u) + R"(", "cost": )") +
              Price(16) + R"(, "ops": [)";
      const int patterns = Below(4) + 1;
      for (int p = 0; p < patterns; ++p) text += (p == 0 ? "" : ", ") + Pattern();
      text += "]}";
    }
    text += R"(], "links": [)";
    std::string links;
    for (int a = 0; a < units; ++a)
      for (int b = 0; b < units; ++b)
        if (Below(5) < 2) links += (links.empty() ? "[" : ", [") + Name(a) + ", " + Name(b) + "]";
    text += links + R"(], "start": [)" + Name(Below(units)) + ", " + Name(Below(units)) +
            R"(], "helpers": [{"type": "fill_constant"}, {"type": "reshape2"}], "limits": {)" +
            R"("min_group": )" + std::to_string(Below(3) == 0 ? 2 : 1) + R"(, "max_group": )" +
            std::to_string(Below(2) == 0 ? 3 : 100);
    if (Below(3) == 0) text += R"(, "max_inputs": )" + std::to_string(Below(3) + 1);
    if (Below(3) == 0) text += R"(, "max_outputs": )" + std::to_string(Below(2) + 1);
    text += R"(}, "cost": {"group": )" + std::to_string(Below(20)) + R"(e-1, "byte": )" +
            (Below(2) == 0 ? "0" : "1e-4") + R"(}, "host": )" + Price(30) + "}";
    return text;
  }

  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

 private:
  static std::string Name(int unit) { return R"("u)" + std::to_string(unit) + '"'; }
  std::string Price(int most) {
    return R"({"call": )" + std::to_string(Below(most)) + R"(e-1, "element": )" +
           std::to_string(Below(3)) + "e-4}";
  }
  std::string Pattern() {
    const std::string type = kTypes[static_cast<size_t>(Below(5))];
    std::string text = R"({"type": ")" + type + '"';
    if (type == "elementwise_add" && Below(2) == 0)
      text += std::string(R"(, "slots": {"Y": {"constant": )") +
              (Below(2) == 0 ? "true" : "false") + "}}";
    if (Below(4) == 0) text += R"(, "dtypes": ["float32"], "rank": [1, 4])";
    if (type == "scale" && Below(2) == 0) text += R"(, "attrs": {"axis": {"max": 0}})";
    return text + "}";
  }
  const std::string& Pick() {
    const auto n = static_cast<int>(live_.size());
    return live_[static_cast<size_t>(Below(3) == 0 ? Below(n) : std::max(0, n - 1 - Below(3)))];
  }
  void AddOp(ProgramText* text, std::vector<std::string>* read) {
    const int what = Below(12);
    const std::string x = Pick(), y = Pick(), out = "v" + std::to_string(made_++);
    if (what != 9) read->push_back(x);
    // Now and then in place, which makes edges without data.
    const bool in_place = what < 3 && Below(3) == 0 && x[0] == 'v';
    if (!in_place) text->Tensor(out);
    if (what < 4) {
      text->Op(what < 2 ? "relu" : "tanh", {{"X", {x}}}, {{"Out", {in_place ? x : out}}});
    } else if (what < 7) {
      if (what == 6) read->push_back(y);
      text->Op("elementwise_add", {{"X", {x}}, {"Y", {what == 6 ? y : "b"}}}, {{"Out", {out}}});
    } else if (what == 7) {
      text->Op("scale", {{"X", {x}}}, {{"Out", {out}}}, {AttrText("axis", 0, {Below(2)})});
    } else if (what == 8) {
      text->Op("softmax", {{"X", {x}}}, {{"Out", {out}}});
    } else if (what == 9) {
      text->Op("fill_constant", {}, {{"Out", {out}}});
    } else if (what == 10) {
      text->Op("reshape2", {{"X", {x}}}, {{"Out", {out}}});
    } else {
      text->Op("print", {{"In", {x}}}, {{"Out", {out}}});
    }
    if (!in_place) live_.push_back(out);
  }

  static constexpr const char* kTypes[] = {"relu", "tanh", "elementwise_add", "scale", "softmax"};
  std::mt19937 random_;
  std::vector<std::string> live_;
  int made_ = 0;
};

}  // namespace heddle::partition
