#include "executor/tune/tuning_file.h"

#include <elf.h>
#include <link.h>
#include <xxhash.h>

#include <charconv>
#include <cstring>

#include "core/error.h"
#include "heddle/host.h"

namespace heddle {
namespace {

constexpr std::string_view kTitle = "heddle-tuning 1 ";
constexpr double kMostUs = 1e12;  // eleven days

std::string Hex(uint64_t v) {
  char text[17];
  for (int i = 15; i >= 0; --i, v >>= 4) text[i] = "0123456789abcdef"[v & 15];
  return std::string(text, 16);
}
std::string Checksum(std::string_view body) { return Hex(XXH64(body.data(), body.size(), 0)); }

// Cuts `text` after the next `end`; false if there is none.
bool Take(std::string_view* text, char end, std::string_view* part) {
  const size_t at = text->find(end);
  if (at == std::string_view::npos) return false;
  *part = text->substr(0, at);
  text->remove_prefix(at + 1);
  return true;
}

// Searches the linker's build id of the program or library that contains this function.
struct BuildSearch {
  uintptr_t inside = 0;
  std::string id;
};

int FindBuildId(dl_phdr_info* info, size_t, void* found) {
  auto& search = *static_cast<BuildSearch*>(found);
  bool ours = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    ours = ours || (part.p_type == PT_LOAD && search.inside >= begin &&
                    search.inside < begin + part.p_memsz);
  }
  if (!ours) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    const char* end = at + part.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof(note));
      const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
      const char* content = at + sizeof(note) + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID) {
        search.id = Hex(XXH64(content, note.n_descsz, 0));
        return 1;
      }
      at = content + padded(note.n_descsz);
    }
  }
  return 1;
}

std::string BuildId() {
  BuildSearch search;
  search.inside = reinterpret_cast<uintptr_t>(&FindBuildId);
  dl_iterate_phdr(&FindBuildId, &search);
  return search.id;
}

}  // namespace

std::string WriteTunedChoices(const TunedChoices& choices) {
  std::string body;
  for (const auto& [where, choice] : choices) {
    char us[32];
    const auto [end, error] =
        std::to_chars(us, us + sizeof(us), choice.us, std::chars_format::fixed, 3);
    (void)error;  // cannot fail: 32 characters hold any such time
    body += StrCat(where.first, "\t", where.second, "\t", choice.name, "\t", std::string(us, end),
                   "\n");
  }
  return StrCat(kTitle, Checksum(body), "\n", body);
}

Result<TunedChoices> ReadTunedChoices(std::string_view text) {
  std::string_view title;
  if (!Take(&text, '\n', &title) || !title.starts_with(kTitle))
    return InvalidArgument("not of this version");
  if (title.substr(kTitle.size()) != Checksum(text))
    return InvalidArgument("the checksum is wrong");
  TunedChoices choices;
  while (!text.empty()) {
    std::string_view line, environment, key, name;
    if (!Take(&text, '\n', &line) || !Take(&line, '\t', &environment) || !Take(&line, '\t', &key) ||
        !Take(&line, '\t', &name))
      return InvalidArgument("a line is incomplete");
    TunedChoice choice{std::string(name), 0};
    std::from_chars(line.data(), line.data() + line.size(), choice.us);
    // Plans for devices order their work by these times, so they must be plausible.
    if (!(choice.us >= 0 && choice.us <= kMostUs)) return InvalidArgument("a time is impossible");
    choices[{std::string(environment), std::string(key)}] = std::move(choice);
  }
  return choices;
}

std::string TuningEnvironment(int threads) {
  const HostReport host = InspectHost();
  std::string text =
      StrCat(host.cpu, ", ", threads, " threads, heddle ", host.version, " ", BuildId());
  for (char& c : text)
    if (c == '\t' || c == '\n') c = ' ';
  return text;
}

}  // namespace heddle
