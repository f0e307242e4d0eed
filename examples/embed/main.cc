// Asks a model for the digit in a drawing: heddle in a program of your own.
#include <heddle/heddle.h>

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

int Fail(const heddle::Status& status) {
  std::cerr << status.ToString() << "\n";
  return 1;
}

int main(int argc, char** argv) {
  const std::string drawing =
      "  ****  "
      "     ** "
      "    **  "
      "   ***  "
      "     ** "
      "     ** "
      " *  **  "
      "  ***   ";
  std::vector<float> image;
  for (char c : drawing) image.push_back(c == '*' ? 16.0f : 0.0f);

  const auto model = heddle::LoadModel(argc > 1 ? argv[1] : "examples/digits");
  if (!model.ok()) return Fail(model.status());
  heddle::Executor executor({.threads = 2});
  const auto compiled = executor.Compile(*model);
  if (!compiled.ok()) return Fail(compiled.status());
  const auto x = heddle::Tensor::Of(heddle::DType::kF32, {1, 1, 8, 8}, image);
  const auto outputs = executor.Run(*compiled, {{"x", x}});
  if (!outputs.ok()) return Fail(outputs.status());
  const float* p = (*outputs)[0].data<float>();
  const auto digit = std::max_element(p, p + 10) - p;
  std::cout << "This is a " << digit << " (" << p[digit] << ")\n";
  return digit == 3 ? 0 : 1;
}
