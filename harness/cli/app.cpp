#include "harness/cli/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "db/store.h"
#include "harness/cli/command.h"
#include "harness/cli/errors.h"
#include "harness/commands/commands.h"
#include "harness/version.h"
#include "workloads/diagnostic.h"

namespace beamline::cli {
namespace {

const std::vector<OptionSpec>& global_options() {
  static const std::vector<OptionSpec> options = {
      {.name = "db",
       .value = "PATH",
       .help = "database; default $BEAMLINE_DB, else $XDG_DATA_HOME/beamline/beamline.db",
       .group = "Global options",
       .repeatable = true},
      {.name = "json",
       .value = "",
       .help = "one JSON document on stdout",
       .group = "Global options"},
      {.name = "quiet", .value = "", .help = "no progress on stderr", .group = "Global options"},
      {.name = "verbose", .value = "", .help = "more on stderr", .group = "Global options"},
      {.name = "color",
       .value = "WHEN",
       .help = "auto, always or never",
       .group = "Global options"},
      {.name = "help", .value = "", .help = "this text", .group = "Global options"},
  };
  return options;
}

GlobalOptions read_globals(const Arguments& arguments) {
  GlobalOptions g;
  g.databases = arguments.list("db");
  if (g.databases.empty()) g.databases.push_back(db::default_path());
  for (const std::string& path : g.databases)
    if (path.empty()) throw UsageError("--db: the path is empty");
  g.json = arguments.has("json");
  g.quiet = arguments.has("quiet");
  g.verbose = arguments.has("verbose");
  if (g.quiet && g.verbose) throw UsageError("--quiet and --verbose exclude each other");
  std::string color = arguments.text("color", "auto");
  if (color != "auto" && color != "always" && color != "never")
    throw UsageError(fmt::format("--color: '{}' is not auto, always or never", color));
  g.color = color == "auto" ? Color::Auto : color == "always" ? Color::Always : Color::Never;
  return g;
}

std::string options_help(const std::vector<OptionSpec>& options) {
  std::vector<std::string> groups;
  for (const OptionSpec& o : options)
    if (std::ranges::find(groups, o.group) == groups.end()) groups.push_back(o.group);
  std::string text;
  for (const std::string& group : groups) {
    text += fmt::format("\n{}:\n", group);
    for (const OptionSpec& o : options) {
      if (o.group != group) continue;
      std::string left = "  --" + o.name + (o.value.empty() ? "" : " " + o.value);
      if (o.letter != 0) left = fmt::format("  -{},{}", o.letter, left.substr(1));
      text += fmt::format("{:<24} {}{}\n", left, o.help, o.repeatable ? " (repeatable)" : "");
    }
  }
  return text;
}

std::string command_help(const Command& c) {
  std::string text = fmt::format("usage: beamline {}{}{} [options]\n\n{}\n", c.name,
                                 c.arguments.empty() ? "" : " ", c.arguments, c.summary);
  if (!c.details.empty()) text += "\n" + c.details + "\n";
  return text + options_help(c.options) + options_help(global_options());
}

std::string overview(const std::vector<Command>& commands, const std::string& group = {}) {
  std::string text = group.empty()
                         ? "usage: beamline COMMAND [arguments] [options]\n\nCommands:\n"
                         : fmt::format("usage: beamline {} COMMAND\n\nCommands:\n", group);
  for (const Command& c : commands)
    if (group.empty() || c.name.starts_with(group + " "))
      text += fmt::format("  {:<17} {}\n", c.name, c.summary);
  if (!group.empty()) return text;
  text += options_help(global_options());
  text += "  --version              version of beamline\n";
  text +=
      "\nExit codes: 130 interrupted; 1 internal failure; 2 bad usage or input; 3 a check failed;\n"
      "4 finished but some kernels failed; 0 otherwise. 'beamline COMMAND --help' says more.\n";
  return text;
}

// The command's words, wherever options stand, and the other tokens.
struct Words {
  std::string first, second;
  size_t first_at = 0, second_at = 0;
};
Words find_words(const std::vector<std::string>& tokens) {
  Words w;
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] == "--") break;
    if (tokens[i] == "--db" || tokens[i] == "--color") {
      ++i;
      continue;
    }
    if (tokens[i].starts_with("-")) continue;
    if (w.first.empty()) {
      w.first = tokens[i];
      w.first_at = i;
      continue;
    }
    w.second = tokens[i];
    w.second_at = i;
    break;
  }
  return w;
}

