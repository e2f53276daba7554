#include "tests/programs/gpu_text.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <stdexcept>

#include <fmt/format.h>

#include <dlfcn.h>
#include <unistd.h>

#include "test_paths.h"

namespace beamline::fuzz {
namespace {

namespace fs = std::filesystem;

constexpr const char* root = BEAMLINE_SOURCE_DIR;
constexpr const char* shims = BEAMLINE_SOURCE_DIR "/tests/programs/shims";

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
#define place_(which, d) which[d]
#define argument_(slot, p) p
#define exported_
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

// A thread runs its part of every group; all wait for each other between two. Text that is C and
// C++; `more` are the last arguments of the kernel.
std::string launcher(const RenderedKernel& k, const std::string& more) {
  std::string args;
  for (const RenderedArg& a : k.args)
    args += fmt::format("{}argument_({}, buffers_[{}])", a.slot ? ", " : "", a.slot, a.slot);
  return fmt::format(R"(
static void** buffers_;
static void* thread_(void* number) {{
  long n = (long)number;
  for (int d = 0; d < 3; d++) place_(local_, d) = n % sizes_[1][d], n /= sizes_[1][d];
  for (long g = 0; g < groups_; g++) {{
    if (number == 0) {{
      long rest = g;
      for (int d = 0; d < 3; d++) place_(group_, d) = rest % sizes_[0][d], rest /= sizes_[0][d];
    }}
    pthread_barrier_wait(&all_);
    {}({}{});
    pthread_barrier_wait(&all_);
  }}
  return 0;
}}
exported_ void launch(void** buffers, const long* sizes) {{
  long threads = 1;
  groups_ = 1, buffers_ = buffers;
  for (int d = 0; d < 3; d++) {{
    sizes_[0][d] = sizes[d], sizes_[1][d] = sizes[3 + d];
    groups_ *= sizes[d], threads *= sizes[3 + d];
  }}
  pthread_t* ids = (pthread_t*)malloc(threads * sizeof *ids);
  pthread_barrier_init(&all_, 0, threads);
  for (long t = 0; t < threads; t++) pthread_create(&ids[t], 0, thread_, (void*)t);
  for (long t = 0; t < threads; t++) pthread_join(ids[t], 0);
  pthread_barrier_destroy(&all_);
  free(ids);
}}
)",
                     k.entry, args, more);
}

struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "beamline-text-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no folder for " + name);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  fs::path write(const char* name, const std::string& text) const {
    std::ofstream(path / name) << text;
    return path / name;
  }
};

// What the command says when it fails.
std::string fails(const Folder& folder, const std::string& command) {
  const fs::path said = folder.path / "said";
  if (std::system(fmt::format("{} > {} 2>&1", command, said.string()).c_str()) == 0) return "";
  std::ifstream in(said);
  return command + "\n" + std::string(std::istreambuf_iterator<char>(in), {});
}
void must(const std::string& failure) {
  if (!failure.empty()) throw std::runtime_error(failure);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != text.npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}
// Declarations of shared memory: the compiler for the CPU has no such space.
std::string for_cpu(const std::string& text, const std::string& renderer) {
  return renderer == "metal" ? replaced(text, "\n  threadgroup ", "\n  static ") : text;
}

// Texts of one file: what they include comes first, and each is in a namespace of its own.
std::string together(const std::vector<std::string>& texts) {
  std::set<std::string> heads;
  std::string head, body;
  for (size_t i = 0; i < texts.size(); i++) {
    const std::string number = std::to_string(i);
    std::istringstream in(replaced(texts[i], "beamline_kernel", "kernel_" + number));
    body += "namespace n" + number + " {\n";
    for (std::string line; std::getline(in, line);)
      if (!line.starts_with("#include") && !line.starts_with("using namespace"))
        body += line + "\n";
      else if (heads.insert(line).second)
        head += line + "\n";
    body += "}\n";
  }
  return head + body;
}

}  // namespace

