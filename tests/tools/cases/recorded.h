// Recorded cases in an archive: unpacking them, and comparing what a run leaves with what is
// recorded.
#pragma once

#include <cmath>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/dtype_of.h"
#include "heddle/tensor.h"
#include "tests/tools/cli.h"

namespace heddle::tools {

// Unpacks a tar of plain files; the names of their folders.
inline std::vector<std::string> Unpack(const std::string& archive, const std::string& to) {
  namespace fs = std::filesystem;
  constexpr size_t kBlock = 512;
  const std::string bytes = ReadFile(archive);
  std::vector<std::string> folders;
  for (size_t at = 0; at + kBlock <= bytes.size() && bytes[at] != '\0';) {
    const std::string name(bytes.c_str() + at);  // ends before the header does
    const size_t size = std::stoul(bytes.substr(at + 124, 11), nullptr, 8);
    const std::string folder = fs::path(name).parent_path();
    if (folders.empty() || folders.back() != folder) {
      folders.push_back(folder);
      fs::create_directories(to + "/" + folder);
    }
    WriteFile(to + "/" + name, bytes.substr(at + kBlock, size));
    at += kBlock + (size + kBlock - 1) / kBlock * kBlock;
  }
  return folders;
}

inline std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, '\t');) fields.push_back(field);
  return fields;
}

// Why the tensors do not agree; empty when they do.
inline std::string Compare(const Tensor& got, const Tensor& want, double rtol, double atol) {
  if (got.dtype() != want.dtype() || !(got.shape() == want.shape()))
    return std::string(Name(got.dtype())) + " " + got.shape().ToString() + ", expected " +
           std::string(Name(want.dtype())) + " " + want.shape().ToString();
  std::string reason = "a dtype that is not compared";
  VisitDType<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, float, double>(
      want.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        reason.clear();
        for (int64_t i = 0; i < want.numel() && reason.empty(); ++i) {
          if (got.data<T>()[i] == want.data<T>()[i]) continue;
          const auto a = static_cast<double>(got.data<T>()[i]);
          const auto b = static_cast<double>(want.data<T>()[i]);
          if (std::isnan(a) && std::isnan(b)) continue;
          if (!std::isfinite(b) || !(std::abs(a - b) <= atol + rtol * std::abs(b)))
            reason = "element " + std::to_string(i) + ": " + std::to_string(a) + ", expected " +
                     std::to_string(b);
        }
      });
  return reason;
}

}  // namespace heddle::tools
