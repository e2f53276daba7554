#include "tests/engine/proofs/solver.h"

#include <unordered_map>

#include <fmt/format.h>
#include <z3++.h>

namespace beamline::testing {
namespace {

// Circuits of wide divisions are built outside of that count: a limit of time for those.
constexpr unsigned patience_ms = 20000;
constexpr unsigned effort = 400000;  // of the solver's resource counter; about half a second

struct CannotExpress {
  std::string what;
};

// A value: defined or not, poison or not.
struct Value {
  z3::expr value, defined, poison;
};

class Translator {
 public:
  explicit Translator(z3::context& c, bool vectors) : c_(c), vectors_(vectors), leaves_(c) {}

  const Value& translate(UOp root) {
    for (UOp u : toposort(root))
      if (!done_.contains(u)) done_.emplace(u, node(u));
    return done_.at(root);
  }
  const z3::expr_vector& leaf_bounds() const { return leaves_; }
  std::string text_of(const z3::model& m) const {
    std::string s;
    for (const auto& [u, v] : done_)
      if (u.op() == Op::PARAM || u.op() == Op::RANGE)
        s += fmt::format("  #{} {} = {}\n", u.id(),
                         u.op() == Op::PARAM ? u.param().name : std::string("range"),
                         m.eval(v.value, true).to_string());
    return s;
  }

 private:
  z3::expr yes() { return c_.bool_val(true); }
  z3::expr no() { return c_.bool_val(false); }
  unsigned bits(DType t) const { return static_cast<unsigned>(8 * dtype_bytes(t)); }
  z3::expr number(int64_t v, DType t) {
    if (t == DType::Bool) return c_.bool_val(v != 0);
    return vectors_ ? c_.bv_val(v, bits(t)) : c_.int_val(v);
  }

  z3::expr power_of_two(unsigned k) {
    return c_.int_val(fmt::format("{}", static_cast<unsigned __int128>(1) << k).c_str());
  }
  // An integer as a value of width t.
  z3::expr held(z3::expr v, DType t) {
    if (t == DType::WeakInt) return v;
    const z3::expr size = power_of_two(bits(t));
    if (is_unsigned(t)) return z3::mod(v, size);
    const z3::expr half = power_of_two(bits(t) - 1);
    return z3::mod(v + half, size) - half;
  }
  z3::expr convert(const z3::expr& v, DType from, DType to) {
    if (from == to) return v;
    if (is_float(from) || is_float(to)) throw CannotExpress{"a float"};
    if (from == DType::Bool) return z3::ite(v, number(1, to), number(0, to));
    if (to == DType::Bool) return v != number(0, from);
    if (!vectors_) return lossless(from, to) ? v : held(v, to);
    const unsigned a = bits(from), b = bits(to);
    if (b <= a) return b == a ? v : v.extract(b - 1, 0);
    return is_unsigned(from) ? z3::zext(v, b - a) : z3::sext(v, b - a);
  }

  Value leaf(UOp u) {
    const DType t = u.dtype();
    if (u.is_invalid()) return {no(), yes(), yes()};
    if (is_float(t)) throw CannotExpress{"a float"};
    if (u.is_const()) return {number(wrap_to(t, u.ival()), t), yes(), no()};
    const std::string name = fmt::format("x{}", u.id());
    z3::expr x = t == DType::Bool ? c_.bool_const(name.c_str())
                 : vectors_       ? c_.bv_const(name.c_str(), bits(t))
                                  : c_.int_const(name.c_str());
    if (u.op() == Op::RANGE) {
      const Value& end = done_.at(u.src(0));
      const z3::expr zero = number(0, t);
      leaves_.push_back(end.defined && !end.poison && x >= zero && (x < end.value || x == zero));
    } else if (t != DType::Bool) {
      const bool open_above = t == DType::U64 && u.vmax() == INT64_MAX;
      const z3::expr lo = number(u.vmin(), t), hi = number(u.vmax(), t);
      const bool unsigned_order = vectors_ && is_unsigned(t);
      leaves_.push_back(unsigned_order ? z3::uge(x, lo) : x >= lo);
      if (!open_above) leaves_.push_back(unsigned_order ? z3::ule(x, hi) : x <= hi);
    }
    return {x, yes(), no()};
  }

