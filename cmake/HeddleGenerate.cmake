# Build-time generated files, all under ${HEDDLE_GENERATED_DIR}.

# Writes <output> with `<declare>(name, "file")` for each line `<macro>(name)` in a source
# *.<ending> below <folder>; the ending is cc where none is given.
function(heddle_generate_list output folder macro declare)
  set(ending cc)
  if(ARGC GREATER 4)
    set(ending "${ARGV4}")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.${ending}")
  set(path "${HEDDLE_GENERATED_DIR}/${output}")
  # The stamp carries the time, the list changes only with its content: editing a kernel does not
  # rebuild what includes the list.
  add_custom_command(
    OUTPUT "${path}.stamp"
    BYPRODUCTS "${path}"
    COMMAND "${CMAKE_COMMAND}" "-DROOT=${PROJECT_SOURCE_DIR}" "-DFOLDER=${folder}"
            "-DENDING=${ending}"
            "-DMACRO=${macro}" "-DDECLARE=${declare}" "-DOUTPUT=${path}"
            -P "${PROJECT_SOURCE_DIR}/cmake/generate_op_list.cmake"
    COMMAND "${CMAKE_COMMAND}" -E touch "${path}.stamp"
    DEPENDS ${sources} "${PROJECT_SOURCE_DIR}/cmake/generate_op_list.cmake"
            # A file that is added or removed changes this one (see below), hence the list.
            "${path}.files"
    COMMENT "Listing ${macro} of ${folder}/"
    VERBATIM)
  file(GENERATE OUTPUT "${path}.files" CONTENT "${sources}\n")
endfunction()

# Compiles proto/*.proto; included as "proto/<name>.pb.h".
function(heddle_generate_proto result)
  file(GLOB protos CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}"
       "${PROJECT_SOURCE_DIR}/proto/*.proto")
  file(MAKE_DIRECTORY "${HEDDLE_GENERATED_DIR}/proto")
  set(outputs "")
  foreach(proto IN LISTS protos)
    string(REGEX REPLACE "\\.proto$" "" stem "${HEDDLE_GENERATED_DIR}/${proto}")
    add_custom_command(
      OUTPUT "${stem}.pb.cc" "${stem}.pb.h"
      COMMAND protobuf::protoc "--cpp_out=${HEDDLE_GENERATED_DIR}"
              "--proto_path=${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/${proto}"
      DEPENDS "${PROJECT_SOURCE_DIR}/${proto}" protobuf::protoc
      COMMENT "Compiling ${proto}"
      VERBATIM)
    set_source_files_properties("${stem}.pb.cc" PROPERTIES COMPILE_OPTIONS "-w")
    list(APPEND outputs "${stem}.pb.cc" "${stem}.pb.h")
  endforeach()
  set(${result} ${outputs} PARENT_SCOPE)
endfunction()
