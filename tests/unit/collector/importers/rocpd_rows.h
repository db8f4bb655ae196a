// SPDX-License-Identifier: Apache-2.0
// A small database of rocprofv3.
#pragma once

#include <cstdint>
#include <string>

#include "collector/store/sqlite.h"

namespace rankscope::tests {

/// A process as rows of rocpd: a range around a gemm, an all-reduce with its call, and a copy to the GPU. Times and
/// places stand in the rows, or, `apart`, in tables of their own.
inline void fillRocpd(store::Database& database, const std::string& ending, int64_t pid, int64_t gpu, bool apart,
                      int64_t lateNs = 0) {
    const auto run = [&](std::string sql) {
        for (size_t at = 0; (at = sql.find("{}", at)) != std::string::npos;) sql.replace(at, 2, ending);
        database.execute(sql);
    };
    const std::string place = apart
                                  ? "track_id INTEGER, start_id INTEGER, end_id INTEGER"
                                  : "pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER, "
                                    "start BIGINT, end BIGINT";
    run("CREATE TABLE rocpd_string{} (id INTEGER PRIMARY KEY, string TEXT);"
        "CREATE TABLE rocpd_info_node{} (id INTEGER, hostname TEXT);"
        "CREATE TABLE rocpd_info_process{} (id INTEGER, nid INTEGER, pid INTEGER, environment JSONB);"
        "CREATE TABLE rocpd_info_thread{} (id INTEGER, tid INTEGER);"
        "CREATE TABLE rocpd_info_agent{} (id INTEGER, pid INTEGER, type TEXT, type_index INTEGER, product_name TEXT);"
        "CREATE TABLE rocpd_info_kernel_symbol{} (id INTEGER, kernel_name TEXT, display_name TEXT);"
        "CREATE TABLE rocpd_event{} (id INTEGER, category_id INTEGER, stack_id INTEGER, extdata JSONB);"
        "CREATE TABLE rocpd_arg{} (event_id INTEGER, name TEXT, value TEXT);"
        "CREATE TABLE rocpd_track{} (id INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, "
        "stream_id "
        "INTEGER); CREATE TABLE rocpd_timestamp{} (id INTEGER PRIMARY KEY, value BIGINT);"
        "CREATE TABLE rocpd_region{} (" +
        place +
        ", name_id INTEGER, event_id INTEGER);"
        "CREATE TABLE rocpd_sample{} (track_id INTEGER, " +
        std::string(apart ? "timestamp_id" : "timestamp") +
        " INTEGER, name_id INTEGER, event_id INTEGER);"
        "CREATE TABLE rocpd_kernel_dispatch{} (" +
        place +
        ", kernel_id INTEGER, event_id INTEGER, grid_size_x INTEGER, "
        "grid_size_y INTEGER, grid_size_z INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, "
        "workgroup_size_z "
        "INTEGER); CREATE TABLE rocpd_memory_copy{} (" +
        place +
        ", src_agent_id INTEGER, dst_agent_id INTEGER, size "
        "INTEGER, event_id INTEGER); CREATE TABLE rocpd_memory_allocate{} (id INTEGER);"
        "INSERT INTO rocpd_string{} VALUES (1, 'HIP_RUNTIME_API_EXT'), (2, 'RCCL_API'), (3, 'MARKER_CORE_RANGE_API'), "
        "(4, "
        "'hipLaunchKernel'), (5, 'ncclAllReduce'), (6, 'roctxThreadRangeA'), (7, 'hipMemcpyAsync'), (8, "
        "'KERNEL_DISPATCH');"
        "INSERT INTO rocpd_info_node{} VALUES (1, 'mi300-a');"
        "INSERT INTO rocpd_info_kernel_symbol{} VALUES (7, 'gemm.kd', 'gemm'), (8, 'x', 'ncclDevKernel_Generic_4()');"
        "INSERT INTO rocpd_memory_allocate{} VALUES (1);");
    const std::string p = std::to_string(pid), a = std::to_string(gpu);
    run("INSERT INTO rocpd_info_process{} VALUES (" + p + ", 1, " + p + ", '{\"RANK\": \"" + std::to_string(gpu - 9) +
        "\", \"WORLD_SIZE\": \"4\", \"LOCAL_RANK\": \"0\", \"TOKEN\": \"secret\"}');"
        "INSERT INTO rocpd_info_thread{} VALUES (" +
        p + ", " + p +
        ");"
        "INSERT INTO rocpd_info_agent{} VALUES (1, " +
        p + ", 'CPU', 0, 'EPYC'), (11, " + p + ", 'GPU', 0, 'AMD Instinct MI300X'), (12, " + p +
        ", 'GPU', 1, 'AMD Instinct MI300X');"
        "INSERT INTO rocpd_track{} VALUES (1, " +
        p + ", " + p + ", " + a + ", 1, 1), (2, " + p + ", " + p + ", " + a + ", 1, 2);");
    int64_t next = 1;
    const auto event = [&](int category, int64_t correlation, const std::string& message) {
        run("INSERT INTO rocpd_event{} VALUES (" + std::to_string(next) + ", " + std::to_string(category) + ", " +
            std::to_string(correlation) + ", '" + message + "')");
        return std::to_string(next++);
    };
    const auto where = [&](int stream, int64_t startNs, int64_t endNs) {
        const std::string start = std::to_string(startNs), end = std::to_string(endNs), s = std::to_string(stream);
        if (!apart) return p + ", " + p + ", " + a + ", 1, " + s + ", " + start + ", " + end;
        const std::string id = std::to_string(2 * next);
        run("INSERT INTO rocpd_timestamp{} VALUES (" + id + ", " + start + "), (" + id + " + 1, " + end + ")");
        return s + ", " + id + ", " + id + " + 1";
    };
    const auto region = [&](int name, int category, int64_t startNs, int64_t endNs, int64_t correlation,
                            const std::string& message = "{}") {
        const std::string at = where(1, startNs, endNs), id = event(category, correlation, message);
        run("INSERT INTO rocpd_region{} VALUES (" + at + ", " + std::to_string(name) + ", " + id + ")");
        return id;
    };
    const auto kernel = [&](int name, int stream, int64_t startNs, int64_t endNs, int64_t correlation) {
        const std::string at = where(stream, startNs, endNs), id = event(8, correlation, "{}");
        run("INSERT INTO rocpd_kernel_dispatch{} VALUES (" + at + ", " + std::to_string(name) + ", " + id +
            ", 1000, 2, 1, 256, 1, 1)");
    };
    kernel(7, 1, 2000 + lateNs, 5000 + lateNs, 21);
    kernel(8, 2, 6000 + lateNs, 9000, 22);
    region(4, 1, 1000, 1100, 21);
    region(4, 1, 1210, 1290, 22);
    region(7, 1, 1300, 1350, 23);
    const std::string collective = region(5, 2, 1200, 1295, 24);
    run("INSERT INTO rocpd_arg{} VALUES (" + collective + ", 'count', '1024'), (" + collective + ", 'datatype', '7')");
    region(6, 3, 900, 9500, 30, "{\"message\": \"step 0\"}");
    const std::string copied = where(1, 1400, 1800), copy = event(8, 23, "{}");
    run("INSERT INTO rocpd_memory_copy{} VALUES (" + copied + ", 1, " + a + ", 4096, " + copy + ")");
    where(1, 950, 950);
    const std::string time = apart ? std::to_string(2 * next) : "950";
    run("INSERT INTO rocpd_sample{} VALUES (1, " + time + ", NULL, " + event(3, 31, "{\"message\": \"here\"}") + ")");
}

}  // namespace rankscope::tests
