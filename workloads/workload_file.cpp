#include "workloads/workload_file.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
// toml++ states as facts things that bad input breaks (`[(`) and tests right after; without NDEBUG
// it would abort there, with NDEBUG clang would assume them. Turned off, its own tests report the
// error.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#define TOML_ASSERT(expr) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include "workloads/dist.h"

namespace beamline::workloads {
namespace {

SourcePos pos(const toml::source_position& p) {
  return {static_cast<int>(p.line), static_cast<int>(p.column)};
}
SourcePos pos(const toml::node& n) { return pos(n.source().begin); }

std::string_view type_text(const toml::node& n) {
  switch (n.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "an array";
    case toml::node_type::string: return "a string";
    case toml::node_type::integer: return "an integer";
    case toml::node_type::floating_point: return "a float";
    case toml::node_type::boolean: return "a boolean";
    default: return "a date or time";
  }
}

struct Entry {
  std::string key;
  SourcePos at;
  const toml::node* value;
};
// toml++ sorts keys; a user's order is that of their positions.
std::vector<Entry> in_file_order(const toml::table& t) {
  std::vector<Entry> out;
  for (const auto& [key, value] : t)
    out.push_back({std::string(key.str()), pos(key.source().begin), &value});
  std::ranges::stable_sort(out, {}, &Entry::at);
  return out;
}

class Reader {
 public:
  Reader(const std::string& file, std::string_view text) : file_(file), text_(text) {}

  LoadedFile run() {
    const toml::parse_result parsed = toml::parse(text_, std::string_view(file_));
    if (!parsed) {
      const toml::parse_error& e = parsed.error();
      error(pos(e.source().begin), "", std::string(e.description()));
      return std::move(out_);
    }
    for (const Entry& e : in_file_order(parsed.table())) {
      if (e.key != "workload") {
        error(e.at, e.key,
              fmt::format("unknown key '{}'{}", e.key, did_you_mean(e.key, {"workload"})),
              "[[workload]] tables only");
        continue;
      }
      const toml::array* list = e.value->as_array();
      if (!list || list->empty() ||
          !std::ranges::all_of(*list, [](const toml::node& n) { return n.is_table(); })) {
        error(e.at, "workload", fmt::format("'workload' is {}", type_text(*e.value)),
              "[[workload]] tables");
        continue;
      }
      for (const toml::node& n : *list) workload(*n.as_table());
    }
    if (out_.errors.empty() && out_.workloads.empty())
      error({1, 1}, "", "no workload", "at least one [[workload]] table");
    std::ranges::stable_sort(out_.errors, {}, [](const WorkloadError& e) {
      return SourcePos{e.line, e.column};
    });
    return std::move(out_);
  }

 private:
  void error(SourcePos at, const std::string& field, std::string message,
             std::string expected = "") {
    out_.errors.push_back(
        {file_, at.line, at.column, field, std::move(message), std::move(expected)});
  }
  void errors(const std::vector<Diagnostic>& list, const std::string& field) {
    for (const Diagnostic& d : list) out_.errors.push_back(located(d, file_, field));
  }
  void wrong_type(const Entry& e, const std::string& field, std::string expected) {
    error(pos(*e.value), field, fmt::format("'{}' is {}", e.key, type_text(*e.value)),
          std::move(expected));
  }
  SourceText source(const toml::node& n) const {
    return SourceText(text_, pos(n), n.as_string()->get());
  }

  void workload(const toml::table& t) {
    WorkloadDef w;
    w.file = file_, w.at = pos(t);
    const std::vector<Entry> entries = in_file_order(t);
    // The name comes first: every other message is filed under it.
    for (const Entry& e : entries)
      if (e.key == "name") name(e, w);
    const std::string prefix = w.name.empty() ? "workload" : w.name;
    for (const Entry& e : entries) entry(e, prefix + "." + e.key, w);
    for (const char* required : {"name", "inputs", "compute"})
      if (!t.contains(required))
        error(w.at, prefix, fmt::format("key '{}' is missing", required), required_text(required));
    for (const InputDef& in : w.inputs)
      for (const ParamDef& p : w.params)
        if (p.name == in.name)
          error(in.at, prefix + ".inputs." + in.name,
                fmt::format("'{}' is a param already", in.name), "another name");
    if (w.zip) check_zip(w, prefix);
    out_.workloads.push_back(std::move(w));
  }

  static std::string required_text(std::string_view key) {
    return key == "name"     ? "name = \"...\""
           : key == "inputs" ? "inputs = { a = \"f32[M, K]\" }"
                             : "compute = '''...'''";
  }

