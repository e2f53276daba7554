// What HIP texts use, as clang knows it of the device, without ROCm; or of the CPU.
#pragma once
#ifdef __HIP__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
struct Index3 {
  unsigned x, y, z;
};
__device__ inline Index3 index3_(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }
#define blockIdx                                                                \
  index3_(__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), \
          __builtin_amdgcn_workgroup_id_z())
#define threadIdx                                                             \
  index3_(__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), \
          __builtin_amdgcn_workitem_id_z())
__device__ inline void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
// Instructions of gfx950 that clang 19 does not know: their shapes are checked.
typedef float float4_ __attribute__((ext_vector_type(4)));
typedef int int8_ __attribute__((ext_vector_type(8)));
typedef _Float16 half8_ __attribute__((ext_vector_type(8)));
typedef __bf16 bf8_ __attribute__((ext_vector_type(8)));
#if !__has_builtin(__builtin_amdgcn_mfma_f32_16x16x32_f16)
__device__ float4_ __builtin_amdgcn_mfma_f32_16x16x32_f16(half8_, half8_, float4_, int, int, int);
__device__ float4_ __builtin_amdgcn_mfma_f32_16x16x32_bf16(bf8_, bf8_, float4_, int, int, int);
__device__ float4_ __builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(int8_, int8_, float4_, int, int,
                                                                    int, int, int, int);
#endif
#else
#include "tests/programs/shims/cuda_host.h"
#endif
