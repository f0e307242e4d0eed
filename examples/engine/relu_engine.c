/* An engine that computes relu and nothing else: what an engine has to have, and no more.
 *
 *   cc -shared -fPIC -O2 -Iinclude examples/engine/relu_engine.c -o relu_engine.so
 *   heddle run model/ --engine relu=./relu_engine.so --engine-policy always
 */
#include <stdio.h>
#include <string.h>

#include "heddle/heddle_engine.h"

static int engine_state, module_state; /* there is nothing to remember */

static int fail(const char* text, int status, char* message, size_t room) {
  snprintf(message, room, "%s", text);
  return status;
}

static int open_engine(const heddle_engine_settings* settings, void** engine, char* message,
                       size_t room) {
  if (settings->num_options > 0)
    return fail("there are no options", HEDDLE_ENGINE_FAILED, message, room);
  *engine = &engine_state;
  return HEDDLE_ENGINE_OK;
}

/* One unit, which takes relu of float32 that makes 0 of NaN; each group is one operator. */
static const char* target(void* engine) {
  (void)engine;
  return "{\"name\": \"relu\", \"start\": [\"relu\"], \"links\": [],"
         " \"units\": [{\"name\": \"relu\","
         "   \"ops\": [{\"type\": \"relu\", \"dtypes\": [\"float32\"],"
         "            \"attrs\": {\"keep_nan\": {\"eq\": false, \"default\": false}}}]}]}";
}

static int compile(void* engine, const heddle_engine_group* const* groups,
                   heddle_engine_compiled* const* compiled, size_t count, char* message,
                   size_t room) {
  (void)engine, (void)message, (void)room;
  for (size_t k = 0; k < count; ++k) {
    const heddle_engine_group* group = groups[k];
    /* A user's own target file may send us anything. */
    if (group->num_operators != 1 || strcmp(group->operators[0]->type, "relu") != 0) {
      compiled[k]->status =
          fail("this is no relu", HEDDLE_ENGINE_REFUSED, compiled[k]->message, compiled[k]->room);
      continue;
    }
    compiled[k]->module = &module_state;
    compiled[k]->status = HEDDLE_ENGINE_OK;
  }
  return HEDDLE_ENGINE_OK;
}

static int run(void* module, const heddle_engine_run* r, char* message, size_t room) {
  const heddle_engine_tensor* x = r->inputs[0];
  (void)module;
  if (x->dtype != HEDDLE_ENGINE_F32)
    return fail("expected float32", HEDDLE_ENGINE_FAILED, message, room);
  float* out = r->output(r->host, 0, x->dtype, x->rank, x->dims);
  if (out == NULL) return fail("no memory was given", HEDDLE_ENGINE_FAILED, message, room);
  const float* in = x->data;
  for (size_t i = 0; i < x->bytes / sizeof(float); ++i) out[i] = in[i] > 0 ? in[i] : 0;
  return HEDDLE_ENGINE_OK;
}

static void nothing(void* state) { (void)state; }

static const heddle_engine_table table = {sizeof(heddle_engine_table),
                                          HEDDLE_ENGINE_VERSION,
                                          HEDDLE_ENGINE_REENTRANT,
                                          "relu",
                                          open_engine,
                                          target,
                                          NULL,
                                          compile,
                                          run,
                                          nothing,
                                          nothing};

const heddle_engine_table* heddle_engine_get(uint32_t host_version) {
  (void)host_version;
  return &table;
}
