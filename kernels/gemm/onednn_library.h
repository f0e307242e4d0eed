// oneDNN's headers, for a library that is opened when a kernel first calls it (FindPrimitive).
//
// Sources include this in place of dnnl.hpp. A function of the C interface that code of dnnl.hpp or
// of heddle calls needs a line below; without one the linker does not find the function.
#pragma once

#include "dnnl.h"

namespace heddle::onednn {

// FindPrimitive. Throws dnnl::error where that finds nothing, as oneDNN itself does for what it has
// no implementation of: callers then take another kernel.
void* FindFunction(const char* name);

// A function's name as an argument of a template.
template <unsigned kSize>
struct FunctionName {
  constexpr FunctionName(const char (&from)[kSize]) {  // NOLINT(google-explicit-constructor)
    for (unsigned i = 0; i < kSize; ++i) text[i] = from[i];
  }
  char text[kSize] = {};
};

// Found at the first call.
template <typename Function, FunctionName kName>
Function* Found() {
  static auto* const found = reinterpret_cast<Function*>(FindFunction(kName.text));
  return found;
}

}  // namespace heddle::onednn

#define HEDDLE_ONEDNN(name) (*::heddle::onednn::Found<decltype(::name), #name>())

#define dnnl_convolution_backward_data_primitive_desc_create \
  HEDDLE_ONEDNN(dnnl_convolution_backward_data_primitive_desc_create)
#define dnnl_convolution_backward_weights_primitive_desc_create \
  HEDDLE_ONEDNN(dnnl_convolution_backward_weights_primitive_desc_create)
#define dnnl_convolution_forward_primitive_desc_create \
  HEDDLE_ONEDNN(dnnl_convolution_forward_primitive_desc_create)
#define dnnl_deconvolution_forward_primitive_desc_create \
  HEDDLE_ONEDNN(dnnl_deconvolution_forward_primitive_desc_create)
#define dnnl_engine_create HEDDLE_ONEDNN(dnnl_engine_create)
#define dnnl_engine_destroy HEDDLE_ONEDNN(dnnl_engine_destroy)
#define dnnl_get_effective_cpu_isa HEDDLE_ONEDNN(dnnl_get_effective_cpu_isa)
#define dnnl_matmul_primitive_desc_create HEDDLE_ONEDNN(dnnl_matmul_primitive_desc_create)
#define dnnl_memory_create_v2 HEDDLE_ONEDNN(dnnl_memory_create_v2)
#define dnnl_memory_desc_clone HEDDLE_ONEDNN(dnnl_memory_desc_clone)
#define dnnl_memory_desc_create_with_strides HEDDLE_ONEDNN(dnnl_memory_desc_create_with_strides)
#define dnnl_memory_desc_create_with_tag HEDDLE_ONEDNN(dnnl_memory_desc_create_with_tag)
#define dnnl_memory_desc_destroy HEDDLE_ONEDNN(dnnl_memory_desc_destroy)
#define dnnl_memory_desc_equal HEDDLE_ONEDNN(dnnl_memory_desc_equal)
#define dnnl_memory_desc_get_size_v2 HEDDLE_ONEDNN(dnnl_memory_desc_get_size_v2)
#define dnnl_memory_desc_query HEDDLE_ONEDNN(dnnl_memory_desc_query)
#define dnnl_memory_desc_query_v2 HEDDLE_ONEDNN(dnnl_memory_desc_query_v2)
#define dnnl_memory_destroy HEDDLE_ONEDNN(dnnl_memory_destroy)
#define dnnl_memory_get_engine HEDDLE_ONEDNN(dnnl_memory_get_engine)
#define dnnl_memory_get_memory_desc HEDDLE_ONEDNN(dnnl_memory_get_memory_desc)
#define dnnl_memory_set_data_handle HEDDLE_ONEDNN(dnnl_memory_set_data_handle)
#define dnnl_post_ops_append_binary HEDDLE_ONEDNN(dnnl_post_ops_append_binary)
#define dnnl_post_ops_append_eltwise HEDDLE_ONEDNN(dnnl_post_ops_append_eltwise)
#define dnnl_post_ops_append_sum HEDDLE_ONEDNN(dnnl_post_ops_append_sum)
#define dnnl_post_ops_create HEDDLE_ONEDNN(dnnl_post_ops_create)
#define dnnl_post_ops_destroy HEDDLE_ONEDNN(dnnl_post_ops_destroy)
#define dnnl_post_ops_len HEDDLE_ONEDNN(dnnl_post_ops_len)
#define dnnl_primitive_attr_create HEDDLE_ONEDNN(dnnl_primitive_attr_create)
#define dnnl_primitive_attr_destroy HEDDLE_ONEDNN(dnnl_primitive_attr_destroy)
#define dnnl_primitive_attr_set_post_ops HEDDLE_ONEDNN(dnnl_primitive_attr_set_post_ops)
#define dnnl_primitive_attr_set_scales_mask HEDDLE_ONEDNN(dnnl_primitive_attr_set_scales_mask)
#define dnnl_primitive_attr_set_scratchpad_mode \
  HEDDLE_ONEDNN(dnnl_primitive_attr_set_scratchpad_mode)
#define dnnl_primitive_attr_set_zero_points_mask \
  HEDDLE_ONEDNN(dnnl_primitive_attr_set_zero_points_mask)
#define dnnl_primitive_create HEDDLE_ONEDNN(dnnl_primitive_create)
#define dnnl_primitive_desc_destroy HEDDLE_ONEDNN(dnnl_primitive_desc_destroy)
#define dnnl_primitive_desc_query HEDDLE_ONEDNN(dnnl_primitive_desc_query)
#define dnnl_primitive_desc_query_md HEDDLE_ONEDNN(dnnl_primitive_desc_query_md)
#define dnnl_primitive_destroy HEDDLE_ONEDNN(dnnl_primitive_destroy)
#define dnnl_primitive_execute HEDDLE_ONEDNN(dnnl_primitive_execute)
#define dnnl_reorder_primitive_desc_create HEDDLE_ONEDNN(dnnl_reorder_primitive_desc_create)
#define dnnl_set_max_cpu_isa HEDDLE_ONEDNN(dnnl_set_max_cpu_isa)
#define dnnl_sgemm HEDDLE_ONEDNN(dnnl_sgemm)
#define dnnl_stream_create HEDDLE_ONEDNN(dnnl_stream_create)
#define dnnl_stream_destroy HEDDLE_ONEDNN(dnnl_stream_destroy)

#include "dnnl.hpp"
