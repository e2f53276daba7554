// What CUDA texts use, as clang knows it of the device, without CUDA's own headers: the texts are
// compiled to PTX.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
#define __align__(n) alignas(n)
#define memcpy __builtin_memcpy
struct Index3 {
  unsigned x, y, z;
};
__device__ inline Index3 index3_(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
#define blockIdx                                                          \
  index3_(__nvvm_read_ptx_sreg_ctaid_x(), __nvvm_read_ptx_sreg_ctaid_y(), \
          __nvvm_read_ptx_sreg_ctaid_z())
#define threadIdx \
  index3_(__nvvm_read_ptx_sreg_tid_x(), __nvvm_read_ptx_sreg_tid_y(), __nvvm_read_ptx_sreg_tid_z())
#define __syncthreads() __nvvm_bar_sync(0)
__device__ inline float sqrt(float x) { return __builtin_sqrtf(x); }
__device__ inline double sqrt(double x) { return __builtin_sqrt(x); }
__device__ inline float trunc(float x) { return __builtin_truncf(x); }
__device__ inline double trunc(double x) { return __builtin_trunc(x); }
__device__ inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
