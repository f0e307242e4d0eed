// The recorded inference programs, as a fixture.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/models/compare.h"
#include "tests/support/files.h"
#include "tests/support/program_builder.h"
#include "tools/values/npy.h"

namespace heddle::testing {

namespace fs = std::filesystem;
using Json = nlohmann::json;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSlow = true;
#else
constexpr bool kSlow = false;
#endif
constexpr int64_t kLargeBytes = 20 << 20;  // of parameters: fewer runs, none under a sanitizer

struct Case {
  std::string name;
  std::vector<heddle::Feed> feeds;
  std::vector<Tensor> expected;
};

inline std::vector<std::string> InferenceModels() {
  std::vector<std::string> names;
  if (SharedDir().empty()) return names;
  for (const auto& entry : fs::directory_iterator(SharedDir() + "/models")) {
    const std::string meta = (entry.path() / "meta.json").string();
    if (fs::exists(meta) && Json::parse(ReadAll(meta))["kind"] == "inference")
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Parameters that are too large to keep are computed, once, into the build folder. Empty when they
// cannot be (no numpy).
inline std::string RebuiltParameters(const std::string& model) {
  const fs::path source = fs::path(SharedDir()) / "models" / model;
  const fs::path target = fs::path(HEDDLE_BUILD_DIR) / "models" / model;
  const fs::path file = target / "model.pdiparams";
  if (fs::exists(file)) return file.string();
  const fs::path work = target.string() + ".tmp" + std::to_string(getpid());
  fs::create_directories(work);
  for (const auto& entry : fs::directory_iterator(source))
    if (entry.is_regular_file())
      WriteAll((work / entry.path().filename()).string(), ReadAll(entry.path().string()));
  const std::string command = "'" HEDDLE_PYTHON "' '" + SharedDir() +
                              "/models/tools/regen_params.py' '" + work.string() +
                              "' >/dev/null 2>&1";
  const bool made = std::system(command.c_str()) == 0;  // NOLINT(cert-env33-c)
  std::error_code error;
  if (made) {
    fs::create_directories(target, error);
    fs::rename(work / "model.pdiparams", file, error);
  }
  fs::remove_all(work, error);
  return made && fs::exists(file) ? file.string() : "";
}

inline std::string AllBits(const std::vector<Tensor>& tensors) {
  std::string bits;
  for (const Tensor& t : tensors) bits += t.shape().ToString() + Bits(t);
  return bits;
}

class ModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  void Open(const std::string& name) {
    const std::string dir = SharedDir() + "/models/" + name;
    meta_ = Json::parse(ReadAll(dir + "/meta.json"));
    large_ = meta_.value("param_bytes", int64_t{0}) > kLargeBytes;
    if (large_ && kSlow) GTEST_SKIP() << "large, and this is a sanitized build";
    std::string params;
    if (fs::exists(dir + "/params_spec.json") && !fs::exists(dir + "/model.pdiparams")) {
      params = RebuiltParameters(name);
      ASSERT_FALSE(params.empty()) << "parameters not rebuilt: " HEDDLE_PYTHON " needs numpy";
    }
    auto model = LoadModel(dir, params);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    model_ = *std::move(model);
    for (const Json& c : meta_["cases"]) {
      Case one{c["name"], {}, {}};
      for (const auto& [feed, value] : c["inputs"].items())
        one.feeds.push_back({feed, Load(dir, value["file"])});
      for (const Json& o : c["outputs"]) one.expected.push_back(Load(dir, o["file"]));
      cases_.push_back(std::move(one));
    }
  }
  static Tensor Load(const std::string& dir, const std::string& file) {
    auto t = tools::ReadNpy(dir + "/" + file);
    EXPECT_TRUE(t.ok()) << t.status().ToString();
    return t.ok() ? *t : Tensor();
  }
  void Expect(const std::vector<Tensor>& out, const Case& c) {
    ASSERT_EQ(out.size(), c.expected.size());
    for (size_t i = 0; i < out.size(); ++i)
      EXPECT_TRUE(
          Close(out[i], c.expected[i], meta_.value("rtol", 1e-4), meta_.value("atol", 1e-4)))
          << "output " << i << " of case " << c.name;
  }

  Json meta_;
  bool large_ = false;
  Model model_;
  std::vector<Case> cases_;
};
}  // namespace heddle::testing
