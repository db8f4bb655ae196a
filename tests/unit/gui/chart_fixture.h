// SPDX-License-Identifier: Apache-2.0
// A trace.db made of SQL in sight, damaged ones included.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "collector/store/reader.h"
#include "collector/store/schema.h"
#include "collector/store/sqlite.h"

namespace rankscope::gui::test {

class ChartFixture {
  public:
    /// Ranks 0 … count-1, `perHost` on each host.
    explicit ChartFixture(int ranks, int perHost = 1024) {
        static int number = 0;
        m_file = std::filesystem::temp_directory_path() / fmt::format("rankscope-chart-{}-{}.db", getpid(), number++);
        std::filesystem::remove(m_file);
        m_database = std::make_unique<store::Database>(m_file.string(), store::OpenMode::create);
        m_database->execute("PRAGMA synchronous = OFF; PRAGMA journal_mode = MEMORY");
        m_database->execute(std::string(store::schemaSql()));
        m_database->execute("BEGIN");
        for (int host = 0; host * perHost < ranks; ++host)
            sql("INSERT INTO host (id, name) VALUES ({}, 'h{}')", host, host);
        for (int rank = 0; rank < ranks; ++rank)
            sql("INSERT INTO rank (rank, host_id, state) VALUES ({}, {}, 'complete')", rank, rank / perHost);
    }
    ~ChartFixture() { std::filesystem::remove(m_file); }
    ChartFixture(const ChartFixture&) = delete;
    ChartFixture& operator=(const ChartFixture&) = delete;

    template <typename... Arguments>
    void sql(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        m_database->execute(fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    void communicator(int id, std::initializer_list<int> members) {
        sql("INSERT INTO communicator (id, hash, identity, n_ranks, node_count) VALUES ({}, {}, 'comm_hash', {}, 1)",
            id, id, members.size());
        int at = 0;
        for (const int rank : members)
            sql("INSERT INTO communicator_member (communicator_id, comm_rank, rank) VALUES ({}, {}, {})", id, at++,
                rank);
    }

    /// With a kernel numbered 100 x the collective + rank on each of `ranks`.
    void collective(int id, int communicator, const std::string& op, int64_t bytes, int64_t transferNs,
                    std::initializer_list<int> ranks, int step = 0) {
        sql("INSERT INTO collective VALUES ({}, {}, {}, '{}', {}, 'bf16', NULL, NULL, {}, 1000, 2000, {}, {}, {}, 1, "
            "{})",
            id, communicator, id, op, bytes, ranks.size(), *ranks.begin(), 2000 + transferNs, transferNs, step);
        for (const int rank : ranks)
            sql("INSERT INTO collective_member (collective_id, rank, kernel_id, arrival_ns, end_ns) VALUES ({}, {}, "
                "{}, 1000, 3000)",
                id, rank, 100 * id + rank);
    }

    void message(int id, int from, int to, int64_t bytes, int64_t beginNs, int64_t endNs) {
        sql("INSERT INTO p2p (id, communicator_id, src_rank, dst_rank, seq, bytes, send_call_id, send_arrival_ns, "
            "recv_arrival_ns, send_end_ns, recv_end_ns, transfer_ns, complete) VALUES ({0}, 1, {1}, {2}, {0}, {3}, "
            "{0}, {4}, {4}, {5}, {5}, {6}, 1)",
            id, from, to, bytes, beginNs, endNs, endNs - beginNs);
    }

    void step(int rank, int number, int64_t startNs, int64_t durNs, int64_t computeNs = -1, bool warmUp = false) {
        sql("INSERT INTO step VALUES ({}, {}, {}, {}, {})", rank, number, startNs, durNs, warmUp ? 1 : 0);
        if (computeNs >= 0)
            sql("INSERT INTO attribution VALUES ({}, {}, {}, {}, 0, {}, 0, 0, 0, 0)", rank, number, durNs, computeNs,
                durNs - computeNs);
    }

    /// To be called once, when all is written.
    store::TraceReader reader() {
        m_database->execute("COMMIT");
        m_database->close();
        return store::TraceReader(m_file, {}, store::MisplacedRows::kept);  // as the window does
    }

  private:
    std::filesystem::path m_file;
    std::unique_ptr<store::Database> m_database;
};

}  // namespace rankscope::gui::test
