/* heddle.h: heddle from C, and from anything that calls C.
 *
 *   heddle_executor* executor = NULL;
 *   heddle_model* model = NULL;
 *   heddle_error* error = heddle_executor_new(NULL, &executor);
 *   if (!error) error = heddle_model_load(executor, "model_dir", NULL, NULL, &model);
 *   if (!error) error = heddle_model_run(model, NULL, names, inputs, 1, outputs, 1);
 *   if (error) { fprintf(stderr, "%s\n", heddle_error_text(error)); heddle_error_free(error); }
 *
 * Handles are opaque. What a function hands out through its last parameter (or heddle_model_run
 * through `outputs`) belongs to the caller, who gives it back with the _free function of its type;
 * freeing NULL does nothing. Texts that are returned belong to the handle they were asked of and
 * live as long as it.
 *
 * Errors: a function that can fail returns NULL on success and an error to be freed otherwise; then
 * nothing was handed out. No C++ exception leaves a function. A NULL where a handle is needed is an
 * error (HEDDLE_INVALID_ARGUMENT), not a crash; plain getters say what they answer.
 *
 * Threads: every function may be called from any thread. An executor and a model may be used by
 * many threads at once, tensors by one thread at a time (reading one tensor from many is fine). A
 * handle must not be freed while another thread uses it.
 *
 * Binary interface: structures of options begin with their size, so that they can grow; functions
 * and enumerators are only added within one HEDDLE_ABI_VERSION. */
#ifndef HEDDLE_H_
#define HEDDLE_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define HEDDLE_API __attribute__((visibility("default")))
#define HEDDLE_CHECKED __attribute__((warn_unused_result))
#else
#define HEDDLE_API
#define HEDDLE_CHECKED
#endif

/* A function that can fail. */
#define HEDDLE_TRY HEDDLE_API HEDDLE_CHECKED heddle_error*

