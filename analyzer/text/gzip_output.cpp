// SPDX-License-Identifier: Apache-2.0
#include "analyzer/text/gzip_output.h"

#include <zlib.h>

#include <stdexcept>
#include <vector>

namespace rankscope::text {

class GzipOutput::Deflate : public std::streambuf {
  public:
    explicit Deflate(std::ostream& out) : m_out(out), m_in(kBytes), m_compressed(kBytes) {
        // 15 bits of window, 16 for gzip's header; traces shrink to a tenth at the fastest level already.
        if (deflateInit2(&m_state, Z_BEST_SPEED, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
            throw std::runtime_error("zlib cannot begin");
        setp(m_in.data(), m_in.data() + m_in.size());
    }
    ~Deflate() override { deflateEnd(&m_state); }
    Deflate(const Deflate&) = delete;
    Deflate& operator=(const Deflate&) = delete;

    void finish() {
        compress(Z_FINISH);
        m_out.flush();
    }

  private:
    static constexpr size_t kBytes = 256 * 1024;

    int_type overflow(int_type c) override {
        compress(Z_NO_FLUSH);
        if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
        return m_out.good() ? traits_type::not_eof(c) : traits_type::eof();
    }

    int sync() override { return m_out.good() ? 0 : -1; }

    void compress(int flush) {
        m_state.next_in = reinterpret_cast<Bytef*>(pbase());
        m_state.avail_in = static_cast<uInt>(pptr() - pbase());
        do {
            m_state.next_out = reinterpret_cast<Bytef*>(m_compressed.data());
            m_state.avail_out = static_cast<uInt>(m_compressed.size());
            deflate(&m_state, flush);
            m_out.write(m_compressed.data(), static_cast<std::streamsize>(m_compressed.size() - m_state.avail_out));
        } while (m_state.avail_out == 0);
        setp(m_in.data(), m_in.data() + m_in.size());
    }

    std::ostream& m_out;
    z_stream m_state{};
    std::vector<char> m_in, m_compressed;
};

GzipOutput::GzipOutput(std::ostream& out) : m_deflate(std::make_unique<Deflate>(out)), m_stream(m_deflate.get()) {}
GzipOutput::~GzipOutput() = default;

void GzipOutput::finish() {
    m_deflate->finish();
}

}  // namespace rankscope::text
