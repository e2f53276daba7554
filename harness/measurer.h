// The Measurer of a real device: compiles in a pool of beamline-compile, checks and times in one
// beamline-runner. Compiling and timing alternate, so no compiler disturbs a session.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "harness/program_data.h"
#include "harness/runner_session.h"
#include "search/measurer.h"

namespace beamline {

struct MeasurerOptions {
  std::string target;  // target_text
  std::vector<unsigned> pus;
  std::string mode = "warm";
  double timeout_s = 10;  // of compiling, and of one call of, a candidate
  /// Why code of this hash must not run here, if so.
  std::function<std::optional<std::string>(const std::string& code_hash)> quarantined;
  /// Code that killed or hung the runner.
  std::function<void(const std::string& code_hash, const std::string& reason)> on_killer;
};

class ProcessMeasurer final : public search::Measurer {
 public:
  /// Borrows the first three, which must outlive it.
  ProcessMeasurer(const ProgramKernel& kernel, int kernel_index, ProgramData& data, Pool& compilers,
                  MeasurerOptions options);
  ~ProcessMeasurer() override;

  /// Computes the reference; the reason why there is none, if so. Call first.
  std::optional<std::string> prepare();

  std::vector<search::Compiled> compile(std::span<const search::Candidate> candidates) override;
  std::vector<search::Checked> check(std::span<const int> programs, int input_set) override;
  void recompute_reference() override;
  std::vector<search::Timed> time(const search::SessionPlan& plan) override;
  void new_pass() override;
  double seconds() override;

  /// The compiler's name and version, once something was compiled.
  const std::string& toolchain() const { return toolchain_; }

 private:
  struct Item;
  void use_input_set(int input_set);
  search::Compiled received(const search::Candidate& candidate, Outcome outcome);
  search::Checked check_one(Item& item);
  double call_deadline_s() const;
  bool all_checked(const search::SessionPlan& plan, std::vector<search::Timed>& timed);
  Answer<TimeReply> session(const std::vector<int>& programs, int sweeps, uint64_t seed);
  std::vector<search::Timed> find_culprit(const search::SessionPlan& plan,
                                          const Answer<TimeReply>& broken);
  void note_killer(const Item& item, search::Outcome outcome, const std::string& error);
  Item& item(int program);

  const ProgramKernel& kernel_;
  int kernel_index_;
  ProgramData& data_;
  Pool& compilers_;
  MeasurerOptions options_;
  RunnerSession runner_;
  std::vector<std::unique_ptr<Item>> items_;
  int input_set_ = -1;
  double fastest_call_s_ = 0;  // of a right one; 0 = none yet
  std::string toolchain_;
};

}  // namespace beamline
