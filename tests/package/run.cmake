# Installs BUILD_DIR into a fresh prefix, then builds and runs against it: the C++ project of
# SOURCE_DIR and the C example through CMake, and both once more through pkg-config, where that is
# there. With PREFIX, which holds an installed heddle, that one serves, and files go into WORK.

if(DEFINED PREFIX)
  set(work "${WORK}")
  set(prefix "${PREFIX}")
else()
  set(work "${BUILD_DIR}/package_test")
  set(prefix "${work}/moved")
endif()
file(REMOVE_RECURSE "${work}")

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}")
  endif()
endfunction()

if(NOT DEFINED PREFIX)
  run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${work}/prefix")
  # Moved, so that nothing relies on where it was installed.
  file(RENAME "${work}/prefix" "${prefix}")
endif()
run("${CMAKE_COMMAND}" -S "${SOURCE_DIR}" -B "${work}/build" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_CXX_COMPILER=${CXX}"
    "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}")
run("${CMAKE_COMMAND}" --build "${work}/build")
run("${work}/build/consumer" "${SOURCE_DIR}/../../examples/digits")
run("${work}/build/offload_consumer" "${SOURCE_DIR}/../../examples/digits"
    "${SOURCE_DIR}/../../examples/targets/dsp.json")
file(GLOB tool "${prefix}/bin/heddle")
if(tool)
  run("${tool}" --help)
endif()

set(digits "${SOURCE_DIR}/../../examples/digits")
set(c_example "${SOURCE_DIR}/../../examples/embed_c")
run("${CMAKE_COMMAND}" -S "${c_example}" -B "${work}/build_c" -G "${GENERATOR}"
    "-DCMAKE_PREFIX_PATH=${prefix}" "-DCMAKE_C_COMPILER=${CC}"
    "-DCMAKE_BUILD_TYPE=${BUILD_TYPE}")
run("${CMAKE_COMMAND}" --build "${work}/build_c")
run("${work}/build_c/embed_c" "${digits}")

find_program(pkg_config NAMES pkg-config pkgconf)
if(pkg_config)
  file(GLOB_RECURSE pc "${prefix}/*/heddle_c.pc")
  get_filename_component(pc_dir "${pc}" DIRECTORY)
  get_filename_component(lib_dir "${pc_dir}" DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} "${pc_dir}")
  foreach(package heddle heddle_c)
    execute_process(COMMAND "${pkg_config}" --cflags --libs ${package} OUTPUT_VARIABLE flags
                    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags)
    if(package STREQUAL "heddle")
      set(compile "${CXX}" -std=c++20 "${SOURCE_DIR}/../../examples/embed/main.cc")
    else()
      set(compile "${CC}" -std=c99 "${c_example}/main.c" "-Wl,-rpath,${lib_dir}")
    endif()
    run(${compile} -o "${work}/by_${package}" ${flags})
    run("${work}/by_${package}" "${digits}")
  endforeach()
endif()
