"""Builds, serialises, parses and sorts records, and evaluates expressions. Argument: rounds."""
import json
import sys


class Node:
    def __init__(self, name, children):
        self.name, self.children = name, children

    def weight(self):
        return len(self.name) + sum(child.weight() for child in self.children)


def records(seed):
    for number in range(3000):
        seed = (seed * 1103515245 + 12345) % 2147483648
        yield {"id": number, "name": f"name {seed}", "tags": [str(seed % 97)] * (seed % 5), "share": seed / 7.0}


def tree(depth, name):
    return Node(name, [tree(depth - 1, f"{name}.{i}") for i in range(4)] if depth else [])


def words(text):
    counts = {}
    for word in text.replace('"', " ").replace(",", " ").split():
        counts[word] = counts.get(word, 0) + 1
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


total = 0
for turn in range(int(sys.argv[1])):
    text = json.dumps(list(records(turn)))
    parsed = json.loads(text)
    parsed.sort(key=lambda record: record["name"])
    total += sum(len(record["tags"]) for record in parsed) + len(words(text))
    total += tree(6, "root").weight()
    total += len("".join([chr(97 + i % 26) + str(i) for i in range(20000)]))
print(total)
