# External libraries, which scripts/setup.sh installs. All but oneDNN and Google Benchmark are
# required.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(TBB 2021 REQUIRED CONFIG)
find_package(Protobuf REQUIRED)
find_path(HEDDLE_XXHASH_INCLUDE xxhash.h)
if(NOT HEDDLE_XXHASH_INCLUDE)
  message(FATAL_ERROR "xxhash.h not found: run scripts/setup.sh")
endif()

# By its directories only: Eigen is no business of those who link an installed libheddle.
get_target_property(HEDDLE_EIGEN_INCLUDES Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)

set(HEDDLE_WITH_ONEDNN OFF)
if(NOT HEDDLE_ONEDNN STREQUAL "OFF")
  # Not cached: a later run of setup.sh must be seen by the next configure.
  set(_root "${HEDDLE_DEPS_DIR}/onednn")
  if(EXISTS "${_root}/include/dnnl.hpp" AND EXISTS "${_root}/lib/libdnnl.so.3")
    set(HEDDLE_WITH_ONEDNN ON)
    set(HEDDLE_ONEDNN_LIB_DIR "${_root}/lib")
    # Its headers alone: core/threads/primitives_library.h opens the library when a kernel needs it.
    add_library(heddle_onednn INTERFACE IMPORTED GLOBAL)
    add_library(heddle::onednn ALIAS heddle_onednn)
    set_target_properties(heddle_onednn PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${_root}/include")
    list(APPEND CMAKE_BUILD_RPATH "${HEDDLE_ONEDNN_LIB_DIR}")
  elseif(HEDDLE_ONEDNN STREQUAL "ON")
    message(FATAL_ERROR "HEDDLE_ONEDNN=ON, but ${_root} holds no oneDNN: run scripts/setup.sh")
  endif()
endif()
message(STATUS "oneDNN: ${HEDDLE_WITH_ONEDNN}")
