// SPDX-License-Identifier: Apache-2.0
// Lines of tuner files, right and wrong: the plugin inside the job and the command line must judge each the same.
#pragma once

namespace rankscope::test {

struct TunerLine {
    const char* line;
    bool right;
};

inline constexpr TunerLine kTunerLines[] = {
    {"allreduce,0,65536,tree,ll,-1,2,16", true},
    {"allreduce,0,65536,tree,ll,-1,2,16,-1", true},
    {"allreduce,65537,-1,ring,ll128,16,-1,-1,1,0", true},
    {" allreduce , 0 , 1024 , tree , simple , 4 , 1 , 8 \r", true},
    {"allreduce,-1,-1,collnet_direct,simple,-1,-1,-1,-1,-1", true},
    {"allreduce,0,0,collnet_chain,simple,-1,4,32,2,1", true},
    {"allreduce,0,1,nvls,simple,-1,1,8", true},
    {"allreduce,0,1,nvls_tree,simple,-1,-1,8", true},
    {"allreduce,0,1,nvls_tree,simple,-1,2,8", true},
    {"allgather,0,999999999999999999,pat,simple,64,4,4", true},
    {"reducescatter,0,1,pat,simple,1,-1,-1", true},
    {"reducescatter,0,1,nvls,simple,-1,-1,-1", true},
    {"allgather,0,1,collnet_direct,simple,-1,-1,-1", true},
    {"broadcast,0,1,ring,ll,-1,-1,-1", true},
    {"reduce,0,1,ring,simple,32,-1,2", true},
    // columns
    {"allreduce,0,65536,tree,ll,-1,2", false},
    {"allreduce,0,65536,tree,ll,-1,2,16,-1,-1,-1", false},
    {"allreduce", false},
    {"collective", false},
    {",,,,,,,", false},
    // names
    {"all_reduce,0,1,ring,ll,-1,-1,-1", false},
    {"AllReduce,0,1,ring,ll,-1,-1,-1", false},
    {"sendrecv,0,1,ring,ll,-1,-1,-1", false},
    {"allreduce,0,1,rings,ll,-1,-1,-1", false},
    {"allreduce,0,1,nvlstree,simple,-1,-1,-1", false},
    {"allreduce,0,1,-1,-1,4,-1,-1", false},
    {"allreduce,0,1,ring,LL,-1,-1,-1", false},
    {"allreduce,0,1,ring,ll64,-1,-1,-1", false},
    // numbers
    {"allreduce,2,1,ring,ll,-1,-1,-1", false},
    {"allreduce,-2,1,ring,ll,-1,-1,-1", false},
    {"allreduce,0,1k,ring,ll,-1,-1,-1", false},
    {"allreduce,0,1e6,ring,ll,-1,-1,-1", false},
    {"allreduce,+0,1,ring,ll,-1,-1,-1", false},
    {"allreduce,-0,1,ring,ll,-1,-1,-1", false},
    {"allreduce,0,1234567890123456789,ring,ll,-1,-1,-1", false},
    {"allreduce,0,,ring,ll,-1,-1,-1", false},
    {"allreduce,0,1,ring,ll,0,-1,-1", false},
    {"allreduce,0,1,ring,ll,65,-1,-1", false},
    {"allreduce,0,1,ring,ll,4294967297,-1,-1", false},
    {"allreduce,0,1,ring,ll,x,-1,-1", false},
    {"allreduce,0,1,ring,ll,-1,0,-1", false},
    {"allreduce,0,1,ring,ll,-1,-1,0", false},
    {"allreduce,0,1,ring,ll,-1,-1,1", false},
    {"allreduce,0,1,ring,ll,-1,16,8", false},
    {"allreduce,0,1,ring,ll,-1,-1,-1,0", false},
    {"allreduce,0,1,ring,ll,-1,-1,-1,-1,2", false},
    // combinations that no NCCL has
    {"broadcast,0,1,tree,simple,-1,-1,-1", false},
    {"reduce,0,1,nvls,simple,-1,-1,-1", false},
    {"broadcast,0,1,collnet_direct,simple,-1,-1,-1", false},
    {"allgather,0,1,tree,simple,-1,-1,-1", false},
    {"reducescatter,0,1,tree,ll,-1,-1,-1", false},
    {"allgather,0,1,collnet_chain,simple,-1,-1,-1", false},
    {"allgather,0,1,nvls_tree,simple,-1,2,-1", false},
    {"allreduce,0,1,pat,simple,-1,-1,-1", false},
    {"allreduce,0,1,nvls,ll,-1,-1,-1", false},
    {"allreduce,0,1,nvls_tree,ll128,-1,-1,-1", false},
    {"allgather,0,1,pat,ll128,-1,-1,-1", false},
    {"allreduce,0,1,collnet_direct,ll,-1,-1,-1", false},
    {"allreduce,0,1,nvls_tree,simple,-1,1,8", false},
    {"allreduce,0,1,nvls,simple,32,1,8", false},
    {"allreduce,0,1,collnet_chain,simple,8,-1,-1", false},
};

/// Two right lines, and whether some collective matches both.
struct TunerPair {
    const char *first, *second;
    bool overlap;
};

inline constexpr TunerPair kTunerPairs[] = {
    {"allreduce,0,1000,ring,ll,-1,-1,-1", "allreduce,1001,2000,tree,ll,-1,-1,-1", false},
    {"allreduce,0,1000,ring,ll,-1,-1,-1", "allreduce,1000,2000,tree,ll,-1,-1,-1", true},
    {"allreduce,1000,-1,ring,ll,-1,-1,-1", "allreduce,0,999,tree,ll,-1,-1,-1", false},
    {"allreduce,1000,-1,ring,ll,-1,-1,-1", "allreduce,999999999,-1,tree,ll,-1,-1,-1", true},
    {"allreduce,0,1000,ring,ll,-1,-1,-1", "allgather,0,1000,ring,ll,-1,-1,-1", false},
    {"allreduce,0,1000,ring,ll,-1,1,8", "allreduce,0,1000,tree,ll,-1,2,8", false},
    {"allreduce,0,1000,ring,ll,-1,-1,8", "allreduce,0,1000,tree,ll,-1,-1,4", false},
    {"allreduce,0,1000,ring,ll,-1,1,8", "allreduce,0,1000,tree,ll,-1,-1,-1", true},
    {"allreduce,0,1000,ring,ll,-1,1,-1", "allreduce,0,1000,tree,ll,-1,-1,8", true},
    {"allreduce,0,1000,ring,ll,-1,-1,-1,1", "allreduce,0,1000,tree,ll,-1,-1,-1,2", false},
    {"allreduce,0,1000,ring,ll,-1,-1,-1,1", "allreduce,0,1000,tree,ll,-1,-1,-1,-1,0", true},
    {"allreduce,0,1000,ring,ll,-1,-1,-1,-1,1", "allreduce,0,1000,tree,ll,-1,-1,-1,-1,0", false},
    {"allreduce,5,5,ring,ll,-1,-1,-1", "allreduce,5,5,ring,ll,-1,-1,-1", true},
};

}  // namespace rankscope::test
