# cmake -DFOLDER=… -DMACRO=HEDDLE_OP -DDECLARE=HEDDLE_DECLARE_OP -DOUTPUT=… -P generate_op_list.cmake
# Collects the names of the lines `MACRO(name)` at column 0 of FOLDER/*.cc into OUTPUT, sorted.

cmake_minimum_required(VERSION 3.22)

file(GLOB sources "${FOLDER}/*.cc")
set(names "")
foreach(source IN LISTS sources)
  file(STRINGS "${source}" lines REGEX "^${MACRO}\\([A-Za-z0-9_]+\\)" ENCODING UTF-8)
  list(TRANSFORM lines REPLACE "^${MACRO}\\(([A-Za-z0-9_]+)\\).*" "\\1")
  # Within one file, a name may have a variant per #if branch.
  list(REMOVE_DUPLICATES lines)
  foreach(name IN LISTS lines)
    if("${name}" IN_LIST names)
      message(FATAL_ERROR "${source}: ${MACRO}(${name}) is defined in another file too")
    endif()
    list(APPEND names "${name}")
  endforeach()
endforeach()
list(SORT names)

set(content "// Generated from the ${MACRO}(...) lines of the sources.\n")
foreach(name IN LISTS names)
  string(APPEND content "${DECLARE}(${name})\n")
endforeach()
file(WRITE "${OUTPUT}.new" "${content}")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUTPUT}.new")
