#include "formats/onnx/files/external_data.h"

#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "formats/model_folder.h"
#include "formats/sha1.h"

namespace heddle::onnx {
namespace {

namespace fs = std::filesystem;
using formats::DataFile;

constexpr size_t kHashedBytes = 256 << 10;  // read at a time

template <typename... Parts>
Status Refused(const TensorData& data, const Parts&... why) {
  const std::string_view name = data.location.substr(0, data.location.find('\0'));
  return InvalidArgument(data.What(), ": external data at '", name, "'", why...);
}

Result<std::string> Sha1Of(const DataFile& file) {
  formats::Sha1 sha1;
  std::string part(std::min(file.size(), kHashedBytes), '\0');
  for (size_t at = 0; at < file.size(); at += part.size()) {
    const size_t bytes = std::min(part.size(), file.size() - at);
    HEDDLE_RETURN_IF_ERROR(file.Fill(part.data(), bytes, at));
    sha1.Add(std::string_view(part).substr(0, bytes));
  }
  HEDDLE_RETURN_IF_ERROR(file.CheckUnchanged());
  return std::move(sha1).Digest();
}

}  // namespace

Result<std::string> ExternalFiles::PathOf(const TensorData& data) const {
  const std::string location(data.location);
  if (location.find('\0') != std::string::npos)
    return Refused(data, ": behind these letters its name has a NUL, which no file's name has");
  std::error_code error;
  const fs::path folder = fs::canonical(folder_, error);
  if (error) return Refused(data, ": the model's folder cannot be found: ", error.message());
  const fs::path relative = fs::path(location).lexically_normal();
  if (location.empty() || relative.is_absolute())
    return Refused(data, ": a path relative to the model is expected");
  if (*relative.begin() == "..") return Refused(data, " is outside of the model's folder");
  fs::path file = folder;
  for (const fs::path& name : relative) {
    file /= name;
    if (!fs::is_symlink(file, error)) continue;
    const std::string behind = formats::FolderBehindLink(model_);
    const bool itself = file == folder / relative;  // the link is the file, not a folder on the way
    const std::string real = itself ? formats::FileBehind(behind, file.string()) : std::string();
    if (real.empty())
      return Refused(data, ": ", file.string(),
                     " is a symbolic link, and a model's data must lie in its folder themselves",
                     behind.empty() ? "" : ", or in " + behind + " as the model does");
    file = real;
    break;
  }
  struct stat found {};
  if (::lstat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode) && found.st_nlink > 1)
    return Refused(data, ": ", file.string(), " has ", found.st_nlink,
                   " names (hard links), and a model's data must lie in its folder alone");
  return file.string();
}

Result<std::shared_ptr<const DataFile>> ExternalFiles::Open(const TensorData& data) {
  if (folder_.empty()) return Refused(data, ", and the model is not read from a file");
  File& found = files_[std::string(data.location)];
  if (found.file == nullptr) {
    HEDDLE_ASSIGN_OR_RETURN(const std::string path, PathOf(data));
    auto opened = DataFile::OpenItself(path);
    if (!opened.ok())
      return Status(opened.status().code(),
                    StrCat(data.What(), ": external data: ", opened.status().message()));
    found.file = *std::move(opened);
  }
  if (data.checksum.empty()) return found.file;
  std::string expected(data.checksum);
  std::transform(expected.begin(), expected.end(), expected.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (expected.size() != formats::Sha1::kHexDigits ||
      expected.find_first_not_of("0123456789abcdef") != std::string::npos)
    return Refused(data, ": its checksum '", data.checksum,
                   "' is no SHA-1 digest of 40 hexadecimal digits");
  if (found.sha1.empty()) {
    HEDDLE_ASSIGN_OR_RETURN(found.sha1, Sha1Of(*found.file));
  }
  if (found.sha1 != expected)
    return DataLoss(data.What(), ": external data: ", found.file->path(), " has the SHA-1 ",
                    found.sha1, ", and ", expected, " is expected");
  return found.file;
}

}  // namespace heddle::onnx
