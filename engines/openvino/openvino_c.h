// The functions of OpenVINO's C library that the engine calls, found in the library that its user
// names. Neither the build nor a run needs OpenVINO's headers.
//
// Ownership: a library that was opened stays in the process: its plug-ins keep threads. Threads:
// any for the table; what its functions allow is said where they are called.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace heddle_openvino {

// Opaque to us.
struct Core;
struct Model;
struct CompiledModel;
struct Request;
struct OvTensor;
struct Port;

using OvStatus = int;  // 0, or less than it

struct OvVersion {
  const char* build;
  const char* description;
};
struct OvShape {
  int64_t rank;
  int64_t* dims;
};
struct OvDimension {
  int64_t min, max;
};
struct OvPartialShape {
  OvDimension rank;
  OvDimension* dims;
};
struct OvProperty {
  const char* key;
  const void* value;  // a text
};

struct OpenvinoC {
  // Looked up by these names, with "ov_" before them.
  OvStatus (*get_openvino_version)(OvVersion*) = nullptr;
  void (*version_free)(OvVersion*) = nullptr;
  const char* (*get_error_info)(OvStatus) = nullptr;
  const char* (*get_last_err_msg)() = nullptr;  // of the last call that failed
  void (*free)(const char*) = nullptr;
  OvStatus (*core_create)(Core**) = nullptr;
  void (*core_free)(Core*) = nullptr;
  OvStatus (*core_get_property)(const Core*, const char*, const char*, char**) = nullptr;
  OvStatus (*core_set_properties)(const Core*, const char*, size_t, const OvProperty*) = nullptr;
  OvStatus (*core_read_model_from_memory_buffer)(const Core*, const char*, size_t, const OvTensor*,
                                                 Model**) = nullptr;
  OvStatus (*model_reshape_by_port_indexes)(const Model*, const size_t*, const OvPartialShape*,
                                            size_t) = nullptr;
  void (*model_free)(Model*) = nullptr;
  OvStatus (*core_compile_model_props)(const Core*, const Model*, const char*, size_t,
                                       const OvProperty*, CompiledModel**) = nullptr;
  OvStatus (*core_import_model)(const Core*, const char*, size_t, const char*,
                                CompiledModel**) = nullptr;
  OvStatus (*compiled_model_export_model)(const CompiledModel*, const char*) = nullptr;
  OvStatus (*compiled_model_inputs_size)(const CompiledModel*, size_t*) = nullptr;
  OvStatus (*compiled_model_outputs_size)(const CompiledModel*, size_t*) = nullptr;
  OvStatus (*compiled_model_create_infer_request)(const CompiledModel*, Request**) = nullptr;
  void (*compiled_model_free)(CompiledModel*) = nullptr;
  OvStatus (*infer_request_set_input_tensor_by_index)(Request*, size_t, const OvTensor*) = nullptr;
  OvStatus (*infer_request_get_output_tensor_by_index)(const Request*, size_t,
                                                       OvTensor**) = nullptr;
  OvStatus (*infer_request_infer)(Request*) = nullptr;
  void (*infer_request_free)(Request*) = nullptr;
  OvStatus (*tensor_create)(int, OvShape, OvTensor**) = nullptr;
  OvStatus (*tensor_create_from_host_ptr)(int, OvShape, void*, OvTensor**) = nullptr;
  OvStatus (*tensor_get_shape)(const OvTensor*, OvShape*) = nullptr;
  OvStatus (*tensor_get_element_type)(const OvTensor*, int*) = nullptr;
  OvStatus (*tensor_get_byte_size)(const OvTensor*, size_t*) = nullptr;
  OvStatus (*tensor_data)(const OvTensor*, void**) = nullptr;
  void (*tensor_free)(OvTensor*) = nullptr;
  OvStatus (*shape_create)(int64_t, const int64_t*, OvShape*) = nullptr;
  OvStatus (*shape_free)(OvShape*) = nullptr;

  std::string version;
  int bool_type = 0;  // the number of the element type; the others lie behind it
};

// Opens the library at `path`, a file with its folder. Not empty: why it cannot be used. Another
// OpenVINO in the process is a reason: both would share the names of their parts.
std::string OpenLibrary(const std::string& path, OpenvinoC* c);

// OpenVINO's number of an element type of heddle_engine.h, and back; -1: it is not used.
int TypeNumber(const OpenvinoC& c, int32_t dtype);
int32_t DtypeOf(const OpenvinoC& c, int number);

// What a call that failed says, on one line and without places in OpenVINO's sources.
std::string ErrorOf(const OpenvinoC& c, OvStatus status);

}  // namespace heddle_openvino
