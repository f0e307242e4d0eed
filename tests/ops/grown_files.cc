#include "tests/ops/grown_files.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "tests/ops/example_files.h"
#include "tests/ops/example_program.h"
#include "tests/ops/looks.h"

namespace heddle::testing {
namespace {

const char* NumpyName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "<f4";
    case DType::kF64:
      return "<f8";
    case DType::kF16:
      return "<f2";
    case DType::kI64:
      return "<i8";
    case DType::kI32:
      return "<i4";
    case DType::kI16:
      return "<i2";
    case DType::kI8:
      return "|i1";
    case DType::kU8:
      return "|u1";
    case DType::kBool:
      return "|b1";
    case DType::kC64:
      return "<c8";
    case DType::kC128:
      return "<c16";
    default:
      return nullptr;
  }
}

void WriteNpy(const Tensor& t, const std::string& path) {
  std::string header =
      std::string("{'descr': '") + NumpyName(t.dtype()) + "', 'fortran_order': False, 'shape': (";
  for (const int64_t d : t.shape()) header += std::to_string(d) + ",";
  header += "), }";
  constexpr size_t kBefore = 10, kUnit = 64;
  header.resize((header.size() + kBefore) / kUnit * kUnit + kUnit - kBefore, ' ');
  header.back() = '\n';
  std::ofstream out(path, std::ios::binary);
  out << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() & 255)
      << static_cast<char>(header.size() >> 8) << header;
  out.write(static_cast<const char*>(t.raw()), static_cast<std::streamsize>(t.bytes()));
}

bool IsArrays(const ExampleProgram& program) {
  return program.params.empty() &&
         std::all_of(program.feeds.begin(), program.feeds.end(), [](const Feed& feed) {
           return feed.value.is_tensor() && feed.value.initialized() &&
                  feed.value.tensor().initialized() &&
                  NumpyName(feed.value.tensor().dtype()) != nullptr;
         });
}

bool Write(const ExampleProgram& program, const std::string& to) {
  const auto text = program.program.Serialize("paddle");
  if (!text.ok()) return false;
  std::ofstream(to + "/program.pdmodel", std::ios::binary) << *text;
  std::ofstream list(to + "/feeds.txt");
  int number = 0;
  for (const Feed& feed : program.feeds) {
    const Tensor& t = feed.value.tensor();
    const std::string file = "feed" + std::to_string(number++) + ".npy";
    WriteNpy(t, to + "/" + file);
    list << feed.name << " " << file << " ";
    for (const auto& level : t.lod()) {
      for (const size_t offset : level) list << offset << ",";
      list << ";";
    }
    list << "\n";
  }
  for (const std::string& name : program.fetches) list << "fetch " << name << "\n";
  return list.good();
}

}  // namespace

bool WriteGrown(const std::string& op, double ms, int64_t bytes, const std::string& to) {
  Lab lab;
  for (const auto& [name, file] : ReadExampleFiles()) {
    for (const Example& example : file.examples) {
      if (example.op != op || example.is_program()) continue;
      const auto small = BuildProgram(example, Operands::kFed);
      if (!small.ok() || !IsArrays(*small) || small->fetches.empty()) continue;
      const GrownExample grown = GrowUntil(lab.Plain(), example, ms, bytes, 1);
      if (grown.looks.run_ms < ms) continue;
      const auto program = BuildProgram(grown.example, Operands::kFed);
      return program.ok() && Write(*program, to);
    }
  }
  return false;
}

}  // namespace heddle::testing
