// half for texts that are checked, or run on the CPU, without CUDA.
#pragma once
typedef _Float16 half;
