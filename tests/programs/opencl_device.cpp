#include "tests/programs/opencl_device.h"

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <type_traits>

#include <fmt/format.h>

#ifdef BEAMLINE_HAS_OPENCL
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#endif

namespace beamline::fuzz {

#ifdef BEAMLINE_HAS_OPENCL
namespace {

void must(cl_int status, const char* what) {
  if (status != CL_SUCCESS) throw std::runtime_error(fmt::format("OpenCL: {}: {}", what, status));
}

template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, cl_int (*)(T)>;

// The CPU, opened once: a context is dear, and PoCL keeps what it compiled.
struct Device {
  cl_device_id id = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  std::string missing;

  Device() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    missing = "a build with checks would find what is wrong in OpenCL";
    return;
#endif
    // Nothing is kept, and nothing lies in the home folder.
    const std::string folder = std::filesystem::temp_directory_path() / "beamline-pocl";
    setenv("POCL_KERNEL_CACHE", "0", /*overwrite=*/0);
    setenv("POCL_CACHE_DIR", folder.c_str(), /*overwrite=*/0);
    cl_platform_id platforms[8];
    cl_uint count = 0;
    if (clGetPlatformIDs(8, platforms, &count) != CL_SUCCESS) count = 0;
    for (cl_uint i = 0; i < count && i < 8 && !id; i++)
      if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &id, nullptr) != CL_SUCCESS)
        id = nullptr;
    if (!id) {
      missing = fmt::format("none of {} OpenCL platforms has a CPU", count);
      return;
    }
    cl_int status = 0;
    context = clCreateContext(nullptr, 1, &id, nullptr, nullptr, &status);
    must(status, "context");
    queue = clCreateCommandQueue(context, id, 0, &status);
    must(status, "queue");
  }
};
Device& device() {
  static Device d;
  return d;
}

bool has_halves() {
  char extensions[4096] = {};
  clGetDeviceInfo(device().id, CL_DEVICE_EXTENSIONS, sizeof extensions - 1, extensions, nullptr);
  return std::string(extensions).find("cl_khr_fp16") != std::string::npos;
}

std::string build_log(cl_program program) {
  size_t size = 0;
  clGetProgramBuildInfo(program, device().id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  clGetProgramBuildInfo(program, device().id, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log;
}

}  // namespace

std::string no_opencl_cpu() { return device().missing; }

void run_on_opencl(const RenderedKernel& kernel, const std::vector<void*>& buffers,
                   const std::vector<size_t>& bytes) {
  Device& d = device();
  if (kernel.source.find("half") != std::string::npos && !has_halves())
    throw std::runtime_error(no_halves);
  cl_int status = 0;
  const char* text = kernel.source.c_str();
  const Owned<cl_program> program(clCreateProgramWithSource(d.context, 1, &text, nullptr, &status),
                                  clReleaseProgram);
  must(status, "program");
  if (clBuildProgram(program.get(), 1, &d.id, "-cl-std=CL1.2", nullptr, nullptr) != CL_SUCCESS)
    throw std::runtime_error("OpenCL: " + build_log(program.get()));
  const Owned<cl_kernel> entry(clCreateKernel(program.get(), kernel.entry.c_str(), &status),
                               clReleaseKernel);
  must(status, "kernel");
  std::vector<Owned<cl_mem>> memory;
  for (size_t i = 0; i < kernel.args.size(); i++) {
    const auto slot = static_cast<size_t>(kernel.args[i].slot);
    memory.emplace_back(clCreateBuffer(d.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                       bytes[slot], buffers[slot], &status),
                        clReleaseMemObject);
    must(status, "buffer");
    const cl_mem m = memory.back().get();
    must(clSetKernelArg(entry.get(), static_cast<cl_uint>(i), sizeof m, &m), "argument");
  }
  size_t global[3] = {1, 1, 1}, local[3] = {1, 1, 1};
  for (size_t k = 0; k < kernel.local.size(); k++) local[k] = static_cast<size_t>(kernel.local[k]);
  for (size_t k = 0; k < 3; k++)
    global[k] = local[k] * (k < kernel.global.size() ? static_cast<size_t>(kernel.global[k]) : 1);
  must(clEnqueueNDRangeKernel(d.queue, entry.get(), 3, nullptr, global, local, 0, nullptr, nullptr),
       "launch");
  for (size_t i = 0; i < memory.size(); i++) {
    const auto slot = static_cast<size_t>(kernel.args[i].slot);
    must(clEnqueueReadBuffer(d.queue, memory[i].get(), CL_TRUE, 0, bytes[slot], buffers[slot], 0,
                             nullptr, nullptr),
         "read");
  }
}
#else
std::string no_opencl_cpu() { return "built without OpenCL (ocl-icd-opencl-dev)"; }
void run_on_opencl(const RenderedKernel&, const std::vector<void*>&, const std::vector<size_t>&) {
  throw std::runtime_error(no_opencl_cpu());
}
#endif

}  // namespace beamline::fuzz
