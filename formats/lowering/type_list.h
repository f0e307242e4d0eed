// Lists of a format's element types, as the tables of its operators' definitions write them:
// "1-3,7", and behind an "s" sequences of such elements: "1-3,s1-3".
#pragma once

#include <string>
#include <string_view>

namespace heddle::formats {

// A type of a value in a file. `element` is 0 where it is not known.
struct FileType {
  int element = 0;
  bool is_sequence = false;

  bool operator==(const FileType&) const = default;
  bool known() const { return element != 0; }
};

// Takes the next word of a list separated by single blanks.
std::string_view TakeWord(std::string_view* list);

// Whether the list names the type.
bool Lists(std::string_view list, FileType type);

// The type that a list of one type names; not known: it names several, or none.
FileType OnlyType(std::string_view list);

using TypeNamer = std::string_view (*)(int element);
// "float32", "a sequence of float32".
std::string NameOf(FileType type, TypeNamer name);
// "float32, float64"; types without a name are left out.
std::string NamesOf(std::string_view list, TypeNamer name);

// The types that a table allows for the type parameter, from words such as "T:1-3,7 Index:6-7";
// empty: it says nothing about the parameter.
std::string_view AllowedFor(std::string_view parameter, std::string_view words);

}  // namespace heddle::formats
