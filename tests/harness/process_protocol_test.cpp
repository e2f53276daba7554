#include <gtest/gtest.h>

#include <cfloat>
#include <limits>
#include <random>

#include "harness/messages.h"

namespace beamline {
namespace {

Frame sample_frame() {
  return {{{"kind", "x"}, {"n", 5}, {"text", "höhe"}}, std::string("\0\1\2", 3)};
}

// All frames in `bytes`, fed in pieces of `step`; the error text if it ends in one.
std::pair<std::vector<Frame>, std::string> decode(std::string_view bytes, size_t step) {
  FrameDecoder d;
  std::vector<Frame> frames;
  for (size_t i = 0; i < bytes.size(); i += step) {
    d.feed(bytes.substr(i, step));
    for (;;) {
      auto r = d.next();
      if (auto* f = std::get_if<Frame>(&r)) {
        frames.push_back(*f);
        continue;
      }
      if (auto* g = std::get_if<FrameDecoder::Garbled>(&r)) return {frames, g->reason};
      break;
    }
  }
  return {frames, d.partial() ? "partial" : ""};
}

TEST(Protocol, FramesComeBackInAnyPieces) {
  const std::string bytes =
      encode_frame(sample_frame()) + encode_frame({}) + encode_frame(sample_frame());
  for (size_t step = 1; step <= bytes.size(); step++) {
    const auto [frames, error] = decode(bytes, step);
    ASSERT_EQ(frames.size(), 3u) << step;
    EXPECT_EQ(error, "");
    EXPECT_EQ(frames[2].header, sample_frame().header);
    EXPECT_EQ(frames[2].payload, sample_frame().payload);
    EXPECT_EQ(frames[1].kind(), "");
  }
}

TEST(Protocol, EveryTruncationIsPartial) {
  const std::string bytes = encode_frame(sample_frame());
  for (size_t n = 1; n < bytes.size(); n++) {
    const auto [frames, error] = decode(std::string_view(bytes).substr(0, n), 7);
    EXPECT_TRUE(frames.empty());
    EXPECT_EQ(error, "partial") << n;
  }
}

TEST(Protocol, EveryDamageOfThePrefixIsSeenOrWaitsForMore) {
  const std::string good = encode_frame(sample_frame());
  for (size_t i = 0; i < 24; i++) {
    for (const int bit : {0, 3, 7}) {
      std::string bytes = good;
      bytes[i] = static_cast<char>(bytes[i] ^ (1 << bit));
      const auto [frames, error] = decode(bytes, bytes.size());
      // A shortened payload leaves bytes behind that are no frame.
      EXPECT_NE(error, "") << i << " " << bit;
    }
  }
}

TEST(Protocol, AfterAnErrorNothingIsDecoded) {
  FrameDecoder d;
  d.feed("rubbish");
  EXPECT_TRUE(std::holds_alternative<FrameDecoder::Garbled>(d.next()));
  d.feed(encode_frame(sample_frame()));
  EXPECT_TRUE(std::holds_alternative<FrameDecoder::Garbled>(d.next()));
}

TEST(Protocol, LengthsBeyondTheLimitAreRefusedAtOnce) {
  FrameDecoder d(FrameLimits{100, 10});
  Frame f;
  f.payload = std::string(11, 'x');
  d.feed(std::string_view(encode_frame(f)).substr(0, 24));
  EXPECT_TRUE(std::holds_alternative<FrameDecoder::Garbled>(d.next()));
}

TEST(Protocol, RandomBytesNeverThrow) {
  std::mt19937_64 random(1);
  const std::string good = encode_frame(sample_frame());
  for (int round = 0; round < 20'000; round++) {
    std::string bytes = round % 2 ? good : "";
    for (uint64_t n = random() % 40; n > 0; n--) {
      const size_t at = random() % (bytes.size() + 1);
      if (random() % 3 == 0 && at < bytes.size())
        bytes.erase(at, random() % 5);
      else
        bytes.insert(at, 1, static_cast<char>(random()));
    }
    const auto [frames, error] = decode(bytes, 1 + random() % 64);
    for (const Frame& f : frames) {
      EXPECT_TRUE(f.header.is_object());
      read_message<SetupRequest>(f);
    }
  }
}

TEST(Protocol, TextThatIsNoUtf8StillTravels) {
  Frame f;
  f.header["error"] = "\xFF\xFE broken";
  EXPECT_EQ(decode(encode_frame(f), 1000).first.size(), 1u);
}

// ---- messages ----

template <class M>
M through(const M& m) {
  const auto frames = decode(encode_frame(to_frame(m)), 1 << 20).first;
  EXPECT_EQ(frames.size(), 1u);
  const auto back = read_message<M>(frames.at(0));
  EXPECT_TRUE(back.has_value());
  return *back;
}

SetupRequest sample_setup() {
  SetupRequest m;
  BufferSpec out, in;
  out.dtype = "f32", out.elements = 2, out.role = "out", out.expected.bytes = "12345678",
  out.rtol = 1e-5;
  in.dtype = "i8", in.elements = 3, in.init.path = "/tmp/x";
  m.buffers = {out, in};
  m.pus = {1, 3};
  return m;
}

TEST(Messages, ComeBackWhole) {
  const SetupRequest s = through(sample_setup());
  ASSERT_EQ(s.buffers.size(), 2u);
  EXPECT_EQ(s.buffers[0].expected.bytes, "12345678");
  EXPECT_EQ(s.buffers[0].rtol, 1e-5);
  EXPECT_TRUE(s.buffers[0].init.absent());
  EXPECT_EQ(s.buffers[1].init.path, "/tmp/x");
  EXPECT_EQ(s.pus, (std::vector<unsigned>{1, 3}));

  CompileReply c;
  c.status = "ok", c.code = std::string("\xC3\0", 2), c.entry_offset = 1, c.threads = 4;
  c.args = {{0, "f32", 10, true}, {1, "f16", 20, false}};
  c.layouts = {{2, 64, "first", 3}, {1, 32, std::string("\0second", 7), 0}};
  const CompileReply c2 = through(c);
  EXPECT_EQ(c2.code, c.code);
  ASSERT_EQ(c2.layouts.size(), 2u);
  for (size_t i = 0; i < 2; i++) {
    EXPECT_EQ(c2.layouts[i].slot, c.layouts[i].slot);
    EXPECT_EQ(c2.layouts[i].bytes, c.layouts[i].bytes);
    EXPECT_EQ(c2.layouts[i].code, c.layouts[i].code);
    EXPECT_EQ(c2.layouts[i].entry_offset, c.layouts[i].entry_offset);
  }
  const LoadRequest load = through(LoadRequest{"a", "code", 1, 2, c.layouts});
  EXPECT_EQ(load.code, "code");
  EXPECT_EQ(load.layouts.at(1).code, c.layouts[1].code);
  ASSERT_EQ(c2.args.size(), 2u);
  EXPECT_EQ(c2.args[1].dtype, "f16");
  EXPECT_TRUE(c2.args[0].written);

  TimeReply t;
  t.contestants = {{"a", "ok", "", {1.5, 2.5}, {0, 1}, 8, true}};
  EXPECT_EQ(through(t).contestants[0].ns, (std::vector<double>{1.5, 2.5}));

  RunReply r;
  r.outputs = {"abc", "", "de"};
  EXPECT_EQ(through(r).outputs, r.outputs);

  CheckReply k;
  k.max_err = std::numeric_limits<double>::infinity();  // JSON has none
  EXPECT_EQ(through(k).max_err, DBL_MAX);
}

TEST(Messages, AForeignKindIsNoMessage) {
  EXPECT_FALSE(read_message<CheckReply>(to_frame(RunRequest{"a"})).has_value());
  EXPECT_FALSE(read_message<CheckReply>(Frame{}).has_value());
}

TEST(Messages, AHelpersErrorIsAReply) {
  const Frame error{{{"kind", "error"}, {"error", "no memory"}}, {}};
  EXPECT_EQ(read_message<CheckReply>(error)->status, "launch_error");
  EXPECT_EQ(read_message<CompileReply>(error)->status, "compile_error");
  EXPECT_EQ(read_message<TimeReply>(error)->error, "no memory");
  EXPECT_FALSE(read_message<TimeRequest>(error).has_value());
}

// Replaces, one at a time, every value in the header by values of other types.
void mutate(const nlohmann::json& whole, const nlohmann::json::json_pointer& at,
            const std::function<void(const nlohmann::json&)>& f) {
  for (const nlohmann::json& v :
       {nlohmann::json(nullptr), nlohmann::json("text"), nlohmann::json(-1), nlohmann::json(1e300),
        nlohmann::json::array({1, "x"}), nlohmann::json::object({{"path", 3}})}) {
    nlohmann::json changed = whole;
    changed[at] = v;
    f(changed);
  }
  const nlohmann::json& here = whole[at];
  if (here.is_object()) {
    for (const auto& [k, v] : here.items()) mutate(whole, at / k, f);
  } else if (here.is_array()) {
    for (size_t i = 0; i < here.size(); i++) mutate(whole, at / i, f);
  }
}

TEST(Messages, WrongTypesInTheHeaderNeverThrow) {
  int tried = 0;
  const auto all = [&](const Frame& good, auto read) {
    for (const auto& [k, v] : good.header.items()) {
      mutate(good.header, nlohmann::json::json_pointer("/" + k), [&](const nlohmann::json& h) {
        EXPECT_NO_THROW(read(Frame{h, good.payload}));
        EXPECT_NO_THROW(read(Frame{h, ""}));
        tried++;
      });
    }
  };
  all(to_frame(sample_setup()), [](const Frame& f) { read_message<SetupRequest>(f); });
  all(to_frame(TimeRequest{}), [](const Frame& f) { read_message<TimeRequest>(f); });
  CompileReply c;
  c.args = {{0, "f32", 1, true}};
  all(to_frame(c), [](const Frame& f) { read_message<CompileReply>(f); });
  RunReply r;
  r.outputs = {"abc"};
  all(to_frame(r), [](const Frame& f) { read_message<RunReply>(f); });
  TimeReply t;
  t.contestants.emplace_back();
  all(to_frame(t), [](const Frame& f) { read_message<TimeReply>(f); });
  EXPECT_GT(tried, 300);
}

TEST(Messages, SlicesOutsideOfThePayloadAreGarbled) {
  Frame f = to_frame(sample_setup());
  f.payload.pop_back();
  EXPECT_FALSE(read_message<SetupRequest>(f).has_value());
}

}  // namespace
}  // namespace beamline
