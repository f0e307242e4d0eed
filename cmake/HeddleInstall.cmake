# Library, headers, tool and `find_package(heddle)`.

include(CMakePackageConfigHelpers)
set(_package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/heddle")
# oneDNN lies in a folder of its own, where it hides from other programs of the system.
set(_private_lib_dir "${CMAKE_INSTALL_LIBDIR}/heddle")

install(TARGETS heddle EXPORT heddleTargets
        ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
set_target_properties(heddle PROPERTIES INSTALL_RPATH "$ORIGIN/heddle")
if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/include/heddle")
  install(DIRECTORY include/heddle DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
          FILES_MATCHING PATTERN "*.h")
endif()
if(TARGET heddle_cli)
  file(RELATIVE_PATH _to_lib "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_target_properties(heddle_cli PROPERTIES
    INSTALL_RPATH "$ORIGIN/${_to_lib};$ORIGIN/${_to_lib}/heddle")
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
  PATH_VARS _private_lib_dir)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/heddleConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/heddleConfig.cmake"
              "${PROJECT_BINARY_DIR}/heddleConfigVersion.cmake"
        DESTINATION "${_package_dir}")
