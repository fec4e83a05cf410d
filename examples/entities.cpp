/*
 * entities.cpp: the entities of a game, which refer to each other by handle. When a ship is
 * destroyed, the missiles that follow it and the lists that name it are not searched: their handles
 * are stale from then on, also when another entity gets the same memory.
 *
 *     c++ -std=c++17 -O2 entities.cpp $(pkg-config --cflags --libs slabyard-static) && ./a.out
 *
 * `./a.out malloc` keeps the entities in a std::unordered_map by number, for comparison. The
 * program checks its results: the exit status is 0 only if all of them are right.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <unordered_map>
#include <vector>

#include <slabyard/slabyard.hpp>

namespace {

constexpr std::size_t SHIPS = 5000; /* alive at the start of a frame */
constexpr int FRAMES = 600;
constexpr std::uint32_t FIRE_ONE_IN = 8; /* a ship fires once in so many frames */
constexpr int HULL = 100, DAMAGE = 40;   /* points */
constexpr float SIZE = 1000, SPEED = 20; /* width of the world; flight in a frame */

struct entity;
using entity_key = slabyard::handle_key<entity>; /* 64 bits */

struct entity {
    float x, y;
    int hull;          /* of a ship */
    entity_key target; /* of a missile: the ship that it follows, which may be gone */
};

void expect(bool condition, const char *what) {
    if (condition) return;
    std::fprintf(stderr, "not so: %s\n", what);
    std::exit(1);
}

/* ---- two stores with the same functions ---- */

/* Entities by handle. One thread owns the game, so find() need not hold the entity: it costs a few
 * loads. If other threads destroy entities meanwhile, use slabyard::handle_map instead. */
class handle_store {
  public:
    handle_store() {
        sy_cache_config config{};
        config.name = "entity";
        config.size = sizeof(entity);
        config.flags = SY_HANDLES;
        cache_ = sy_cache_create(&config);
        expect(cache_ != nullptr, "a cache is created");
    }
    ~handle_store() { sy_cache_destroy_all(cache_); }
    handle_store(const handle_store &) = delete;
    handle_store &operator=(const handle_store &) = delete;

    entity_key make(const entity &from) {
        sy_handle handle;
        void *slot = sy_handle_alloc(cache_, &handle);
        expect(slot != nullptr, "there is memory for an entity");
        new (slot) entity(from);
        return entity_key::from_bits(handle);
    }
    entity *find(entity_key key) {
        return static_cast<entity *>(sy_handle_get(cache_, key.to_bits()));
    }
    bool destroy(entity_key key) { return sy_handle_free(cache_, key.to_bits()); }
    std::size_t size() const { return sy_cache_in_use(cache_); }

  private:
    sy_cache *cache_;
};

/* Entities by number, with nodes from malloc. A number is never used again. */
class number_store {
  public:
    entity_key make(const entity &from) {
        auto key = entity_key::from_bits(++last_);
        entities_.emplace(key, from);
        return key;
    }
    entity *find(entity_key key) {
        auto at = entities_.find(key);
        return at == entities_.end() ? nullptr : &at->second;
    }
    bool destroy(entity_key key) { return entities_.erase(key) == 1; }
    std::size_t size() const { return entities_.size(); }

  private:
    std::unordered_map<entity_key, entity> entities_;
    std::uint64_t last_ = 0;
};

/* ---- the game ---- */

template <class Store> class game {
  public:
    void play() {
        for (int frame = 0; frame < FRAMES; frame++) {
            remove_destroyed_ships();
            while (ships_.size() < SHIPS) add_ship();
            fire();
            move_missiles();
        }
    }

    void check_and_report() {
        remove_destroyed_ships();
        std::printf("%zu ships and %zu missiles were made, %zu ships were hit, "
                    "%zu missiles lost their target\n",
                    ships_made_, missiles_made_, wrecks_.size(), lost_);
        expect(store_.size() == ships_.size() + missiles_.size(), "each entity is in a list");
        expect(ships_made_ == ships_.size() + wrecks_.size(), "each ship is alive or a wreck");
        expect(lost_ > 0 && wrecks_.size() > SHIPS, "ships were destroyed and replaced");
        for (entity_key ship : ships_) expect(store_.find(ship) != nullptr, "a live ship is found");
        for (entity_key wreck : wrecks_)
            expect(!store_.find(wreck) && !store_.destroy(wreck), "a stale handle is refused");
    }

  private:
    void add_ship() {
        ships_.push_back(store_.make({random_place(), random_place(), HULL, entity_key()}));
        ships_made_++;
    }

    /* Some ships fire at others. The missile keeps the handle of the other ship. */
    void fire() {
        for (std::size_t i = 0; i < ships_.size(); i++) {
            if (random_below(FIRE_ONE_IN) != 0) continue;
            entity_key target = ships_[random_below(static_cast<std::uint32_t>(ships_.size()))];
            const entity *ship = store_.find(ships_[i]);
            missiles_.push_back(store_.make({ship->x, ship->y, 0, target}));
            missiles_made_++;
        }
    }

    void move_missiles() {
        for (std::size_t i = 0; i < missiles_.size();) {
            if (move_missile(missiles_[i])) {
                i++;
                continue;
            }
            store_.destroy(missiles_[i]);
            missiles_[i] = missiles_.back();
            missiles_.pop_back();
        }
    }

    /* Returns false if the missile is at its end: it has hit, or its target is gone. */
    bool move_missile(entity_key key) {
        entity *missile = store_.find(key);
        entity *target = store_.find(missile->target);
        if (!target) {
            lost_++;
            return false;
        }
        float dx = target->x - missile->x, dy = target->y - missile->y;
        if (dx * dx + dy * dy > SPEED * SPEED) {
            missile->x += dx / 16;
            missile->y += dy / 16;
            return true;
        }
        target->hull -= DAMAGE;
        if (target->hull <= 0) {
            store_.destroy(missile->target); /* other missiles and ships_ still name it */
            wrecks_.push_back(missile->target);
        }
        return false;
    }

    void remove_destroyed_ships() {
        for (std::size_t i = 0; i < ships_.size();) {
            if (store_.find(ships_[i])) {
                i++;
                continue;
            }
            ships_[i] = ships_.back();
            ships_.pop_back();
        }
    }

    std::uint32_t random_below(std::uint32_t below) {
        random_ = random_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::uint32_t>((random_ >> 33) % below);
    }
    float random_place() { return static_cast<float>(random_below(1000)) / 1000 * SIZE; }

    Store store_;
    std::vector<entity_key> ships_, missiles_;
    std::vector<entity_key> wrecks_; /* never removed: all of them must be refused */
    std::size_t ships_made_ = 0, missiles_made_ = 0, lost_ = 0;
    std::uint64_t random_ = 1;
};

template <class Store> void play_with() {
    game<Store> one;
    one.play();
    one.check_and_report();
}

} // namespace

int main(int argc, char **argv) {
    if (argc > 1 && std::strcmp(argv[1], "malloc") == 0)
        play_with<number_store>();
    else
        play_with<handle_store>();
}
