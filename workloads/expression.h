// The `compute` language: statements `name = expression` or `a, b = split(...)`, then one `return`.
// The AST is flat: nodes lie in one vector, operands before their users, so that no walk over it
// recurses and evaluating nodes in index order is evaluation order. Every node carries its position
// in the file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/source_text.h"

namespace beamline::workloads {

enum class Operator : uint8_t {
  Or,
  Xor,
  And,
  Lt,
  Le,
  Gt,
  Ge,
  Eq,
  Ne,
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  MatMul,
  Pow,
  Neg,
  Invert
};
std::string_view operator_text(Operator op);

enum class ExprKind : uint8_t {
  Int,
  Float,
  Bool,
  None,
  Text,
  Name,
  NewAxis,
  Ellipsis,
  List,       // args
  Unary,      // op, one arg
  Binary,     // op, two args; position of the operator
  Call,       // text is the function; args, then keywords
  Subscript,  // args[0] is the value, then one arg per item
  Slice,      // three args: begin, end, step; -1 where left out
};

struct Keyword {
  std::string name;
  SourcePos at;
  int value = -1;  // index of a node
};

struct Expr {
  ExprKind kind = ExprKind::None;
  Operator op = Operator::Add;
  SourcePos at;
  int64_t integer = 0;  // Int; Bool as 0 or 1
  double number = 0;    // Float
  std::string text;     // Text, Name, Call
  std::vector<int> args;
  std::vector<Keyword> keywords;
};

struct AssignedName {
  std::string name;
  SourcePos at;
};
struct Statement {
  std::vector<AssignedName> targets;  // empty for the return
  SourcePos at;
  int first = 0;  // nodes [first, last] belong to this statement
  int last = -1;
  std::vector<int> values;  // one, or those returned
};
struct Program {
  std::vector<Expr> exprs;
  std::vector<Statement> statements;  // the last one is the return
};

/// The words that cannot name a value: literals, `return`, and dtypes.
bool is_reserved(std::string_view name);
bool is_identifier(std::string_view s);

struct ParsedProgram {
  Program program;  // complete only without errors
  std::vector<Diagnostic> errors;
};
/// Reads a compute text; after a mistake it goes on with the next line.
ParsedProgram parse_program(const SourceText& text);
/// Reads one expression: a program of one statement without targets.
ParsedProgram parse_expression(const SourceText& text);

/// `f32[M, K]`, or `f32` for a scalar: the dims are the values of the program's one statement.
struct ParsedType {
  std::string dtype;
  SourcePos at;
  Program dims;
  std::vector<Diagnostic> errors;
};
ParsedType parse_type(const SourceText& text);

/// Fully bracketed, without comments: equal texts mean equal programs; it parses back to the same
/// text.
std::string print(const Program& p);
std::string print(const Program& p, int node);

}  // namespace beamline::workloads
