/* A pass: relu(relu(x)) is relu(x), on the host and in groups of targets.
 *
 *   cc -shared -fPIC -O2 -Iinclude examples/pass/relu_once.c -o relu_once.so
 *   heddle opt model/ -o model.opt --pass ./relu_once.so --pass-stats
 */
#include <stdio.h>
#include <string.h>

#include "heddle/passes/heddle_pass.h"

/* Names belong to the editor until its next call. */
enum { kMostName = 256 };

static int copy_name(const char* from, char* to) {
  return from != NULL && snprintf(to, kMostName, "%s", from) < kMostName;
}

/* The only variable of the operator's only slot, X or Out. */
static const char* only(size_t count, const heddle_pass_slot* const* slots) {
  return count == 1 && slots[0]->count == 1 ? slots[0]->variables[0] : NULL;
}

/* Whether the operator is relu, and what it reads and writes. */
static int relu_at(const heddle_pass_editor* edit, void* program, int64_t at, char* x, char* out) {
  const heddle_pass_operator* op = edit->get(program, 0, at);
  return op != NULL && strcmp(op->type, "relu") == 0 &&
         copy_name(only(op->num_inputs, op->inputs), x) &&
         copy_name(only(op->num_outputs, op->outputs), out);
}

/* The relu in front of `at` that writes `name`, and what it reads; -1: there is none. */
static int64_t maker(const heddle_pass_editor* edit, void* program, int64_t at, const char* name,
                     char* x) {
  char out[kMostName];
  while (--at >= 0)
    if (relu_at(edit, program, at, x, out) && strcmp(out, name) == 0) return at;
  return -1;
}

/* Whether `name` is what it was when the operator at `at` read it: nobody writes it, or one that
 * stands before that. */
static int lasts(const heddle_pass_editor* edit, void* program, int64_t at, const char* name) {
  const int32_t writers = edit->writers(program, name);
  if (writers != 1) return writers == 0;
  while (--at >= 0) {
    const heddle_pass_operator* op = edit->get(program, 0, at);
    for (size_t s = 0; s < op->num_outputs; ++s)
      for (size_t v = 0; v < op->outputs[s]->count; ++v)
        if (strcmp(op->outputs[s]->variables[v], name) == 0) return 1;
  }
  return 0;
}

static int run_one(const heddle_pass_editor* edit, void* program, int32_t* changed, char* message,
                   size_t room) {
  char x[kMostName], between[kMostName], out[kMostName];
  for (int64_t at = 0; at < edit->num_operators(program, 0); ++at) {
    if (!relu_at(edit, program, at, between, out)) continue;
    const int64_t first = maker(edit, program, at, between, x);
    if (first < 0 || edit->writers(program, between) != 1 || !lasts(edit, program, first, x))
      continue;
    const char* reads[] = {x};
    const char* writes[] = {out};
    const heddle_pass_slot in_slot = {sizeof(in_slot), "X", 1, reads};
    const heddle_pass_slot out_slot = {sizeof(out_slot), "Out", 1, writes};
    const heddle_pass_slot* ins[] = {&in_slot};
    const heddle_pass_slot* outs[] = {&out_slot};
    const heddle_pass_operator relu = {sizeof(relu), "relu", 1, ins, 1, outs, 0, NULL};
    if (edit->replace(program, 0, at, &relu, message, room) != HEDDLE_PASS_OK)
      return HEDDLE_PASS_FAILED;
    *changed = 1;
    if (edit->readers(program, between) > 0 || edit->fetched(program, between) == 1) continue;
    if (edit->erase(program, 0, first, message, room) != HEDDLE_PASS_OK) return HEDDLE_PASS_FAILED;
    --at;
  }
  return HEDDLE_PASS_OK;
}

static int run(const heddle_pass_context* context, int32_t* changed, char* message, size_t room) {
  for (size_t k = 0; k < context->num_programs; ++k) {
    const int status =
        run_one(context->editor, context->programs[k]->handle, changed, message, room);
    if (status != HEDDLE_PASS_OK) return status;
  }
  return HEDDLE_PASS_OK;
}

static const heddle_pass relu_once = {sizeof(relu_once),
                                      "relu_once",
                                      "relu of relu is one relu",
                                      HEDDLE_PASS_POST_PARTITIONING,
                                      NULL,
                                      NULL,
                                      1,
                                      0,
                                      run};
static const heddle_pass* const passes[] = {&relu_once};
static const heddle_pass_table table = {sizeof(table), HEDDLE_PASS_VERSION, 1, passes};

const heddle_pass_table* heddle_pass_get(uint32_t host_version) {
  return host_version == HEDDLE_PASS_VERSION ? &table : NULL;
}