#ifdef __cplusplus
extern "C" {
#endif

#define HEDDLE_ABI_VERSION 1
#define HEDDLE_MAX_RANK 10
typedef struct heddle_error heddle_error;
typedef struct heddle_executor heddle_executor; /* threads and plans */
typedef struct heddle_model heddle_model;       /* a program with its parameters, compiled */
typedef struct heddle_tensor heddle_tensor;     /* dtype, dimensions and a share of their memory */
typedef struct heddle_run heddle_run;           /* a run that goes on by itself */
typedef struct heddle_stop heddle_stop;         /* asks runs to end */
typedef struct heddle_text heddle_text;         /* a text of its own */
typedef struct heddle_ranks heddle_ranks; /* a group of executors that run a program together */
typedef struct heddle_queue heddle_queue; /* batches that a program reads for itself */
/* "0.1.0": of the library. */
HEDDLE_API const char* heddle_version(void);
/* HEDDLE_ABI_VERSION the library was built with. */
HEDDLE_API int heddle_abi_version(void);

/* ---- errors --------------------------------------------------------------------------------- */

typedef enum heddle_code {
  HEDDLE_OK = 0,
  HEDDLE_INVALID_ARGUMENT = 1,   /* values are wrong: shape, dtype, name, option */
  HEDDLE_NOT_FOUND = 2,          /* a file, variable or operator does not exist */
  HEDDLE_OUT_OF_RANGE = 3,       /* an index outside its axis */
  HEDDLE_DATA_LOSS = 4,          /* a file is truncated, too long or damaged */
  HEDDLE_UNIMPLEMENTED = 5,      /* known, but not supported */
  HEDDLE_RESOURCE_EXHAUSTED = 6, /* out of memory */
  HEDDLE_CANCELLED = 7,
  HEDDLE_DEADLINE_EXCEEDED = 8,
  HEDDLE_INTERNAL = 9
} heddle_code;

/* HEDDLE_OK for NULL. */
HEDDLE_API heddle_code heddle_error_code(const heddle_error* error);
/* Everything there is to say, in one line; "" for NULL. */
HEDDLE_API const char* heddle_error_text(const heddle_error* error);
/* Which operator of the program it happened at: its type and first output ("" when at none), block
 * and index in the file (-1 when at none). */
HEDDLE_API const char* heddle_error_op_type(const heddle_error* error);
HEDDLE_API const char* heddle_error_output(const heddle_error* error);
HEDDLE_API int heddle_error_block(const heddle_error* error);
HEDDLE_API int heddle_error_op_index(const heddle_error* error);
HEDDLE_API void heddle_error_free(heddle_error* error);

/* ---- tensors -------------------------------------------------------------------------------- */

typedef enum heddle_dtype {
  HEDDLE_BOOL = 0,
  HEDDLE_UINT8 = 1,
  HEDDLE_INT8 = 2,
  HEDDLE_INT16 = 3,
  HEDDLE_INT32 = 4,
  HEDDLE_INT64 = 5,
  HEDDLE_FLOAT16 = 6,
  HEDDLE_BFLOAT16 = 7,
  HEDDLE_FLOAT32 = 8,
  HEDDLE_FLOAT64 = 9,
  HEDDLE_COMPLEX64 = 10,
  HEDDLE_COMPLEX128 = 11,
  HEDDLE_UNKNOWN = 12,            /* only in a heddle_info */
  HEDDLE_DTYPE_ANY_ = 0x7fffffff, /* these two: no dtypes, but room for wrong values, also for
                                     negative ones, which are errors */
  HEDDLE_DTYPE_LEAST_ = -0x7fffffff - 1
} heddle_dtype;

/* Bytes of one element; 0 for what is not a dtype. */
HEDDLE_API size_t heddle_dtype_size(heddle_dtype dtype);
/* NumPy's name: "float32"; "unknown" for what is not a dtype. */
HEDDLE_API const char* heddle_dtype_name(heddle_dtype dtype);

/* Memory of its own, aligned to 64 bytes, its contents undefined. `dims` may be NULL for rank 0. */
HEDDLE_TRY heddle_tensor_new(heddle_dtype dtype, int rank, const int64_t* dims,
                             heddle_tensor** tensor);
/* The caller's memory, row-major, used where it lies. `release(argument)` is called once nothing
 * refers to it any more (on whichever thread that happens, so it must not wait for a run or for a
 * parameter), also when this function fails; NULL: the caller keeps the memory alive as long as the
 * tensor and whatever was made from it. */
HEDDLE_TRY heddle_tensor_wrap(heddle_dtype dtype, int rank, const int64_t* dims, void* data,
                              void (*release)(void*), void* argument, heddle_tensor** tensor);
/* The same with memory that nobody may write to through heddle: neither a run does, nor
 * heddle_tensor_data of this handle or of any that shares the memory. */
HEDDLE_TRY heddle_tensor_wrap_const(heddle_dtype dtype, int rank, const int64_t* dims,
                                    const void* data, void (*release)(void*), void* argument,
                                    heddle_tensor** tensor);
/* Another handle of the same memory. */
HEDDLE_TRY heddle_tensor_share(const heddle_tensor* tensor, heddle_tensor** other);
/* Plain getters. Of NULL: HEDDLE_UNKNOWN, rank -1, NULL, 0. */
HEDDLE_API heddle_dtype heddle_tensor_dtype(const heddle_tensor* tensor);
HEDDLE_API int heddle_tensor_rank(const heddle_tensor* tensor);
HEDDLE_API const int64_t* heddle_tensor_dims(const heddle_tensor* tensor);
HEDDLE_API int64_t heddle_tensor_numel(const heddle_tensor* tensor);
HEDDLE_API size_t heddle_tensor_bytes(const heddle_tensor* tensor);
/* Memory that may be written to. A handle of memory that may not - wrapped as const, or a model's
 * parameter - is first given a copy of its own; NULL where there is no memory for one. Pointers
 * that heddle_tensor_const_data and the offsets' getter gave for this handle end with the copy; no
 * other thread may use the handle meanwhile. */
HEDDLE_API void* heddle_tensor_data(heddle_tensor* tensor);
HEDDLE_API const void* heddle_tensor_const_data(const heddle_tensor* tensor);
/* 1 where heddle_tensor_data would make a copy first, else 0. */
HEDDLE_API int heddle_tensor_is_const(const heddle_tensor* tensor);
/* Sequence offsets (LoD): levels, and one level's offsets, `*count` of them; NULL for a level that
 * is not there. Good until the offsets are set anew. */
HEDDLE_API int heddle_tensor_lod_levels(const heddle_tensor* tensor);
HEDDLE_API const size_t* heddle_tensor_lod(const heddle_tensor* tensor, int level, size_t* count);
/* Adds a level, the outermost first; `offsets` begin with 0 and do not fall. */
HEDDLE_TRY heddle_tensor_add_lod(heddle_tensor* tensor, const size_t* offsets, size_t count);
HEDDLE_API void heddle_tensor_free(heddle_tensor* tensor);

/* An input or output as the file declares it. */
typedef struct heddle_info {
  const char* name;
  heddle_dtype dtype;
  int rank;            /* -1: not known */
  const int64_t* dims; /* -1 where the file leaves a dimension open */
} heddle_info;

/* ---- ranks and readers ---------------------------------------------------------------------- */

/* A group of `size` ranks in this process: executors, one a rank, whose programs exchange values by
 * communication operators (c_allreduce_sum, send_v2, ...), each run on a thread of its own. What
 * they can count on: heddle/ranks.h. */
typedef struct heddle_ring {
  int64_t ring;     /* operators with this ring_id are for these ranks only */
  const int* ranks; /* in their order in the ring, where they are counted from 0 */
  size_t num_ranks;
} heddle_ring;
/* `rings` may be NULL; operators of rings that are not named are for all ranks. */
HEDDLE_TRY heddle_ranks_new(int size, const heddle_ring* rings, size_t num_rings,
                            heddle_ranks** ranks);
/* 0 for NULL. */
HEDDLE_API int heddle_ranks_size(const heddle_ranks* ranks);
/* Executors keep their ranks, and give them up when they and their models are freed; ranks that no
 * executor took are given up here: whoever waits for one fails. */
HEDDLE_API void heddle_ranks_free(heddle_ranks* ranks);

/* Batches for programs that read their data themselves (operator `read`), one a run, at most
 * `capacity` (1 or more) waiting. Any thread may fill it while runs go on. */
HEDDLE_TRY heddle_queue_new(size_t capacity, heddle_queue** queue);
/* One tensor for each variable that is read; the handles may be freed, their memory is read by a
 * later run and must not change. Waits while the queue is full, at most `timeout_ms` (negative: for
 * as long as it takes). `*pushed`: 1; 0 when the queue is closed or was reset meanwhile; -1 when
 * the time is up. */
HEDDLE_TRY heddle_queue_push(heddle_queue* queue, const heddle_tensor* const* tensors, size_t count,
                             double timeout_ms, int* pushed);
/* No further batch comes: runs read what is queued, and then fail at the end of the data. */
HEDDLE_API void heddle_queue_close(heddle_queue* queue);
/* Drops all batches and begins anew, whether closed or not. */
HEDDLE_API void heddle_queue_reset(heddle_queue* queue);
/* Batches that wait; 0 for NULL. */
HEDDLE_API size_t heddle_queue_size(const heddle_queue* queue);
/* Programs that read from it keep a share. */
HEDDLE_API void heddle_queue_free(heddle_queue* queue);
/* Not 0: a run failed for no other reason than that its reader was at the end of the data. */
HEDDLE_API int heddle_error_is_end_of_data(const heddle_error* error);

/* ---- operators from outside ----------------------------------------------------------------- */

/* Operators that heddle lacks, added by the program that uses it, and their kernels: what
 * heddle/operators/own_operator.h says holds here. All functions may be called from any thread, for
 * several calls at the same time; what they are given is theirs for the time of the call. */
typedef struct heddle_call heddle_call;
typedef struct heddle_slot {
  const char* name;
  int optional;               /* 1: may be absent */
  int list;                   /* 1: any number of variables */
  int decides_shape;          /* 1: an input whose contents the shape function reads */
  const heddle_dtype* dtypes; /* of an input: the possible ones; NULL: all */
  size_t num_dtypes;
  const char* same_as; /* of an input: one before it, whose dtype it has; NULL: none */
} heddle_slot;
typedef enum heddle_attribute_type {
  HEDDLE_ATTRIBUTE_BOOL = 0, /* in `i` */
  HEDDLE_ATTRIBUTE_INT = 1,  /* in `i` */
  HEDDLE_ATTRIBUTE_FLOAT = 2,
  HEDDLE_ATTRIBUTE_TEXT = 3,
  HEDDLE_ATTRIBUTE_INTS = 4,
  HEDDLE_ATTRIBUTE_FLOATS = 5,
  HEDDLE_ATTRIBUTE_TEXTS = 6,
  HEDDLE_ATTRIBUTE_ANY_ = 0x7fffffff /* as above */
} heddle_attribute_type;
/* An attribute with its value, or with that of operators that do not give it. */
typedef struct heddle_attribute {
  const char* name;
  heddle_attribute_type type;
  int64_t i;
  double f;
  const char* text;
  const int64_t* ints; /* `count` of them, as of the two below */
  const double* floats;
  const char* const* texts;
  size_t count;
} heddle_attribute;
/* Returns 0, or 1 after heddle_call_fail. */
typedef int (*heddle_call_function)(heddle_call* call, void* argument);
typedef struct heddle_operator {
  size_t size; /* sizeof(heddle_operator) */
  const char* name;
  const char* doc;                   /* NULL: none */
  const char* const* names_in_files; /* for ONNX with the domain: "com.acme.Scale" */
  size_t num_names_in_files;
  const heddle_slot* inputs;
  size_t num_inputs;
  const heddle_slot* outputs;
  size_t num_outputs;
  const heddle_attribute* attributes;
  size_t num_attributes;
  heddle_call_function shapes; /* says what the outputs are; NULL: like the first input */
  heddle_call_function kernel; /* NULL: creators make it */
  void* argument;              /* of both */
  int kernel_allocates;        /* 1, without `shapes`: the kernel says what the outputs are */
  int side_effect; /* 1: it does more than write outputs, or not the same in each call */
} heddle_operator;
/* Everything is copied; the functions must stay for the life of the process. */
HEDDLE_TRY heddle_operator_add(const heddle_operator* op);

/* A kernel for one operator of a program; `release(argument)` is called when it is not needed any
 * more; NULL: nothing is. */
typedef struct heddle_kernel {
  heddle_call_function run; /* NULL: the creator has none for this operator */
  void* argument;
  void (*release)(void*);
} heddle_kernel;
/* `node` has the operator's name and attributes alone. Returns as a heddle_call_function. */
typedef struct heddle_kernel_creator {
  int (*create)(heddle_call* node, heddle_kernel* kernel, void* argument);
  void* argument;
} heddle_kernel_creator;
/* The process's, for models that are loaded from now on; NULL: none. */
HEDDLE_TRY heddle_kernel_creator_set(const heddle_kernel_creator* creator);

/* A name of a slot or an attribute that the operator does not declare, and what else these
 * functions cannot do, fails the call. */
HEDDLE_API const char* heddle_call_op(heddle_call* call);
HEDDLE_API size_t heddle_call_num_inputs(heddle_call* call, const char* slot);
HEDDLE_API size_t heddle_call_num_outputs(heddle_call* call, const char* slot);
/* What is known of an input; a name of NULL: it is absent. */
HEDDLE_API heddle_info heddle_call_info(heddle_call* call, const char* slot, size_t index);
/* NULL: absent, or its contents are not known before a run. */
HEDDLE_API const heddle_tensor* heddle_call_input(heddle_call* call, const char* slot,
                                                  size_t index);
/* Of kernels: to be written; NULL: absent. */
HEDDLE_API heddle_tensor* heddle_call_output(heddle_call* call, const char* slot, size_t index);
/* In a shape function: says what the output is; a dimension of -1, or a rank, is open. In a kernel:
 * makes the output, whose shape was open. */
HEDDLE_API void heddle_call_set_output(heddle_call* call, const char* slot, size_t index,
                                       heddle_dtype dtype, int rank, const int64_t* dims);
HEDDLE_API const heddle_attribute* heddle_call_attribute(heddle_call* call, const char* name);
/* Of kernels: calls part(begin, end, argument) for parts of 0 to n of at least `grain`. */
HEDDLE_API void heddle_call_parallel(heddle_call* call, int64_t n, int64_t grain,
                                     void (*part)(int64_t begin, int64_t end, void* argument),
                                     void* argument);
/* Not 0: the run is to end, so the kernel returns 1 soon. */
HEDDLE_API int heddle_call_interrupted(heddle_call* call);
/* Fails the call with a message. Returns 1. */
HEDDLE_API int heddle_call_fail(heddle_call* call, heddle_code code, const char* message);

/* ---- executors ------------------------------------------------------------------------------ */

typedef struct heddle_executor_options {
  size_t size;             /* sizeof(heddle_executor_options) */
  int threads;             /* 0: as many as the process may use */
  int plan_cache_capacity; /* plans kept, one for each set of input shapes; 0: 32 */
  size_t memory_limit;     /* bytes of temporaries and outputs alive at once; 0: no limit */
  int runs_at_once;  /* runs under way; 1: each has all threads; 0: one a thread, with one: any
                        number */
  const char* place; /* "cpu", or a device that operators run on where it has a kernel: "emulated",
                        "cuda:0"; several of one kind, as in "emulated:0,emulated:1", for operators
                        that name their device; an error where there is none; NULL: "cpu" */
  heddle_ranks* ranks; /* the executor is rank `rank` of this group, which no other may be; NULL: of
                          none */
  int rank;
  const heddle_kernel_creator* kernel_creator; /* asked before the process's; NULL: none; copied */
} heddle_executor_options;

/* `options` may be NULL. */
HEDDLE_TRY heddle_executor_new(const heddle_executor_options* options, heddle_executor** executor);
HEDDLE_API int heddle_executor_threads(const heddle_executor* executor);
/* Frees pooled memory that no run uses. */
HEDDLE_API void heddle_executor_trim(heddle_executor* executor);
/* The memory that runs have at one place: see heddle/place_memory.h. */
typedef struct heddle_place_memory {
  size_t size;            /* sizeof(heddle_place_memory), set by the caller */
  char place[32];         /* "cpu", "emulated:0" */
  size_t allocated_bytes; /* handed out and not given back */
  size_t reserved_bytes;  /* with what is kept for later runs */
  size_t peak_bytes;      /* the most allocated, since heddle_executor_reset_memory_peaks */
} heddle_place_memory;
/* Places: 1, and one for each device; 0 for NULL. */
HEDDLE_API size_t heddle_executor_num_places(const heddle_executor* executor);
/* `index` 0: the host. */
HEDDLE_TRY heddle_executor_memory(const heddle_executor* executor, size_t index,
                                  heddle_place_memory* memory);
HEDDLE_API void heddle_executor_reset_memory_peaks(heddle_executor* executor);
/* Models hold a share of their executor: it may be freed before them. */
HEDDLE_API void heddle_executor_free(heddle_executor* executor);

/* ---- models --------------------------------------------------------------------------------- */

typedef enum heddle_schedule {
  HEDDLE_SCHEDULE_AUTO = 0,          /* the first runs are timed, and what is fastest is kept */
  HEDDLE_SCHEDULE_SERIAL = 1,        /* one instruction after another */
  HEDDLE_SCHEDULE_PARALLEL = 2,      /* side by side, as they become ready */
  HEDDLE_SCHEDULE_LANES = 3,         /* side by side, shared out ahead of time */
  HEDDLE_SCHEDULE_ANY_ = 0x7fffffff, /* as above */
  HEDDLE_SCHEDULE_LEAST_ = -0x7fffffff - 1
} heddle_schedule;

typedef struct heddle_max_shape {
  const char* input;
  const int64_t* dims;
  size_t rank;
} heddle_max_shape;

typedef struct heddle_model_options {
  size_t size;                /* sizeof(heddle_model_options) */
  const char* const* fetches; /* variables to give out; NULL: the program's fetch operators */
  size_t num_fetches;
  int opt_level; /* 0: the program as it is; 1: clean-ups; 2: also fusion and layouts */
  heddle_schedule schedule;
  uint64_t seed;   /* of the generator that operators with seed 0 draw from */
  int bf16;        /* 1: products and convolutions with constant weights may round what they
                      multiply to bfloat16 where the processor is faster that way */
  int lean;        /* 1: prefer little memory and a quick start to speed: no copies of
                      parameters larger than these, little generated code */
  int reuse_edges; /* 1: instructions in lanes also wait so that temporaries share memory */
  const heddle_max_shape*
      max_shapes; /* runs with inputs up to these have their temporaries in blocks
                     of one size, used again whatever the shape; copied */
  size_t num_max_shapes;
  int int8_weights; /* 1 (and not with bf16): constant matrices are held as integers of 8 bits */
  const char* packed_weights; /* a file that keeps weights as kernels want them, made when absent: a
                                 quicker start; NULL: none; copied */
  const char* force; /* implementations that kernels must have, as in "conv=direct,gemm=panels";
                        NULL: none; copied */
  int no_reuse;      /* 1 (and not with reuse_edges): temporaries share no memory */
  int no_in_place;   /* 1: operators compute no output in the memory of an input */
  int outline;       /* 1: equal layers are planned once and called, with the same bits: less time
                        and memory of planning */
} heddle_model_options;
/* The options that NULL stands for - level 2, everything else 0 - in the `size` bytes that the
 * caller has for them; nothing is written beyond, and nothing where there is no room for the size.
 */
HEDDLE_API void heddle_model_options_init_size(heddle_model_options* options, size_t size);
/* The same with the caller's sizeof. The function, for callers in other languages, knows the fields
 * up to no_in_place, now and in later versions. */
HEDDLE_API void heddle_model_options_init(heddle_model_options* options);
#define heddle_model_options_init(options) \
  heddle_model_options_init_size((options), sizeof(heddle_model_options))

/* Loads and compiles. `path`: a program file (.pdmodel, or .json of Paddle 3; .onnx; a TensorFlow
 * graph, .pb, .pbtxt or .meta), or a directory that holds one, as a SavedModel does. `params`: a
 * combined parameter file, a directory with one file per parameter or a .pdparams; NULL: those in
 * the program's file, or that lie beside it. */
HEDDLE_TRY heddle_model_load(heddle_executor* executor, const char* path, const char* params,
                             const heddle_model_options* options, heddle_model** model);
/* The same for a serialized program in memory. `params` as above; NULL: those in the program's
 * bytes, as ONNX models and TensorFlow graphs have them; others are to be set with
 * heddle_model_set_parameter. */
HEDDLE_TRY heddle_model_parse(heddle_executor* executor, const void* program, size_t bytes,
                              const char* params, const heddle_model_options* options,
                              heddle_model** model);
/* The same with the parameters in memory, too: the bytes of a combined file. Neither need outlive
 * the call. */
HEDDLE_TRY heddle_model_parse_all(heddle_executor* executor, const void* program, size_t bytes,
                                  const void* params, size_t params_bytes,
                                  const heddle_model_options* options, heddle_model** model);
/* Which part of a file is the program, for files that hold more than one (heddle/program_part.h).
 */
typedef struct heddle_program_part {
  size_t size;              /* sizeof(heddle_program_part) */
  const char* signature;    /* of a SavedModel; NULL: the usual one */
  const char* const* feeds; /* values that runs are given; NULL: those of the signature */
  size_t num_feeds;
  const char* const* fetches; /* values that they give back; NULL: those of the signature */
  size_t num_fetches;
} heddle_program_part;
/* heddle_model_load of a part. `part` NULL: the usual one. */
HEDDLE_TRY heddle_model_load_part(heddle_executor* executor, const char* path, const char* params,
                                  const heddle_program_part* part,
                                  const heddle_model_options* options, heddle_model** model);
/* Another view of `model`: the same program and parameters (shared, changes are seen by both),
 * other options. */
HEDDLE_TRY heddle_model_compile(const heddle_model* model, const heddle_model_options* options,
                                heddle_model** other);

HEDDLE_API size_t heddle_model_num_inputs(const heddle_model* model);
HEDDLE_API size_t heddle_model_num_outputs(const heddle_model* model);
/* `index` past the end: a name of NULL. The pointers live as long as the model. */
HEDDLE_API heddle_info heddle_model_input(const heddle_model* model, size_t index);
HEDDLE_API heddle_info heddle_model_output(const heddle_model* model, size_t index);
/* What the file calls elements that are held in another dtype: "uint16" in int32, "uint32" in
 * int64, "uint64" as the bits of an int64, "int4", "uint4", "int2" and "uint2" in int8 and uint8,
 * narrow floats, as in "float8e4m3fn", as the bits of a uint8, "string" for texts; "" where the
 * dtype says it, and for an `index` past the end. The pointers live as long as the model. */
HEDDLE_API const char* heddle_model_input_type(const heddle_model* model, size_t index);
HEDDLE_API const char* heddle_model_output_type(const heddle_model* model, size_t index);

typedef struct heddle_run_options {
  size_t size;             /* sizeof(heddle_run_options) */
  double deadline_ms;      /* the run fails with HEDDLE_DEADLINE_EXCEEDED after so long; 0: never */
  const heddle_stop* stop; /* ends it with HEDDLE_CANCELLED; NULL: nothing does */
  int check_nan_inf;       /* not 0: fail at the first NaN or infinity, and say where */
  int wait_after_each;     /* not 0: one instruction after another, each waited for */
} heddle_run_options;

/* Runs once, on this thread and the executor's; `options` may be NULL. inputs[i] goes to the input
 * called names[i], in any order, all inputs at once; their memory must not change during the run.
 * `names` may be NULL: the inputs are in the model's order. `num_outputs` must be
 * heddle_model_num_outputs; the tensors put into `outputs` have memory of their own. */
HEDDLE_TRY heddle_model_run(heddle_model* model, const heddle_run_options* options,
                            const char* const* names, const heddle_tensor* const* inputs,
                            size_t num_inputs, heddle_tensor** outputs, size_t num_outputs);
/* Starts a run and returns. Threads of the executor make it, in the order of starts; runs of models
 * that write to their parameters keep that order to the end. `names`, `inputs` and `options` are as
 * for heddle_model_run and may be freed; the inputs' memory must not change until the run has
 * ended, and `options->stop` must live as long. `on_done`, unless NULL, is called once with
 * `argument` when the run has ended, on a thread of the executor or of who cancelled it: it must be
 * quick, and must neither wait for a run nor free any handle. It may be
 * called before this function has returned, and after heddle_run_wait has: `argument` must live
 * until it has been called. */
HEDDLE_TRY heddle_model_start(heddle_model* model, const heddle_run_options* options,
                              const char* const* names, const heddle_tensor* const* inputs,
                              size_t num_inputs, void (*on_done)(void* argument), void* argument,
                              heddle_run** run);
/* Not 0: it has ended. */
HEDDLE_API int heddle_run_done(const heddle_run* run);
/* Waits until the run has ended, at most `timeout_ms` (negative: for as long as it takes), then
 * says through `done`, unless NULL, whether it has. */
HEDDLE_TRY heddle_run_wait(const heddle_run* run, double timeout_ms, int* done);
/* The run ends with HEDDLE_CANCELLED, unless it has ended. */
HEDDLE_API void heddle_run_cancel(heddle_run* run);
/* Waits; the run's error, or its outputs as heddle_model_run gives them. Once. */
HEDDLE_TRY heddle_run_outputs(heddle_run* run, heddle_tensor** outputs, size_t num_outputs);
/* The run goes on if it has not ended. */
HEDDLE_API void heddle_run_free(heddle_run* run);
/* Makes the plan for inputs of these shapes, so that the first run finds it. */
HEDDLE_TRY heddle_model_prepare(heddle_model* model, const char* const* names,
                                const heddle_tensor* const* inputs, size_t num_inputs);
/* The plan for inputs of these shapes, one line an instruction. */
HEDDLE_TRY heddle_model_plan(heddle_model* model, const char* const* names,
                             const heddle_tensor* const* inputs, size_t num_inputs,
                             heddle_text** text);
/* A parameter, as a share of its memory (a const one: heddle_tensor_is_const), and its replacement
 * (dtype and dimensions as declared), which later runs of every view of the model see; runs that
 * are under way go on with what they began with. Both wait for plans that are being made and for
 * runs that write to parameters. */
HEDDLE_TRY heddle_model_parameter(const heddle_model* model, const char* name,
                                  heddle_tensor** tensor);
HEDDLE_TRY heddle_model_set_parameter(heddle_model* model, const char* name,
                                      const heddle_tensor* tensor);
/* The model's variable `name` (a reader, or what create_py_reader takes) reads from the queue, in
 * all views of the model. */
HEDDLE_TRY heddle_model_set_queue(heddle_model* model, const char* name, heddle_queue* queue);
/* Parameters in the sorted order of their names, which is that of the file. */
HEDDLE_API size_t heddle_model_num_parameters(const heddle_model* model);
HEDDLE_API heddle_info heddle_model_parameter_info(const heddle_model* model, size_t index);
/* Writes all parameters to one file: at any moment it is the old or the new one, whole. */
HEDDLE_TRY heddle_model_save_parameters(const heddle_model* model, const char* path);
HEDDLE_API void heddle_model_free(heddle_model* model);

HEDDLE_TRY heddle_stop_new(heddle_stop** stop);
/* Every run that was given `stop`, now or later, ends with HEDDLE_CANCELLED. */
HEDDLE_API void heddle_stop_request(heddle_stop* stop);
HEDDLE_API void heddle_stop_free(heddle_stop* stop);

HEDDLE_API const char* heddle_text_data(const heddle_text* text); /* ends with a 0; "" for NULL */
HEDDLE_API size_t heddle_text_size(const heddle_text* text);      /* without that 0 */
HEDDLE_API void heddle_text_free(heddle_text* text);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* HEDDLE_H_ */
