#include "devices/cpu/memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <system_error>

#include "devices/cpu/blob.h"

namespace beamline {
namespace {

TEST(GuardedBuffer, IsAlignedZeroedAndWhole) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, size_t{5000}, size_t{3} << 20}) {
    const GuardedBuffer b(bytes, bytes % 2 == 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b.data()) % (2u << 20), 0u);
    for (size_t i = 0; i < bytes; i += 997) EXPECT_EQ(static_cast<char*>(b.data())[i], 0);
    EXPECT_EQ(b.damage(), std::nullopt);
  }
}

TEST(GuardedBuffer, FindsWritesOnEitherSide) {
  GuardedBuffer b(100, false);
  auto* p = static_cast<unsigned char*>(b.data());
  std::memset(p, 0xFF, 100);
  EXPECT_EQ(b.damage(), std::nullopt);
  for (const int64_t at :
       {int64_t{100}, int64_t{4095}, int64_t{4096}, int64_t{8191}, int64_t{-1}, int64_t{-4096}}) {
    p[at] ^= 1;
    EXPECT_EQ(b.damage(), at);
    b.restore_canary();
    EXPECT_EQ(b.damage(), std::nullopt);
  }
}

TEST(GuardedBuffer, MovesWithItsOwner) {
  GuardedBuffer a(10, false), b(20, false);
  void* const data = a.data();
  b = std::move(a);
  EXPECT_EQ(b.data(), data);
  EXPECT_EQ(b.bytes(), 10u);
  const GuardedBuffer c(std::move(b));
  EXPECT_EQ(c.data(), data);
}

TEST(GuardedBuffer, MoreThanThereIsIsRefused) {
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX - 4096, size_t{1} << 57, size_t{1} << 55})
    EXPECT_THROW(GuardedBuffer(bytes, false), std::system_error) << bytes;
}

TEST(GuardedBufferDeathTest, SealedItIsReadOnly) {
  GuardedBuffer b(100, true);
  auto* data = static_cast<unsigned char*>(b.data());
  data[7] = 3;
  b.seal();
  EXPECT_EQ(data[7], 3);
  EXPECT_FALSE(b.damage());
  for (const int at : {0, 7, 99, 100, -1}) EXPECT_DEATH(data[at] = 1, "");
}

TEST(GuardedBufferDeathTest, FarWritesEndTheProcess) {
  const GuardedBuffer b(4096, false);
  EXPECT_DEATH(static_cast<volatile char*>(b.data())[8192] = 1, "");
  EXPECT_DEATH(static_cast<volatile char*>(b.data())[-4097] = 1, "");
}

TEST(CodeBlob, RefusesWhatIsNoCode) {
  EXPECT_TRUE(std::holds_alternative<std::string>(CodeBlob::map("", 0)));
  EXPECT_TRUE(std::holds_alternative<std::string>(CodeBlob::map("\xC3", 1)));
}

#if defined(__x86_64__)
TEST(CodeBlob, RunsFromItsEntry) {
  // int3; mov rax, [rdi]; mov [rax], rsi; ret
  const std::string code("\xCC\x48\x8B\x07\x48\x89\x30\xC3", 8);
  auto mapped = CodeBlob::map(code, 1);
  ASSERT_TRUE(std::holds_alternative<CodeBlob>(mapped));
  const CodeBlob blob = std::move(std::get<CodeBlob>(mapped));
  int64_t out = 0;
  void* buffers[] = {&out};
  blob.entry()(buffers, 42);
  EXPECT_EQ(out, 42);
}
#endif

}  // namespace
}  // namespace beamline