  void entry(const Entry& e, const std::string& field, WorkloadDef& w) {
    static const std::vector<std::string> keys = {"name",      "params", "expand", "inputs",
                                                  "compute",   "weight", "repeat", "tags",
                                                  "tolerance", "math"};
    if (e.key == "name") return;
    if (e.key == "params") return params(e, field, w);
    if (e.key == "inputs") return inputs(e, field, w);
    if (e.key == "compute") return compute(e, field, w);
    if (e.key == "weight") return real(e, field, 0, "a number >= 0", w.weight);
    if (e.key == "tags") return tags(e, field, w);
    if (e.key == "repeat") {
      const auto v = e.value->is_integer() ? e.value->value<int64_t>() : std::nullopt;
      if (!v) return wrong_type(e, field, "an integer >= 1");
      if (*v < 1)
        return error(pos(*e.value), field, fmt::format("'repeat' is {}", *v), "an integer >= 1");
      w.repeat = *v;
    } else if (e.key == "tolerance") {
      double v = 0;
      real(e, field, 0, "a number >= 0", v);
      w.tolerance = v;
    } else if (e.key == "expand") {
      w.zip = choice(e, field, {"product", "zip"}) == "zip";
    } else if (e.key == "math") {
      w.relaxed = choice(e, field, {"strict", "relaxed"}) == "relaxed";
    } else {
      error(e.at, field, fmt::format("unknown key '{}'{}", e.key, did_you_mean(e.key, keys)),
            one_of(keys));
    }
  }

  void name(const Entry& e, WorkloadDef& w) {
    const toml::value<std::string>* s = e.value->as_string();
    if (!s) return wrong_type(e, "workload.name", "a string");
    const std::string& n = s->get();
    const bool plain = !n.empty() && std::ranges::all_of(n, [](unsigned char c) {
      return (std::isalnum(c) && c < 128) || c == '_' || c == '-' || c == '.';
    });
    if (!plain)
      return error(pos(*e.value), "workload.name", fmt::format("name '{}' is not a plain word", n),
                   "letters, digits, '_', '-' and '.'");
    for (const WorkloadDef& o : out_.workloads)
      if (o.name == n)
        return error(pos(*e.value), n,
                     fmt::format("workload '{}' is defined twice, first at line {}", n, o.at.line),
                     "a unique name");
    w.name = n;
  }

  void real(const Entry& e, const std::string& field, double lowest, const std::string& expected,
            double& out) {
    if (!e.value->is_number()) return wrong_type(e, field, expected);
    const double v = e.value->value<double>().value_or(0);
    if (!std::isfinite(v) || v < lowest)
      return error(pos(*e.value), field, fmt::format("'{}' is {}", e.key, v), expected);
    out = v;
  }

  std::string choice(const Entry& e, const std::string& field,
                     const std::vector<std::string>& options) {
    const auto quoted = [&] {
      std::vector<std::string> q;
      for (const std::string& o : options) q.push_back('"' + o + '"');
      return one_of(q);
    };
    const toml::value<std::string>* s = e.value->as_string();
    if (!s) return wrong_type(e, field, quoted()), "";
    if (std::ranges::find(options, s->get()) == options.end())
      error(pos(*e.value), field,
            fmt::format("unknown value '{}'{}", s->get(), did_you_mean(s->get(), options)),
            quoted());
    return s->get();
  }

  void tags(const Entry& e, const std::string& field, WorkloadDef& w) {
    const toml::array* list = e.value->as_array();
    if (!list) return wrong_type(e, field, "an array of strings");
    for (const toml::node& n : *list) {
      if (n.is_string())
        w.tags.push_back(n.as_string()->get());
      else
        error(pos(n), field, fmt::format("a tag is {}", type_text(n)), "a string");
    }
  }

  bool usable_name(const Entry& e, const std::string& field, std::string_view what) {
    if (!is_identifier(e.key))
      return error(e.at, field, fmt::format("{} '{}' is not a name", what, e.key),
                   "letters, digits and '_'"),
             false;
    if (is_reserved(e.key))
      return error(e.at, field, fmt::format("'{}' is reserved and cannot name {}", e.key, what),
                   "another name"),
             false;
    return true;
  }