  z3::expr floor_div(const z3::expr& a, const z3::expr& b) {
    return z3::ite(b > 0, a / b, (-a) / (-b));
  }
  z3::expr trunc_div(const z3::expr& a, const z3::expr& b) {
    return z3::ite(a >= 0, z3::ite(b > 0, a / b, -(a / (-b))),
                   z3::ite(b > 0, -((-a) / b), (-a) / (-b)));
  }
  // Bits of mathematical integers: only masks that are powers of two.
  z3::expr mathematical_bits(Op op, UOp u, const z3::expr& a) {
    const UOp k = u.src(1);
    if (!k.is_const()) throw CannotExpress{"bits of a mathematical integer"};
    const int64_t m = k.ival();
    const auto is_power = [](uint64_t v) { return v != 0 && (v & (v - 1)) == 0; };
    const auto low = static_cast<uint64_t>(m) + 1;
    if (op == Op::XOR && m == -1) return -a - 1;
    if (op == Op::AND && m == -1) return a;
    if (op != Op::AND && m == 0) return a;
    if (op == Op::AND && m >= 0 && is_power(low)) return z3::mod(a, c_.int_val(low));
    if (op == Op::AND && m < 0 && is_power(static_cast<uint64_t>(-m)))
      return a - z3::mod(a, c_.int_val(-m));
    throw CannotExpress{"bits of a mathematical integer"};
  }

  Value arithmetic(UOp u, DType t, const z3::expr& a, const z3::expr& b, const z3::expr& c) {
    const Op op = u.op();
    const bool sign = !is_unsigned(t);
    z3::expr defined = yes();
    const auto nonzero = [&] { defined = b != number(0, t); };
    const auto value = [&]() -> z3::expr {
      switch (op) {
        case Op::ADD: return a + b;
        case Op::SUB: return a - b;
        case Op::MUL: return a * b;
        case Op::MULACC: return a * b + c;
        case Op::NEG: return -a;
        case Op::TRUNC: return a;
        case Op::MAX: return z3::ite(vectors_ && !sign ? z3::ult(a, b) : a < b, b, a);
        default: break;
      }
      if (ops::shifts.has(op)) {
        const UOp k = u.src(1);
        if (!k.is_const() || k.ival() < 0 || k.ival() >= 62)
          throw CannotExpress{"a shift by a variable"};
        if (k.ival() >= 8 * dtype_bytes(t)) {
          defined = no();
          return a;
        }
        const z3::expr n = number(k.ival(), t);
        if (vectors_) return op == Op::SHL ? z3::shl(a, n) : sign ? z3::ashr(a, n) : z3::lshr(a, n);
        const z3::expr size = c_.int_val(int64_t{1} << k.ival());
        return op == Op::SHL ? a * size : a / size;
      }
      if (vectors_) {
        switch (op) {
          case Op::AND: return a & b;
          case Op::OR: return a | b;
          case Op::XOR: return a ^ b;
          default: break;
        }
        nonzero();
        if (!sign) return op == Op::FLOORDIV || op == Op::CDIV ? z3::udiv(a, b) : z3::urem(a, b);
        const z3::expr q = a / b, r = z3::srem(a, b), zero = number(0, t);
        const z3::expr down = r != zero && ((r < zero) != (b < zero));
        switch (op) {
          case Op::CDIV: return q;
          case Op::CMOD: return r;
          case Op::FLOORDIV: return z3::ite(down, q - number(1, t), q);
          case Op::FLOORMOD: return z3::ite(down, r + b, r);
          default: throw CannotExpress{std::string(op_name(op))};
        }
      }
      switch (op) {
        case Op::AND:
        case Op::OR:
        case Op::XOR: return mathematical_bits(op, u, a);
        case Op::FLOORDIV: nonzero(); return floor_div(a, b);
        case Op::FLOORMOD: nonzero(); return a - floor_div(a, b) * b;
        case Op::CDIV: nonzero(); return trunc_div(a, b);
        case Op::CMOD: nonzero(); return a - trunc_div(a, b) * b;
        default: throw CannotExpress{std::string(op_name(op))};
      }
    };
    const z3::expr v = value();
    return {vectors_ ? v : held(v, t), defined, no()};
  }

  z3::expr on_bools(Op op, const z3::expr& a, const z3::expr& b) {
    switch (op) {
      case Op::MUL:
      case Op::AND: return a && b;
      case Op::MAX:
      case Op::ADD:
      case Op::OR: return a || b;
      case Op::SUB:  // 0 - 1 is not zero
      case Op::CMPNE:
      case Op::XOR: return a != b;
      case Op::CMPEQ: return a == b;
      case Op::CMPLT: return !a && b;
      default: throw CannotExpress{std::string(op_name(op)) + " of bools"};
    }
  }

