// Functions that build the tensor graph: NumPy shapes and broadcasting, dtypes by the promotion
// lattice, everything composed of the IR's primitive ops (engine.md 1: EXPAND only prepends dims,
// size-1 broadcast is implicit in elementwise ops, REDUCE drops leading dims). A refusal (shapes
// that do not fit, an axis out of range) is a value: the function returns a null UOp and the first
// reason is kept until take_error(). Null operands give null results, so that composites need no
// checks. Nodes live in the current Arena. Weak scalar constants (iconst, fconst of weak type) take
// the dtype of their peer. Not thread safe; cheap to create.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/uop.h"

namespace beamline {

class TensorOps {
 public:
  bool ok() const { return error_.empty(); }
  std::string take_error() { return std::exchange(error_, {}); }
  /// Records why and returns null.
  UOp refuse(std::string why);

  // Elementwise (elementwise.cpp). Bools: + is |, * is &; - and unary - are refused.
  UOp add(UOp a, UOp b);
  UOp sub(UOp a, UOp b);
  UOp mul(UOp a, UOp b);
  UOp div(UOp a, UOp b);             // integers give f32
  UOp floordiv(UOp a, UOp b);        // rounds down; of floats a whole float
  UOp mod(UOp a, UOp b);             // what floordiv leaves: the sign of b
  UOp bitwise(Op op, UOp a, UOp b);  // AND, OR, XOR of integers or bools
  UOp invert(UOp a);
  UOp neg(UOp a);
  UOp lt(UOp a, UOp b);
  UOp le(UOp a, UOp b);
  UOp eq(UOp a, UOp b);
  UOp ne(UOp a, UOp b);
  UOp logical_not(UOp a);
  UOp maximum(UOp a, UOp b);
  UOp minimum(UOp a, UOp b);
  UOp where(UOp c, UOp a, UOp b);
  UOp clamp(UOp x, std::optional<UOp> lo, std::optional<UOp> hi);
  UOp cast(UOp x, DType t);
  UOp bitcast(UOp x, DType t);  // the last dim grows or shrinks with the width, low parts first
  UOp relu(UOp x);
  UOp abs(UOp x);
  UOp sign(UOp x);

  // Mathematics (math.cpp). Integers give f32; f16, bf16 and fp8 compute in f32 and are rounded
  // once.
  UOp exp(UOp x);
  UOp exp2(UOp x);
  UOp log(UOp x);
  UOp log2(UOp x);
  UOp sqrt(UOp x);
  UOp rsqrt(UOp x);
  UOp reciprocal(UOp x);
  UOp sin(UOp x);
  UOp cos(UOp x);
  UOp tanh(UOp x);
  UOp sigmoid(UOp x);
  UOp silu(UOp x);
  UOp erf(UOp x);
  UOp gelu(UOp x, bool tanh_approximation);
  UOp floor(UOp x);
  UOp ceil(UOp x);
  UOp trunc(UOp x);
  UOp round(UOp x);       // half to even
  UOp pow(UOp x, UOp y);  // integers: modulo 2^bits; to a negative power 0 unless |x| is 1

  // Movement (movement.cpp). Axes may be negative.
  UOp reshape(UOp x, Ints shape);  // one dim may be -1
  UOp permute(UOp x, const Ints& axes);
  UOp transpose(UOp x, int64_t i, int64_t j);
  UOp expand(UOp x, const Ints& shape);  // broadcast
  UOp squeeze(UOp x, const Ints& axes);
  UOp unsqueeze(UOp x, const Ints& axes);
  UOp pad(UOp x, const Ints& before, const Ints& after, UOp value);
  UOp shrink(UOp x, const Ints& begin, const Ints& end);  // 0 <= begin <= end <= dim
  UOp stride(UOp x, size_t axis, int64_t step);  // every step-th from the first, or from the last
  UOp flip(UOp x, const Ints& axes);
  UOp concat(const std::vector<UOp>& parts, int64_t axis);
  UOp stack(const std::vector<UOp>& parts, int64_t axis);
  std::vector<UOp> split(UOp x, int64_t n, int64_t axis);  // empty when refused
  UOp full(const Ints& shape, UOp scalar);
  UOp band(UOp x, int64_t k, bool lower);  // tril, triu
  UOp contiguous(UOp x);

  // Reductions (reduce.cpp). `axes` empty and `all` unset reduces nothing. Sums and products of
  // small floats accumulate in f32 and return the input type; of bools and small integers in and as
  // i32.
  struct Axes {
    Ints list;
    bool all = false;
  };
  UOp sum(UOp x, const Axes& axes, bool keepdims);
  UOp prod(UOp x, const Axes& axes, bool keepdims);
  UOp max(UOp x, const Axes& axes, bool keepdims);
  UOp min(UOp x, const Axes& axes, bool keepdims);
  UOp any(UOp x, const Axes& axes, bool keepdims);
  UOp all(UOp x, const Axes& axes, bool keepdims);
  UOp mean(UOp x, const Axes& axes, bool keepdims);  // of integers: f32
  UOp var(UOp x, const Axes& axes, bool keepdims, int64_t ddof);

