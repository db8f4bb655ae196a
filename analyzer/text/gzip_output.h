// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <ostream>
#include <streambuf>

namespace rankscope::text {

/// A stream whose text comes out of another one as gzip (RFC 1952). finish() writes the end; without it the result is
/// cut off.
class GzipOutput {
  public:
    explicit GzipOutput(std::ostream& out);
    ~GzipOutput();
    GzipOutput(const GzipOutput&) = delete;
    GzipOutput& operator=(const GzipOutput&) = delete;

    std::ostream& stream() { return m_stream; }
    void finish();

  private:
    class Deflate;
    std::unique_ptr<Deflate> m_deflate;
    std::ostream m_stream;
};

}  // namespace rankscope::text
