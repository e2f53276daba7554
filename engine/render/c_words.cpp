#include "engine/render/c_words.h"

#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "engine/lower/small_floats.h"

namespace beamline {

std::string_view CWords::scalar_type(DType t) const {
  const std::string_view name = dialect_.types[static_cast<size_t>(t)];
  if (name.empty()) throw Unsupported{fmt::format("dtype {}", dtype_name(t))};
  return name;
}
std::string_view CWords::memory_type(DType t) const {
  return t == DType::Bool ? scalar_type(DType::U8) : scalar_type(t);
}
std::string CWords::vector_of(std::string_view lane, int64_t w) {
  if (!dialect_.vector_typedef) return fmt::format("{}{}", lane, w);
  std::string name(lane);
  for (char& c : name)
    if (c == ' ') c = '_';
  name += fmt::format("_x{}", w);
  if (splits()) return name;
  types_.insert(
      fmt::format("typedef {} {} __attribute__((ext_vector_type({})));\n", lane, name, w));
  return name;
}
std::string CWords::moved_type(DType t, int64_t w) {
  const std::string name = vector_of(memory_type(t), w);
  types_.insert(fmt::format(fmt::runtime(dialect_.vector_struct), name, memory_type(t), w,
                            w * dtype_bytes(t)));
  return name;
}
std::string CWords::type(DType t, int64_t w) {
  if (w == 0) return std::string(scalar_type(t));
  return vector_of(scalar_type(t == DType::Bool ? DType::I8 : t), w);
}
std::string CWords::mask_type(DType t, int64_t w) {
  constexpr DType by_bytes[] = {DType::I8, DType::I16, DType::I32, DType::I64};
  if (t == DType::Bool) return vector_of(scalar_type(DType::I8), w);
  return type(by_bytes[std::countr_zero(static_cast<unsigned>(dtype_bytes(t)))], w);
}
std::string CWords::literal(UOp c) const {
  const DType t = c.dtype();
  if (!is_float(t)) {
    const int64_t v = wrap_to(t, c.ival());
    if (t == DType::Bool) return v ? "1" : "0";
    if (t == DType::U64) return fmt::format("{}{}", static_cast<uint64_t>(v), dialect_.u64);
    return whole(v);
  }
  if (is_storage_float(t)) return fmt::format("{}", float_to_bits(t, c.fval()));
  const double v = c.fval();
  if (std::isnan(v)) return std::string(dialect_.nan);
  if (std::isinf(v))
    return v > 0 ? std::string(dialect_.infinity) : fmt::format("(-{})", dialect_.infinity);
  return fmt::format("{:a}{}", v, t == DType::F64 ? "" : dialect_.f32);
}
std::string CWords::whole(int64_t v) const {
  if (v == std::numeric_limits<int64_t>::min())
    return fmt::format("(-9223372036854775807{} - 1)", dialect_.i64);
  return fmt::format("{}{}", v, dialect_.i64);
}
std::string CWords::scalar_literal(UOp c) {
  if (c.dtype() == DType::I64) return literal(c);
  return fmt::format("(({}){})", scalar_type(c.dtype()), literal(c));
}
std::string CWords::element(const std::string& vector, int64_t k) const {
  return fmt::format(fmt::runtime(dialect_.lane), vector, k);
}
std::string CWords::converted(const std::string& v, const std::string& t) const {
  return fmt::format(fmt::runtime(dialect_.convert), v, t);
}
std::vector<std::string> CWords::lanes_of_struct(const std::string& name, DType t,
                                                 int64_t w) const {
  std::vector<std::string> out;
  for (int64_t k = 0; k < w; k++)
    out.push_back(t == DType::Bool ? fmt::format("({}.v[{}] != 0)", name, k)
                                   : fmt::format("{}.v[{}]", name, k));
  return out;
}
std::string CWords::saturate(const std::string& v, DType from, DType to) {
  const int bits = dtype_bytes(to) * 8;
  const bool is_u = is_unsigned(to);
  const std::string high =
      fmt::format("(({}){:a}{})", scalar_type(from), std::ldexp(1.0, is_u ? bits : bits - 1),
                  from == DType::F64 ? "" : dialect_.f32);
  const std::string low = is_u ? "0" : fmt::format("(-{})", high);
  const std::string top = is_u && bits == 64 ? fmt::format("0xffffffffffffffff{}", dialect_.u64)
                          : is_u             ? whole((int64_t{1} << bits) - 1)
                          : bits == 64       ? whole(std::numeric_limits<int64_t>::max())
                                             : whole((int64_t{1} << (bits - 1)) - 1);
  const std::string bottom = is_u         ? "0"
                             : bits == 64 ? whole(std::numeric_limits<int64_t>::min())
                                          : fmt::format("(-{} - 1)", top);
  return fmt::format(
      "({0} != {0} ? ({1})0 : {0} < {2} ? ({1}){3} : {0} >= {4} ? ({1}){5} : ({1}){0})", v,
      scalar_type(to), low, bottom, high, top);
}
std::string CWords::declarations() const {
  std::string text;
  for (const std::string& t : types_) text += t;
  return text;
}

}  // namespace beamline
