// A thread of the system for each thread of a group: what the texts for GPUs call, on the CPU.
// Included by their other headers here, and before their texts (tests/programs/gpu_text.cpp).
#pragma once
#include <pthread.h>

#include <cmath>
#include <cstdlib>
#include <cstring>

struct Index3 {
  unsigned x, y, z;
};
static pthread_barrier_t all_;
static Index3 group_;
static thread_local Index3 local_;
