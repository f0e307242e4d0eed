// All headers that a program needs to run models.
#pragma once

#include "heddle/async_run.h"
#include "heddle/bound_run.h"
#include "heddle/executor.h"
#include "heddle/generator.h"
#include "heddle/host.h"
#include "heddle/operators/own_operator.h"
#include "heddle/params.h"
#include "heddle/pass.h"
#include "heddle/program.h"
#include "heddle/program_builder.h"
#include "heddle/ranks.h"
#include "heddle/reader_queue.h"
#include "heddle/scope.h"
#include "heddle/status.h"
#include "heddle/tensor.h"
#include "heddle/value.h"
