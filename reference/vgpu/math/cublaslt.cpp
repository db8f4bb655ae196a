// SPDX-License-Identifier: Apache-2.0
// cuBLASLt: descriptors and layouts keep what they are told; a product costs what their shapes say. Numbers of
// attributes are those of NVIDIA's "cuBLAS Library User's Guide" (13.0).
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

#include "reference/vgpu/math/cublas_types.h"

using namespace rankscope::vgpu::math;

namespace {

enum LayoutAttribute : int { kLayoutType = 0, kLayoutOrder = 1, kLayoutRows = 2, kLayoutCols = 3, kLayoutBatch = 5 };
enum DescriptorAttribute : int { kComputeType = 0, kTransA = 3, kTransB = 4 };
enum Order : int32_t { kColumnMajor = 0 };

/// What was set, by attribute. Whoever reads one that was never set gets the documented default.
class Attributes {
  public:
    int set(int which, const void* value, size_t bytes) {
        if (!value || bytes == 0) return kInvalidValue;
        const auto* begin = static_cast<const char*>(value);
        m_values[which].assign(begin, begin + bytes);
        return kSuccess;
    }
    int get(int which, void* value, size_t bytes, size_t* written) const {
        const auto found = m_values.find(which);
        if (found == m_values.end()) return kNotSupported;
        if (written) *written = found->second.size();
        if (bytes == 0) return kSuccess;
        if (!value || bytes < found->second.size()) return kInvalidValue;
        std::memcpy(value, found->second.data(), found->second.size());
        return kSuccess;
    }
    template <typename Number>
    Number number(int which, Number otherwise) const {
        const auto found = m_values.find(which);
        if (found == m_values.end() || found->second.size() != sizeof(Number)) return otherwise;
        Number value;
        std::memcpy(&value, found->second.data(), sizeof value);
        return value;
    }

  private:
    std::map<int, std::vector<char>> m_values;
};

// The functions that fill a descriptor of the caller's own memory (…Init) are not ours: a handle here is a pointer.
struct Layout {
    Attributes attributes;
    double rows() const { return static_cast<double>(attributes.number<uint64_t>(kLayoutRows, 0)); }
    double cols() const { return static_cast<double>(attributes.number<uint64_t>(kLayoutCols, 0)); }
    DataType type() const { return static_cast<DataType>(attributes.number<int32_t>(kLayoutType, 0)); }
    int32_t batch() const { return attributes.number<int32_t>(kLayoutBatch, 1); }
};
struct Descriptor {
    Attributes attributes;
};
struct Preference {
    Attributes attributes;
};

/// cublasLtMatmulHeuristicResult_t.
struct Heuristic {
    uint64_t algorithm[8];
    size_t workspaceBytes;
    int state;
    float waves;
    int reserved[4];
};

MatrixProduct productOf(const Descriptor& descriptor, const Layout& a, const Layout& c, const Layout& d) {
    MatrixProduct product;
    product.transposesA = descriptor.attributes.number<int32_t>(kTransA, kPlain) != kPlain;
    product.transposesB = descriptor.attributes.number<int32_t>(kTransB, kPlain) != kPlain;
    product.m = d.rows();
    product.n = d.cols();
    product.k = product.transposesA ? a.rows() : a.cols();
    product.batch = d.batch();
    product.readsResult = &c != &d;
    const int computeType = descriptor.attributes.number<int32_t>(kComputeType, 0);
    product.arithmetic = {a.type(), d.type(), computeType == kCompute32fFastTf32};
    return product;
}

/// An algorithm is no more than a number here.
constexpr uint64_t kOnlyAlgorithm = 1;

}  // namespace

