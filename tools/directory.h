// What lies in a directory.
#pragma once

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace heddle::tools {

// The entries, in no order; those before an error, where there is one. Never throws a
// filesystem_error, as iterators do in a loop over a range.
inline std::vector<std::filesystem::path> EntriesOf(const std::string& directory) {
  std::vector<std::filesystem::path> entries;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    entries.push_back(entry->path());
  return entries;
}

}  // namespace heddle::tools
