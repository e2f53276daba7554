#include <fmt/format.h>

#include <stdexcept>

#include "engine/ir/arena.h"
#include "engine/ir/print.h"
#include "engine/lower/estimates.h"
#include "engine/opt/actions.h"
#include "engine/opt/heuristic.h"
#include "search/space.h"

namespace beamline::search {
namespace {

class EngineSpace final : public ScheduleSpace {
 public:
  EngineSpace(std::string_view ast_text, const Target& target) : target_(target) {
    Arena::Scope scope(kernel_);
    auto parsed = parse_uops(ast_text);
    if (const auto* e = std::get_if<ParseError>(&parsed))
      throw std::invalid_argument(
          fmt::format("kernel text, line {}, column {}: {}", e->line, e->column, e->message));
    ast_ = std::get<UOp>(parsed);
    kernel_.freeze();
  }

  std::string heuristic() const override {
    Arena scratch(&kernel_);
    Arena::Scope scope(scratch);
    return opts_text(beamline::heuristic(ast_, target_));
  }

  std::vector<std::string> starts() const override {
    Arena scratch(&kernel_);
    Arena::Scope scope(scratch);
    // What threads are worth is known first: it decides more than the rest.
    std::vector<Opts> all{beamline::heuristic(ast_, target_)};
    for (Opts& opts : heuristic_variants(ast_, target_)) all.push_back(std::move(opts));
    const Estimates work = estimate(ast_);
    std::vector<std::string> texts;
    for (const Opts& opts : all) {
      const Opts split = across_threads(ast_, opts, target_, work.flops, work.bytes);
      if (split != opts) texts.push_back(opts_text(split));
      if (&opts != &all[0]) texts.push_back(opts_text(opts));
    }
    return texts;
  }

  std::vector<std::string> extensions(const std::string& opts) const override {
    auto parsed = parse_opts(opts);
    if (!std::holds_alternative<Opts>(parsed)) return {};
    Opts base = std::get<Opts>(std::move(parsed));
    Arena scratch(&kernel_);
    Arena::Scope scope(scratch);
    std::vector<std::string> texts;
    for (const Opt& action : legal_actions(ast_, base, target_)) {
      base.push_back(action);
      texts.push_back(opts_text(base));
      base.pop_back();
    }
    return texts;
  }

  std::vector<std::string> variations(const std::string& opts) const override {
    auto parsed = parse_opts(opts);
    if (!std::holds_alternative<Opts>(parsed)) return {};
    const Opts base = std::get<Opts>(std::move(parsed));
    Arena scratch(&kernel_);
    Arena::Scope scope(scratch);
    std::vector<std::string> texts;
    auto offer = [&](const Opts& varied) {
      if (std::holds_alternative<KernelSchedule>(apply_opts(ast_, varied, target_)))
        texts.push_back(opts_text(varied));
    };
    for (size_t i = 0; i < base.size(); ++i) {
      Opts varied = base;
      varied.erase(varied.begin() + static_cast<std::ptrdiff_t>(i));
      offer(varied);
      const Opts before(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(i));
      for (const Opt& action : legal_actions(ast_, before, target_)) {
        if (action.kind != base[i].kind || action.axis != base[i].axis || action == base[i])
          continue;
        varied = base;
        varied[i] = action;
        offer(varied);
      }
    }
    return texts;
  }

 private:
  Target target_;
  Arena kernel_;
  UOp ast_;
};

}  // namespace

std::unique_ptr<ScheduleSpace> engine_space(std::string_view ast_text, const Target& target) {
  return std::make_unique<EngineSpace>(ast_text, target);
}

}  // namespace beamline::search
