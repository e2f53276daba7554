// The arguments of one command. Commands declare their options as data and read them by name;
// Boost.Program_options stays in one source. Option names are never abbreviated.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace beamline::cli {

struct OptionSpec {
  std::string name;   // without dashes
  std::string value;  // name of its value in help; "" = a flag
  std::string help;
  std::string group = "Options";  // heading in help
  bool repeatable = false;
  char letter = 0;  // "-o" for "--output"; 0: none
};

/// "-o PATH": where a document goes; "-" is stdout.
OptionSpec output_option(const std::string& what);

class Arguments {
 public:
  bool has(const std::string& name) const { return values_.contains(name); }
  /// The last value given, or `fallback`.
  std::string text(const std::string& name, const std::string& fallback = {}) const;
  std::vector<std::string> list(const std::string& name) const;
  /// Throws UsageError when the value is no such number.
  int64_t integer(const std::string& name, int64_t fallback, int64_t low, int64_t high) const;
  double number(const std::string& name, double fallback, double low, double high) const;
  const std::vector<std::string>& positionals() const { return positionals_; }

 private:
  friend Arguments parse_arguments(const std::vector<std::string>&, const std::vector<OptionSpec>&);
  std::map<std::string, std::vector<std::string>> values_;
  std::vector<std::string> positionals_;
};

/// Throws UsageError: an unknown option (with the nearest known one), a missing value, a repeated
/// option.
Arguments parse_arguments(const std::vector<std::string>& tokens,
                          const std::vector<OptionSpec>& specs);

}  // namespace beamline::cli
