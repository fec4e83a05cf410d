"""Reads profiles in the format of pprof (github.com/google/pprof, proto/profile.proto): what
Slabyard writes of it, and checks that the parts fit together. Needs readelf and nm."""

import subprocess

TYPES = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]


def number(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = number(data, at)
        value, at = number(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


def message(data):
    """The values of each field, by its number."""
    found = {}
    for key, value in fields(data):
        found.setdefault(key, []).append(value)
    return found


def output(*command):
    return subprocess.run(command, capture_output=True, text=True).stdout


def functions(program, start):
    """A function that finds the name for an address, if the program's code begins at `start`."""
    symbols = []
    for line in output("nm", "-S", "-C", program).splitlines():
        words = line.split(maxsplit=3)
        if len(words) == 4 and len(words[1]) == len(words[0]):
            symbols.append((int(words[0], 16), int(words[1], 16), words[3]))
    segments = output("readelf", "-lW", program).splitlines()
    code = next(line.split() for line in segments if "LOAD" in line and " E " in line)
    bias = start - int(code[2], 16)

    def name_of(address):
        for first, size, name in symbols:
            if first <= address - bias < first + size:
                return name

    return name_of


def own_mapping(mappings, strings, program):
    """The mapping of the program's code. It has the build id."""
    own = [it for it in mappings if strings[it[5][0]] == program]
    assert len(own) == 1, "one mapping is the program's"
    notes = output("readelf", "-n", program)
    assert "Build ID" not in notes or strings[own[0][6][0]] in notes
    return own[0]


def sums_by_function(path, program):
    """The four sums of the samples in which each function of the program occurs."""
    with open(path, "rb") as file:
        profile = message(file.read())
    strings = [text.decode() for text in profile[6]]
    assert strings[0] == ""
    types = [message(data) for data in profile[1]]
    assert [strings[it[1][0]] for it in types] == TYPES
    assert [strings[it[2][0]] for it in types] == ["count", "bytes"] * 2
    mappings = {it[1][0]: it for it in map(message, profile[3])}
    name_of = functions(program, own_mapping(mappings.values(), strings, program)[2][0])
    locations = {it[1][0]: it for it in map(message, profile.get(4, []))}
    assert len(locations) == len(profile.get(4, [])), "each location has a number of its own"

    sums = {}
    for sample in map(message, profile.get(2, [])):
        for location in sample[1]:
            assert location in locations
            assert locations[location][2][0] in list(mappings) + [0]
            assert locations[location][3] == [location]
        assert sample[2] and len(sample[2]) == 4
        for name in {name_of(location) for location in sample[1]} - {None}:
            sums[name] = [a + b for a, b in zip(sums.get(name, [0] * 4), sample[2])]
    return sums
