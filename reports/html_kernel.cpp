#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "reports/html_internal.h"
#include "reports/html_text.h"
#include "reports/numbers.h"
#include "reports/scatter.h"

namespace beamline::reports {

std::string mono(const std::string& text) { return "<code>" + escaped(text) + "</code>"; }

std::string opts_html(const std::string& opts) {
  std::string out = "<code>";
  for (size_t at = 0; at < opts.size();) {
    const size_t end = std::min(opts.find(';', at), opts.size() - 1) + 1;
    out += (at > 0 ? "<wbr>" : "") + escaped(opts.substr(at, end - at));
    at = end;
  }
  return out + (opts.empty() ? "(none)" : "") + "</code>";
}

std::string facts(const Facts& list) {
  std::string out = "<dl class='facts'>\n";
  for (const auto& [name, value] : list)
    if (!value.empty()) out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, value);
  return out + "</dl>\n";
}

std::string badge(const KernelFacts& k) {
  std::string out = fmt::format("<span class='badge {0}'>{0}</span>", k.status);
  if (k.pinned) out += " <span class='badge'>pinned</span>";
  if (k.stale) out += " <span class='badge warn'>stale</span>";
  return out;
}

namespace {

std::string legend(const KernelFacts& k) {
  std::map<std::string, int64_t> counts;
  for (const Mark& m : scatter_marks(k.candidates, k.candidates.size())) ++counts[m.kind];
  std::string out = "<ul class='legend'>";
  for (const MarkKind& kind : mark_kinds()) {
    if (!counts.contains(kind.kind)) continue;
    const std::string name = kind.kind;
    const std::string sign =
        name == "search"    ? "<circle cx='6' cy='6' r='4' class='m search'/>"
        : name == "select"  ? "<rect x='2' y='2' width='8' height='8' class='m select'/>"
        : name == "confirm" ? "<path d='M6 0.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z' class='m confirm'/>"
                            : fmt::format("<path d='M3 3l6 6m0-6l-6 6' class='m {}'/>", name);
    out += fmt::format("<li><svg width='12' height='12' aria-hidden='true'>{}</svg>{}: {}</li>",
                       sign, kind.meaning, counts[name]);
  }
  for (const auto& [name, ns] : {std::pair{"best", k.best_ns},
                                 {"heuristic", k.heuristic_ns},
                                 {"unoptimised", k.unoptimized_ns}})
    if (ns)
      out += fmt::format(
          "<li><svg width='20' height='12' aria-hidden='true'><path class='level {0}' "
          "d='M0 6H20'/></svg>{0} {1}</li>",
          name, time_text(ns));
  return out + "</ul>\n";
}

// The fastest schedules of the last run in words; also for those who do not see the picture.
std::string fastest_html(const KernelFacts& k) {
  constexpr size_t most = 10;
  std::vector<const Candidate*> timed;
  for (const Candidate& c : k.candidates)
    if (c.time_ns && c.run_id == k.candidates.back().run_id) timed.push_back(&c);
  std::ranges::stable_sort(timed, {}, [](const Candidate* c) { return *c->time_ns; });
  std::string rows;
  std::set<std::string> seen;
  for (const Candidate* c : timed) {
    if (!seen.insert(c->opts).second) continue;
    rows += fmt::format("<tr><td class='opts'>{}</td><td class='n'>{}</td><td>{}</td></tr>\n",
                        opts_html(c->opts), time_text(c->time_ns), escaped(c->stage));
    if (seen.size() == most) break;
  }
  if (rows.empty()) return {};
  return fmt::format(
      "<details class='code'><summary>The {} fastest</summary>\n<p class='soft'>As timed in their "
      "stage: times of "
      "the search order candidates, only those of the confirmation are results.</p>\n<div "
      "class='scroll'>"
      "<table><thead><tr><th scope='col'>opts</th><th scope='col' class='n'>time</th><th "
      "scope='col'>stage"
      "</th></tr></thead><tbody>\n{}</tbody></table></div></details>\n",
      seen.size(), rows);
}

std::string failures_html(const KernelFacts& k) {
  constexpr size_t most = 12, text_bytes = 600;
  std::vector<Failure> list = k.failures();
  if (list.empty()) return {};
  std::string out =
      "<h3>What did not become a time</h3>\n<div class='scroll'><table><thead><tr><th "
      "scope='col'>status</th><th scope='col' class='n'>trials</th><th scope='col'>reason</th>"
      "<th scope='col'>first opts</th></tr></thead><tbody>\n";
  for (size_t i = 0; i < list.size() && i < most; ++i)
    out += fmt::format(
        "<tr><td>{}</td><td class='n'>{}</td><td>{}</td><td class='opts'>{}</td></tr>\n",
        escaped(list[i].status), list[i].count,
        list[i].error.empty() ? "-" : escaped(first_lines(list[i].error, text_bytes)),
        opts_html(list[i].opts));
  out += "</tbody></table></div>\n";
  if (list.size() > most)
    out += fmt::format("<p class='soft'>and {} further reasons</p>\n", list.size() - most);
  return out;
}

std::string evidence(const KernelFacts& k) {
  if (!k.best_ns) return {};
  std::string out = "<h3>Evidence</h3>\n";
  Facts list = {
      {"time", time_text(k.best_ns) + fmt::format(", median of {} session minima", k.sessions)},
      {"result", k.verified ? "every element checked against the double-precision reference"
                            : "<span class='bad'>not verified</span>"},
      {"ties", ""},
      {"from", fmt::format("run {}, {}, engine {}, {}", k.run_id, escaped(k.tuned_at),
                           escaped(k.engine_version), escaped(k.toolchain))}};
  if (k.stale)
    list.emplace_back("stale", "<span class='warn'>" + escaped(k.stale_reason) + "</span>");
  for (const std::string& t : k.ties)
    list[2].second += (list[2].second.empty() ? "" : "<br>") + opts_html(t);
  out += facts(list);
  if (k.duels.empty()) return out;
  out +=
      "<div class='scroll'><table><thead><tr><th scope='col'>winner against</th><th "
      "scope='col'>verdict</th><th scope='col' class='n'>time ratio [99.95 % bounds]</th><th "
      "scope='col' "
      "class='n'>sessions</th><th scope='col'>by session (below the line: winner "
      "faster)</th></tr></thead>"
      "<tbody>\n";
  for (const Duel& d : k.duels) {
    const stats::Verdict& v = d.verdict;
    out +=
        fmt::format("<tr><td class='opts'>{}{}</td>", opts_html(d.opts),
                    d.role.empty() ? "" : " <span class='soft'>(" + escaped(d.role) + ")</span>");
    out += fmt::format("<td>{}<br><span class='soft'>{}</span></td>",
                       stats::decision_name(v.decision), escaped(v.reason));
    // Few sessions bound nothing.
    const bool bounds = std::isfinite(v.ci_high) && v.ci_high < 10 * v.ci_low;
    out += fmt::format("<td class='n'>{}{}</td>",
                       std::isfinite(v.ratio) ? fmt::format("{:.3f}", v.ratio) : "-",
                       bounds ? fmt::format(" [{:.3f}, {:.3f}]", v.ci_low, v.ci_high) : "");
    out += fmt::format("<td class='n'>{} of {}</td><td>{}</td></tr>\n", v.sessions_used,
                       v.sessions_available, sessions_svg(d.log_ratios));
  }
  return out + "</tbody></table></div>\n";
}

std::string axes_html(const KernelFacts& k) {
  if (k.axes.empty()) return {};
  std::string out = "<h3>Axes under the winner's opts</h3>\n<ul class='axes'>";
  for (const Axis& a : k.axes)
    out += fmt::format("<li class='ax-{0}'><b>{1}</b> {0}</li>", escaped(a.type), a.size);
  return out + "</ul>\n";
}

std::string code_html(const KernelFacts& k, size_t bytes) {
  std::string out;
  if (!k.code.note.empty()) out += "<p class='soft'>" + escaped(k.code.note) + "</p>\n";
  for (const auto& [title, text] : {std::pair<const char*, const std::string&>{"Source", k.code.ir},
                                    {"Machine code", k.code.assembly}}) {
    if (text.empty()) continue;
    out += fmt::format(
        "<details class='code'><summary>{}, {} lines</summary><pre>{}</pre></details>\n", title,
        std::count(text.begin(), text.end(), '\n'), escaped(first_lines(text, bytes)));
  }
  return out.empty() ? out : "<h3>Source of the winner</h3>\n" + out;
}

}  // namespace

