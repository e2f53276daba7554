#include "reports/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/html_assets.h"
#include "reports/html_internal.h"
#include "reports/html_text.h"
#include "reports/numbers.h"

namespace beamline::reports {
namespace {

std::string seconds_text(std::optional<double> s) {
  if (!s) return "";
  return *s < 120 ? fmt::format("{:.0f} s", *s)
                  : fmt::format("{:.0f} min {:.0f} s", std::floor(*s / 60), std::fmod(*s, 60));
}

std::string run_facts(const RunFacts& r) {
  Facts list = {{"command", mono(r.command)},
                {"state", escaped(r.status)},
                {"started", escaped(r.started_at)},
                {"wall time", seconds_text(r.wall_s)},
                {"budget", escaped(r.budget == "0s" ? "default" : r.budget)},
                {"seed", fmt::format("{}", r.seed)},
                {"engine", escaped(r.engine_version)},
                {"toolchain", escaped(r.toolchain)},
                {"host", escaped(r.host)}};
  std::string name = fmt::format("Run {}", r.run_id);
  if (!r.label.empty()) name += " &ldquo;" + escaped(r.label) + "&rdquo;";
  return "<h3>" + name + "</h3>\n" + facts(list);
}

std::string header(const Report& report) {
  const DeviceFacts& d = report.device;
  std::string peaks;
  if (d.peak_gflops) peaks += digits_text(d.peak_gflops) + " GFLOP/s";
  if (d.peak_gbps) peaks += (peaks.empty() ? "" : ", ") + digits_text(d.peak_gbps) + " GB/s";
  std::string environment;
  for (const auto& [name, value] : d.environment)
    environment += (environment.empty() ? "" : ", ") + escaped(name) + " " + escaped(value);
  std::string out = "<header>\n<h1>beamline tuning report</h1>\n";
  out += fmt::format("<p class='soft'>{} &middot; {}</p>\n", escaped(report.generated_at),
                     escaped(d.name));
  out +=
      facts({{"device", escaped(d.name) + " " + mono(d.device_id)},
             {"architecture", escaped(d.arch)},
             {"measured peaks", peaks.empty() ? "not measured: beamline devices --probe" : peaks},
             {"environment", environment},
             {"database", mono(report.database)},
             {"beamline", escaped(report.beamline_version)}});
  for (const RunFacts& r : report.runs) out += run_facts(r);
  return out + "</header>\n";
}

std::string tiles(const Report& report) {
  std::string out = "<ul class='tiles'>\n";
  auto tile = [&](const std::string& value, const std::string& what) {
    out += fmt::format("<li><b>{}</b>{}</li>\n", value, what);
  };
  tile(fmt::format("{}", report.kernels.size()), "kernels");
  for (const auto& [status, n] : report.kernel_counts()) tile(fmt::format("{}", n), status);
  if (auto v = report.mean_over_heuristic()) tile(ratio_text(v), "over the heuristic (geomean)");
  if (auto v = report.mean_over_unoptimized()) tile(ratio_text(v), "over unoptimised (geomean)");
  if (auto v = report.weighted_over_heuristic())
    tile(ratio_text(v), "over the heuristic (weighted)");
  int64_t trials = 0;
  for (const auto& [status, n] : report.trial_counts()) trials += n;
  tile(fmt::format("{}", trials), "trials");
  return out + "</ul>\n";
}

std::string number_cell(std::optional<double> sort, const std::string& shown) {
  const bool known = sort && std::isfinite(*sort);
  return fmt::format("<td class='n' data-v='{}'>{}</td>", known ? fmt::format("{:.6g}", *sort) : "",
                     escaped(shown));
}

std::string workloads_of(const KernelFacts& k) {
  if (k.workloads.empty()) return "-";
  return escaped(k.workloads[0]) +
         (k.workloads.size() > 1 ? fmt::format(" +{}", k.workloads.size() - 1) : "");
}

std::string tuning_row(const Report& report, const KernelFacts& k, size_t index) {
  std::string row = fmt::format("<tr data-status='{}'><td><a href='#k{}'>{}</a></td>", k.status,
                                index, escaped(k.name));
  row += "<td class='work'>" + workloads_of(k) + "</td><td>" + badge(k) + "</td>";
  row += number_cell(k.best_ns, time_text(k.best_ns));
  row += number_cell(k.gflops, digits_text(k.gflops)) + number_cell(k.gbps, digits_text(k.gbps));
  row += number_cell(k.bound_share,
                     k.bound_share ? fmt::format("{:.0f} %", 100 * *k.bound_share) : "-");
  row += number_cell(k.over_heuristic(), gain_text(k.over_heuristic(), k.ci_low, k.ci_high));
  row += number_cell(k.over_unoptimized(), ratio_text(k.over_unoptimized()));
  row += number_cell(static_cast<double>(k.ties.size()), fmt::format("{}", k.ties.size()));
  if (report.runs.size() > 1) {
    row += number_cell(k.earlier_gain, ratio_text(k.earlier_gain));
    row += "<td>" +
           std::string(!k.earlier_opts || !k.best_ns ? "-"
                       : *k.earlier_opts == k.opts   ? "no"
                                                     : "yes") +
           "</td>";
  }
  return row + "<td class='opts'>" + (k.best_ns ? opts_html(k.opts) : "-") + "</td></tr>\n";
}

std::string tuning_table_html(const Report& report) {
  struct Head {
    std::string title;
    bool number;
  };
  std::vector<Head> heads = {{"kernel", false},  {"workload", false},    {"status", false},
                             {"time", true},     {"GFLOP/s", true},      {"GB/s", true},
                             {"of bound", true}, {"vs heuristic", true}, {"vs unoptimised", true},
                             {"ties", true}};
  if (report.runs.size() > 1) {
    heads.push_back({fmt::format("vs heuristic, run {}", report.runs[0].run_id), true});
    heads.push_back({"opts changed", false});
  }
  heads.push_back({"opts", false});
  std::string out = "<section>\n<h2 id='kernels'>Kernels</h2>\n<div class='bar'>\n";
  out +=
      "<label>filter <input type='search' id='filter' placeholder='kernel, workload, "
      "opts'></label>\n";
  out += "<label>status <select id='status'><option value=''>all</option>";
  for (const auto& [status, n] : report.kernel_counts())
    out += fmt::format("<option>{}</option>", status);
  out += "</select></label>\n<span id='shown' class='soft' aria-live='polite'></span>\n</div>\n";
  out +=
      "<div class='scroll' tabindex='0' role='region' aria-labelledby='kernels'>\n"
      "<table id='tuning'><thead><tr>";
  for (const Head& h : heads)
    out += fmt::format("<th scope='col'{}><button type='button'>{}</button></th>",
                       h.number ? " class='n'" : "", h.title);
  out += "</tr></thead>\n<tbody>\n";
  for (size_t i = 0; i < report.kernels.size(); ++i)
    out += tuning_row(report, report.kernels[i], i);
  out +=
      "</tbody></table></div>\n<p class='soft'>Speed-up over the heuristic with its 95 % interval "
      "is from sessions that did not choose the winner. Ties are schedules that cannot be told "
      "from "
      "the winner.";
  if (report.runs.size() > 1)
    out +=
        " Times of different runs are not compared: only ratios that were taken side by side are.";
  return out + "</p>\n</section>\n";
}

std::string workload_table(const Report& report) {
  if (report.workloads.empty()) return {};
  std::string out =
      "<section>\n<h2 id='workloads'>Workloads</h2>\n<div class='scroll' tabindex='0' "
      "role='region' "
      "aria-labelledby='workloads'><table><thead><tr><th scope='col'>workload</th><th scope='col' "
      "class='n'>weight</th><th scope='col' class='n'>kernels</th><th scope='col' class='n'>time "
      "of its "
      "kernels</th><th scope='col' class='n'>vs heuristic</th></tr></thead>\n<tbody>\n";
  for (const WorkloadFacts& w : report.workloads) {
    out +=
        fmt::format("<tr><td>{}</td><td class='n'>{}</td>", escaped(w.name), digits_text(w.weight));
    out += fmt::format("<td class='n'>{}{}</td>", w.kernels,
                       w.missing > 0 ? fmt::format(", {} not tuned", w.missing) : "");
    out += fmt::format("<td class='n'>{}</td><td class='n'>{}</td></tr>\n", time_text(w.best_ns),
                       ratio_text(w.over_heuristic));
  }
  return out + "</tbody></table></div>\n</section>\n";
}

}  // namespace

std::string html_report(const Report& report, const HtmlLimits& limits) {
  const size_t n = std::max<size_t>(1, report.kernels.size());
  const size_t marks = std::clamp<size_t>(limits.marks / n, 60, 1500);
  const size_t code_bytes = std::clamp<size_t>(limits.code_bytes / n / 2, 2'000, 200'000);
  std::string out =
      "<!doctype html>\n<html lang='en'>\n<head>\n<meta charset='utf-8'>\n<meta name='viewport' "
      "content='width=device-width, initial-scale=1'>\n<meta http-equiv='Content-Security-Policy' "
      "content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
      "img-src data:\">\n"
      "<link rel='icon' href='data:,'>\n";
  const std::string title =
      report.runs.empty() ? "" : fmt::format(" {}", report.runs.back().run_id);
  out += fmt::format("<title>beamline run{}: {}</title>\n<style>{}</style>\n</head>\n<body>\n",
                     title, escaped(report.device.name), html_style);
  out += header(report) + "<main>\n" + tiles(report) + tuning_table_html(report) +
         workload_table(report);
  out += "<section>\n<h2>Kernel by kernel</h2>\n";
  const bool open = report.kernels.size() <= limits.open_kernels;
  for (size_t i = 0; i < report.kernels.size(); ++i)
    out += kernel_section(report.kernels[i], i, open, marks, code_bytes);
  return out +
         fmt::format("</section>\n</main>\n<script>{}</script>\n</body>\n</html>\n", html_script);
}

}  // namespace beamline::reports
