#include "tests/programs/loops.h"

#include <random>
#include <span>

#include "engine/ir/arena.h"

namespace beamline::fuzz {
namespace {

constexpr int64_t sizes[] = {1, 2, 3, 5, 7, 8, 8, 13, 16, 16, 17, 24, 31, 32, 33, 48, 64};
constexpr int64_t most_work = 20000, most_elements = 4096;

// Dims in terms of M, N, K and small constants; at most three inputs.
struct Form {
  const char* text;
  std::vector<const char*> shapes;  // "MK": an input of M x K
  const char* work;                 // product of its dims
};
const Form forms[] = {
    {"x0 @ x1", {"MK", "KN"}, "MNK"},
    {"x0 @ x1", {"MK", "KN"}, "MNK"},
    {"x0 @ transpose(x1)", {"MK", "NK"}, "MNK"},
    {"transpose(x0) @ x1", {"KM", "KN"}, "MNK"},
    {"relu(x0 @ x1 + x2)", {"MK", "KN", "N"}, "MNK"},
    {"x0 @ x1", {"3MK", "3KN"}, "3MNK"},
    {"x0 @ x1", {"MK", "K"}, "MK"},
    {"conv2d(x0, x1, padding=1)", {"25NN", "3533"}, "2533NN3"},
    {"sum(x0 * x1, axis=1)", {"MK", "MK"}, "MK"},
    {"max(x0, axis=0)", {"KN"}, "KN"},
    {"sum(x0)", {"MK"}, "MK"},
    {"softmax(x0)", {"MK"}, "MK"},
    {"mean(x0, axis=[0, 2])", {"MNK"}, "MNK"},
    {"transpose(x0) + x1", {"MN", "NM"}, "MN"},
    {"x0 * x1 + x2", {"MN", "N", "MN"}, "MN"},
    {"max_pool2d(x0, 2)", {"2MNN"}, "2MNN"},
    {"sum(x0 @ x1, axis=0)", {"MK", "KN"}, "MNK"},
    {"layer_norm(x0)", {"MK"}, "MK"},
};
constexpr DType types[] = {DType::F32,     DType::F32,  DType::F32, DType::F16,
                           DType::F16,     DType::BF16, DType::F64, DType::Fp8e4m3,
                           DType::Fp8e5m2, DType::I8,   DType::I32};
// Of those, the sums of products, and the types that processors have instructions for.
constexpr size_t product_forms = 9;
constexpr DType product_types[] = {DType::BF16, DType::BF16, DType::I8,  DType::I8,
                                   DType::U8,   DType::I16,  DType::F16, DType::Fp8e4m3};

Program random_of(uint64_t seed, std::span<const Form> some_forms,
                  std::span<const DType> some_types) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](const auto& list) { return list[random() % std::size(list)]; };
  while (true) {
    const Form& form = one_of(some_forms);
    const int64_t m = one_of(sizes), n = one_of(sizes), k = one_of(sizes);
    const auto dim = [&](char c) {
      return c == 'M' ? m : c == 'N' ? n : c == 'K' ? k : static_cast<int64_t>(c - '0');
    };
    int64_t work = 1;
    for (const char* c = form.work; *c; c++) work *= dim(*c);
    if (work > most_work) continue;
    DType t = one_of(some_types);
    const std::string text = form.text;
    // These have a result of their own type only for floats.
    const bool smooth =
        text.starts_with("softmax") || text.starts_with("layer") || text.starts_with("mean");
    if (smooth && !is_float(t)) t = DType::F32;
    Program p;
    bool fits = true;
    for (const char* shape : form.shapes) {
      Ints dims;
      int64_t elements = 1;
      for (const char* c = shape; *c; c++) dims.push_back(dim(*c)), elements *= dims.back();
      fits &= elements <= most_elements;
      if (!fits) break;
      TensorValue v(t, dims);
      for (size_t i = 0; i < v.size(); i++) {
        const auto whole = static_cast<int64_t>(random() % 13) - 6;
        if (is_float(t))
          v.reals[i] = static_cast<double>(whole) / 4;
        else
          v.wholes[i] = is_unsigned(t) ? whole + 6 : whole;
      }
      p.inputs.push_back({"x" + std::to_string(p.inputs.size()), std::move(v)});
    }
    if (!fits) continue;
    p.statements.push_back({"t0", text, {}});
    p.results = {"t0"};
    Arena arena;
    const Arena::Scope scope(arena);
    if (build(p).error.empty()) return p;  // a window may be larger than what it is of
  }
}

}  // namespace

Program random_loops(uint64_t seed) { return random_of(seed, forms, types); }
Program random_products(uint64_t seed) {
  return random_of(seed, std::span(forms).first(product_forms), product_types);
}

Program random_pairs(uint64_t seed) {
  Program p = random_loops(2 * seed);
  Program other = random_loops(2 * seed + 1);
  const size_t before = p.inputs.size();
  std::string text;  // its inputs are numbered on
  for (const char* c = other.statements[0].expression.c_str(); *c; c++) {
    text += *c;
    if (*c != 'x' || c[1] < '0' || c[1] > '9') continue;
    text += std::to_string(before + static_cast<size_t>(*++c - '0'));
  }
  for (Input& i : other.inputs) {
    i.name = "x" + std::to_string(p.inputs.size());
    p.inputs.push_back(std::move(i));
  }
  p.statements.push_back({"t1", text, {}});
  p.results.push_back("t1");
  return p;
}

}  // namespace beamline::fuzz
