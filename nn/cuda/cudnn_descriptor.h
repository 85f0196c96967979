// nn/cuda/cudnn_descriptor.h: an owner for cuDNN's backend descriptors, of which its graphs,
// engines and plans are made.
#pragma once

#include <cudnn.h>
#include <kj/array.h>
#include <kj/string.h>

namespace nn::cuda {

// Returns cuDNN's message about `status` in this thread, with the failed request. Null on success.
kj::Maybe<kj::String> refusal(cudnnStatus_t status, kj::StringPtr what);

class Descriptor;

// The backend's constant for an attribute of type T.
template <typename T>
constexpr cudnnBackendAttributeType_t CUDNN_TYPE_OF = CUDNN_TYPE_BACKEND_DESCRIPTOR;
template <>
constexpr inline auto CUDNN_TYPE_OF<int64_t> = CUDNN_TYPE_INT64;
template <>
constexpr inline auto CUDNN_TYPE_OF<float> = CUDNN_TYPE_FLOAT;
template <>
constexpr inline auto CUDNN_TYPE_OF<char> = CUDNN_TYPE_CHAR;
template <>
constexpr inline auto CUDNN_TYPE_OF<void*> = CUDNN_TYPE_VOID_PTR;
template <>
constexpr inline auto CUDNN_TYPE_OF<cudnnHandle_t> = CUDNN_TYPE_HANDLE;
template <>
constexpr inline auto CUDNN_TYPE_OF<cudnnDataType_t> = CUDNN_TYPE_DATA_TYPE;
template <>
constexpr inline auto CUDNN_TYPE_OF<cudnnConvolutionMode_t> = CUDNN_TYPE_CONVOLUTION_MODE;
template <>
constexpr inline auto CUDNN_TYPE_OF<cudnnBackendHeurMode_t> = CUDNN_TYPE_HEUR_MODE;
template <>
constexpr inline auto CUDNN_TYPE_OF<cudnnBackendKnobType_t> = CUDNN_TYPE_KNOB_TYPE;
template <>
constexpr inline auto CUDNN_TYPE_OF<cudnnBackendNumericalNote_t> = CUDNN_TYPE_NUMERICAL_NOTE;
template <>
constexpr inline auto CUDNN_TYPE_OF<cudnnBackendBehaviorNote_t> = CUDNN_TYPE_BEHAVIOR_NOTE;

// The caller sets attributes and finalizes the descriptor. After that the attributes can be read,
// and the descriptor can become an attribute of another descriptor, which keeps what it needs.
// Functions throw cuDNN's reason if it refuses, except where a comment says otherwise. One thread
// at a time.
class Descriptor {
public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept: descriptor(other.descriptor) {
    other.descriptor = nullptr;
  }
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() noexcept;
  KJ_DISALLOW_COPY(Descriptor);

  template <typename T>
  void set(cudnnBackendAttributeName_t attribute, kj::ArrayPtr<const T> values) {
    setRaw(attribute, CUDNN_TYPE_OF<T>, values.size(), values.begin());
  }
  template <typename T>
  void set(cudnnBackendAttributeName_t attribute, T value) {
    setRaw(attribute, CUDNN_TYPE_OF<T>, 1, &value);
  }
  void set(cudnnBackendAttributeName_t attribute, const Descriptor& value) {
    setRaw(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor);
  }
  void set(cudnnBackendAttributeName_t attribute, kj::ArrayPtr<const Descriptor> values);

  void finalize();
  kj::Maybe<kj::String> tryToFinalize();  // returns cuDNN's reason if it refuses, else null

  template <typename T>
  T get(cudnnBackendAttributeName_t attribute) const {
    T value;
    int64_t count = 0;
    getRaw(attribute, CUDNN_TYPE_OF<T>, 1, count, &value);
    return value;
  }
  template <typename T>
  kj::Array<T> getAll(cudnnBackendAttributeName_t attribute) const {
    auto values = kj::heapArray<T>(count(attribute, CUDNN_TYPE_OF<T>));
    int64_t got = 0;
    getRaw(attribute, CUDNN_TYPE_OF<T>, values.size(), got, values.begin());
    return kj::heapArray<T>(values.slice(0, got));
  }
  // Returns at most `room` attributes that are descriptors of `type`. For some attributes cuDNN
  // does not say how many there are.
  kj::Array<Descriptor> getAll(
      cudnnBackendAttributeName_t attribute, cudnnBackendDescriptorType_t type, size_t room) const;

  cudnnBackendDescriptor_t raw() const { return descriptor; }

  // Returns the largest possible number of values.
  int64_t count(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type) const;

private:
  void setRaw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type,
      int64_t count, const void* values);
  void getRaw(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, int64_t room,
      int64_t& count, void* values) const;

  cudnnBackendDescriptor_t descriptor = nullptr;
};

}  // namespace nn::cuda