std::string kernel_section(const KernelFacts& k, size_t index, bool open, size_t marks,
                           size_t code_bytes) {
  std::string out =
      fmt::format("<details class='kernel' id='k{}'{}><summary><b>{}</b> {} {}", index,
                  open ? " open" : "", escaped(k.name), badge(k), time_text(k.best_ns));
  if (k.over_heuristic()) out += ", " + ratio_text(k.over_heuristic()) + " over the heuristic";
  out += "</summary>\n<div>\n";
  std::string uses;
  for (const std::string& w : k.workloads) uses += (uses.empty() ? "" : ", ") + escaped(w);
  out += facts({{"key", mono(k.key)},
                {"workloads", uses},
                {"shape", escaped(k.shape)},
                {"types", escaped(k.dtypes)},
                {"work", digits_text(k.flops / 1e6) + " MFLOP, " + bytes_text(k.bytes)},
                {"opts", k.best_ns ? opts_html(k.opts) : ""}});
  if (k.earlier_opts && k.earlier_ns)
    out += fmt::format("<p>Earlier run: {} at {}, {} over its heuristic.</p>\n",
                       opts_html(*k.earlier_opts), time_text(k.earlier_ns),
                       ratio_text(k.earlier_gain));
  out += axes_html(k);
  if (!k.candidates.empty())
    out += fmt::format("<h3>{} trials</h3>\n", k.candidates.size()) + scatter_svg(k, marks) +
           legend(k) + fastest_html(k);
  return out + evidence(k) + failures_html(k) + code_html(k, code_bytes) + "</div></details>\n";
}

}  // namespace beamline::reports
