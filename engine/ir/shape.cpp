#include "engine/ir/shape.h"

#include "engine/ir/node_map.h"

namespace beamline {
namespace {

using Dims = std::vector<UOp>;

Dims elements(UOp stack) { return stack.op() == Op::STACK ? stack.srcs() : Dims{}; }

Dims constants(UOp u) {
  Dims d;
  for (int64_t n : u.shape()) d.push_back(iconst(n));
  return d;
}

// Dims that broadcast, right aligned: the one that is not 1. False when two differ.
bool broadcast(Dims& into, const Dims& from) {
  if (from.size() > into.size()) into.insert(into.begin(), from.size() - into.size(), iconst(1));
  bool same = true;
  for (size_t i = 0; i < from.size(); i++) {
    UOp& at = into[into.size() - from.size() + i];
    if (at.is_const(1))
      at = from[i];
    else
      same &= from[i].is_const(1) || from[i] == at;
  }
  return same;
}

class Shapes {
 public:
  /// Computes everything below root; the first mismatch met, or null.
  UOp run(UOp root) {
    UOp wrong;
    for (UOp u : toposort(root)) {
      bool same = true;
      done_.insert(u.node(), derive(u, same));
      if (!same && !wrong) wrong = u;
    }
    return wrong;
  }
  const Dims& of(UOp u) { return *done_.find(u.node()); }

 private:
  Dims derive(UOp u, bool& same) {
    if (!u.has_shape()) return {};
    if (ops::elementwise.has(u.op())) {
      Dims d;
      for (size_t i = 0; i < u.nsrc(); i++) same &= broadcast(d, of(u.src(i)));
      return d;
    }
    switch (u.op()) {
      case Op::PARAM:
      case Op::BUFFER: return u.nsrc() > 0 ? elements(u.src(0)) : Dims{};
      case Op::RESHAPE: return elements(u.src(1));
      case Op::PAD:
      case Op::SHRINK: return elements(u.src(2));
      case Op::EXPAND: return joined(elements(u.src(1)), of(u.src(0)), 0);
      case Op::PERMUTE: {
        Dims d;
        for (int64_t a : u.ints()) d.push_back(of(u.src(0))[static_cast<size_t>(a)]);
        return d;
      }
      case Op::LOAD:
      case Op::AFTER:
      case Op::CONTIGUOUS:
      case Op::CONTIGUOUS_BACKWARD:
      case Op::DETACH:
      case Op::COPY:
      case Op::FLIP: return of(u.src(0));
      case Op::REDUCE: return joined({}, of(u.src(0)), u.reduce_dims());
      case Op::STACK:
        return u.nsrc() == 0 ? constants(u)
                             : joined({iconst(static_cast<int64_t>(u.nsrc()))}, of(u.src(0)), 0);
      case Op::INDEX: {
        Dims d;
        for (size_t i = 1; i < u.nsrc(); i++) d = joined(d, of(u.src(i)), 0);
        return joined(d, of(u.src(0)), u.nsrc() - 1);
      }
      case Op::STAGE: {
        Dims d;
        for (size_t i = 1; i < u.nsrc(); i++)
          d.push_back(u.src(i).op() == Op::RANGE ? u.src(i).src(0) : iconst(u.src(i).vmax() + 1));
        return joined(d, of(u.src(0)), 0);
      }
      default: return constants(u);
    }
  }
  static Dims joined(Dims first, const Dims& second, size_t from) {
    first.insert(first.end(), second.begin() + static_cast<std::ptrdiff_t>(from), second.end());
    return first;
  }

  NodeMap<Dims> done_;
};

}  // namespace

std::vector<UOp> symbolic_shape(UOp u) {
  Shapes s;
  s.run(u);
  return s.of(u);
}

UOp mismatched_dims(UOp root) { return Shapes().run(root); }

}  // namespace beamline
