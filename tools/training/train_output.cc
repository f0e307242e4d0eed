#include "tools/training/train_output.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/values/durable.h"
#include "tools/values/npy.h"
#include "tools/values/values.h"

namespace heddle::tools {
namespace {

namespace fs = std::filesystem;

Status WrongOutput(const std::string& why) { return Status(StatusCode::kInvalidArgument, why); }

// A field of a CSV file.
std::string Quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string JsonString(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Short enough to read, and the same number again when it is read.
std::string NumberText(const Tensor& tensor) {
  if (tensor.dtype() != DType::kF32 && tensor.dtype() != DType::kF64) return TextAt(tensor, 0);
  char text[40];
  const auto end = tensor.dtype() == DType::kF32
                       ? std::to_chars(text, text + sizeof(text), *tensor.data<float>())
                       : std::to_chars(text, text + sizeof(text), *tensor.data<double>());
  return std::string(text, end.ptr);
}

// The number of the step that a line of a metrics file is about; -1 for a header, or half a line.
int64_t StepOfLine(const std::string& line, bool json) {
  const std::string_view start = json ? "{\"step\": " : "";
  if (!line.starts_with(start)) return -1;
  int64_t step = -1;
  std::from_chars(line.data() + start.size(), line.data() + line.size(), step);
  return step;
}

}  // namespace

std::vector<Metric> MetricsOf(const std::vector<std::string>& names,
                              const std::vector<Value>& values) {
  std::vector<Metric> metrics;
  for (size_t k = 0; k < names.size(); ++k) {
    const bool number = values[k].is_tensor() && values[k].tensor().initialized() &&
                        values[k].tensor().numel() == 1;
    metrics.push_back({names[k], number ? NumberText(values[k].tensor()) : ""});
  }
  return metrics;
}

MetricsFile::~MetricsFile() {
  if (file_ != nullptr) std::fclose(file_);
}

Status MetricsFile::Open(const std::string& path, const std::vector<std::string>& names,
                         int64_t steps) {
  path_ = path;
  json_ = path.ends_with(".jsonl");
  std::string text;
  if (!json_) {
    text = "step,epoch,seconds";
    for (const std::string& name : names) text += "," + Quoted(name);
    text += "\n";
  }
  std::ifstream earlier(path, std::ios::binary);
  int64_t expected = 1;
  for (std::string line; expected <= steps && std::getline(earlier, line);) {
    if (StepOfLine(line, json_) != expected) continue;
    text += line + "\n";
    ++expected;
  }
  earlier.close();
  // Aside first: the lines kept must not be lost to a kill.
  const std::string aside = path + ".tmp";
  HEDDLE_RETURN_IF_ERROR(WriteDurable(aside, text));
  std::error_code error;
  fs::rename(aside, path, error);
  if (!error) file_ = std::fopen(path.c_str(), "ab");
  if (file_ == nullptr)
    return WrongOutput(path +
                       ": cannot be written: " + (error ? error.message() : std::strerror(errno)));
  return Status::Ok();
}

void MetricsFile::Add(int64_t step, int64_t epoch, double seconds,
                      const std::vector<Metric>& metrics) {
  if (file_ == nullptr) return;
  std::fprintf(file_,
               json_ ? "{\"step\": %" PRId64 ", \"epoch\": %" PRId64 ", \"seconds\": %.6f"
                     : "%" PRId64 ",%" PRId64 ",%.6f",
               step, epoch, seconds);
  for (const Metric& m : metrics) {
    if (!json_) {
      std::fprintf(file_, ",%s", m.text.c_str());
      continue;
    }
    // JSON has no infinity and no NaN.
    const bool number = !m.text.empty() && m.text.find_first_of("ntj") == std::string::npos;
    std::fprintf(file_, ", %s: %s", JsonString(m.name).c_str(),
                 number           ? m.text.c_str()
                 : m.text.empty() ? "null"
                                  : JsonString(m.text).c_str());
  }
  std::fputs(json_ ? "}\n" : "\n", file_);
}

Status MetricsFile::Flush() {
  if (file_ == nullptr || (std::fflush(file_) == 0 && std::ferror(file_) == 0)) return Status::Ok();
  return Status(StatusCode::kResourceExhausted,
                path_ + ": cannot be written: " + std::strerror(errno));
}

TrainProgress::TrainProgress(bool quiet, int64_t first, int64_t steps, int64_t steps_per_epoch,
                             int64_t every)
    : quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      first_(first),
      steps_(steps),
      steps_per_epoch_(steps_per_epoch),
      every_(every > 0 ? every : std::max<int64_t>(1, (steps - first) / 10)) {}

TrainProgress::~TrainProgress() {
  if (bar_) std::fputs("\n", stderr);
}

std::string TrainProgress::Text(int64_t done, const std::vector<Metric>& metrics,
                                Clock::time_point now) const {
  char text[64];
  std::string line = "step " + std::to_string(done) + "/" + std::to_string(steps_);
  if (steps_per_epoch_ > 0 && steps_ > steps_per_epoch_)
    line += "  epoch " + std::to_string((done - 1) / steps_per_epoch_ + 1) + "/" +
            std::to_string((steps_ + steps_per_epoch_ - 1) / steps_per_epoch_);
  for (const Metric& m : metrics)
    if (!m.text.empty()) {
      std::snprintf(text, sizeof(text), " %.5g", std::strtod(m.text.c_str(), nullptr));
      line += "  " + m.name + text;
    }
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::snprintf(text, sizeof(text), "  %.4g steps/s",
                static_cast<double>(done - first_) / std::max(seconds, 1e-9));
  return line + text;
}

void TrainProgress::DrawBar(int64_t done, const std::vector<Metric>& metrics,
                            Clock::time_point now) {
  constexpr int64_t kWidth = 24;
  const int64_t full = steps_ > 0 ? kWidth * done / steps_ : kWidth;
  std::string bar = "\r\033[K[" + std::string(static_cast<size_t>(full), '#') +
                    std::string(static_cast<size_t>(kWidth - full), '.') + "] ";
  std::fputs((bar + Text(done, metrics, now)).c_str(), stderr);
  std::fflush(stderr);
  drawn_ = now;
  bar_ = true;
}

void TrainProgress::Step(int64_t done, const std::vector<Metric>& metrics) {
  constexpr auto kRedraw = std::chrono::milliseconds(100);
  if (quiet_) return;
  const bool last = done == steps_;
  if (!terminal_) {
    if (last || (done - first_) % every_ == 0)
      std::fprintf(stderr, "%s\n", Text(done, metrics, Clock::now()).c_str());
    return;
  }
  const Clock::time_point now = Clock::now();
  if (last || now - drawn_ >= kRedraw) DrawBar(done, metrics, now);
}

void TrainProgress::Say(const std::string& line) {
  if (quiet_) return;
  std::fprintf(stderr, "%s%s\n", bar_ ? "\r\033[K" : "", line.c_str());
  bar_ = false;
}

}  // namespace heddle::tools
