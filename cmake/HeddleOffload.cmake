# Groups of operators on engines from outside: a library that heddle itself does not know, and the
# engines of this tree, each a library that is opened by its name.

file(GLOB _offload CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" offload/*.cc
     offload/onnx/*.cc)
add_library(heddle_offload STATIC ${_offload})
add_library(heddle::offload ALIAS heddle_offload)
set_target_properties(heddle_offload PROPERTIES EXPORT_NAME offload)
target_link_libraries(heddle_offload PUBLIC heddle_partition PRIVATE ${CMAKE_DL_LIBS})
heddle_warnings(heddle_offload)

# An engine exports heddle_engine_get alone: its copy of heddle stays its own.
function(heddle_add_engine name)
  add_library(heddle_engine_${name} MODULE ${ARGN})
  set_target_properties(heddle_engine_${name} PROPERTIES PREFIX ""
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/cmake/heddle_engine.map")
  target_include_directories(heddle_engine_${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_link_options(heddle_engine_${name} PRIVATE
    "LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/heddle_engine.map")
  heddle_warnings(heddle_engine_${name})
endfunction()

heddle_add_engine(reference engines/reference/reference.cc)
target_link_libraries(heddle_engine_reference PRIVATE heddle)

# Any engine in a process of its own; the worker lies beside the library.
set(_process engines/process/channel.cc engines/process/group_text.cc)
heddle_add_engine(process engines/process/process.cc ${_process})
target_include_directories(heddle_engine_process PRIVATE "${PROJECT_SOURCE_DIR}")
add_executable(heddle_engine_worker engines/process/worker.cc ${_process})
target_include_directories(heddle_engine_worker PRIVATE "${PROJECT_SOURCE_DIR}"
                                                        "${PROJECT_SOURCE_DIR}/include")
target_link_libraries(heddle_engine_worker PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
heddle_warnings(heddle_engine_worker)
add_dependencies(heddle_engine_process heddle_engine_worker)

# OpenVINO is opened by the path that its user names; the build needs nothing of it.
heddle_add_engine(openvino engines/openvino/openvino.cc engines/openvino/module.cc
                  engines/openvino/openvino_c.cc engines/openvino/takes.cc)
target_include_directories(heddle_engine_openvino PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(heddle_engine_openvino PRIVATE ${CMAKE_DL_LIBS})

set(HEDDLE_ENGINES heddle_engine_reference heddle_engine_process heddle_engine_openvino
    heddle_engine_worker)
