// SPDX-License-Identifier: Apache-2.0
// Where a rank's kernels are cut into steps that nobody named.
#include <gtest/gtest.h>

#include <algorithm>

#include "collector/ingest/period_cuts.h"
#include "collector/ingest/update_cuts.h"

namespace rankscope::collector {
namespace {

constexpr const char* kUpdate = "multi_tensor_apply_kernel<TensorListMetadata<2>, BinaryOpListAlphaFunctor<float>>";
constexpr const char* kClip = "multi_tensor_apply_kernel<TensorListMetadata<1>, LpNormFunctor<float>>";
constexpr const char* kLayerCopy = "multi_tensor_apply_kernel<TensorListMetadata<2>, CopyFunctor<float>>";

/// A rank's program: each kernel takes 10 us and is launched 1 us after the one before.
struct Program {
    RankRecording recording;
    std::vector<size_t> marks;  ///< kernels that there were when a step ended

    void run(const std::string& name, int times = 1, bool communicates = false) {
        if (recording.streams.empty()) recording.streams.emplace_back();
        for (int i = 0; i < times; ++i) {
            store::Kernel kernel;
            kernel.nameId = recording.strings.intern(name);
            kernel.startNs = static_cast<int64_t>(recording.kernels.size()) * 1'000;
            kernel.durNs = 10'000;
            if (communicates) kernel.nccl = store::NcclKernel::byCall;
            recording.kernels.push_back(kernel);
        }
    }
    void forward(int layers) {
        run("embedding");
        for (int i = 0; i < layers; ++i) {
            run("gemm_tn");
            run("gelu");
        }
        run("loss");
    }
    /// Equal layers, and a reduction behind each.
    void backward(int layers, bool reduces = true) {
        run("loss_backward");
        for (int i = 0; i < layers; ++i) {
            run("gelu_backward");
            run("gemm_nn");
            run("gemm_nt");
            if (reduces) run("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1, true);
        }
    }
    void setUp() {
        run("fill", 20);
        run("ncclDevKernel_Broadcast_RING_LL", 3, true);
    }
    void endStep() { marks.push_back(recording.kernels.size()); }

    Cuts byUpdates() const { return cutsByUpdates(recording, kernelsInLaunchOrder(recording)); }
    Cuts byPeriod() const { return cutsByPeriod(kernelsInLaunchOrder(recording)); }
};

Cuts from(size_t first, std::vector<size_t> marks) {
    marks.insert(marks.begin(), first);
    return marks;
}

TEST(StepCuts, EqualLayersWithAReductionEachAreOneStep) {
    Program program;
    program.setUp();
    for (int step = 0; step < 8; ++step) {
        program.forward(12);
        program.backward(12);
        program.run(kUpdate, 2);
        program.endStep();
    }
    EXPECT_EQ(program.byUpdates(), from(23, program.marks));
    EXPECT_EQ(program.byPeriod().size(), 9u);
}

TEST(StepCuts, MicroBatchesAreNoSteps) {
    Program program;
    program.setUp();
    for (int step = 0; step < 5; ++step) {
        for (int microBatch = 0; microBatch < 4; ++microBatch) {
            program.forward(6);
            program.backward(6, microBatch == 3);
        }
        program.run(kUpdate, 2);
        program.endStep();
    }
    EXPECT_EQ(program.byUpdates(), from(23, program.marks));
}

TEST(StepCuts, AValidationPassBehindEachThirdStepIsOfTheNextStep) {
    Program program;
    program.setUp();
    for (int step = 0; step < 9; ++step) {
        program.forward(4);
        program.backward(4);
        program.run(kUpdate, 2);
        program.endStep();
        if (step % 3 == 2 && step < 8) program.forward(4), program.forward(4), program.run("argmax");
    }
    EXPECT_EQ(program.byUpdates(), from(23, program.marks));
}

TEST(StepCuts, TwoOptimizersThatTakeTurnsEndOneStep) {
    Program program;
    program.setUp();
    for (int step = 0; step < 6; ++step) {
        program.forward(8);
        program.backward(8);
        program.run(kUpdate, 2);
        program.run("discriminator_head", 12);
        program.backward(2);
        program.run(kUpdate, 2);
        program.endStep();
    }
    EXPECT_EQ(program.byUpdates().size(), 7u);
    EXPECT_EQ(program.byUpdates().back(), program.marks.back());
}

TEST(StepCuts, ClippingBeforeTheUpdateOfATinyModelIsOfTheSameStep) {
    Program program;
    program.setUp();
    for (int step = 0; step < 6; ++step) {
        program.forward(2);
        program.backward(2);
        program.run(kClip);
        program.run("scale", 6);
        program.run(kUpdate, 2);
        program.endStep();
    }
    EXPECT_EQ(program.byUpdates(), from(23, program.marks));
}

TEST(StepCuts, CopiesOfALayersParametersAreNoUpdates) {
    EXPECT_FALSE(isUpdateKernelName(kLayerCopy));
    Program program;
    program.setUp();
    for (int step = 0; step < 6; ++step) {
        for (int layer = 0; layer < 6; ++layer) program.run(kLayerCopy), program.forward(1);
        for (int layer = 0; layer < 6; ++layer) program.run(kLayerCopy), program.backward(1);
        program.run(kUpdate, 2);
        program.endStep();
    }
    EXPECT_EQ(program.byUpdates(), from(23, program.marks));
}

TEST(StepCuts, WhatOfAnUpdateIsNotNamedLikeOneIsOfItsStep) {
    Program program;
    program.setUp();
    for (int step = 0; step < 6; ++step) {
        program.forward(4);
        program.backward(4);
        program.run(kUpdate);  // gradients are scaled back
        program.run("add", step == 0 ? 5 : 8);
        program.endStep();
    }
    EXPECT_EQ(program.byUpdates(), from(23, program.marks));
}

TEST(StepCuts, ParametersGatheredBehindTheUpdateAreOfItsStepAndThoseInFrontOfForwardAreNot) {
    Program zero1, sharded;
    for (Program* program : {&zero1, &sharded}) program->setUp();
    for (int step = 0; step < 6; ++step) {
        sharded.run("ncclDevKernel_AllGather_RING_LL", 2, true);
        for (Program* program : {&zero1, &sharded}) program->forward(4);
        sharded.run("ncclDevKernel_AllGather_RING_LL", 2, true);
        for (Program* program : {&zero1, &sharded}) {
            program->backward(4);
            program->run(kUpdate, 2);
        }
        zero1.run("ncclDevKernel_AllGather_RING_LL", 2, true);
        for (Program* program : {&zero1, &sharded}) program->endStep();
    }
    EXPECT_EQ(zero1.byUpdates(), from(23, zero1.marks));
    EXPECT_EQ(sharded.byUpdates(), from(23, sharded.marks));
}

TEST(StepCuts, ARecordingThatBeginsInsideAStepBeginsWithTheNext) {
    Program program;
    program.backward(3);
    program.run(kUpdate, 2);
    program.endStep();
    for (int step = 0; step < 5; ++step) {
        program.forward(4);
        program.backward(4);
        program.run(kUpdate, 2);
        program.endStep();
    }
    EXPECT_EQ(program.byUpdates(), program.marks);
}

TEST(StepCuts, UpdatesBetweenLayersOfTheBackwardPassAreNoSteps) {
    Program program;
    program.setUp();
    for (int step = 0; step < 6; ++step) {
        program.forward(6);
        for (int layer = 0; layer < 6; ++layer) program.backward(1), program.run(kUpdate);
        program.endStep();
    }
    EXPECT_TRUE(program.byUpdates().empty());
    const Cuts cuts = program.byPeriod();
    ASSERT_EQ(cuts.size(), 7u);
    EXPECT_EQ(cuts[1] - cuts[0], program.marks[1] - program.marks[0]);
}

TEST(StepCuts, RangesOfTheOptimizerAreSurerThanNames) {
    Program program;
    for (int step = 0; step < 5; ++step) {
        for (int microBatch = 0; microBatch < 2; ++microBatch) {
            program.forward(4);
            program.run("adam_like_activation");
            program.backward(4);
        }
        store::NvtxRange range;
        range.kind = store::NvtxKind::pushPop;
        range.nameId = program.recording.strings.intern("Optimizer.step#Muon.step");
        range.startNs = static_cast<int64_t>(program.recording.kernels.size()) * 1'000 - 500;
        range.durNs = 3'000;
        program.run("newton_schulz", 3);
        program.endStep();
        program.recording.nvtx.push_back(range);
    }
    EXPECT_EQ(program.byUpdates(), from(0, program.marks));
}

TEST(StepCuts, WithoutAnUpdateThePeriodOfAllKernelsIsTheStep) {
    Program program;
    program.setUp();
    for (int step = 0; step < 6; ++step) {
        for (int microBatch = 0; microBatch < 3; ++microBatch) {
            program.forward(4);
            program.backward(4);
        }
        program.run("p_minus_lr_g", 8);
        program.endStep();
    }
    EXPECT_TRUE(program.byUpdates().empty());
    EXPECT_EQ(program.byPeriod(), from(23, program.marks));
}

TEST(StepCuts, KernelsThatOnlyRepeatThemselvesOrNothingAreNoPeriod) {
    Program equal;
    equal.run("gemm_tn", 50);
    EXPECT_TRUE(equal.byPeriod().empty());
    Program different;
    for (int step = 0; step < 6; ++step) {
        different.forward(2 + step * step);
        different.backward(2 + step * step);
    }
    EXPECT_TRUE(different.byPeriod().empty());
    EXPECT_TRUE(Program().byPeriod().empty());
    EXPECT_TRUE(Program().byUpdates().empty());
}

TEST(StepCuts, PiecesThatHoldTheWholeProgramAreAlikeAndLayersAreNot) {
    Program program;
    Cuts steps{0}, layers{0};
    for (int step = 0; step < 6; ++step) {
        program.forward(6);
        for (int layer = 0; layer < 6; ++layer) {
            program.backward(1);
            layers.push_back(program.recording.kernels.size());
        }
        steps.push_back(program.recording.kernels.size());
    }
    const KernelSequence kernels = kernelsInLaunchOrder(program.recording);
    EXPECT_EQ(alikeShare(kernels, steps), 1);
    EXPECT_LT(alikeShare(kernels, layers), kAlike);
    EXPECT_EQ(alikeShare(kernels, {0, kernels.size()}), 0);
}

TEST(StepCuts, NamesOfUpdatesAreTakenFromTheLibraries) {
    for (const char* name :
         {kUpdate,
          "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_32FusedOptimizerTensorListMetadataILi4EEE",
          "triton_for_fused_1", "void kOptimizer32bit2State<float, 0>(float*)", "adam_cuda_kernel"})
        EXPECT_TRUE(isUpdateKernelName(name)) << name;
    for (const char* name : {"ampere_sgemm_128x128_tn", "vectorized_elementwise_kernel<4, lambda>",
                             "triton_poi_fused_add", "multi_tensor_copy_kernel<multi_tensor_apply>"})
        EXPECT_FALSE(isUpdateKernelName(name)) << name;
}

}  // namespace
}  // namespace rankscope::collector
