// allocator.zig: Slabyard as a std.mem.Allocator. A program gives `slabyard` to whatever takes an
// allocator: lists, maps, arenas. No header lies before an object, threads allocate without waiting for
// each other, and free memory goes back to the system.
//
//     zig run allocator.zig -lc -lslabyard        (with -I and -L, unless it is installed in /usr)
//
// The program checks its results: the exit status is 0 only if all of them are right.
const std = @import("std");
const Alignment = std.mem.Alignment;

extern fn sy_malloc(size: usize) ?[*]u8;
extern fn sy_aligned_alloc(alignment: usize, size: usize) ?[*]u8;
extern fn sy_realloc(object: [*]u8, size: usize) ?[*]u8;
extern fn sy_expand(object: [*]u8, size: usize) bool;
extern fn sy_free(object: [*]u8) void;
extern fn sy_usable_size(object: [*]const u8) usize;
extern fn sy_print_stats(fd: c_int) c_int;

/// sy_malloc aligns each object to this number of bytes at least.
const malloc_alignment = 8;

fn isOrdinary(alignment: Alignment) bool {
    return alignment.toByteUnits() <= malloc_alignment;
}

fn alloc(_: *anyopaque, len: usize, alignment: Alignment, _: usize) ?[*]u8 {
    if (isOrdinary(alignment)) return sy_malloc(len);
    return sy_aligned_alloc(alignment.toByteUnits(), len);
}

/// An object that becomes shorter stays where it is. One that becomes longer may have room behind it.
fn resize(_: *anyopaque, memory: []u8, _: Alignment, len: usize, _: usize) bool {
    return len <= memory.len or sy_expand(memory.ptr, len);
}

/// null: Zig allocates, copies and frees itself. sy_realloc keeps no alignment above its own.
fn remap(context: *anyopaque, memory: []u8, alignment: Alignment, len: usize, from: usize) ?[*]u8 {
    if (isOrdinary(alignment)) return sy_realloc(memory.ptr, len);
    return if (resize(context, memory, alignment, len, from)) memory.ptr else null;
}

fn free(_: *anyopaque, memory: []u8, _: Alignment, _: usize) void {
    sy_free(memory.ptr);
}

pub const slabyard: std.mem.Allocator = .{
    .ptr = undefined, // the heap is the process's
    .vtable = &.{ .alloc = alloc, .resize = resize, .remap = remap, .free = free },
};

const Order = struct { id: u64, price: u64, open: bool };

fn ordersOpenAndClose() !void {
    var orders = std.AutoHashMap(u64, *Order).init(slabyard);
    defer orders.deinit();
    for (0..10_000) |id| {
        const order = try slabyard.create(Order);
        order.* = .{ .id = id, .price = id * 3, .open = true };
        try orders.put(id, order);
    }
    for (0..10_000) |id| {
        const order = orders.get(id).?;
        if (order.price != id * 3 or !order.open) return error.WrongOrder;
        if (id % 2 == 0) {
            _ = orders.remove(id);
            slabyard.destroy(order);
        }
    }
    if (orders.count() != 5_000) return error.WrongCount;
    var rest = orders.valueIterator();
    while (rest.next()) |order| slabyard.destroy(order.*);
}

fn buffersGrow() !void {
    var buffer = try slabyard.alloc(u8, 100);
    defer slabyard.free(buffer);
    @memset(buffer, 'x');
    if (sy_usable_size(buffer.ptr) < 100) return error.TooSmall;
    buffer = try slabyard.realloc(buffer, 1_000_000);
    if (buffer[99] != 'x') return error.LostBytes;
    buffer = try slabyard.realloc(buffer, 10);
}

fn pagesAreAligned() !void {
    const page = try slabyard.alignedAlloc(u8, .fromByteUnits(4096), 10_000);
    defer slabyard.free(page);
    if (@intFromPtr(page.ptr) % 4096 != 0) return error.NotAligned;
}

pub fn main() !void {
    try ordersOpenAndClose();
    try buffersGrow();
    try pagesAreAligned();
    std.debug.print("10,000 orders, a buffer and a page came from Slabyard\n", .{});
    if (sy_print_stats(2) != 0) return error.NoStatistics;
}
