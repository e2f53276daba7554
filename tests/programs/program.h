// A program of the compute language as a list of statements over inputs, and what it evaluates to.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/interpret/tensor.h"
#include "workloads/builder.h"

namespace beamline::fuzz {

struct Input {
  std::string name;
  TensorValue value;
};
struct Statement {
  std::string name, expression;
  std::vector<std::string> ops;  // functions and operators it uses
};
struct Program {
  std::vector<Input> inputs;
  std::vector<Statement> statements;
  std::vector<std::string> results;  // names

  std::string text() const;    // the compute text
  std::string header() const;  // its inputs, as a comment
};

/// In the current arena; null SINK and the message where the language refuses it.
struct Graph {
  workloads::TensorGraph graph;
  std::string error;
};
Graph build(const Program& p);

/// Without what no result needs.
Program without_dead_code(const Program& p);
/// The smallest program found for which `fails` still holds: fewer statements, values that become
/// inputs, smaller results. `fails` is called with programs that build.
template <class F>
Program shrink(Program p, F fails);
std::vector<Program> smaller_programs(const Program& p);

template <class F>
Program shrink(Program p, F fails) {
  for (bool progress = true; progress;) {
    progress = false;
    for (Program& q : smaller_programs(p)) {
      if (!fails(q)) continue;
      p = std::move(q);
      progress = true;
      break;
    }
  }
  return p;
}

}  // namespace beamline::fuzz
