// SPDX-License-Identifier: Apache-2.0
// Tests that call the virtual libraries from their own process, as a job of one rank.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

/// Tests that run at the same time are jobs of their own.
class OwnJob : public testing::Test {
  protected:
    static void SetUpTestSuite() { setenv("RANKSCOPE_VGPU_JOB", ("test-" + std::to_string(getpid())).c_str(), 1); }

    /// Device time of what `issue` puts in the default stream: that of eleven less that of one, so that what the events
    /// and the host take drops out.
    template <typename Issue>
    static double microseconds(Issue issue) {
        return (elapsed(issue, 11) - elapsed(issue, 1)) / 10;
    }

  private:
    template <typename Issue>
    static double elapsed(Issue issue, int times) {
        cudaEvent_t begin, end;
        cudaEventCreate(&begin);
        cudaEventCreate(&end);
        cudaDeviceSynchronize();
        cudaEventRecord(begin, nullptr);
        for (int i = 0; i < times; i++) issue();
        cudaEventRecord(end, nullptr);
        cudaDeviceSynchronize();
        float milliseconds = 0;
        EXPECT_EQ(cudaEventElapsedTime(&milliseconds, begin, end), cudaSuccess);
        return milliseconds * 1000.0;
    }
};
