// What CUDA and HIP texts use, for the CPU.
#pragma once
#include "host_threads.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __launch_bounds__(n)
#define __align__(n) alignas(n)
#define __restrict__ __restrict
#define blockIdx group_
#define threadIdx local_
#define __syncthreads() pthread_barrier_wait(&all_)
using std::memcpy;
using std::sqrt;
using std::trunc;
static inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
