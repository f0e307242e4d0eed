/* heddle_pass.h: what a library provides to rewrite programs by passes of its own.
 *
 * A pass library is a shared library that exports one function, heddle_pass_get, which returns a
 * list of passes. heddle opens the library that its user names (`--pass LIBRARY`,
 * heddle/passes/pass_library.h) and runs its passes where each says. examples/pass/relu_once.c is a
 * whole one; docs/passes.md tells how passes live.
 *
 * Ownership: what heddle passes belongs to heddle and is there for the time of the call of `run`;
 * what the editor returns, until the editor's next call on the same program. The table, the passes
 * and their texts live as long as the library, which is never closed.
 *
 * Threads: `run` may be called by any thread, for different programs at the same time. The editor
 * is used on the thread that `run` is called on.
 *
 * Errors: `run` returns HEDDLE_PASS_OK, or writes a sentence to `message`, cut to `room` bytes with
 * the zero at its end; so does what the editor refuses. Nothing may be thrown; what is thrown all
 * the same becomes an error. An error names the pass, and the program stays as it was.
 *
 * Growth: each structure begins with its size as the side that filled it in knows it. A member may
 * be read when it lies within that size; members are only added at the end. A table whose version
 * is another is refused. Lists are arrays of pointers, so that what they point to may grow. */
#ifndef HEDDLE_PASS_H_
#define HEDDLE_PASS_H_

#include <stddef.h>
#include <stdint.h>

#include "heddle/heddle_engine.h" /* heddle_engine_value, heddle_engine_attribute, element types */

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_PASS_VERSION 1

typedef enum heddle_pass_status { HEDDLE_PASS_OK = 0, HEDDLE_PASS_FAILED = 1 } heddle_pass_status;

/* When a pass runs, as PassGrouping of heddle/pass.h. */
typedef enum heddle_pass_grouping {
  HEDDLE_PASS_PRE_PLACEMENT = 0,
  HEDDLE_PASS_POST_PLACEMENT = 1,
  HEDDLE_PASS_POST_REWRITE_FOR_EXEC = 2,
  HEDDLE_PASS_POST_PARTITIONING = 3 /* is given all programs of a partition at once */
} heddle_pass_grouping;

/* The arguments in one slot of an operator: names of variables, "" where there is none. */
typedef struct heddle_pass_slot {
  size_t size;
  const char* name;
  size_t count;
  const char* const* variables;
} heddle_pass_slot;

/* Types, slots and attributes are those of docs/ops.md. Of operators that a pass makes, slots and
 * attributes that are not named are empty, or at their defaults. Blocks are not told: an operator
 * that runs some can be replaced by one of its own type. */
typedef struct heddle_pass_operator {
  size_t size;
  const char* type;
  size_t num_inputs;
  const heddle_pass_slot* const* inputs;
  size_t num_outputs;
  const heddle_pass_slot* const* outputs;
  size_t num_attributes;
  const heddle_engine_attribute* const* attributes;
} heddle_pass_operator;

/* One program. */
typedef struct heddle_pass_program {
  size_t size;
  const char* target; /* "host", or the target that the program is a group of */
  const char* symbol; /* of a group: no other has it; else "" */
  size_t num_feeds;   /* told at POST_PARTITIONING */
  const char* const* feeds;
  size_t num_fetches;
  const char* const* fetches;
  void* handle; /* for the editor */
} heddle_pass_program;

/* What a pass looks at a program and edits it with. Blocks and operators count from 0; indices of
 * operators are as in a vector: behind an operator that is erased, all are one less. NULL, -1:
 * there is no such thing. */
typedef struct heddle_pass_editor {
  size_t size;
  int32_t (*num_blocks)(void* program);
  int64_t (*num_operators)(void* program, int32_t block);
  const heddle_pass_operator* (*get)(void* program, int32_t block, int64_t index);
  int (*replace)(void* program, int32_t block, int64_t index, const heddle_pass_operator* op,
                 char* message, size_t room);
  /* In front of the operator at `index`, or behind the last one. */
  int (*insert)(void* program, int32_t block, int64_t index, const heddle_pass_operator* op,
                char* message, size_t room);
  int (*erase)(void* program, int32_t block, int64_t index, char* message, size_t room);
  /* A variable of block 0. `data` is there for float32 parameters that no operator writes; whoever
   * asks for it makes the program go by its value. */
  const heddle_engine_value* (*variable)(void* program, const char* name);
  /* The numbers of operators, of all blocks, that read and that write a variable of block 0. */
  int32_t (*readers)(void* program, const char* name);
  int32_t (*writers)(void* program, const char* name);
  int32_t (*fetched)(void* program, const char* name); /* 1: its value must be kept */
  /* A new variable of block 0, a parameter where `like->data` is there, which is copied. Returns
   * its name, which begins with `like->name`. */
  const char* (*add_variable)(void* program, const heddle_engine_value* like);
  /* The time expected of an operator on one thread of the host, in ns; 0: not known. */
  double (*cost_ns)(void* program, int32_t block, int64_t index);
  /* What its target counts for a group as it is now. Not OK: why it does not take it any more. */
  int (*target_cost)(void* program, double* cost, char* message, size_t room);
} heddle_pass_editor;

/* What `run` is given. */
typedef struct heddle_pass_context {
  size_t size;
  uint32_t version;    /* HEDDLE_PASS_VERSION of heddle */
  size_t num_programs; /* the host's first; without a partition no other */
  const heddle_pass_program* const* programs;
  const heddle_pass_editor* editor;
  /* The device set: the host, the devices, then targets. */
  size_t num_places;
  const char* const* places;
  /* A function of the file that the program was read from, as in "f(x: T) -> (y: T)"; NULL: there
   * are no more, or none are told. */
  void* host;
  const char* (*function)(void* host, size_t index);
  /* Session options: "opt_level", "threads", "memory_limit", "lean", "precision". Those that are
   * not known, as for a program that is only optimised, are missing. */
  size_t num_options;
  const char* const* keys; /* parallel to texts */
  const char* const* texts;
} heddle_pass_context;

typedef struct heddle_pass {
  size_t size;
  const char* name; /* none of heddle's own */
  const char* doc;  /* NULL: none */
  int32_t grouping;
  /* At most one of them: the pass of the grouping next to which this one runs. NULL: first. */
  const char* before;
  const char* after;
  int32_t level;  /* the lowest optimisation level that runs it */
  int32_t repeat; /* 1: until nothing changes */
  /* Sets `changed` to 1 where it changed something; 0 must leave all programs as they were. */
  int (*run)(const heddle_pass_context* context, int32_t* changed, char* message, size_t room);
} heddle_pass;

typedef struct heddle_pass_table {
  size_t size;
  uint32_t version; /* HEDDLE_PASS_VERSION of the library */
  size_t count;
  const heddle_pass* const* passes;
} heddle_pass_table;

/* What a library exports. NULL: no passes for heddles of that version. */
typedef const heddle_pass_table* (*heddle_pass_get_function)(uint32_t host_version);
#define HEDDLE_PASS_GET "heddle_pass_get"

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_PASS_H_ */
