#include "harness/cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cctype>
#include <charconv>
#include <cmath>

#include "harness/cli/errors.h"
#include "workloads/diagnostic.h"

namespace beamline::cli {
namespace {

namespace po = boost::program_options;

[[noreturn]] void unknown_option(const std::string& token, const std::vector<OptionSpec>& specs) {
  std::string name = token.substr(token.find_first_not_of('-'));
  std::vector<std::string> names;
  for (const OptionSpec& s : specs) names.push_back(s.name);
  std::string hint = workloads::did_you_mean(name, names);
  // "; did you mean 'x'?" names options with their dashes here.
  if (size_t quote = hint.find('\''); quote != std::string::npos) hint.insert(quote + 1, "--");
  throw UsageError(fmt::format("unknown option '{}'{}", token, hint));
}

template <class T>
bool read_number(const std::string& text, T& v) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

OptionSpec output_option(const std::string& what) {
  return {.name = "output", .value = "PATH", .help = what + "; - is stdout", .letter = 'o'};
}

std::string Arguments::text(const std::string& name, const std::string& fallback) const {
  auto it = values_.find(name);
  return it == values_.end() || it->second.empty() ? fallback : it->second.back();
}

std::vector<std::string> Arguments::list(const std::string& name) const {
  auto it = values_.find(name);
  return it == values_.end() ? std::vector<std::string>{} : it->second;
}

int64_t Arguments::integer(const std::string& name, int64_t fallback, int64_t low,
                           int64_t high) const {
  if (!has(name)) return fallback;
  int64_t v = 0;
  if (!read_number(text(name), v) || v < low || v > high)
    throw UsageError(
        fmt::format("--{}: '{}' is not an integer from {} to {}", name, text(name), low, high));
  return v;
}

double Arguments::number(const std::string& name, double fallback, double low, double high) const {
  if (!has(name)) return fallback;
  double v = 0;
  if (!read_number(text(name), v) || !std::isfinite(v) || v < low || v > high)
    throw UsageError(
        fmt::format("--{}: '{}' is not a number from {} to {}", name, text(name), low, high));
  return v;
}

Arguments parse_arguments(const std::vector<std::string>& tokens,
                          const std::vector<OptionSpec>& specs) {
  po::options_description description;
  for (const OptionSpec& s : specs) {
    if (s.value.empty()) {
      description.add_options()(s.name.c_str(), "");
    } else {
      description.add_options()(s.name.c_str(), po::value<std::vector<std::string>>(), "");
    }
  }
  using style = po::command_line_style::style_t;
  const int no_abbreviations =
      style::allow_long | style::long_allow_adjacent | style::long_allow_next;
  // An option of one letter stands for a long one; others are no operands. "--x=" is an empty
  // value.
  std::vector<std::string> words;
  bool operands_only = false;
  for (const std::string& t : tokens) {
    operands_only |= t == "--";
    bool empty_value = !operands_only && t.size() > 3 && t.starts_with("--") && t.back() == '=' &&
                       t.find('=') == t.size() - 1;
    if (!operands_only && t.size() == 2 && t[0] == '-' &&
        std::isalpha(static_cast<unsigned char>(t[1]))) {
      auto spec = std::ranges::find(specs, t[1], &OptionSpec::letter);
      if (spec == specs.end()) unknown_option(t, specs);
      words.push_back("--" + spec->name);
      continue;
    }
    words.push_back(empty_value ? t.substr(0, t.size() - 1) : t);
    if (empty_value) words.emplace_back();
  }
  Arguments out;
  try {
    po::parsed_options parsed = po::command_line_parser(words)
                                    .options(description)
                                    .style(no_abbreviations)
                                    .allow_unregistered()
                                    .run();
    for (const po::option& o : parsed.options) {
      if (o.unregistered) unknown_option(o.original_tokens.at(0), specs);
      auto& values = o.string_key.empty() ? out.positionals_ : out.values_[o.string_key];
      values.insert(values.end(), o.value.begin(), o.value.end());
    }
  } catch (const po::error_with_option_name& e) {
    throw UsageError(fmt::format("{}: a value is missing or not wanted", e.get_option_name()));
  } catch (const po::error& e) {
    throw UsageError(e.what());
  }
  for (const auto& [name, values] : out.values_)
    for (const std::string& v : values)
      for (const OptionSpec& s : specs)
        if (v == "--" + s.name) throw UsageError(fmt::format("--{}: a value is missing", name));
  for (const OptionSpec& s : specs)
    if (!s.repeatable && !s.value.empty() && out.list(s.name).size() > 1)
      throw UsageError(fmt::format("--{} is given more than once", s.name));
  return out;
}

}  // namespace beamline::cli
