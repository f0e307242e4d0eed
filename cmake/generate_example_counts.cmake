# cmake -DROOT=… -DFOLDER=… -DOUTPUT=… -P generate_example_counts.cmake
# Counts the examples in the HEDDLE_EXAMPLES(name, …) blocks of the sources below ROOT/FOLDER:
# OUTPUT has a line `HEDDLE_DECLARE_EXAMPLES(name, count)` for each operator with some, sorted.

cmake_minimum_required(VERSION 3.22)

file(GLOB_RECURSE sources "${ROOT}/${FOLDER}/*.cc")
set(names "")
foreach(source IN LISTS sources)
  file(READ "${source}" content)
  # Only these words, since the rest may hold what lists give a meaning.
  string(REGEX MATCHALL "\n(HEDDLE_EXAMPLES\\([A-Za-z0-9_]+|example )" marks "\n${content}")
  set(name "")
  foreach(mark IN LISTS marks)
    if(mark MATCHES "HEDDLE_EXAMPLES\\((.*)$")
      set(name "${CMAKE_MATCH_1}")
    elseif(NOT name STREQUAL "")
      if(NOT DEFINED count_${name})
        set(count_${name} 0)
        list(APPEND names "${name}")
      endif()
      math(EXPR count_${name} "${count_${name}} + 1")
    endif()
  endforeach()
endforeach()
list(SORT names)

set(content "// Generated from the examples of the operators.\n")
foreach(name IN LISTS names)
  string(APPEND content "HEDDLE_DECLARE_EXAMPLES(${name}, ${count_${name}})\n")
endforeach()
file(WRITE "${OUTPUT}.new" "${content}")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUTPUT}.new")
