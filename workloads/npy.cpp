#include "workloads/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace beamline::workloads {
namespace {

constexpr std::string_view magic = "\x93NUMPY";

// How NumPy writes the type; the first is what we write.
std::vector<std::string> descriptors(DType t) {
  switch (t) {
    case DType::Bool: return {"|b1"};
    case DType::I8: return {"|i1"};
    case DType::U8: return {"|u1"};
    case DType::BF16: return {"<u2", "|V2"};
    case DType::Fp8e4m3:
    case DType::Fp8e5m2: return {"|u1", "|V1"};
    default: {
      const char kind = is_float(t) ? 'f' : is_unsigned(t) ? 'u' : 'i';
      return {fmt::format("<{}{}", kind, dtype_bytes(t))};
    }
  }
}

// The text after `'key':` in the header's dictionary.
std::optional<std::string_view> field(std::string_view header, std::string_view key) {
  for (char quote : {'\'', '"'}) {
    const std::string quoted = quote + std::string(key) + quote;
    size_t at = header.find(quoted);
    if (at == header.npos) continue;
    at = header.find_first_not_of(" ", at + quoted.size());
    if (at == header.npos || header[at] != ':') continue;
    at = header.find_first_not_of(" ", at + 1);
    if (at != header.npos) return header.substr(at);
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> tuple(std::string_view s) {
  if (!s.starts_with('(')) return std::nullopt;
  std::vector<int64_t> out;
  for (size_t i = 1;;) {
    i = s.find_first_not_of(" ,", i);
    if (i == s.npos) return std::nullopt;
    if (s[i] == ')') return out;
    int64_t v = 0;
    const auto r = std::from_chars(s.data() + i, s.data() + s.size(), v);
    if (r.ec != std::errc{} || v < 0) return std::nullopt;
    out.push_back(v);
    i = static_cast<size_t>(r.ptr - s.data());
  }
}

std::string shape_text(std::span<const int64_t> shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

}  // namespace

std::variant<std::vector<std::byte>, std::string> parse_npy(std::string_view file, DType dtype,
                                                            std::span<const int64_t> shape) {
  const auto fail = [](std::string why) { return why; };
  if (!file.starts_with(magic) || file.size() < 12) return fail("not a .npy file");
  const int version = file[6];
  if (version < 1 || version > 3) return fail(fmt::format("unknown .npy version {}", version));
  const size_t width = version == 1 ? 2 : 4;
  uint32_t length = 0;
  std::memcpy(&length, file.data() + 8, width);
  const size_t data_at = 8 + width + length;
  if (data_at > file.size()) return fail("the header is cut off");
  const std::string_view header = file.substr(8 + width, length);
  const auto descr = field(header, "descr"), order = field(header, "fortran_order"),
             dims = field(header, "shape");
  if (!descr || !order || !dims) return fail("the header lacks descr, fortran_order or shape");
  const std::vector<std::string> wanted = descriptors(dtype);
  const size_t close = descr->size() > 1 ? descr->find((*descr)[0], 1) : descr->npos;
  const std::string type(close == descr->npos ? *descr : descr->substr(1, close - 1));
  if (std::ranges::find(wanted, type) == wanted.end())
    return fail(fmt::format("holds type '{}', {} needs {}", type, dtype_name(dtype),
                            fmt::join(wanted, " or ")));
  const auto found = tuple(*dims);
  if (!found) return fail("the header's shape is malformed");
  if (!std::ranges::equal(*found, shape))
    return fail(fmt::format("has shape {}, the input {}", shape_text(*found), shape_text(shape)));
  if (order->starts_with("True") && shape.size() > 1)
    return fail("is in Fortran order; save it in C order");
  size_t bytes = static_cast<size_t>(dtype_bytes(dtype));
  for (int64_t d : shape) bytes *= static_cast<size_t>(d);
  if (file.size() - data_at != bytes)
    return fail(
        fmt::format("holds {} bytes of data, its shape needs {}", file.size() - data_at, bytes));
  std::vector<std::byte> out(bytes);
  if (bytes > 0) std::memcpy(out.data(), file.data() + data_at, bytes);
  return out;
}

std::variant<std::vector<std::byte>, std::string> read_npy(const std::string& path, DType dtype,
                                                           std::span<const int64_t> shape) {
  std::error_code e;
  if (!std::filesystem::is_regular_file(path, e)) return fmt::format("{}: no such file", path);
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in.is_open() || in.bad()) return fmt::format("{}: cannot read the file", path);
  auto r = parse_npy(text, dtype, shape);
  if (auto* why = std::get_if<std::string>(&r)) return fmt::format("{}: {}", path, *why);
  return r;
}

std::string npy_text(std::span<const std::byte> data, DType dtype, std::span<const int64_t> shape) {
  std::string header =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                  descriptors(dtype)[0], fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // The data starts at a multiple of 64, the header ends in a newline.
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out(magic);
  out += {1, 0, static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(reinterpret_cast<const char*>(data.data()), data.size());
  return out;
}

}  // namespace beamline::workloads
