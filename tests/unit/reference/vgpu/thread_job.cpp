// SPDX-License-Identifier: Apache-2.0
// Programs whose host threads work together as those of training frameworks do, one process per rank, forked here.
// Nothing in them knows of virtual GPUs. Usage: vgpu_threads MODE RANKS. With VGPU_DISTURB=1 threads are held up in
// real time, at random.
//   autograd    a worker takes tasks from a queue and fulfils a future; the main thread waits for it in each step
//   watchdog    training beside a thread that wakes up every millisecond and queries all events
//   pool        three workers with one queue; who takes which task decides when it runs
//   mutex       three threads that synchronise with the device while they hold one mutex
//   join        threads that are made for a task and joined
//   comms       two threads with a communicator and a stream each, which share the links
//   semaphore   two threads that take turns by semaphores and meet at a barrier
//   process     batches from a forked process, through a pipe and a pair of sockets; loading one takes a millisecond
//   started     the same by a program that is started for it
//   loaders     batches from two forked processes that write into one pipe
//   late        batches from a process that works so long, in real time, that a wait for one would be over
//   ends        processes that take one and two milliseconds, whose ends are waited for: as Python does, and by waitpid
//   connections a thread that takes numbers of batches from a queue in shared memory and fetches each from who loaded
//               it, by a connection, while the main thread works with the same pool
//   eventfd     a thread that is told by an eventfd, through poll()
//   looking     a thread that polls what another one reads in two parts, again and again until it has
//   timeout     waits that end by themselves after a millisecond, and sleeps
//   deadlock    rank 1 waits for a signal that nobody gives, the others for their sum with it
//   answer      rank 1 waits a second for what a program writes that has no clock, the others for their sum with it
//   polling     a thread that queries an event until it is done, while the main thread joins it
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                              \
    do {                                                                         \
        const int status = static_cast<int>(call);                               \
        if (status != 0) {                                                       \
            std::fprintf(stderr, "line %d: %s = %d\n", __LINE__, #call, status); \
            std::_Exit(2);                                                       \
        }                                                                        \
    } while (0)

namespace {

using namespace std::chrono_literals;

constexpr int kSteps = 6;
constexpr size_t kBytes = 1 << 24;
bool g_disturb = false;

/// Holds the thread up in real time only.
void disturb() {
    thread_local unsigned state = static_cast<unsigned>(getpid() * 31 + gettid());
    if (!g_disturb || rand_r(&state) % 3) return;
    const timespec pause{0, rand_r(&state) % 3'000'000};
    syscall(SYS_nanosleep, &pause, nullptr);
}

struct Gpu {
    int rank = 0, size = 1;
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    char* data = nullptr;

    Gpu(int ownRank, int ranks, const ncclUniqueId& id) : rank(ownRank), size(ranks) {
        CHECK(cudaSetDevice(0));
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        CHECK(cudaMalloc(reinterpret_cast<void**>(&data), kBytes));
        CHECK(ncclCommInitRank(&comm, size, id, rank));
    }
    void work(size_t kib) {
        disturb();
        CHECK(cudaMemsetAsync(data, 0, kib << 10, stream));
    }
    void sum(size_t kib) {
        disturb();
        CHECK(ncclAllReduce(data, data, (kib << 10) / sizeof(float), ncclFloat, ncclSum, comm, stream));
    }
    void wait() { CHECK(cudaStreamSynchronize(stream)); }
    void close() {
        CHECK(ncclCommDestroy(comm));
        CHECK(cudaDeviceSynchronize());
    }
};

/// Tasks for threads: the usual queue of a mutex and a condition variable.
class TaskQueue {
  public:
    void push(std::function<void()> task) {
        {
            const std::lock_guard guard(m_mutex);
            m_tasks.push_back(std::move(task));
        }
        disturb();
        m_comes.notify_one();
    }
    void serve() {
        for (;;) {
            std::unique_lock lock(m_mutex);
            m_comes.wait(lock, [this] { return !m_tasks.empty(); });
            const std::function<void()> task = std::move(m_tasks.front());
            m_tasks.pop_front();
            lock.unlock();
            disturb();
            if (!task) return;
            task();
        }
    }

  private:
    std::mutex m_mutex;
    std::condition_variable m_comes;
    std::deque<std::function<void()>> m_tasks;
};

void autograd(Gpu& gpu) {
    TaskQueue queue;
    std::thread worker([&] { queue.serve(); });
    for (int step = 0; step < kSteps; step++) {
        gpu.work(2000 + 100 * static_cast<size_t>(gpu.rank));
        std::promise<int> done;
        queue.push([&] {
            for (size_t layer = 0; layer < 4; layer++) {
                gpu.work(3000);
                gpu.sum(512);
            }
            done.set_value(1);
        });
        disturb();
        done.get_future().get();
        gpu.work(500);
        gpu.wait();
    }
    queue.push({});
    worker.join();
}

void watchdog(Gpu& gpu) {
    std::mutex mutex;
    std::condition_variable ends;
    bool isOver = false;
    std::vector<cudaEvent_t> events;
    std::thread dog([&] {
        CHECK(cudaSetDevice(0));
        for (std::unique_lock lock(mutex); !ends.wait_for(lock, 1ms, [&] { return isOver; });)
            for (cudaEvent_t event : events) {
                const cudaError_t state = cudaEventQuery(event);
                if (state != cudaSuccess && state != cudaErrorNotReady) std::_Exit(3);
            }
    });
    for (int step = 0; step < kSteps; step++) {
        gpu.work(4000 + 300 * static_cast<size_t>(gpu.rank));
        gpu.sum(1024);
        cudaEvent_t event;
        CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        CHECK(cudaEventRecord(event, gpu.stream));
        {
            const std::lock_guard guard(mutex);
            events.push_back(event);
        }
        disturb();
        gpu.wait();
    }
    {
        const std::lock_guard guard(mutex);
        isOver = true;
    }
    ends.notify_all();
    dog.join();
}

void pool(Gpu& gpu) {
    TaskQueue queue;
    std::vector<std::thread> workers;
    std::vector<cudaStream_t> streams(12);
    for (cudaStream_t& stream : streams) CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int worker = 0; worker < 3; worker++) workers.emplace_back([&] { queue.serve(); });
    for (int step = 0; step < kSteps; step++) {
        std::mutex mutex;
        std::condition_variable done;
        size_t left = streams.size();
        for (size_t task = 0; task < streams.size(); task++) {
            gpu.work(10);
            queue.push([&, task] {
                CHECK(cudaMemsetAsync(gpu.data, 0, (100 + 37 * (task % 5)) << 10, streams[task]));
                CHECK(cudaStreamSynchronize(streams[task]));
                CHECK(cudaMemsetAsync(gpu.data, 0, 50 << 10, streams[task]));
                const std::lock_guard guard(mutex);
                if (--left == 0) done.notify_one();
            });
        }
        {
            std::unique_lock lock(mutex);
            done.wait(lock, [&] { return left == 0; });
        }
        gpu.sum(256);
        gpu.wait();
    }
    for (size_t worker = 0; worker < workers.size(); worker++) queue.push({});
    for (std::thread& worker : workers) worker.join();
}

void mutex(Gpu& gpu) {
    std::mutex one;
    std::vector<std::thread> threads;
    for (size_t number = 0; number < 3; number++) {
        threads.emplace_back([&, number] {
            cudaStream_t stream;
            {
                const std::lock_guard guard(one);
                CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            }
            for (int step = 0; step < kSteps; step++) {
                CHECK(cudaMemsetAsync(gpu.data, 0, (100 + 50 * number) << 10, stream));
                CHECK(cudaStreamSynchronize(stream));
                disturb();
                const std::lock_guard guard(one);
                CHECK(cudaMemsetAsync(gpu.data, 0, 70 << 10, stream));
                disturb();
                CHECK(cudaStreamSynchronize(stream));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    gpu.sum(256);
    gpu.wait();
}

void join(Gpu& gpu) {
    for (int step = 0; step < kSteps; step++) {
        std::thread task([&] {
            disturb();
            gpu.work(1000 + 200 * static_cast<size_t>(gpu.rank));
            gpu.sum(512);
            gpu.wait();
        });
        disturb();
        task.join();
        gpu.work(100);
    }
    gpu.wait();
}

void comms(Gpu& gpu) {
    ncclComm_t second;
    CHECK(ncclCommSplit(gpu.comm, 0, gpu.rank, &second, nullptr));
    std::vector<std::thread> threads;
    cudaStream_t other;
    CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    for (size_t number = 0; number < 2; number++) {
        threads.emplace_back([&, number] {
            for (int step = 0; step < kSteps; step++) {
                disturb();
                CHECK(ncclAllReduce(gpu.data, gpu.data, (1 << 20) + (number << 18), ncclFloat, ncclSum,
                                    number ? second : gpu.comm, number ? other : gpu.stream));
                disturb();
                CHECK(cudaStreamSynchronize(number ? other : gpu.stream));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(ncclCommDestroy(second));
}

void semaphore(Gpu& gpu) {
    sem_t there, back;
    pthread_barrier_t both;
    sem_init(&there, 0, 0);
    sem_init(&back, 0, 0);
    pthread_barrier_init(&both, nullptr, 2);
    std::thread other([&] {
        for (int step = 0; step < kSteps; step++) {
            sem_wait(&there);
            gpu.work(700);
            gpu.sum(256);
            disturb();
            gpu.wait();
            sem_post(&back);
            gpu.work(300);
            gpu.wait();
            disturb();
            pthread_barrier_wait(&both);
        }
    });
    for (int step = 0; step < kSteps; step++) {
        gpu.work(500 + 100 * static_cast<size_t>(gpu.rank));
        disturb();
        sem_post(&there);
        disturb();
        sem_wait(&back);
        disturb();
        pthread_barrier_wait(&both);
        gpu.work(200);
        gpu.wait();
    }
    other.join();
}

struct Batch {
    int number;
    char data[60];
};

/// Serves batches until it is told -1. Loading takes a millisecond, and the data nothing.
void load(int requests, int batches, int extraUs) {
    for (Batch batch{};
         read(requests, &batch.number, sizeof batch.number) == sizeof batch.number && batch.number >= 0;) {
        disturb();
        std::this_thread::sleep_for(std::chrono::microseconds(1000 + extraUs * batch.number));
        if (write(batches, &batch, sizeof batch) != sizeof batch) break;
    }
    _exit(0);
}

void askFor(int requests, int number) {
    CHECK(write(requests, &number, sizeof number) != sizeof number);
}

pid_t forkLoader(int requests, int batches) {
    const pid_t loader = fork();
    if (loader == 0) load(requests, batches, 0);
    return loader;
}

/// As Python starts another Python: the same program, from a child of vfork().
pid_t startLoader(int requests, int batches) {
    std::string words[] = {"/proc/self/exe", "load", std::to_string(requests), std::to_string(batches)};
    char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
    const pid_t loader = vfork();
    if (loader == 0) {
        execv(arguments[0], arguments);
        _exit(127);
    }
    return loader;
}

void takeBatches(Gpu& gpu, pid_t (*begin)(int requests, int batches)) {
    int requests[2], batches[2];
    CHECK(pipe(requests));
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, batches));
    gpu.sum(256);  // the programs that a process starts are part of the job once it has given its device work
    gpu.wait();
    const pid_t loader = begin(requests[0], batches[1]);
    for (int step = 0; step < kSteps; step++) {
        askFor(requests[1], step);
        Batch batch{};
        disturb();
        CHECK(read(batches[0], &batch, sizeof batch) != sizeof batch || batch.number != step);
        gpu.work(1000);
        gpu.sum(512);
        if (step % 2) gpu.wait();
    }
    askFor(requests[1], -1);
    waitpid(loader, nullptr, 0);
    gpu.wait();
}

void process(Gpu& gpu) {
    takeBatches(gpu, forkLoader);
}

void started(Gpu& gpu) {
    takeBatches(gpu, startLoader);
}

void loaders(Gpu& gpu) {
    int batches[2], requests[2][2];
    CHECK(pipe(batches));
    pid_t children[2];
    for (int loader = 0; loader < 2; loader++) {
        CHECK(pipe(requests[loader]));
        children[loader] = fork();
        if (children[loader] == 0) load(requests[loader][0], batches[1], loader ? 130 : 70);
    }
    for (int number = 0; number < 4; number++) askFor(requests[number % 2][1], number);
    std::vector<bool> come(kSteps + 4);
    for (int step = 0; step < kSteps; step++) {
        while (!come[static_cast<size_t>(step)]) {
            pollfd data{batches[0], POLLIN, 0};
            CHECK(poll(&data, 1, 5000) != 1);
            Batch batch{};
            CHECK(read(batches[0], &batch, sizeof batch) != sizeof batch);
            come[static_cast<size_t>(batch.number)] = true;
        }
        askFor(requests[step % 2][1], step + 4);
        gpu.work(1000 + 100 * static_cast<size_t>(gpu.rank));
        gpu.sum(512);
        gpu.wait();
    }
    for (auto& request : requests) askFor(request[1], -1);
    for (const pid_t child : children) waitpid(child, nullptr, 0);
}

void late(Gpu& gpu) {
    constexpr auto kWork = 300ms;
    constexpr int kWaitMs = 100;
    int batches[2], requests[2];
    CHECK(pipe(batches));
    CHECK(pipe(requests));
    const pid_t loader = fork();
    if (loader == 0) {
        for (int number = 0; read(requests[0], &number, sizeof number) == sizeof number && number >= 0;) {
            const auto end = std::chrono::steady_clock::now() + kWork;
            while (std::chrono::steady_clock::now() < end) {
            }
            CHECK(write(batches[1], &number, sizeof number) != sizeof number);
        }
        _exit(0);
    }
    gpu.sum(256);
    gpu.wait();
    for (int step = 0; step < 3; step++) {
        askFor(requests[1], step);
        pollfd data{batches[0], POLLIN, 0};
        CHECK(poll(&data, 1, kWaitMs) != 1);
        int number = -1;
        CHECK(read(batches[0], &number, sizeof number) != sizeof number);
        gpu.work(1000);
        gpu.sum(512);
        gpu.wait();
    }
    askFor(requests[1], -1);
    waitpid(loader, nullptr, 0);
}

/// Each step waits for the ends of two processes: of one as Python does, by a pipe that it holds open.
void ends(Gpu& gpu) {
    gpu.sum(256);
    gpu.wait();
    for (int step = 0; step < kSteps; step++) {
        int sentinels[2][2];
        pid_t children[2];
        for (int child = 0; child < 2; child++) {
            CHECK(pipe(sentinels[child]));
            children[child] = fork();
            if (children[child] == 0) {
                ::close(sentinels[child][0]);
                disturb();
                std::this_thread::sleep_for(std::chrono::microseconds(1000 * (2 - child) + 100 * gpu.rank));
                disturb();
                _exit(0);
            }
            ::close(sentinels[child][1]);
        }
        disturb();
        pollfd sentinel{sentinels[0][0], POLLIN, 0};
        CHECK(poll(&sentinel, 1, 5000) != 1);
        gpu.work(1000);
        for (const pid_t child : children) {
            disturb();
            CHECK(waitpid(child, nullptr, 0) != child);
        }
        for (const auto& ends : sentinels) ::close(ends[0]);
        gpu.sum(512);
        gpu.wait();
    }
}

/// In memory that a rank shares with its loaders.
struct SharedQueue {
    sem_t lock, filled;
    int first, count, numbers[64];

    static SharedQueue* make() {
        void* memory = mmap(nullptr, sizeof(SharedQueue), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        auto* queue = static_cast<SharedQueue*>(memory);
        CHECK(memory == MAP_FAILED);
        CHECK(sem_init(&queue->lock, 1, 1));
        CHECK(sem_init(&queue->filled, 1, 0));
        return queue;
    }
    void push(int number) {
        CHECK(sem_wait(&lock));
        disturb();
        numbers[(first + count++) % 64] = number;
        CHECK(sem_post(&lock));
        CHECK(sem_post(&filled));
    }
    int pop() {
        CHECK(sem_wait(&filled));
        CHECK(sem_wait(&lock));
        disturb();
        const int number = numbers[first++ % 64];
        count--;
        CHECK(sem_post(&lock));
        return number;
    }
};

sockaddr_un addressOf(pid_t rank, int loader, socklen_t& bytes) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const int length = std::snprintf(address.sun_path + 1, 64, "rankscope-vgpu-threads-%d-%d", rank, loader);
    bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
    return address;
}

/// Loads every second batch, and then hands each to who connects for it.
void loadAndServe(SharedQueue& queue, int listener, int loader) {
    for (int number = loader; number < kSteps; number += 2) {
        std::this_thread::sleep_for(std::chrono::microseconds(800 + 90 * loader));
        disturb();
        queue.push(number);
    }
    for (int served = loader; served < kSteps; served += 2) {
        const int connection = accept(listener, nullptr, nullptr);
        CHECK(connection < 0);
        Batch batch{};
        CHECK(read(connection, &batch.number, sizeof batch.number) != sizeof batch.number);
        disturb();
        CHECK(write(connection, &batch, sizeof batch) != sizeof batch);
        close(connection);
    }
    _exit(0);
}

void fetch(pid_t rank, int number) {
    socklen_t bytes;
    const sockaddr_un address = addressOf(rank, number % 2, bytes);
    const int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    disturb();
    CHECK(connect(connection, reinterpret_cast<const sockaddr*>(&address), bytes));
    CHECK(write(connection, &number, sizeof number) != sizeof number);
    Batch batch{};
    CHECK(read(connection, &batch, sizeof batch) != sizeof batch || batch.number != number);
    close(connection);
}

void connections(Gpu& gpu) {
    SharedQueue& queue = *SharedQueue::make();
    const pid_t rank = getpid();
    pid_t children[2];
    for (int loader = 0; loader < 2; loader++) {
        socklen_t bytes;
        const sockaddr_un address = addressOf(rank, loader, bytes);
        const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
        CHECK(bind(listener, reinterpret_cast<const sockaddr*>(&address), bytes));
        CHECK(listen(listener, 8));
        children[loader] = fork();
        if (children[loader] == 0) loadAndServe(queue, listener, loader);
    }
    std::mutex mutex;
    size_t uses = 0;  // of a pool that both threads use: what each gets depends on who was there before
    std::thread fetcher([&] {
        for (int step = 0; step < kSteps; step++) {
            fetch(rank, queue.pop());
            void* pinned;
            CHECK(cudaHostAlloc(&pinned, sizeof(Batch), cudaHostAllocDefault));
            const std::lock_guard lock(mutex);
            uses += 50;
        }
    });
    for (int step = 0; step < 20 * kSteps; step++) {
        std::this_thread::sleep_for(40us);  // all of them take as long as the loaders do
        {
            const std::lock_guard lock(mutex);
            gpu.work(100 + ++uses);
        }
        if (step % 4 == 0) gpu.wait();
    }
    gpu.sum(512);
    gpu.wait();
    fetcher.join();
    for (const pid_t child : children) waitpid(child, nullptr, 0);
}

/// As the threads of a multiprocessing.Pool: all of them under one lock, as under the interpreter's.
void looking(Gpu& gpu) {
    int requests[2], batches[2], over[2];
    CHECK(pipe(requests));
    CHECK(pipe(batches));
    CHECK(pipe(over));
    const pid_t loader = fork();
    if (loader == 0) load(requests[0], batches[1], 0);
    std::mutex interpreter;
    std::thread looker([&] {
        pollfd either[2] = {{batches[0], POLLIN, 0}, {over[0], POLLIN, 0}};
        while (!(either[1].revents & POLLIN)) {
            CHECK(poll(either, 2, -1) < 1);
            const std::lock_guard lock(interpreter);
        }
    });
    for (int step = 0; step < kSteps; step++) {
        askFor(requests[1], step);
        Batch batch{};
        char* bytes = reinterpret_cast<char*>(&batch);
        constexpr size_t kHead = sizeof(int);
        CHECK(read(batches[0], bytes, kHead) != kHead);
        {
            const std::lock_guard lock(interpreter);
            disturb();
        }
        CHECK(read(batches[0], bytes + kHead, sizeof batch - kHead) != sizeof batch - kHead || batch.number != step);
        gpu.work(1000);
        gpu.sum(512);
        if (step % 2) gpu.wait();
    }
    askFor(requests[1], -1);
    askFor(over[1], 0);
    looker.join();
    waitpid(loader, nullptr, 0);
    gpu.wait();
}

void eventfds(Gpu& gpu) {
    const int told = eventfd(0, 0), answered = eventfd(0, 0);
    std::thread other([&] {
        for (int step = 0; step < kSteps; step++) {
            pollfd one{told, POLLIN, 0};
            CHECK(poll(&one, 1, -1) != 1);
            uint64_t value = 0;
            CHECK(read(told, &value, sizeof value) != sizeof value);
            gpu.work(800);
            disturb();
            gpu.wait();
            CHECK(write(answered, &value, sizeof value) != sizeof value);
        }
    });
    for (int step = 0; step < kSteps; step++) {
        uint64_t value = 1;
        gpu.work(300);
        gpu.sum(256);
        disturb();
        CHECK(write(told, &value, sizeof value) != sizeof value);
        disturb();
        CHECK(read(answered, &value, sizeof value) != sizeof value);
        gpu.work(200);
    }
    other.join();
    gpu.wait();
}

void timeout(Gpu& gpu) {
    std::mutex mutex;
    std::condition_variable never;
    std::timed_mutex held;
    for (int step = 0; step < kSteps; step++) {
        gpu.work(500 + 50 * static_cast<size_t>(gpu.rank));
        disturb();
        {
            std::unique_lock lock(mutex);
            if (never.wait_for(lock, 1ms) != std::cv_status::timeout) std::_Exit(4);
        }
        gpu.sum(256);
        std::this_thread::sleep_for(700us);
        gpu.work(100);
        std::promise<void> unkept;
        if (unkept.get_future().wait_for(300us) != std::future_status::timeout) std::_Exit(5);
        gpu.work(100);
    }
    gpu.wait();
}

void polling(Gpu& gpu) {
    for (int step = 0; step < kSteps; step++) {
        cudaEvent_t event;
        CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
        gpu.work(2000);
        gpu.sum(512);
        CHECK(cudaEventRecord(event, gpu.stream));
        std::thread poller([&] {
            while (cudaEventQuery(event) == cudaErrorNotReady) {
            }
            gpu.work(100);
        });
        disturb();
        poller.join();
    }
    gpu.wait();
}

void deadlock(Gpu& gpu) {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    if (gpu.rank == 1) never.wait(lock);
    gpu.sum(256);
    gpu.wait();
}

void answer(Gpu& gpu) {
    if (gpu.rank == 1) {
        std::FILE* other = popen("sleep 1; echo done", "r");
        char text[8];
        CHECK(read(fileno(other), text, sizeof text) <= 0);
        pclose(other);
    }
    gpu.sum(256);
    gpu.wait();
}

const std::vector<std::pair<std::string, void (*)(Gpu&)>> kModes = {{"autograd", autograd},
                                                                    {"watchdog", watchdog},
                                                                    {"pool", pool},
                                                                    {"mutex", mutex},
                                                                    {"join", join},
                                                                    {"comms", comms},
                                                                    {"semaphore", semaphore},
                                                                    {"process", process},
                                                                    {"started", started},
                                                                    {"loaders", loaders},
                                                                    {"late", late},
                                                                    {"ends", ends},
                                                                    {"connections", connections},
                                                                    {"eventfd", eventfds},
                                                                    {"looking", looking},
                                                                    {"timeout", timeout},
                                                                    {"polling", polling},
                                                                    {"deadlock", deadlock},
                                                                    {"answer", answer}};

int runRank(const std::string& wanted, int rank, int size, const ncclUniqueId& id) {
    setenv("RANK", std::to_string(rank).c_str(), 1);
    Gpu gpu(rank, size, id);
    for (const auto& [name, run] : kModes) {
        if (name != wanted) continue;
        run(gpu);
        gpu.close();
        return 0;
    }
    return 64;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) return 64;
    if (argc == 4 && std::string(argv[1]) == "load") load(std::atoi(argv[2]), std::atoi(argv[3]), 0);
    g_disturb = std::getenv("VGPU_DISTURB") != nullptr;
    const int ranks = std::atoi(argv[2]);
    std::vector<int> pipes(static_cast<size_t>(ranks) * 2);
    for (int rank = 0; rank < ranks; rank++) CHECK(pipe(&pipes[2 * static_cast<size_t>(rank)]));
    std::vector<pid_t> children;
    for (int rank = 0; rank < ranks; rank++) {
        const pid_t child = fork();
        if (child != 0) {
            children.push_back(child);
            continue;
        }
        ncclUniqueId id;
        if (rank == 0) {
            setenv("RANK", "0", 1);
            CHECK(ncclGetUniqueId(&id));
            for (int peer = 1; peer < ranks; peer++)
                CHECK(write(pipes[2 * static_cast<size_t>(peer) + 1], &id, sizeof id) != sizeof id);
        } else {
            CHECK(read(pipes[2 * static_cast<size_t>(rank)], &id, sizeof id) != sizeof id);
        }
        return runRank(argv[1], rank, ranks, id);
    }
    int worst = 0;
    for (const pid_t child : children) {
        int status = 0;
        waitpid(child, &status, 0);
        worst = std::max(worst, WIFEXITED(status) ? WEXITSTATUS(status) : 255);
    }
    return worst;
}
