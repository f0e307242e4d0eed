/* heddle_engine.h: what a library provides to compute parts of programs for heddle.
 *
 * An engine is a shared library that exports one function, heddle_engine_get, which returns a table
 * of functions. heddle opens the library that its user names, asks what the engine takes, groups
 * the operators of a program by that (docs/partition.md), hands over the groups, and calls the
 * engine when a run comes to one. docs/engines.md tells how to write one.
 *
 * Ownership: what heddle passes belongs to heddle and is there for the time of the call, but for
 * the contents of parameters (heddle_engine_value::data) and ONNX models, which stay where they are
 * until free_module. Engines and modules belong to the engine, which frees them when it is told to.
 * Texts that an engine returns live as long as the engine.
 *
 * Threads: any thread may call; all functions but `run` one at a time for one engine. `run` is
 * called for one module by one thread at a time, unless the table says HEDDLE_ENGINE_REENTRANT; for
 * different modules at the same time, unless it says HEDDLE_ENGINE_ONE_RUN. It computes on the
 * calling thread and on at most settings->threads - 1 of its own.
 *
 * Errors: functions return a status, and for all but HEDDLE_ENGINE_OK write a sentence to
 * `message`, cut to `room` bytes with the zero at its end. Nothing may be thrown; what is thrown
 * all the same becomes an error, and so does HEDDLE_ENGINE_STOPPED where `stopped` said nothing.
 *
 * Growth: each structure begins with its size as the side that filled it in knows it. A member may
 * be read when it lies within that size; members are only added at the end. A table whose version
 * is another, or has unknown flags, is refused. Lists are arrays of pointers, so that what they
 * point to may grow. */
#ifndef HEDDLE_ENGINE_H_
#define HEDDLE_ENGINE_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_ENGINE_VERSION 1
#define HEDDLE_ENGINE_MAX_RANK 10

typedef enum heddle_engine_status {
  HEDDLE_ENGINE_OK = 0,
  HEDDLE_ENGINE_REFUSED = 1, /* known, and not for this engine: heddle computes it */
  HEDDLE_ENGINE_FAILED = 2,
  HEDDLE_ENGINE_STOPPED = 3 /* `stopped`, of the run or of the settings, said so */
} heddle_engine_status;

/* Element types; a bool is a byte. */
typedef enum heddle_engine_dtype {
  HEDDLE_ENGINE_BOOL = 0,
  HEDDLE_ENGINE_U8 = 1,
  HEDDLE_ENGINE_I8 = 2,
  HEDDLE_ENGINE_I16 = 3,
  HEDDLE_ENGINE_I32 = 4,
  HEDDLE_ENGINE_I64 = 5,
  HEDDLE_ENGINE_F16 = 6,
  HEDDLE_ENGINE_BF16 = 7,
  HEDDLE_ENGINE_F32 = 8,
  HEDDLE_ENGINE_F64 = 9,
  HEDDLE_ENGINE_C64 = 10,
  HEDDLE_ENGINE_C128 = 11,
  HEDDLE_ENGINE_UNKNOWN = 12
} heddle_engine_dtype;

/* ---- what is to be computed ----------------------------------------------------------------- */

/* A variable of a group, told by its index. An operator may write one that it reads, or that
 * another one wrote before. */
typedef struct heddle_engine_value {
  size_t size;
  const char* name;
  int32_t dtype;       /* as far as the program declares it */
  int32_t rank;        /* -1: unknown */
  const int64_t* dims; /* -1: may be anything */
  const void* data;    /* contents of a parameter, row by row without gaps; NULL: no parameter */
  size_t bytes;        /* of them */
} heddle_engine_value;

/* The arguments in one slot of an operator. */
typedef struct heddle_engine_slot {
  size_t size;
  const char* name;
  size_t count;
  const int32_t* values; /* -1: none */
} heddle_engine_slot;

