# Compiles several sources of one folder as one (HEDDLE_UNITY).
#
# Reading headers and instantiating what they hold is most of what a small source costs, and a group
# pays it once. Editing a source compiles its group, hence the option.

# Folders whose loops or steps decide how fast a run is. Their sources stay alone: how much GCC
# inlines into a function depends on the size of all that it compiles with it.
set(HEDDLE_ALONE core core/memory core/programs core/values executor/run kernels/base kernels/conv
    kernels/conv_ops kernels/gemm kernels/norm kernels/products kernels/simd
    kernels/simd/integers memory scheduler)
# A program may have one of its own instead, with which a member that holds more would clash; Eigen
# under another name.
set(HEDDLE_ALONE_SOURCES device/open_cuda.cc kernels/linalg/linalg_solvers.cc)
set(HEDDLE_GROUP_SIZE 8)

# Groups the sources of `target` by folder, in the order of their names. CMake leaves out those that
# have flags of their own.
function(heddle_unity target)
  if(NOT HEDDLE_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cc$")
  list(FILTER sources EXCLUDE REGEX "\\$<")
  list(SORT sources)
  set(last "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}" OUTPUT_VARIABLE own)
    if(folder IN_LIST HEDDLE_ALONE OR own IN_LIST HEDDLE_ALONE_SOURCES)
      continue()
    endif()
    if(NOT folder STREQUAL last)
      set(last "${folder}")
      set(place 0)
      string(MAKE_C_IDENTIFIER "${folder}" name)
    endif()
    math(EXPR number "${place} / ${HEDDLE_GROUP_SIZE} + 1")
    math(EXPR place "${place} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${name}_${number}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes a class with members of unnamed namespaces for one of a header, where its source is
  # included.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    # GCC inlines less in a unit that exceeds this number of instructions (10,000 by default). With
    # a larger limit, the kernels of one group do not change each other's code.
    if(target STREQUAL "heddle_kernels")
      target_compile_options(${target} PRIVATE "SHELL:--param large-unit-insns=100000")
    endif()
  endif()
endfunction()
