# cmake -DROOT=… -DFOLDER=… -DENDING=cc -DMACRO=HEDDLE_OP -DDECLARE=HEDDLE_DECLARE_OP -DOUTPUT=…
#       -P generate_op_list.cmake
# Collects the lines `MACRO(name)` at column 0 of the sources *.ENDING below ROOT/FOLDER into OUTPUT,
# sorted: `DECLARE(name, "path of the source from ROOT")`.

cmake_minimum_required(VERSION 3.22)

file(GLOB_RECURSE sources RELATIVE "${ROOT}" "${ROOT}/${FOLDER}/*.${ENDING}")
set(names "")
set(entries "")
foreach(source IN LISTS sources)
  file(STRINGS "${ROOT}/${source}" lines REGEX "^${MACRO}\\([A-Za-z0-9_]+\\)" ENCODING UTF-8)
  list(TRANSFORM lines REPLACE "^${MACRO}\\(([A-Za-z0-9_]+)\\).*" "\\1")
  # Within one file, a name may have a variant per #if branch.
  list(REMOVE_DUPLICATES lines)
  foreach(name IN LISTS lines)
    if("${name}" IN_LIST names)
      message(FATAL_ERROR "${source}: ${MACRO}(${name}) is defined in another file too")
    endif()
    list(APPEND names "${name}")
    list(APPEND entries "${DECLARE}(${name}, \"${source}\")")
  endforeach()
endforeach()
list(SORT entries)

list(JOIN entries "\n" content)
file(WRITE "${OUTPUT}.new"
     "// Generated from the ${MACRO}(...) lines of the sources.\n${content}\n")
file(COPY_FILE "${OUTPUT}.new" "${OUTPUT}" ONLY_IF_DIFFERENT)
file(REMOVE "${OUTPUT}.new")
