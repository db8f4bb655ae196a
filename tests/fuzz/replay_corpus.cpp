// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without a fuzzer: on every file of the folders named, whole, cut, and damaged in ways that are the
// same each time. Where it crashes, the input that did it is in the file `last-input` of the working folder.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

namespace {

namespace fs = std::filesystem;

class Random {  // xorshift64
  public:
    uint64_t next() {
        m_state ^= m_state << 13, m_state ^= m_state >> 7, m_state ^= m_state << 17;
        return m_state;
    }

  private:
    uint64_t m_state = 88172645463325252ull;
};

int g_runs = 0;

void run(const std::string& input) {
    std::ofstream("last-input", std::ios::binary).write(input.data(), static_cast<std::streamsize>(input.size()));
    // A copy of its own, so that a sanitizer sees what is read behind the end.
    const std::vector<uint8_t> bytes(input.begin(), input.end());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++g_runs;
}

void runDamaged(const std::string& whole, Random& random, int times) {
    constexpr uint8_t kTelling[] = {0, 1, 0x7f, 0x80, 0xff, '"', '[', '{', ',', '-'};
    for (int i = 0; i < times && !whole.empty(); ++i) {
        std::string input = whole;
        for (uint64_t changes = random.next() % 4 + 1; changes > 0; --changes) {
            const size_t at = random.next() % input.size();
            const uint64_t how = random.next() % 4;
            if (how == 0) input[at] = static_cast<char>(random.next());
            if (how == 1) input[at] = static_cast<char>(kTelling[random.next() % sizeof kTelling]);
            if (how == 2) input.insert(at, input.substr(at, random.next() % 32));
            if (how == 3 && input.size() > 1) input.erase(at, random.next() % 32);
            if (input.empty()) break;
        }
        run(input);
    }
}

}  // namespace

int main(int count, char** words) {
    if (count < 3) return std::fprintf(stderr, "usage: %s TIMES FOLDER…\n", words[0]), 2;
    std::vector<fs::path> files;
    for (int i = 2; i < count; ++i)
        for (const auto& entry : fs::directory_iterator(words[i])) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    Random random;
    for (const fs::path& file : files) {
        std::ifstream in(file, std::ios::binary);
        const std::string whole(std::istreambuf_iterator<char>(in), {});
        run(whole);
        for (size_t part = 1; part < 8; ++part) run(whole.substr(0, whole.size() * part / 8));
        runDamaged(whole, random, std::atoi(words[1]));
    }
    std::printf("%d inputs of %zu files\n", g_runs, files.size());
    fs::remove("last-input");
    return files.empty() ? 1 : 0;
}
