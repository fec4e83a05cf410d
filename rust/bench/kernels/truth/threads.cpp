/* Programs with threads that free each other's objects. */
#include "programs.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace truth {

namespace {

struct Message {
    uint64_t number;
    std::vector<unsigned char> body;
};

/* Messages in batches, so that the cost of the lock is small. */
using Batch = std::vector<std::unique_ptr<Message>>;

class Queue {
  public:
    void send(Batch batch) {
        std::unique_lock<std::mutex> hold(lock);
        room.wait(hold, [this] { return batches.size() < most; });
        batches.push_back(std::move(batch));
        some.notify_one();
    }

    Batch receive() {
        std::unique_lock<std::mutex> hold(lock);
        some.wait(hold, [this] { return !batches.empty(); });
        Batch first = std::move(batches.front());
        batches.erase(batches.begin());
        room.notify_one();
        return first;
    }

  private:
    static constexpr size_t most = 8;
    std::mutex lock;
    std::condition_variable room, some;
    std::vector<Batch> batches;
};

constexpr size_t batch_length = 200;

void produce(Queue &queue, size_t batches, uint64_t seed) {
    Random random(seed);
    for (size_t i = 0; i < batches; i++) {
        Batch batch;
        for (size_t n = 0; n < batch_length; n++) {
            auto message = std::make_unique<Message>();
            message->number = random.next();
            message->body.assign(16 + random.below(500), static_cast<unsigned char>(n));
            batch.push_back(std::move(message));
        }
        queue.send(std::move(batch));
    }
}

/* The sum does not depend on the order of the senders. */
uint64_t consume(Queue &queue, size_t batches) {
    uint64_t sum = 0;
    for (size_t i = 0; i < batches; i++) {
        Batch batch = queue.receive();
        for (const auto &message : batch) {
            for (unsigned char byte : message->body) sum += byte;
            sum += message->number;
        }
    }
    return sum;
}

/* Blocks that pass from one thread to another. */
constexpr size_t boxes = 4096;
std::atomic<unsigned char *> box[boxes];

/* Puts new blocks into boxes, and frees the blocks that were there, mostly another thread's. */
void exchange(uint64_t seed, size_t count, std::atomic<uint64_t> &sum) {
    Random random(seed);
    uint64_t own = 0;
    for (size_t i = 0; i < count; i++) {
        size_t size = 8 + random.below(random.below(16) == 0 ? 8000 : 256);
        auto *block = static_cast<unsigned char *>(std::malloc(size));
        if (!block) std::abort();
        std::memset(block, 1, size);
        own += block[size / 2];
        std::free(box[random.below(boxes)].exchange(block));
    }
    sum += own;
}

} // namespace

/* Two threads send messages, two receive and free them. */
uint64_t messages(size_t size) {
    Queue queue;
    std::atomic<uint64_t> sum{0};
    std::vector<std::thread> threads;
    for (uint64_t seed = 0; seed < 2; seed++) {
        threads.emplace_back([&queue, size, seed] { produce(queue, size, seed); });
        threads.emplace_back([&queue, &sum, size] { sum += consume(queue, size); });
    }
    for (std::thread &thread : threads) thread.join();
    return sum;
}

/* Generations of eight threads, each of which performs about 4,000 operations. */
uint64_t thread_churn(size_t size) {
    std::atomic<uint64_t> sum{0};
    for (size_t generation = 0; generation < size; generation++) {
        std::vector<std::thread> threads;
        for (uint64_t n = 0; n < 8; n++) {
            threads.emplace_back(
                [&sum, generation, n] { exchange(generation * 8 + n, 4000, sum); });
        }
        for (std::thread &thread : threads) thread.join();
    }
    for (auto &each : box) std::free(each.exchange(nullptr));
    return sum;
}

} // namespace truth
