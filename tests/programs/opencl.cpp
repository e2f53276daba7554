#include "tests/programs/opencl.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>

#include <dlfcn.h>
#include <unistd.h>

namespace beamline::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* types[] = {"char", "uchar", "short", "ushort", "int",   "uint",
                                 "long", "ulong", "half",  "float",  "double"};

std::string macros() {
  std::string s = R"(#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
typedef unsigned char uchar; typedef unsigned short ushort; typedef unsigned int uint;
typedef unsigned long ulong; typedef _Float16 half;
#define __kernel static
#define __global
#define __local static
#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#define sqrt(x) __builtin_elementwise_sqrt(x)
#define trunc(x) __builtin_elementwise_trunc(x)
#define CLK_LOCAL_MEM_FENCE 0
static pthread_barrier_t all_;
static long group_[3], groups_, sizes_[2][3];
static __thread long local_[3];
#define get_group_id(d) group_[d]
#define get_local_id(d) local_[d]
#define barrier(flags) pthread_barrier_wait(&all_)
#define as_(t, x) ({ __auto_type from_ = (x); t to_; __builtin_memcpy(&to_, &from_, sizeof to_); to_; })
)";
  for (int n : {2, 4, 8, 16}) {
    s += fmt::format(
        "#define vload{0}(o, p) ({{ typedef __typeof_unqual__(*(p)) E_ "
        "__attribute__((ext_vector_type({0}))); E_ v_; __builtin_memcpy(&v_, (p) + {0} * (o), "
        "sizeof v_); v_; }})\n"
        "#define vstore{0}(v, o, p) ({{ __auto_type v_ = (v); __builtin_memcpy((p) + {0} * (o), "
        "&v_, sizeof v_); }})\n",
        n);
    for (const char* t : types)
      s += fmt::format(
          "typedef {0} {0}{1} __attribute__((ext_vector_type({1})));\n"
          "#define convert_{0}{1}(x) __builtin_convertvector(x, {0}{1})\n"
          "#define as_{0}{1}(x) as_({0}{1}, x)\n",
          t, n);
  }
  for (const char* t : types) s += fmt::format("#define as_{0}(x) as_({0}, x)\n", t);
  return s;
}

// A thread runs its part of every group; all wait for each other between two.
std::string launcher(const RenderedKernel& k) {
  std::string args;
  for (size_t i = 0; i < k.args.size(); i++)
    args += fmt::format("{}buffers_[{}]", i ? ", " : "", i);
  return fmt::format(R"(
static void** buffers_;
static void* thread_(void* number) {{
  long n = (long)number;
  for (int d = 0; d < 3; d++) local_[d] = n % sizes_[1][d], n /= sizes_[1][d];
  for (long g = 0; g < groups_; g++) {{
    if (number == 0) {{
      long rest = g;
      for (int d = 0; d < 3; d++) group_[d] = rest % sizes_[0][d], rest /= sizes_[0][d];
    }}
    pthread_barrier_wait(&all_);
    {}({});
    pthread_barrier_wait(&all_);
  }}
  return 0;
}}
void launch(void** buffers, const long* sizes) {{
  long threads = 1;
  groups_ = 1, buffers_ = buffers;
  for (int d = 0; d < 3; d++) {{
    sizes_[0][d] = sizes[d], sizes_[1][d] = sizes[3 + d];
    groups_ *= sizes[d], threads *= sizes[3 + d];
  }}
  pthread_t* ids = malloc(threads * sizeof *ids);
  pthread_barrier_init(&all_, 0, threads);
  for (long t = 0; t < threads; t++) pthread_create(&ids[t], 0, thread_, (void*)t);
  for (long t = 0; t < threads; t++) pthread_join(ids[t], 0);
  pthread_barrier_destroy(&all_);
  free(ids);
}}
)",
                     k.entry, args);
}

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "beamline-opencl-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder for " + name);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const char* name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return path / name;
  }
};

void clang(const Folder& folder, const std::string& arguments) {
  const fs::path said = folder.path / "said";
  const std::string command = fmt::format("clang-19 -w {} 2> {}", arguments, said.string());
  if (std::system(command.c_str()) == 0) return;
  std::ifstream in(said);
  throw std::runtime_error("clang: " + std::string(std::istreambuf_iterator<char>(in), {}));
}

}  // namespace

void run_opencl(const RenderedKernel& kernel, std::vector<void*> buffers) {
  const Folder folder;
  const fs::path text = folder.write("kernel.cl", kernel.source);
  clang(folder, fmt::format("-x cl -cl-std=CL1.2 -fsyntax-only {}", text.string()));
  const fs::path c = folder.write("kernel.c", macros() + kernel.source + launcher(kernel));
  const fs::path library = folder.path / "kernel.so";
  clang(folder, fmt::format("-std=gnu2x -O1 -shared -fPIC -pthread -o {} {}", library.string(),
                            c.string()));
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  long sizes[6] = {1, 1, 1, 1, 1, 1};
  for (size_t d = 0; d < kernel.global.size(); d++) sizes[d] = kernel.global[d];
  for (size_t d = 0; d < kernel.local.size(); d++) sizes[3 + d] = kernel.local[d];
  reinterpret_cast<void (*)(void**, const long*)>(dlsym(handle, "launch"))(buffers.data(), sizes);
  dlclose(handle);
}

}  // namespace beamline::fuzz