[[noreturn]] void unknown_command(const std::string& word, const std::vector<std::string>& known,
                                  const std::string& group) {
  std::string hint = workloads::did_you_mean(word, known);
  throw UsageError(
      fmt::format("unknown command '{}{}{}'{}\nRun 'beamline{}{} --help' for the list.", group,
                  group.empty() ? "" : " ", word, hint, group.empty() ? "" : " ", group));
}

const Command& find_command(const std::vector<Command>& commands, std::vector<std::string>& tokens,
                            const Words& w) {
  std::vector<std::string> firsts, seconds;
  for (const Command& c : commands) {
    size_t blank = c.name.find(' ');
    firsts.push_back(c.name.substr(0, blank));
    if (blank == std::string::npos && c.name == w.first) {
      tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(w.first_at));
      return c;
    }
    if (blank == std::string::npos || c.name.substr(0, blank) != w.first) continue;
    seconds.push_back(c.name.substr(blank + 1));
    if (seconds.back() != w.second) continue;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(w.second_at));
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(w.first_at));
    return c;
  }
  if (seconds.empty()) unknown_command(w.first, firsts, "");
  if (w.second.empty())
    throw UsageError(
        fmt::format("'beamline {}' needs a command: {}", w.first, workloads::one_of(seconds)));
  unknown_command(w.second, seconds, w.first);
}

bool asks(const std::vector<std::string>& tokens, std::initializer_list<const char*> flags) {
  for (const std::string& t : tokens) {
    if (t == "--") return false;
    if (std::ranges::find(flags, t) != flags.end()) return true;
  }
  return false;
}

int dispatch(std::vector<std::string> tokens, const std::vector<std::string>& original) {
  const std::vector<Command> commands = all_commands();
  Words words = find_words(tokens);
  bool help = asks(tokens, {"--help", "-h"});
  if (words.first == "help") {
    help = true;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(words.first_at));
    words = find_words(tokens);
  }
  if (words.first.empty()) {
    if (asks(tokens, {"--version"})) {
      std::fputs(fmt::format("beamline {}\n", beamline_version).c_str(), stdout);
      return exit_ok;
    }
    if (help) {
      std::fputs(overview(commands).c_str(), stdout);
      return exit_ok;
    }
    parse_arguments(tokens, global_options());  // a wrong option is named
    throw UsageError("a command is missing\n" + overview(commands));
  }
  bool is_group = std::ranges::any_of(
      commands, [&](const Command& c) { return c.name.starts_with(words.first + " "); });
  if (help && is_group && words.second.empty()) {
    std::fputs(overview(commands, words.first).c_str(), stdout);
    return exit_ok;
  }
  const Command& command = find_command(commands, tokens, words);
  if (help) {
    std::fputs(command_help(command).c_str(), stdout);
    return exit_ok;
  }
  std::vector<OptionSpec> specs = command.options;
  specs.insert(specs.end(), global_options().begin(), global_options().end());
  Arguments arguments = parse_arguments(tokens, specs);
  Context context{.global = read_globals(arguments), .log = {}, .command_line = "beamline"};
  for (const std::string& t : original) context.command_line += " " + t;
  context.log = Log(context.global.quiet     ? Log::Level::Quiet
                    : context.global.verbose ? Log::Level::Verbose
                                             : Log::Level::Normal);
  size_t n = arguments.positionals().size();
  if (n < command.min_arguments)
    throw UsageError(fmt::format("{}: {} is missing\nusage: beamline {} {}", command.name,
                                 command.arguments, command.name, command.arguments));
  if (n > command.max_arguments)
    throw UsageError(fmt::format("{}: unexpected argument '{}'", command.name,
                                 arguments.positionals()[command.max_arguments]));
  return command.run(context, arguments);
}

}  // namespace

void Context::print(const std::string& text) const {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Context::print_json(const nlohmann::ordered_json& document) const {
  // Bytes that are no UTF-8 (file names) must not end a command.
  print(document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

int run_app(const std::vector<std::string>& arguments) {
  Log log(Log::Level::Normal);
  int code = exit_internal;
  try {
    code = dispatch(arguments, arguments);
  } catch (const UsageError& e) {
    log.error(e.what());
    code = exit_usage;
  } catch (const std::exception& e) {
    log.error(fmt::format("internal failure: {}", e.what()));
  }
  // An earlier write may have failed, too; then there is nothing left to flush.
  if ((std::fflush(stdout) != 0 || std::ferror(stdout) != 0) && code == exit_ok) {
    log.error("cannot write to stdout");
    code = exit_internal;
  }
  return code;
}

}  // namespace beamline::cli
