// nn/loops/host_device.h: marks functions that run on hosts and on devices.
#pragma once

// To be written before a function. A compiler for devices then makes code for both sides.
#ifdef __CUDACC__  // tidy: allow #if (only the compiler knows for which side it works)
#define HOST_DEVICE __host__ __device__ inline
#else
#define HOST_DEVICE inline
#endif