typedef enum heddle_engine_attribute_kind {
  HEDDLE_ENGINE_INTEGER = 0,  /* ints */
  HEDDLE_ENGINE_BOOLEAN = 1,  /* ints: 0 or 1 */
  HEDDLE_ENGINE_REAL = 2,     /* reals */
  HEDDLE_ENGINE_TEXT = 3,     /* texts */
  HEDDLE_ENGINE_INTEGERS = 4, /* ints; of bools, too */
  HEDDLE_ENGINE_REALS = 5,
  HEDDLE_ENGINE_TEXTS = 6,
  HEDDLE_ENGINE_HELD = 7 /* values: variables that hold it when it runs */
} heddle_engine_attribute_kind;

/* All that the operator has are there, those that a file left out with their defaults. Of the lists
 * one is filled in. */
typedef struct heddle_engine_attribute {
  size_t size;
  const char* name;
  int32_t kind;
  size_t count; /* 1 for what is no list */
  const int64_t* ints;
  const double* reals;
  const char* const* texts;
  const int32_t* values;
} heddle_engine_attribute;

/* Names are those of `heddle ops`. What the target's patterns do not name may be anything. */
typedef struct heddle_engine_operator {
  size_t size;
  const char* type;
  size_t num_inputs; /* slots that hold something */
  const heddle_engine_slot* const* inputs;
  size_t num_outputs;
  const heddle_engine_slot* const* outputs;
  size_t num_attributes;
  const heddle_engine_attribute* const* attributes;
} heddle_engine_operator;

typedef struct heddle_engine_group {
  size_t size;
  const char* symbol; /* a name that no other group of the program has, unless it is equal */
  size_t num_values;
  const heddle_engine_value* const* values;
  size_t num_operators; /* in an order in which they can be computed */
  const heddle_engine_operator* const* operators;
  size_t num_inputs;
  const int32_t* inputs; /* values that each run is given */
  size_t num_outputs;
  const int32_t* outputs; /* values that each run gives, as they are behind the last operator */
  /* The same group as an ONNX model (a serialized ModelProto, its weights inside), whose inputs and
   * outputs are named and ordered as above. For engines with HEDDLE_ENGINE_WANTS_ONNX, and where
   * ONNX has words for all of its operators; else NULL. */
  const void* onnx;
  size_t onnx_bytes;
  /* Of restore with HEDDLE_ENGINE_RESTORES_ALONE: gives the model where it is needed after all, in
   * restore and in runs, on their thread. NULL, or its result: none, or parameters have changed. */
  void* host;
  const void* (*later)(void* host, size_t* onnx_bytes);
} heddle_engine_group;

/* ---- calls ---------------------------------------------------------------------------------- */

/* What the user asks of the engine. */
typedef struct heddle_engine_settings {
  size_t size;
  uint32_t version; /* HEDDLE_ENGINE_VERSION of heddle */
  int32_t threads;  /* that a call may use, the calling one among them */
  size_t num_options;
  const char* const* keys; /* parallel to texts; open names one that it does not know, and fails */
  const char* const* texts;
  /* Whether the call under way, but for runs, is to end: the user's limit or deadline is over. May
   * be kept until close; to be asked every few milliseconds by what waits for others. */
  void* host;
  int (*stopped)(void* host);
} heddle_engine_settings;

/* What became of a group: filled in by compile. */
typedef struct heddle_engine_compiled {
  size_t size;
  int32_t status; /* HEDDLE_ENGINE_REFUSED before the call */
  void* module;   /* of HEDDLE_ENGINE_OK: handed back to run, save and free_module; may be NULL */
  char* message;  /* room for a sentence */
  size_t room;
} heddle_engine_compiled;

typedef struct heddle_engine_tensor {
  size_t size;
  int32_t dtype;
  int32_t rank;
  const int64_t* dims;
  const void* data; /* row by row without gaps; not to be written to */
  size_t bytes;
} heddle_engine_tensor;

/* One run of a module. */
typedef struct heddle_engine_run {
  size_t size;
  size_t num_inputs; /* as the group lists and declares them */
  const heddle_engine_tensor* const* inputs;
  size_t num_outputs;
  void* host;
  /* The memory of output `index`, to be called once for each output. NULL: there is none for such a
   * tensor, and the run has to return HEDDLE_ENGINE_FAILED. */
  void* (*output)(void* host, size_t index, int32_t dtype, int32_t rank, const int64_t* dims);
  /* Whether it is to end early: by a stop, its deadline or the user's limit. To be asked every few
   * milliseconds by what takes longer, which then returns HEDDLE_ENGINE_STOPPED. */
  int (*stopped)(void* host);
} heddle_engine_run;

