// Marks functions that run on a card, and names the namespace that holds one of the two builds of
// the kernels: `card`, or `grid_on_host` for the loops that tests run.
#pragma once

#ifdef __CUDACC__
#define HEDDLE_BODY __host__ __device__
#else
#define HEDDLE_BODY
#endif

#ifdef HEDDLE_GRID_ON_HOST
#define HEDDLE_GRID grid_on_host
#else
#define HEDDLE_GRID card
#endif

namespace heddle::HEDDLE_GRID {

#ifdef HEDDLE_GRID_ON_HOST
void GroupBarrier(void* barrier);  // none: a group of one thread
#elif defined(__CUDACC__)
HEDDLE_BODY inline void GroupBarrier(void*) {
#ifdef __CUDA_ARCH__
  __syncthreads();
#endif
}
#endif

}  // namespace heddle::HEDDLE_GRID
