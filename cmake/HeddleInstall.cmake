# Libraries, headers, tool, `find_package(heddle)`, pkg-config files and the Debian package.

include(CMakePackageConfigHelpers)
set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/heddle")
# oneDNN lies in a folder of its own, where it hides from other programs of the system.
set(_private_lib_dir "${CMAKE_INSTALL_LIBDIR}/heddle")

install(TARGETS heddle heddle_c heddle_partition heddle_offload EXPORT heddleTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
# CMake ends the search path of a built file by an empty entry, or several where the installed
# file's path is longer, and the loader takes those for the current folder. So a built file searches
# the installed file's folders beside its own, and before that entry the system's.
function(heddle_search_path)
  cmake_parse_arguments(_ "" "" "TARGETS;FOLDERS" ${ARGN})
  set_target_properties(${__TARGETS} PROPERTIES INSTALL_RPATH "${__FOLDERS}"
    BUILD_RPATH "${__FOLDERS};${HEDDLE_ONEDNN_LIB_DIR};/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
endfunction()
heddle_search_path(TARGETS heddle heddle_c FOLDERS "$ORIGIN" "$ORIGIN/heddle")
# Engines are no libraries to link with: a user names them.
set(_engine_dir "${CMAKE_INSTALL_LIBDIR}/heddle/engines")
heddle_search_path(TARGETS ${HEDDLE_ENGINES} FOLDERS "$ORIGIN/.." "$ORIGIN/../..")
install(TARGETS ${HEDDLE_ENGINES} LIBRARY DESTINATION "${_engine_dir}"
                                  RUNTIME DESTINATION "${_engine_dir}")
install(DIRECTORY include/ DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
if(TARGET heddle_cli)
  file(RELATIVE_PATH _to_lib "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  heddle_search_path(TARGETS heddle_cli FOLDERS "$ORIGIN/${_to_lib}" "$ORIGIN/${_to_lib}/heddle")
  install(TARGETS heddle_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
if(HEDDLE_WITH_ONEDNN)
  install(FILES "${HEDDLE_ONEDNN_LIB_DIR}/libdnnl.so.3" "${HEDDLE_ONEDNN_LIB_DIR}/libimf.so"
                "${HEDDLE_ONEDNN_LIB_DIR}/libintlc.so.5"
          DESTINATION "${_private_lib_dir}")
  install(DIRECTORY "${HEDDLE_DEPS_DIR}/onednn/licenses/"
          DESTINATION "${CMAKE_INSTALL_DOCDIR}/onednn")
endif()

install(EXPORT heddleTargets NAMESPACE heddle:: DESTINATION "${_package_dir}")
configure_package_config_file(cmake/heddleConfig.cmake.in
  "${PROJECT_BINARY_DIR}/heddleConfig.cmake" INSTALL_DESTINATION "${_package_dir}"
  PATH_VARS _private_lib_dir _engine_dir)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/heddleConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/heddleConfig.cmake"
              "${PROJECT_BINARY_DIR}/heddleConfigVersion.cmake"
        DESTINATION "${_package_dir}")

# pkg-config: heddle_c for C; heddle for C++, where a static library names what it needs itself.
file(RELATIVE_PATH HEDDLE_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" HEDDLE_PC_PREFIX "${HEDDLE_PC_PREFIX}")
set(HEDDLE_PC_REQUIRES "")
set(HEDDLE_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  set(HEDDLE_PC_REQUIRES "tbb protobuf-lite")
  set(HEDDLE_PC_LIBS "-pthread")
  if(HEDDLE_WITH_ONEDNN)
    string(APPEND HEDDLE_PC_LIBS
           " -Wl,-rpath,\${libdir}/heddle")
  endif()
endif()
foreach(_pc heddle heddle_c)
  configure_file(cmake/${_pc}.pc.in "${PROJECT_BINARY_DIR}/${_pc}.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/${_pc}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()

# `cpack -G DEB` in the build folder.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME heddle)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_CONTACT "the heddle developers <heddle@localhost>")
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libs)
# libheddle.a names protobuf and TBB in find_package(heddle).
set(CPACK_DEBIAN_PACKAGE_DEPENDS
    "libc6, libstdc++6, libtbb12, libprotobuf-lite32, libgoogle-glog0v6, zlib1g")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libtbb-dev, libprotobuf-dev, protobuf-compiler")
include(CPack)
