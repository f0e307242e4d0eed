// Random targets for a program: units that take some of the types of operators that it has.
#pragma once

#include <random>
#include <string>

#include "heddle/program.h"

namespace heddle::testing {

class RandomTargets {
 public:
  explicit RandomTargets(uint32_t seed) : random_(seed) {}

  // A target file, called `name`.
  std::string For(const Program& program, const std::string& name) {
    const int units = Below(3) + 1;
    std::string text = R"({"name": ")" + name + R"(", "units": [)";
    for (int u = 0; u < units; ++u) {
      text += std::string(u == 0 ? "" : ", ") + R"({"name": )" + Unit(u) + R"(, "ops": [)";
      std::string ops;
      for (const Program::OpCount& count : program.op_counts())
        if (Below(3) < 2)
          ops += (ops.empty() ? "" : ", ") + (R"({"type": ")" + count.type + R"("})");
      text += ops.empty() ? R"({"type": "none"}]})" : ops + "]}";
    }
    text += R"(], "links": [)";
    std::string links;
    for (int a = 0; a < units; ++a)
      for (int b = 0; b < units; ++b)
        if (Below(4) < 3) links += (links.empty() ? "[" : ", [") + Unit(a) + ", " + Unit(b) + "]";
    text += links + R"(], "start": [)" + Unit(Below(units)) + R"(], "helpers": [)";
    if (Below(2) == 0) text += R"({"type": "fill_constant"}, {"type": "reshape2"})";
    text += R"(], "limits": {"max_group": )" + std::to_string(Below(2) == 0 ? Below(4) + 1 : 100);
    return text + "}}";
  }

  int Below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }

 private:
  static std::string Unit(int unit) { return R"("u)" + std::to_string(unit) + '"'; }

  std::mt19937 random_;
};

}  // namespace heddle::testing
