const std = @import("std");
const slabyard = @import("slabyard").slabyard;

pub fn main() !void {
    const numbers = try slabyard.alloc(u64, 1000);
    defer slabyard.free(numbers);
    for (numbers, 0..) |*number, i| number.* = i;
    std.debug.print("{} is the last number\n", .{numbers[999]});
}