  void params(const Entry& e, const std::string& field, WorkloadDef& w) {
    const std::string expected = "an integer or an array of integers";
    const toml::table* t = e.value->as_table();
    if (!t) return wrong_type(e, field, "a table, e.g. { M = [128, 512], N = 64 }");
    for (const Entry& p : in_file_order(*t)) {
      const std::string f = field + "." + p.key;
      if (!usable_name(p, f, "a param")) continue;
      ParamDef d{p.key, p.at, {}, p.value->is_array()};
      const auto add = [&](const toml::node& n) {
        if (!n.is_integer())
          return error(pos(n), f, fmt::format("a value of '{}' is {}", p.key, type_text(n)),
                       expected);
        d.values.push_back(n.as_integer()->get());
      };
      if (const toml::array* list = p.value->as_array()) {
        for (const toml::node& n : *list) add(n);
        if (list->empty()) error(pos(*list), f, fmt::format("'{}' has no values", p.key), expected);
      } else if (p.key == "expand" && p.value->is_string()) {
        error(p.at, f, "'expand' stands among the params",
              "it beside 'params', as a key of the workload");
      } else {
        add(*p.value);
      }
      w.params.push_back(std::move(d));
    }
  }

  void check_zip(const WorkloadDef& w, const std::string& prefix) {
    const ParamDef* first = nullptr;
    for (const ParamDef& p : w.params) {
      if (!p.is_list) continue;
      if (!first) first = &p;
      if (p.values.size() != first->values.size())
        error(p.at, prefix + ".params." + p.name,
              fmt::format("'{}' has {} values, '{}' has {}", p.name, p.values.size(), first->name,
                          first->values.size()),
              "arrays of one length with expand = \"zip\"");
    }
  }

  void inputs(const Entry& e, const std::string& field, WorkloadDef& w) {
    const toml::table* t = e.value->as_table();
    if (!t) return wrong_type(e, field, "a table, e.g. { a = \"f32[M, K]\" }");
    for (const Entry& i : in_file_order(*t)) {
      const std::string f = field + "." + i.key;
      if (!usable_name(i, f, "an input")) continue;
      InputDef d;
      d.name = i.key, d.at = i.at;
      if (i.value->is_string())
        type(*i.value, f, d);
      else if (i.value->is_table())
        input_table(i, f, d);
      else
        wrong_type(i, f, "\"dtype[dims]\" or { dtype = \"...\", dist = \"...\" }");
      w.inputs.push_back(std::move(d));
    }
  }

  void input_table(const Entry& i, const std::string& field, InputDef& d) {
    static const std::vector<std::string> keys = {"dtype", "dist", "const"};
    const toml::table& t = *i.value->as_table();
    if (!t.contains("dtype")) error(i.at, field, "key 'dtype' is missing", "dtype = \"f32[M, K]\"");
    for (const Entry& e : in_file_order(t)) {
      const std::string f = field + "." + e.key;
      if (e.key == "const") {
        if (!e.value->is_boolean())
          wrong_type(e, f, "true or false");
        else
          d.constant = e.value->as_boolean()->get();
      } else if (e.key == "dtype" || e.key == "dist") {
        if (!e.value->is_string())
          wrong_type(e, f, e.key == "dtype" ? "\"dtype[dims]\"" : dist_grammar());
      } else {
        error(e.at, f, fmt::format("unknown key '{}'{}", e.key, did_you_mean(e.key, keys)),
              one_of(keys));
      }
    }
    if (const toml::node* n = t.get("dtype"); n && n->is_string()) type(*n, field + ".dtype", d);
    if (const toml::node* n = t.get("dist"); n && n->is_string())
      errors(parse_dist(source(*n), d), field + ".dist");
  }

  void type(const toml::node& n, const std::string& field, InputDef& d) {
    ParsedType t = parse_type(source(n));
    d.type_at = d.dist_at = t.at;
    errors(t.errors, field);
    if (t.errors.empty()) {
      if (const auto known = storable_dtype(t.dtype))
        d.dtype = *known;
      else
        error(t.at, field,
              fmt::format("unknown dtype '{}'{}", t.dtype, did_you_mean(t.dtype, dtype_names())),
              one_of(dtype_names()));
    }
    d.dims = std::move(t.dims);
    default_dist(d);
  }

  void compute(const Entry& e, const std::string& field, WorkloadDef& w) {
    if (!e.value->is_string()) return wrong_type(e, field, "a string of statements");
    ParsedProgram p = parse_program(source(*e.value));
    errors(p.errors, field);
    w.program = std::make_shared<const Program>(std::move(p.program));
  }

  const std::string& file_;
  std::string_view text_;
  LoadedFile out_;
};

}  // namespace

LoadedFile parse_workload_file(const std::string& file, std::string_view toml) {
  return Reader(file, toml).run();
}

}  // namespace beamline::workloads
