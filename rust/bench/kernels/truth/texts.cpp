/* Programs that work on text: JSON as a tree, and words. */
#include "programs.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace truth {

namespace {

struct Value {
    enum Kind { number, text, list, object } kind = number;
    int64_t integer = 0;
    std::string string;
    std::vector<std::unique_ptr<Value>> items;
    std::map<std::string, std::unique_ptr<Value>> members;
};

std::string word(Random &random) {
    std::string made(3 + random.below(random.below(8) == 0 ? 60 : 12), 'a');
    for (char &letter : made) letter = static_cast<char>('a' + random.below(26));
    return made;
}

/* A document as services exchange them: records with names, numbers and lists. */
void make(Random &random, unsigned depth, std::string &out) {
    switch (depth == 0 ? random.below(2) : random.below(4)) {
    case 0: out += std::to_string(random.next()); break;
    case 1: out += '"' + word(random) + '"'; break;
    case 2:
        out += '[';
        for (uint32_t left = 1 + random.below(6); left > 0; left--) {
            make(random, depth - 1, out);
            out += left > 1 ? "," : "]";
        }
        break;
    default:
        out += '{';
        for (uint32_t left = 1 + random.below(6); left > 0; left--) {
            out += '"' + word(random) + "\":";
            make(random, depth - 1, out);
            out += left > 1 ? "," : "}";
        }
    }
}

class Parser {
  public:
    explicit Parser(const std::string &text) : at(text.data()) {}

    std::unique_ptr<Value> value() {
        auto made = std::make_unique<Value>();
        if (*at == '"') {
            made->kind = Value::text;
            made->string = string();
        } else if (*at == '[') {
            made->kind = Value::list;
            do {
                at++;
                made->items.push_back(value());
            } while (*at == ',');
            at++;
        } else if (*at == '{') {
            made->kind = Value::object;
            do {
                at++;
                std::string name = string();
                at++;
                made->members[std::move(name)] = value();
            } while (*at == ',');
            at++;
        } else {
            while (std::isdigit(*at)) made->integer = made->integer * 10 + (*at++ - '0');
        }
        return made;
    }

  private:
    std::string string() {
        const char *begin = ++at;
        while (*at != '"') at++;
        return std::string(begin, at++);
    }

    const char *at;
};

void write(const Value &value, std::string &out) {
    switch (value.kind) {
    case Value::number: out += std::to_string(value.integer); break;
    case Value::text: out += '"' + value.string + '"'; break;
    case Value::list:
        out += '[';
        for (const auto &item : value.items) {
            write(*item, out);
            out += ',';
        }
        out.back() = ']';
        break;
    case Value::object:
        out += '{';
        for (const auto &member : value.members) {
            out += '"' + member.first + "\":";
            write(*member.second, out);
            out += ',';
        }
        out.back() = '}';
    }
}

int64_t sum(const Value &value) {
    int64_t total = value.integer + static_cast<int64_t>(value.string.size());
    for (const auto &item : value.items) total += sum(*item);
    for (const auto &member : value.members) total += sum(*member.second);
    return total;
}

uint64_t hash(const std::string &text) {
    Checksum checksum;
    for (char letter : text) checksum.add(static_cast<unsigned char>(letter));
    return checksum.value();
}

} // namespace

/* Parses documents, walks them, and writes them again. 1,000 of them are kept at a time. */
uint64_t json(size_t size) {
    Random random(1);
    Checksum checksum;
    std::vector<std::unique_ptr<Value>> kept(1000);
    for (size_t i = 0; i < size; i++) {
        std::string text = "[";
        for (int part = 0; part < 8; part++) {
            make(random, 5, text);
            text += part < 7 ? ',' : ']';
        }
        auto &place = kept[random.below(1000)];
        place = Parser(text).value();
        std::string again;
        write(*place, again);
        checksum.add(static_cast<uint64_t>(sum(*place)));
        checksum.add(hash(again));
    }
    return checksum.value();
}

/* Splits texts into words, sorts them, joins them. */
uint64_t strings(size_t size) {
    Random random(2);
    Checksum checksum;
    for (size_t i = 0; i < size; i++) {
        std::string text;
        for (int n = 0; n < 40000; n++) text += word(random) + ' ';
        std::vector<std::string> words;
        for (size_t begin = 0, end; begin < text.size(); begin = end + 1) {
            end = text.find(' ', begin);
            words.push_back(text.substr(begin, end - begin));
        }
        std::sort(words.begin(), words.end());
        std::string joined;
        for (const std::string &each : words) joined += each + '/';
        checksum.add(hash(joined));
    }
    return checksum.value();
}

} // namespace truth