void run_gpu_text(const RenderedKernel& kernel, const std::string& renderer,
                  std::vector<void*> buffers) {
  const Folder folder;
  const fs::path library = folder.path / "kernel.so";
  const std::string link = "-O1 -w -shared -fPIC -pthread -o " + library.string();
  if (renderer == "opencl") {
    const fs::path text = folder.write("kernel.cl", kernel.source);
    must(fails(folder,
               fmt::format("clang-19 -w -x cl -cl-std=CL1.2 -fsyntax-only {}", text.string())));
    const fs::path c = folder.write("kernel.c", macros() + kernel.source + launcher(kernel, ""));
    must(fails(folder, fmt::format("clang-19 -std=gnu2x {} {}", link, c.string())));
  } else {
    std::string head =
        "#include \"cuda_host.h\"\n"
        "static long groups_, sizes_[2][3];\n"
        "#define place_(which, d) (&which.x)[d]\n"
        "#define exported_ extern \"C\"\n"
        "struct Any_ { void* p; template <class T> operator T*() const { return (T*)p; } };\n"
        "#define argument_(slot, p) Any_{p}\n";
    if (renderer == "metal") head = replaced(head, "cuda_host.h", "host_threads.h");
    const fs::path text = folder.write(
        "kernel.cpp", head + for_cpu(kernel.source, renderer) +
                          launcher(kernel, renderer == "metal" ? ", group_, local_" : ""));
    must(fails(folder, fmt::format("clang++-19 -std=gnu++20 -I{} -I{} {} {}", shims, root, link,
                                   text.string())));
  }
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::runtime_error(dlerror());
  long sizes[6] = {1, 1, 1, 1, 1, 1};
  for (size_t d = 0; d < kernel.global.size(); d++) sizes[d] = kernel.global[d];
  for (size_t d = 0; d < kernel.local.size(); d++) sizes[3 + d] = kernel.local[d];
  reinterpret_cast<void (*)(void**, const long*)>(dlsym(handle, "launch"))(buffers.data(), sizes);
  dlclose(handle);
}

std::string clang_refuses(const std::vector<std::string>& texts, const std::string& renderer,
                          const std::string& chip) {
  struct Chip {
    const char *name, *arch;
  };
  // gfx950 came after clang 19; what it shares with gfx942 is compiled for that.
  constexpr Chip chips[] = {
      {"rdna3", "gfx1100"}, {"rdna4", "gfx1201"}, {"cdna3", "gfx942"}, {"cdna4", "gfx942"}};
  std::string arch = chip;
  for (const Chip& c : chips)
    if (chip == c.name) arch = c.arch;
  const Folder folder;
  const std::string all = for_cpu(together(texts), renderer);
  const std::string file = folder.write("kernels.cpp", all).string();
  std::string how = "-x c++ -std=gnu++20 -fsyntax-only";
  if (renderer == "cuda")
    how = fmt::format(
        "-x cuda --cuda-device-only --cuda-gpu-arch={} -nocudainc -nocudalib -O1 -S "
        "-o {} -include {}/cuda_device.h",
        arch, (folder.path / "out").string(), shims);
  if (renderer == "hip")
    how =
        fmt::format("-x hip --cuda-device-only --offload-arch={} -nogpuinc -nogpulib -O1 -S -o {}",
                    arch, (folder.path / "out").string());
  return fails(folder,
               fmt::format("clang++-19 -w -fno-caret-diagnostics -ferror-limit=4 {} -I{} {}", how,
                           shims, file));
}

bool has_nvcc() { return std::system("nvcc --version > /dev/null 2>&1") == 0; }

std::string nvcc_refuses(const std::vector<std::string>& texts, const std::string& chip) {
  const Folder folder;
  const std::string file = folder.write("kernels.cu", together(texts)).string();
  return fails(folder, fmt::format("nvcc -std=c++17 -w -cubin -arch={} -o {} {}", chip,
                                   (folder.path / "out").string(), file));
}

}  // namespace beamline::fuzz
