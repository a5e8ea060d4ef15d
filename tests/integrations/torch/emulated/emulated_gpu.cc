// Gives a PyTorch for CPUs the emulated GPU as its device "cuda:0": streams, events, memory, and the few operators by
// which the backend makes copies. So what the backend does there really runs, and in the order of the emulated streams.
#include <ATen/ATen.h>
#include <ATen/native/TensorShape.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

namespace {

const c10::Device kGpu(c10::kCUDA, 0);

void must(cudaError_t result) {
  TORCH_CHECK(result == cudaSuccess, "the emulated CUDA says ", static_cast<int>(result));
}

// What is shared by all threads: the streams by their numbers (0 is CUDA's own), and for which memory the backend has
// said that a stream uses it.
struct Shared {
  std::mutex mutex;  // guards what follows
  std::deque<cudaStream_t> streams{nullptr};
  std::set<std::pair<const void*, c10::StreamId>> kept;
};

Shared& shared() {
  static auto* const all = new Shared;  // streams end with the process
  return *all;
}

thread_local c10::StreamId current = 0;

c10::Stream streamOf(c10::StreamId id) { return c10::Stream(c10::Stream::UNSAFE, kGpu, id); }

c10::Stream newStream() {
  cudaStream_t stream = nullptr;
  must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const std::lock_guard lock(shared().mutex);
  shared().streams.push_back(stream);
  return streamOf(static_cast<c10::StreamId>(shared().streams.size() - 1));
}

cudaStream_t handleOf(c10::StreamId id) {
  const std::lock_guard lock(shared().mutex);
  return shared().streams.at(static_cast<size_t>(id));
}

struct Guard final : c10::impl::DeviceGuardImplInterface {
  static constexpr c10::DeviceType static_type = c10::kCUDA;
  explicit Guard(c10::DeviceType = c10::kCUDA) {}

  c10::DeviceType type() const override { return c10::kCUDA; }
  c10::Device exchangeDevice(c10::Device) const override { return kGpu; }
  c10::Device getDevice() const override { return kGpu; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }

  c10::Stream getStream(c10::Device) const override { return streamOf(current); }
  c10::Stream getDefaultStream(c10::Device) const override { return streamOf(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device, bool) const override { return newStream(); }
  c10::Stream exchangeStream(c10::Stream stream) const override {
    return streamOf(std::exchange(current, stream.id()));
  }
  void* getStreamNativeHandle(const c10::Stream stream) const override { return handleOf(stream.id()); }
  bool queryStream(const c10::Stream& stream) const override {
    return cudaStreamQuery(handleOf(stream.id())) == cudaSuccess;
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    must(cudaStreamSynchronize(handleOf(stream.id())));
  }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    auto handle = static_cast<cudaEvent_t>(*event);
    if (!handle) must(cudaEventCreateWithFlags(&handle, cudaEventDisableTiming));
    *event = handle;
    must(cudaEventRecord(handle, handleOf(stream.id())));
  }
  void block(void* event, const c10::Stream& stream) const override {
    must(cudaStreamWaitEvent(handleOf(stream.id()), static_cast<cudaEvent_t>(event)));
  }
  bool queryEvent(void* event) const override { return cudaEventQuery(static_cast<cudaEvent_t>(event)) == cudaSuccess; }
  void synchronizeEvent(void* event) const override { must(cudaEventSynchronize(static_cast<cudaEvent_t>(event))); }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override {
    cudaEventDestroy(static_cast<cudaEvent_t>(event));
  }

  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    const std::lock_guard lock(shared().mutex);
    shared().kept.emplace(data.get(), stream.id());
  }
};

C10_REGISTER_GUARD_IMPL(CUDA, Guard)

// ---- Tensors -----------------------------------------------------------------------------------------------------

at::Tensor make(at::IntArrayRef sizes, at::IntArrayRef strides, at::ScalarType type) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) last += (sizes[i] - 1) * strides[i];
  const size_t bytes = (static_cast<size_t>(last) + 1) * c10::elementSize(type);
  void* memory = nullptr;
  must(cudaMalloc(&memory, std::max<size_t>(bytes, 1)));
  // Never freed: the allocator of PyTorch would keep it until the streams that it was told of have gone on.
  const c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(memory, kGpu), nullptr, false);
  auto tensor = at::detail::make_tensor<c10::TensorImpl>(
      c10::Storage(storage), c10::DispatchKeySet(c10::DispatchKey::CUDA), c10::scalarTypeToTypeMeta(type));
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(sizes, strides);
  return tensor;
}