enum {
  HEDDLE_ENGINE_REENTRANT = 1,
  HEDDLE_ENGINE_WANTS_ONNX = 2,  /* groups are to be given as ONNX, too, to takes and to compile */
  HEDDLE_ENGINE_ONE_RUN = 4,     /* runs of different modules one at a time, too */
  HEDDLE_ENGINE_SAVES_LATER = 8, /* what save refuses is worth asking for again, see there */
  HEDDLE_ENGINE_TAKES_MANY = 16, /* takes may be asked for many operators at once */
  HEDDLE_ENGINE_RESTORES_ALONE = 32, /* restore is given less of a group, see there */
  HEDDLE_ENGINE_KEEPS_SAVED = 64     /* ... and its bytes until free_module */
};

typedef struct heddle_engine_table {
  size_t size;
  uint32_t version; /* HEDDLE_ENGINE_VERSION of the engine */
  uint32_t flags;
  const char* name;
  int (*open)(const heddle_engine_settings* settings, void** engine, char* message, size_t room);
  /* A target file (docs/partition.md) for users who name none. NULL, or its result: none. */
  const char* (*target)(void* engine);
  /* Whether the engine takes the one operator of the group, which a unit of the target takes.
   * With HEDDLE_ENGINE_TAKES_MANY a group may have many: OK, if it takes each of them; what is
   * refused is asked for in smaller parts. NULL: it takes all of them. */
  int (*takes)(void* engine, const heddle_engine_group* group, char* message, size_t room);
  /* All groups of a program in one call. A status other than OK: none was compiled. */
  int (*compile)(void* engine, const heddle_engine_group* const* groups,
                 heddle_engine_compiled* const* compiled, size_t count, char* message, size_t room);
  /* REFUSED: inputs of these shapes are not for this engine, and heddle computes the group. */
  int (*run)(void* module, const heddle_engine_run* run, char* message, size_t room);
  void (*free_module)(void* module);
  void (*close)(void* engine);
  /* For compile caches; all three may be missing, and are there together. Equal groups are then
   * given the same names and symbol, whatever those of their programs are, and may share a module,
   * which lives as long as the last program that uses it.
   * What has to be equal for a saved module to be restored, and for what takes said (OK, REFUSED)
   * to hold: versions, options that matter, the processor where code is made for it. */
  const char* (*fingerprint)(void* engine);
  /* Writes a module that has not run yet as bytes, in any number of calls of `write`, whose status
   * other than OK is to be returned. REFUSED: this module cannot be saved; with
   * HEDDLE_ENGINE_SAVES_LATER it is asked for once more, behind its first run. */
  int (*save)(void* module, void* host, int (*write)(void* host, const void* bytes, size_t count),
              char* message, size_t room);
  /* A module from the bytes that save wrote under the same fingerprint for an equal group. Not OK:
   * the group is compiled instead. `bytes` are there for the time of the call, or, aligned to 64,
   * until free_module. With HEDDLE_ENGINE_RESTORES_ALONE the group comes without its ONNX model but
   * for `later`, and may come without contents of parameters. */
  int (*restore)(void* engine, const heddle_engine_group* group, const void* bytes, size_t count,
                 void** module, char* message, size_t room);
  /* Flags besides the table's, and the name for messages, now that it is open. NULL: no others. */
  uint32_t (*more_flags)(void* engine);
  const char* (*open_name)(void* engine);
} heddle_engine_table;

/* What an engine exports; the table lives as long as the library. NULL: none for that version. */
typedef const heddle_engine_table* (*heddle_engine_get_function)(uint32_t host_version);
#define HEDDLE_ENGINE_GET "heddle_engine_get"

#ifdef __cplusplus
}
#endif
#endif /* HEDDLE_ENGINE_H_ */
