#include "engine/opt/opt.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

namespace beamline {
namespace {

constexpr std::array<std::string_view, static_cast<size_t>(OptKind::Count)> names = {
    "TC",    "UPCAST", "UNROLL", "LOCAL", "THREAD", "GROUP",  "GROUPTOP", "NOLOCALS",
    "PADTO", "SWAP",   "TILE",   "PACK",  "LAYOUT", "STREAM", "PREFETCH", "SKIP"};

bool read_int(std::string_view s, int64_t& out) {
  const auto [p, ec] = std::from_chars(s.data(), s.data() + s.size(), out);
  return ec == std::errc() && p == s.data() + s.size();
}

// Of the results, where it names no operand.
bool alone(const Opt& o) { return o.kind == OptKind::PREFETCH && o.axis == 0; }

}  // namespace

int numbers_of(OptKind k) {
  switch (k) {
    case OptKind::NOLOCALS:
    case OptKind::STREAM: return 0;
    case OptKind::PREFETCH:
    case OptKind::SKIP:
    case OptKind::LAYOUT: return 1;
    default: return 2;
  }
}
std::string_view opt_kind_name(OptKind k) { return names[static_cast<size_t>(k)]; }
std::optional<OptKind> opt_kind_from_name(std::string_view name) {
  for (size_t i = 0; i < names.size(); i++)
    if (names[i] == name) return static_cast<OptKind>(i);
  return std::nullopt;
}

std::string opts_text(const Opts& opts) {
  std::string s;
  for (const Opt& o : opts) {
    if (!s.empty()) s += ';';
    s += opt_kind_name(o.kind);
    if (numbers_of(o.kind) > 0 && !alone(o)) s += fmt::format(":{}", o.axis);
    if (o.arg.size() == 1) s += fmt::format(":{}", o.arg[0]);
    if (o.arg.size() > 1) s += fmt::format(":({})", fmt::join(o.arg, ","));
  }
  return s;
}

std::variant<Opts, OptError> parse_opts(std::string_view text) {
  Opts out;
  if (text.empty()) return out;
  size_t at = 0;
  const auto error = [&](std::string m) {
    return OptError{static_cast<int>(at) + 1, std::move(m)};
  };
  while (true) {
    const size_t end = std::min(text.find(';', at), text.size());
    std::string_view item = text.substr(at, end - at);
    const std::string_view name = item.substr(0, item.find(':'));
    const auto kind = opt_kind_from_name(name);
    if (!kind)
      return error(
          fmt::format("unknown opt '{}'; expected one of {}", name, fmt::join(names, " ")));
    Opt o;
    o.kind = *kind;
    std::vector<std::string_view> parts;
    for (item.remove_prefix(name.size()); !item.empty();) {
      item.remove_prefix(1);
      parts.push_back(item.substr(0, item.find(':')));
      item.remove_prefix(parts.back().size());
    }
    const auto want = parts.empty() && alone(o) ? 0 : static_cast<size_t>(numbers_of(o.kind));
    if (parts.size() != want)
      return error(want == 0   ? fmt::format("{} takes no axis", name)
                   : want == 1 ? fmt::format("expected {0}:{1}, as in {0}:1", name,
                                             *kind == OptKind::SKIP ? "axis" : "operand")
                               : fmt::format("expected {0}:axis:amount, as in {0}:0:4", name));
    if (want > 0 && (!read_int(parts[0], o.axis) || o.axis < 0))
      return error(fmt::format("'{}' is not an axis number", parts[0]));
    if (want > 1) {
      std::string_view arg = parts[1];
      const bool list = arg.size() >= 2 && arg.front() == '(' && arg.back() == ')';
      if (list != (o.kind == OptKind::TC))
        return error("TC, and only TC, takes (select,level,use)");
      if (list) arg = arg.substr(1, arg.size() - 2);
      while (!arg.empty()) {
        const std::string_view one = arg.substr(0, arg.find(','));
        int64_t v = 0;
        if (!read_int(one, v)) return error(fmt::format("'{}' is not an integer", one));
        o.arg.push_back(v);
        arg.remove_prefix(std::min(arg.size(), one.size() + 1));
      }
      if (o.arg.size() != (list ? 3 : 1)) return error("wrong number of amounts");
      if (!list && o.arg[0] < 0) return error("an amount is not negative");
    }
    out.push_back(std::move(o));
    if (end == text.size()) return out;
    at = end + 1;
  }
}

}  // namespace beamline