std::vector<int64_t> contiguous(at::IntArrayRef sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t next = 1;
  for (size_t i = sizes.size(); i-- > 0; next *= sizes[i]) strides[i] = next;
  return strides;
}

at::Tensor empty(c10::SymIntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat>) {
  const auto wanted = C10_AS_INTARRAYREF_SLOW(sizes);
  return make(wanted, contiguous(wanted), type.value_or(at::kFloat));
}

at::Tensor emptyStrided(c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides, std::optional<at::ScalarType> type,
                        std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return make(C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides), type.value_or(at::kFloat));
}

at::Tensor asStrided(const at::Tensor& self, c10::SymIntArrayRef sizes, c10::SymIntArrayRef strides,
                     std::optional<c10::SymInt> offset) {
  return at::native::as_strided_tensorimpl(self, C10_AS_INTARRAYREF_SLOW(sizes), C10_AS_INTARRAYREF_SLOW(strides),
                                           offset ? std::optional(offset->expect_int()) : std::nullopt);
}

at::Tensor view(const at::Tensor& self, c10::SymIntArrayRef sizes) {
  return at::native::view(self, C10_AS_INTARRAYREF_SLOW(sizes));
}

// The emulated GPU's memory is the host's, too.
at::Tensor seenByHost(const at::Tensor& tensor) {
  return tensor.is_cpu()
             ? tensor
             : at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), at::dtype(tensor.dtype()));
}

// On the current stream.
at::Tensor& copy(at::Tensor& self, const at::Tensor& from, bool) {
  auto* const work = new std::function<void()>(
      [to = seenByHost(self), given = seenByHost(from), keeps = std::pair(self, from)]() mutable { to.copy_(given); });
  must(cudaLaunchHostFunc(
      handleOf(current),
      [](void* what) {
        const std::unique_ptr<std::function<void()>> todo(static_cast<std::function<void()>*>(what));
        (*todo)();
      },
      work));
  return self;
}

TORCH_LIBRARY_IMPL(aten, CUDA, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &emptyStrided);
  library.impl("as_strided", &asStrided);
  library.impl("view", &view);
  library.impl("copy_", &copy);
}

// ---- What tests ask for ------------------------------------------------------------------------------------------

at::Tensor onGpu(const at::Tensor& tensor) {
  auto made = make(tensor.sizes(), contiguous(tensor.sizes()), tensor.scalar_type());
  seenByHost(made).copy_(tensor);
  return made;
}

// Once the current stream has done what it was given.
at::Tensor onHost(const at::Tensor& tensor) {
  must(cudaStreamSynchronize(handleOf(current)));
  return seenByHost(tensor).clone();
}

struct Gate {
  std::mutex mutex;  // guards what follows
  std::condition_variable opened;
  bool open = false;
};

// The current stream goes no further before the gate is open.
std::shared_ptr<Gate> closeGate() {
  const auto gate = std::make_shared<Gate>();
  must(cudaLaunchHostFunc(
      handleOf(current),
      [](void* what) {
        const std::unique_ptr<std::shared_ptr<Gate>> held(static_cast<std::shared_ptr<Gate>*>(what));
        std::unique_lock lock((*held)->mutex);
        (*held)->opened.wait(lock, [&] { return (*held)->open; });
      },
      new std::shared_ptr<Gate>(gate)));
  return gate;
}

void openGate(Gate& gate) {
  const std::lock_guard lock(gate.mutex);
  gate.open = true;
  gate.opened.notify_all();
}

// By other streams than the current one.
bool isKept(const at::Tensor& tensor) {
  const std::lock_guard lock(shared().mutex);
  for (const auto& [memory, stream] : shared().kept)
    if (memory == tensor.storage().data_ptr().get() && stream != current) return true;
  return false;
}

}  // namespace

PYBIND11_MODULE(emulated_gpu, module) {
  pybind11::class_<Gate, std::shared_ptr<Gate>>(module, "Gate").def("open", &openGate);
  const pybind11::call_guard<pybind11::gil_scoped_release> released;
  module.def("on_gpu", &onGpu, released);
  module.def("on_host", &onHost, released);
  module.def("close_gate", &closeGate);
  module.def("is_kept", &isKept);
  module.def("use_new_stream", [] { current = newStream().id(); });
}