extern "C" {

int cublasLtCreate(void** handle) {
    if (!handle) return kInvalidValue;
    *handle = new char;
    return kSuccess;
}
int cublasLtDestroy(void* handle) {
    delete static_cast<char*>(handle);
    return kSuccess;
}
size_t cublasLtGetVersion() {
    return 130000;
}
size_t cublasLtGetCudartVersion() {
    return CUDART_VERSION;
}

int cublasLtMatrixLayoutCreate(Layout** layout, int type, uint64_t rows, uint64_t cols, int64_t) {
    if (!layout) return kInvalidValue;
    if (elementBytes(static_cast<DataType>(type)) == 0) return kNotSupported;
    *layout = new Layout;
    const auto type32 = static_cast<int32_t>(type);
    (*layout)->attributes.set(kLayoutType, &type32, sizeof type32);
    (*layout)->attributes.set(kLayoutRows, &rows, sizeof rows);
    (*layout)->attributes.set(kLayoutCols, &cols, sizeof cols);
    return kSuccess;
}
int cublasLtMatrixLayoutDestroy(Layout* layout) {
    delete layout;
    return kSuccess;
}
int cublasLtMatrixLayoutSetAttribute(Layout* layout, int which, const void* value, size_t bytes) {
    if (!layout) return kInvalidValue;
    if (which == kLayoutOrder && value && *static_cast<const int32_t*>(value) != kColumnMajor) return kNotSupported;
    return layout->attributes.set(which, value, bytes);
}
int cublasLtMatrixLayoutGetAttribute(const Layout* layout, int which, void* value, size_t bytes, size_t* written) {
    return layout ? layout->attributes.get(which, value, bytes, written) : kInvalidValue;
}

int cublasLtMatmulDescCreate(Descriptor** descriptor, int computeType, int) {
    if (!descriptor) return kInvalidValue;
    *descriptor = new Descriptor;
    const auto type32 = static_cast<int32_t>(computeType);
    return (*descriptor)->attributes.set(kComputeType, &type32, sizeof type32);
}
int cublasLtMatmulDescDestroy(Descriptor* descriptor) {
    delete descriptor;
    return kSuccess;
}
int cublasLtMatmulDescSetAttribute(Descriptor* descriptor, int which, const void* value, size_t bytes) {
    return descriptor ? descriptor->attributes.set(which, value, bytes) : kInvalidValue;
}
int cublasLtMatmulDescGetAttribute(const Descriptor* descriptor, int which, void* value, size_t bytes,
                                   size_t* written) {
    return descriptor ? descriptor->attributes.get(which, value, bytes, written) : kInvalidValue;
}

int cublasLtMatmulPreferenceCreate(Preference** preference) {
    if (!preference) return kInvalidValue;
    *preference = new Preference;
    return kSuccess;
}
int cublasLtMatmulPreferenceDestroy(Preference* preference) {
    delete preference;
    return kSuccess;
}
int cublasLtMatmulPreferenceSetAttribute(Preference* preference, int which, const void* value, size_t bytes) {
    return preference ? preference->attributes.set(which, value, bytes) : kInvalidValue;
}

int cublasLtMatmulAlgoGetHeuristic(void*, Descriptor* descriptor, Layout* a, Layout* b, Layout* c, Layout* d,
                                   Preference*, int asked, Heuristic results[], int* found) {
    if (!descriptor || !a || !b || !c || !d || !results || !found || asked < 1) return kInvalidValue;
    results[0] = {};
    results[0].algorithm[0] = kOnlyAlgorithm;
    results[0].waves = 1;
    *found = 1;
    return kSuccess;
}
int cublasLtMatmulAlgoInit(void*, int, int, int, int, int, int, int, uint64_t* algorithm) {
    if (!algorithm) return kInvalidValue;
    std::memset(algorithm, 0, 8 * sizeof *algorithm);
    algorithm[0] = kOnlyAlgorithm;
    return kSuccess;
}
int cublasLtMatmulAlgoCheck(void*, Descriptor* descriptor, Layout* a, Layout* b, Layout* c, Layout* d, const uint64_t*,
                            Heuristic* result) {
    int found = 0;
    return cublasLtMatmulAlgoGetHeuristic(nullptr, descriptor, a, b, c, d, nullptr, 1, result, &found);
}

int cublasLtMatmul(void*, Descriptor* descriptor, const void* alpha, const void*, Layout* a, const void*, Layout* b,
                   const void*, const void*, Layout* c, void*, Layout* d, const uint64_t*, void*, size_t,
                   cudaStream_t stream) {
    if (!descriptor || !alpha || !a || !b || !c || !d) return kInvalidValue;
    return statusOf(launch(productOf(*descriptor, *a, *c, *d), stream));
}

}  // extern "C"
