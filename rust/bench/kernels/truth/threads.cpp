/* Programs with threads that free each other's objects. */
#include "programs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
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

/* Jobs of a pool: threads take the next number until all are taken. */
class Burst {
  public:
    explicit Burst(size_t jobs) : results(jobs) {}

    bool next(size_t &job) {
        job = taken++;
        return job < results.size();
    }

    void finish(size_t job, std::string result) {
        results[job] = std::move(result);
        finished++;
    }

    bool is_over() const { return finished == results.size(); }

    uint64_t sum() const {
        Checksum all;
        for (const std::string &result : results) {
            for (char letter : result) all.add(static_cast<unsigned char>(letter));
        }
        return all.value();
    }

  private:
    std::vector<std::string> results;
    std::atomic<size_t> taken{0}, finished{0};
};

/* Builds records of many sizes, sorts them, and keeps a part of each. */
std::string digest(uint64_t seed) {
    Random random(seed);
    std::vector<std::string> records;
    size_t count = 100 + random.below(500);
    for (size_t i = 0; i < count; i++) {
        records.emplace_back(random.object_size() / 4 + 4, static_cast<char>('a' + i % 26));
        records.back()[0] = static_cast<char>('a' + random.below(26));
    }
    std::sort(records.begin(), records.end());
    std::string kept;
    for (const std::string &record : records) kept += record.substr(0, 12);
    return kept;
}

constexpr size_t pool_threads = 8;

/* The threads of a pool, which wait for bursts. */
class Pool {
  public:
    Pool() {
        for (size_t i = 0; i < pool_threads; i++) threads.emplace_back([this] { work(); });
    }

    ~Pool() {
        give(nullptr);
        for (std::thread &thread : threads) thread.join();
    }

    /* Returns when the burst is over. */
    void run(const std::shared_ptr<Burst> &burst) {
        give(burst);
        std::unique_lock<std::mutex> hold(lock);
        done.wait(hold, [&burst] { return burst->is_over(); });
    }

  private:
    void give(std::shared_ptr<Burst> burst) {
        std::unique_lock<std::mutex> hold(lock);
        current = std::move(burst);
        number++;
        some.notify_all();
    }

    void work() {
        for (size_t seen = 0;;) {
            std::shared_ptr<Burst> burst;
            {
                std::unique_lock<std::mutex> hold(lock);
                some.wait(hold, [this, seen] { return number != seen; });
                seen = number;
                burst = current;
            }
            if (!burst) return;
            for (size_t job; burst->next(job);) burst->finish(job, digest(seen * 1000 + job));
            std::unique_lock<std::mutex> hold(lock);
            if (burst->is_over()) done.notify_one();
        }
    }

    std::mutex lock;
    std::condition_variable some, done;
    std::shared_ptr<Burst> current;
    size_t number = 0;
    std::vector<std::thread> threads;
};

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

/* A pool of eight threads works on bursts of jobs, with a rest after each. The results of the last
   four bursts stay. */
uint64_t pool(size_t size) {
    Pool pool;
    Checksum all;
    std::vector<std::shared_ptr<Burst>> kept(4);
    for (size_t number = 0; number < size; number++) {
        auto burst = std::make_shared<Burst>(48);
        pool.run(burst);
        all.add(burst->sum());
        kept[number % kept.size()] = std::move(burst);
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return all.value();
}

} // namespace truth
