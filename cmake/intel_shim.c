// The oneDNN binary names two Intel run-time libraries, but of what only they define it uses just
// these functions; its mathematics comes from the C library. scripts/setup.sh builds this file
// under the names of both libraries, which spares their 45 MB.
#include <string.h>

void* _intel_fast_memcpy(void* to, const void* from, size_t bytes) {
  return memcpy(to, from, bytes);
}

void* _intel_fast_memset(void* to, int value, size_t bytes) { return memset(to, value, bytes); }