  // Composites (composite.cpp).
  UOp matmul(UOp a, UOp b);
  UOp softmax(UOp x, const Axes& axes);
  UOp log_softmax(UOp x, const Axes& axes);
  UOp layer_norm(UOp x, std::optional<UOp> weight, std::optional<UOp> bias, const Axes& axes,
                 double eps);
  UOp rms_norm(UOp x, std::optional<UOp> weight, const Axes& axes, double eps);
  UOp batch_norm(UOp x, UOp mean, UOp var, std::optional<UOp> weight, std::optional<UOp> bias,
                 double eps);
  UOp attention(UOp q, UOp k, UOp v, bool causal, std::optional<UOp> mask,
                std::optional<double> scale);

  // Windows (windows.cpp): PyTorch's NCHW layouts; pairs are (height, width). Kernels of a
  // convolution are [out, in/groups, kh, kw], of a transposed one [in, out/groups, kh, kw].
  struct Pair {
    int64_t h = 1, w = 1;
  };
  struct Conv {
    Pair stride{1, 1}, padding{0, 0}, dilation{1, 1}, output_padding{0, 0};
    int64_t groups = 1;
  };
  struct Pool {
    Pair kernel, stride, padding{0, 0};
    bool ceil = false, count_include_pad = true;
  };
  UOp conv2d(UOp x, UOp w, std::optional<UOp> bias, const Conv& c);
  UOp conv_transpose2d(UOp x, UOp w, std::optional<UOp> bias, const Conv& c);
  UOp max_pool2d(UOp x, const Pool& p);
  UOp avg_pool2d(UOp x, const Pool& p);
  /// [.., n, ..] to [.., out, .., kernel]: element (o, k) is x[o * stride + k * dilation].
  UOp windows(UOp x, size_t axis, int64_t kernel, int64_t stride, int64_t dilation);

  // Positions (positions.cpp). What an index out of range selects is 0.
  UOp arange(int64_t start, int64_t stop, int64_t step);  // i32; i64 where that does not hold it
  UOp arange(double start, double stop, double step);     // f32
  UOp argmax(UOp x, int64_t axis, bool keepdims);         // first of equals, NaN before all: i32
  UOp argmin(UOp x, int64_t axis, bool keepdims);
  UOp cumsum(UOp x, int64_t axis);
  UOp cumprod(UOp x, int64_t axis);
  UOp gather(UOp x, UOp index, int64_t axis);  // of x's rank: index replaces the axis's position
  UOp take(UOp x, UOp index, int64_t axis);    // index's shape replaces the axis
  UOp embedding(UOp weight, UOp index);
  UOp one_hot(UOp index, int64_t n);  // i32, a new last axis
  /// x[:, index...]: the dims from `axis` on, one for each index, become the indices' joint shape;
  /// negative indices count from the end.
  UOp take_joint(UOp x, const std::vector<UOp>& index, size_t axis);
  UOp rand(const Ints& shape, int64_t seed);  // f32 in [0, 1)

  /// The type a value of weak type is stored as; other types are themselves.
  static DType concrete(DType t);

 private:
  UOp to(UOp x, DType t);
  UOp weak(double v) const { return fconst(v, DType::WeakFloat); }
  UOp weak(int64_t v) const { return iconst(v); }
  bool promote(UOp& a, UOp& b);                           // to their join; false when refused
  bool same_shapes(std::initializer_list<UOp> operands);  // that they broadcast
  bool sized(const Ints& shape);                          // that the result is not absurdly large
  UOp binary(Op op, UOp a, UOp b);
  UOp unary(Op op, UOp x);
  template <class F>
  UOp in_wide(UOp x, F f);
  std::optional<std::vector<size_t>> resolve(UOp x, const Axes& axes);
  UOp reduce_to(Op op, UOp x, const Axes& axes, bool keepdims, DType accumulate, DType result);
  int64_t count(UOp x, const Axes& axes);
  UOp along(UOp x, UOp parameter, const Axes& axes);
  UOp polynomial(UOp x, std::span<const double> coefficients);
  UOp power_by_squaring(UOp x, int64_t n);
  UOp integer_power(UOp x, UOp n);
  std::pair<UOp, UOp> float_division(UOp a, UOp b);  // quotient rounded down, and the rest
  UOp move_axis(UOp x, size_t from, size_t to);
  UOp scan(Op op, UOp x);  // along the last axis
  UOp scan_axis(Op op, UOp x, int64_t axis);
  UOp select(UOp x, UOp index);  // sum over j of x[j, ...] where index == j; shapes broadcast
  std::optional<size_t> axis_of(UOp x, int64_t axis);
  UOp with_bias(UOp r, std::optional<UOp> bias, DType t);
  UOp pooled(UOp x, const Pool& p, UOp value, bool count_padding, Ints* reach);

  std::string error_;
};

/// "(2, 3)", as messages print shapes.
std::string shape_text(std::span<const int64_t> shape);

/// Floats of at most 16 bits compute in f32.
bool is_small_float(DType t);
/// What sums and products of type t are computed in: i32 for bools and narrower integers, f32 for
/// small floats.
DType accumulator(DType t);

template <class F>
UOp TensorOps::in_wide(UOp x, F f) {
  if (!x) return {};
  const DType t = concrete(least_float(x.dtype()));
  return to(f(to(x, is_small_float(t) ? DType::F32 : t)), t);
}

}  // namespace beamline