  Value node(UOp u) {
    const Op op = u.op();
    const DType t = u.dtype();
    if (op == Op::CONST || op == Op::PARAM || op == Op::RANGE) return leaf(u);
    if (!ops::elementwise.has(op) || !u.shape().empty())
      throw CannotExpress{std::string(op_name(op))};
    std::vector<Value> v;
    for (size_t i = 0; i < u.nsrc(); i++) v.push_back(done_.at(u.src(i)));
    const auto operand = [&](size_t i, DType to) {
      if (u.src(i).is_invalid()) return to == DType::Bool ? no() : number(0, to);
      return convert(v[i].value, u.src(i).dtype(), to);
    };
    if (op == Op::WHERE) {
      const z3::expr c = operand(0, DType::Bool);
      if (t == DType::Invalid) return {no(), v[0].defined, yes()};
      return {z3::ite(c, operand(1, t), operand(2, t)),
              v[0].defined && (v[0].poison || z3::ite(c, v[1].defined, v[2].defined)),
              v[0].poison || z3::ite(c, v[1].poison, v[2].poison)};
    }
    z3::expr poison = no(), defined = yes();
    DType joined = DType::Void;
    for (size_t i = 0; i < v.size(); i++) {
      poison = poison || (v[i].defined && v[i].poison);
      defined = defined && v[i].defined;
      joined = join(joined, u.src(i).dtype());
    }
    if (t == DType::Invalid || joined == DType::Invalid) return {no(), defined || poison, yes()};
    if (op == Op::BITCAST &&
        (!is_int(t) || !is_int(joined) || dtype_bytes(t) != dtype_bytes(joined)))
      throw CannotExpress{"bits of other types"};
    if (op == Op::CAST || op == Op::BITCAST) return {operand(0, t), defined, poison};
    const DType common = ops::comparison.has(op) ? joined : t;
    const auto at = [&](size_t i) {
      if (i >= v.size() || (ops::shifts.has(op) && i == 1)) return number(0, common);
      return operand(i, common);
    };
    const z3::expr a = at(0), b = at(1), c = at(2);
    if (common == DType::Bool) {
      z3::expr r = v.size() == 2 ? on_bools(op, a, b)
                                 : throw CannotExpress{std::string(op_name(op)) + " of a bool"};
      if (op == Op::AND || op == Op::OR) {  // one operand may decide alone
        const z3::expr decides = op == Op::AND ? (v[0].defined && !a) || (v[1].defined && !b)
                                               : (v[0].defined && a) || (v[1].defined && b);
        defined = defined || decides;
        r = op == Op::AND ? !decides : decides;
      }
      return {r, defined || poison, poison};
    }
    if (ops::comparison.has(op)) {
      const bool unsigned_order = vectors_ && is_unsigned(common);
      const z3::expr r = op == Op::CMPLT   ? (unsigned_order ? z3::ult(a, b) : a < b)
                         : op == Op::CMPNE ? a != b
                                           : a == b;
      return {r, defined || poison, poison};
    }
    const Value r = arithmetic(u, t, a, b, c);
    return {r.value, (defined && r.defined) || poison, poison};
  }

  z3::context& c_;
  bool vectors_;
  z3::expr_vector leaves_;
  std::unordered_map<UOp, Value, UOpHash> done_;
};

bool has_weak_int(UOp root) {
  for (UOp u : toposort(root))
    if (u.dtype() == DType::WeakInt) return true;
  return false;
}

}  // namespace

Proof prove_equal(UOp u, UOp v) {
  z3::context context;
  try {
    Translator t(context, !has_weak_int(u) && !has_weak_int(v));
    const Value a = t.translate(u), b = t.translate(v);
    z3::solver solver(context);
    z3::params params(context);
    params.set("rlimit", effort);
    params.set("timeout", patience_ms);
    solver.set(params);
    for (const z3::expr& e : t.leaf_bounds()) solver.add(e);
    const bool comparable = u.dtype() != DType::Invalid && v.dtype() != DType::Invalid;
    const z3::expr same = comparable ? a.value == b.value : context.bool_val(false);
    solver.add(a.defined && !(b.defined && a.poison == b.poison && (a.poison || same)));
    switch (solver.check()) {
      case z3::unsat: return {Proof::Answer::Proved, ""};
      case z3::sat: return {Proof::Answer::Refuted, t.text_of(solver.get_model())};
      default: return {Proof::Answer::Unknown, solver.reason_unknown()};
    }
  } catch (const CannotExpress& e) {
    return {Proof::Answer::Inexpressible, e.what};
  } catch (const z3::exception& e) {
    return {Proof::Answer::Inexpressible, e.msg()};
  }
}

}  // namespace beamline::testing
