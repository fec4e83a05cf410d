// Draws the map, and zooms into it. pack.rs describes the packed data. All names are shown as text.
"use strict";
(async () => {
  const $ = (id) => document.getElementById(id);
  const head = JSON.parse($("head").textContent);
  const { groups, unit: UNIT } = head;
  const PAGE = 4096, UNIT_PAGES = UNIT / PAGE, FRAME_UNITS = 64;
  const STATES = ["live", "in a magazine", "free", "never used"];
  const STEP = 8.7; // from one frame to the next, in units: a frame and a gap
  const PALETTE = 12; // colours of caches in page.css, and one for all others

  // ---- unpack ----

  let bytes;
  try {
    const packed = Uint8Array.from(atob($("packed").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    $("scale").textContent = "This browser cannot unpack the map. A browser of 2023 or later can.";
    return;
  }
  let at = 0;
  const number = () => {
    let value = 0, factor = 1, byte;
    do {
      byte = bytes[at++];
      value += (byte & 127) * factor;
      factor *= 128;
    } while (byte > 127);
    return value;
  };
  const many = (count, make) => Array.from({ length: count }, make);
  let next = 0;
  const frames = many(number(), () => {
    const place = next + number();
    next = place + 1;
    return place * FRAME_UNITS; // the number of its first unit
  });
  next = 0;
  const runs = many(number(), () => {
    const start = next + number(), units = number();
    next = start + units;
    return {
      start, units, group: number(), first: number(),
      live: number(), waiting: number(), free: number(), states: null,
    };
  });
  const count = frames.length * FRAME_UNITS;
  const sums = new Uint32Array(count * 3).map(number); // live, in magazines, free
  const pages = bytes.subarray(at, at += count * UNIT_PAGES);
  for (let run; (run = number());) {
    const length = number();
    runs[run - 1].states = bytes.subarray(at, at += length);
  }
  const runAt = new Int32Array(count).fill(-1);
  for (let index = 0, run = 0; index < count; index++) {
    const place = frames[index >> 6] + (index & 63);
    while (run < runs.length && runs[run].start + runs[run].units <= place) run++;
    if (run < runs.length && runs[run].start <= place) runAt[index] = run;
  }
  const runOf = (index) => runs[runAt[index]];
  const nameOf = (group) => (groups[group].mixed ? "mixed unit" : groups[group].name);
  const groupOf = (index) => (runAt[index] < 0 ? -1 : runOf(index).group);

  /** Calls visit(state, from, bytes, slot) for the objects of a run; offsets are from its start. */
  const eachState = (run, visit) => {
    const { slab, slot } = groups[run.group];
    let place = slab ? run.first : 0, here = 0;
    while (here < run.states.length) {
      let value = 0, factor = 1, byte;
      do {
        byte = run.states[here++];
        value += (byte & 127) * factor;
        factor *= 128;
      } while (byte > 127);
      const length = Math.floor(value / 4) * (slab ? slot : 8);
      visit(value % 4, place, length, slab ? slot : length);
      place += length;
    }
  };

  // ---- colours ----

  const colour = {};
  let byCache = false, chosen = -1;
  const rank = new Map(head.ranked.map((group, place) => [group, Math.min(place, PALETTE)]));
  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => {
      const hex = style.getPropertyValue("--" + name).trim();
      return [1, 3, 5].map((from) => parseInt(hex.slice(from, from + 2), 16));
    };
    for (const name of ["card", "ink", "absent", "waiting", "free", "mark"]) colour[name] = of(name);
    colour.ramp = many(5, (_, step) => of("use-" + step));
    colour.cache = many(PALETTE + 1, (_, place) => of("cache-" + place));
  };
  const mix = (a, b, part) => a.map((value, channel) => value + (b[channel] - value) * part);
  const css = (rgb) => `rgb(${rgb.map(Math.round).join()})`;
  const ramp = (part) => {
    const place = Math.max(0, Math.min(part, 1)) * 4, step = Math.min(3, Math.floor(place));
    return mix(colour.ramp[step], colour.ramp[step + 1], place - step);
  };
  /** The colour of memory with these parts of its room. */
  const shade = (live, waiting, free, group) => {
    const resident = live + waiting + free;
    if (resident <= 0) return colour.absent;
    let rgb;
    if (byCache) {
      rgb = mix(colour.card, colour.cache[rank.get(group) ?? PALETTE], 0.22 + 0.78 * live / resident);
    } else {
      const waits = waiting > 0 && waiting >= live && waiting >= free;
      rgb = waits ? colour.waiting : live > 0 ? ramp(live / resident) : colour.free;
    }
    rgb = mix(rgb, colour.absent, 0.75 * (1 - Math.min(1, resident)));
    return chosen >= 0 && group !== chosen ? mix(rgb, colour.card, 0.86) : rgb;
  };
  const shadeOfUnit = (index) => {
    const [live, waiting, free] = sums.subarray(index * 3, index * 3 + 3);
    return shade(live / UNIT, waiting / UNIT, free / UNIT, groupOf(index));
  };
  const shadeOfPage = (value, group) => {
    const live = (value - 1 >> 3) / 15, waiting = (value - 1 & 7) / 7;
    if (value === 0) return shade(0, 0, 0, group);
    return shade(live, Math.min(waiting, 1 - live), Math.max(0, 1 - live - waiting), group);
  };

  // A pixel for each unit, for frames that are drawn small.
  const WIDE = 128, atlas = document.createElement("canvas");
  atlas.width = WIDE * 8;
  atlas.height = Math.max(1, Math.ceil(frames.length / WIDE)) * 8;
  const paintAtlas = () => {
    const to = atlas.getContext("2d"), image = to.createImageData(atlas.width, atlas.height);
    for (let index = 0; index < count; index++) {
      const frame = index >> 6, cell = index & 63;
      const x = frame % WIDE * 8 + (cell & 7), y = Math.floor(frame / WIDE) * 8 + (cell >> 3);
      image.data.set([...shadeOfUnit(index), 255], (y * atlas.width + x) * 4);
    }
    to.putImageData(image, 0, 0);
  };

  // ---- the view ----

  const canvas = $("map"), to = canvas.getContext("2d"), tip = $("tip");
  let width = 0, height = 0, columns = 1;
  const view = { x: 0, y: 0, scale: 1, least: 1 }; // scale: pixels of a unit
  const rows = () => Math.ceil(frames.length / columns);
  const corner = (frame) => [frame % columns * STEP, Math.floor(frame / columns) * STEP];

  const fit = () => {
    const ratio = window.devicePixelRatio || 1, room = window.innerHeight;
    width = canvas.clientWidth;
    height = width > 560 ? Math.max(420, Math.min(room - 270, 900)) : Math.max(300, room * 0.6);
    view.least = 0;
    for (let tried = 1; tried <= Math.max(1, frames.length); tried++) {
      const across = tried * STEP + 0.7, down = Math.ceil(frames.length / tried) * STEP + 0.7;
      const scale = Math.min(width / across, height / down);
      if (scale > view.least) [view.least, columns] = [scale, tried];
    }
    view.scale = view.least;
    height = Math.min(height, Math.max(280, (rows() * STEP + 0.7) * view.least));
    canvas.style.height = height + "px";
    [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
    to.setTransform(ratio, 0, 0, ratio, 0, 0);
    hold();
  };
  /** Keeps the map in the window. */
  const hold = () => {
    view.scale = Math.max(view.least, Math.min(view.scale, 12000));
    const keep = (place, whole, room) => {
      const spare = room / view.scale - whole;
      return spare >= 0 ? -spare / 2 : Math.max(0, Math.min(place, -spare));
    };
    view.x = keep(view.x, columns * STEP + 0.7, width);
    view.y = keep(view.y, rows() * STEP + 0.7, height);
    canvas.style.touchAction = view.scale > view.least ? "none" : "pan-y";
    draw();
  };
  const zoom = (factor, x = width / 2, y = height / 2) => {
    const [atX, atY] = [view.x + x / view.scale, view.y + y / view.scale];
    view.scale = Math.max(view.least, Math.min(view.scale * factor, 12000));
    [view.x, view.y] = [atX - x / view.scale, atY - y / view.scale];
    hold();
  };

  // ---- drawing ----

  let marked = null, waits = false;
  const draw = () => {
    if (!waits) requestAnimationFrame(drawNow);
    waits = true;
  };
  const drawNow = () => {
    waits = false;
    const { x, y, scale } = view;
    to.fillStyle = css(colour.card);
    to.fillRect(0, 0, width, height);
    to.imageSmoothingEnabled = scale < 1;
    const from = Math.max(0, Math.floor(y / STEP)) * columns;
    const end = Math.min(frames.length, (Math.floor((y + height / scale) / STEP) + 1) * columns);
    for (let frame = from; frame < end; frame++) {
      const [left, top] = corner(frame);
      const px = (left + 0.7 - x) * scale, py = (top + 0.7 - y) * scale, size = 8 * scale;
      if (px > width || px + size < 0 || py > height || py + size < 0) continue;
      if (scale < 5) {
        const sx = frame % WIDE * 8, sy = Math.floor(frame / WIDE) * 8;
        to.drawImage(atlas, sx, sy, 8, 8, px, py, size, size);
      } else {
        for (let cell = 0; cell < 64; cell++) drawUnit(frame * 64 + cell, cell, px, py);
      }
      if (scale >= 17) label(address(frames[frame] * UNIT), px, py - 3, false);
    }
    if (marked) drawMark();
  };
  const drawUnit = (index, cell, px, py) => {
    const { scale } = view, run = runAt[index];
    const x = px + (cell & 7) * scale, y = py + (cell >> 3) * scale;
    if (x > width || x + scale < 0 || y > height || y + scale < 0) return;
    // No gap within a slab or a large object.
    const same = (cell & 7) < 7 && run >= 0 && runAt[index + 1] === run;
    const across = scale - (same ? 0 : 1), down = scale - 1;
    if (scale < 16) {
      // The colour covers the part that is in memory.
      const [live, waiting, free] = sums.subarray(index * 3, index * 3 + 3);
      const resident = live + waiting + free, group = groupOf(index);
      to.fillStyle = css(shade(0, 0, 0, group));
      to.fillRect(x, y, across, down);
      if (resident === 0) return;
      to.fillStyle = css(shade(live / resident, waiting / resident, free / resident, group));
      to.fillRect(x, y, across, Math.max(1.5, down * resident / UNIT));
      return;
    }
    const strip = down / UNIT_PAGES, group = groupOf(index);
    const objects = scale >= 150 && run >= 0 && runs[run].states;
    for (let page = 0; page < UNIT_PAGES; page++) {
      const value = pages[index * UNIT_PAGES + page];
      to.fillStyle = css(objects && value > 0 ? colour.card : shadeOfPage(value, group));
      to.fillRect(x, y + page * strip, across, strip + (strip < 3 ? 0.5 : -0.4));
    }
    if (objects) drawObjects(index, x, y, across, strip);
    const starts = run >= 0 && runs[run].start === frames[index >> 6] + cell;
    if (scale >= 70 && starts) label(nameOf(group), x + 4, y + 15, true, across - 8);
  };
  /** Draws the objects of a unit, each on the strips of the pages that it lies on. */
  const drawObjects = (index, x, y, across, strip) => {
    const run = runOf(index), group = groups[run.group];
    const offset = (frames[index >> 6] + (index & 63) - run.start) * UNIT;
    const dim = chosen >= 0 && run.group !== chosen;
    const tone = [ramp(1), colour.waiting, byCache ? colour.card : colour.free, colour.card];
    if (byCache) tone[0] = colour.cache[rank.get(run.group) ?? PALETTE];
    const tones = tone.map((rgb) => css(dim ? mix(rgb, colour.card, 0.86) : rgb));
    const room = across / PAGE, low = Math.max(0, -y), high = height - y;
    const part = (from, end) => {
      for (let place = from; place < end;) {
        const line = Math.floor(place / PAGE), stop = Math.min(end, (line + 1) * PAGE);
        const top = line * strip;
        if (top + strip >= low && top <= high && pages[index * UNIT_PAGES + line] > 0) {
          const wide = (stop - place) * room;
          to.fillRect(x + (place - line * PAGE) * room, y + top, wide - (wide > 3 && stop === end ? 0.8 : 0), strip - 0.8);
        }
        place = stop;
      }
    };
    eachState(run, (state, start, length, slot) => {
      const from = Math.max(0, start - offset), end = Math.min(UNIT, start + length - offset);
      if (from >= end) return;
      to.fillStyle = tones[state];
      const single = group.slab && slot * room > 3 && state < 3;
      if (!single) return part(from, end);
      const first = Math.floor((from + offset - start) / slot) * slot + start - offset;
      for (let place = first; place < end; place += slot) {
        part(Math.max(place, 0), Math.min(place + slot, end));
      }
    });
  };
  const label = (words, x, y, boxed, room = 8 * view.scale) => {
    to.font = (boxed ? "600 12px" : "11px") + " system-ui, sans-serif";
    if (to.measureText(words).width > room) {
      if (room < 30) return;
      while (words && to.measureText(words + "\u2026").width > room) words = words.slice(0, -1);
      words += "\u2026";
    }
    if (boxed) {
      to.fillStyle = `rgba(${colour.card.join()}, 0.85)`;
      to.fillRect(x - 3, y - 12, to.measureText(words).width + 6, 16);
    }
    to.fillStyle = css(colour.ink);
    to.fillText(words, x, y);
  };
  const drawMark = () => {
    const [x, y] = position(marked);
    to.strokeStyle = css(colour.mark);
    to.lineWidth = 2.5;
    to.beginPath();
    to.arc((x - view.x) * view.scale, (y - view.y) * view.scale, 14, 0, 7);
    to.stroke();
  };

  // ---- what is where ----

  const address = (value) => "0x" + value.toString(16);
  const amount = (value) => {
    const unit = value < 1024 ? 0 : value < 1048576 ? 1 : value < 1073741824 ? 2 : 3;
    const shown = value / 1024 ** unit;
    return shown.toFixed(unit && shown < 100 ? 1 : 0) + "\u00a0" + ["B", "KiB", "MiB", "GiB"][unit];
  };
  /** The index of the unit of an address, or -1. */
  const indexOf = (value) => {
    const place = Math.floor(value / UNIT);
    const frame = frames.indexOf(place - place % FRAME_UNITS);
    return frame < 0 ? -1 : frame * FRAME_UNITS + place % FRAME_UNITS;
  };
  /** Where an address is on the map, in units. */
  const position = (value) => {
    const index = indexOf(value), [left, top] = corner(index >> 6), inside = value % UNIT;
    return [
      left + 0.7 + (index & 7) + inside % PAGE / PAGE,
      top + 0.7 + (index >> 3 & 7) + (Math.floor(inside / PAGE) + 0.5) / UNIT_PAGES,
    ];
  };
  /** The address at a place in the window, or -1. */
  const addressAt = (x, y) => {
    const [wx, wy] = [view.x + x / view.scale - 0.7, view.y + y / view.scale - 0.7];
    const column = Math.floor(wx / STEP), row = Math.floor(wy / STEP);
    const [ux, uy] = [wx - column * STEP, wy - row * STEP];
    const frame = row * columns + column;
    if (column < 0 || column >= columns || row < 0 || frame >= frames.length || ux >= 8 || uy >= 8) return -1;
    const line = Math.floor(uy % 1 * UNIT_PAGES);
    const place = frames[frame] + Math.floor(uy) * 8 + Math.floor(ux);
    return place * UNIT + line * PAGE + Math.floor(ux % 1 * PAGE);
  };
  const objectAt = (run, value) => {
    const inside = value - run.start * UNIT;
    let found = null;
    eachState(run, (state, from, length, slot) => {
      if (inside < from || inside >= from + length) return;
      const start = from + Math.floor((inside - from) / slot) * slot;
      found = { state, slot, start: run.start * UNIT + start };
    });
    return found;
  };
  const describe = (value) => {
    const index = indexOf(value), run = runAt[index] < 0 ? null : runOf(index);
    const [live, waiting, free] = sums.subarray(index * 3, index * 3 + 3);
    const lines = [];
    if (run) {
      const group = groups[run.group], long = amount(run.units * UNIT);
      const what = (group.slab ? "slab of " : "") + nameOf(run.group);
      lines.push(group.large ? `large object, ${long}` : run.units > 1 ? `${what}, ${long}` : what);
      if (group.slab || group.mixed) {
        const counts = [[run.live, "live"], [run.waiting, "in magazines"], [run.free, "free"]];
        const shown = counts.filter(([count]) => count > 0).map(([count, of]) => `${count} ${of}`);
        lines.push("objects: " + shown.join(", "));
      }
      const object = view.scale >= 150 && run.states && objectAt(run, value);
      if (object) {
        const size = amount(object.slot), state = object.state;
        const named = group.mixed && state > 1 ? ["hole", "not known"][state - 2] : STATES[state];
        lines.push(`${address(object.start)}: ${named}, ${size}`);
      } else if (view.scale >= 150 && group.slab && !run.states) {
        lines.push("Its objects are left out, so that the file stays small.");
      }
    }
    lines.push(`unit at ${address(value - value % UNIT)}`);
    const parts = [[live, "live"], [waiting, "in magazines"], [free, "free"]];
    parts.push([UNIT - live - waiting - free, "not in memory"]);
    lines.push(parts.filter(([part]) => part > 0).map(([part, of]) => `${amount(part)} ${of}`).join(", "));
    return lines;
  };
  const show = (x, y) => {
    const value = addressAt(x, y);
    tip.hidden = value < 0;
    if (value < 0) return;
    const [first, ...others] = describe(value), strong = document.createElement("b");
    strong.textContent = first;
    tip.replaceChildren(strong, "\n" + others.join("\n"));
    const left = Math.max(0, Math.min(x + 14, width - tip.offsetWidth - 2));
    const below = y + 18 + tip.offsetHeight < height;
    tip.style.left = left + "px";
    tip.style.top = (below ? y + 18 : Math.max(0, y - tip.offsetHeight - 14)) + "px";
  };

  // ---- pointers and keys ----

  const down = new Map();
  let moved = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (down.size === 0) moved = 0;
    down.set(event.pointerId, place(event));
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event), before = down.get(event.pointerId);
    if (!before) return show(...now);
    const others = [...down].filter(([id]) => id !== event.pointerId);
    moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
    if (moved > 6) tip.hidden = true;
    if (others.length > 0) {
      const other = others[0][1];
      const apart = (one) => Math.hypot(one[0] - other[0], one[1] - other[1]);
      zoom(apart(now) / Math.max(1, apart(before)), (now[0] + other[0]) / 2, (now[1] + other[1]) / 2);
    }
    const share = others.length > 0 ? 2 : 1;
    view.x -= (now[0] - before[0]) / view.scale / share;
    view.y -= (now[1] - before[1]) / view.scale / share;
    down.set(event.pointerId, now);
    hold();
  });
  const lift = (event) => {
    if (down.delete(event.pointerId) && event.type === "pointerup" && moved <= 6) show(...place(event));
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") tip.hidden = true;
  });
  canvas.addEventListener("dblclick", (event) => zoom(4, ...place(event)));
  canvas.addEventListener("wheel", (event) => {
    // At the whole heap, the wheel moves the page.
    if (event.deltaY > 0 && view.scale <= view.least) return;
    event.preventDefault();
    tip.hidden = true;
    zoom(Math.exp(-event.deltaY / (event.deltaMode ? 15 : 300)), ...place(event));
  }, { passive: false });
  canvas.addEventListener("keydown", (event) => {
    const step = 60 / view.scale;
    const act = {
      ArrowLeft: () => { view.x -= step; }, ArrowRight: () => { view.x += step; },
      ArrowUp: () => { view.y -= step; }, ArrowDown: () => { view.y += step; },
      "+": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => zoom(0),
    }[event.key];
    if (!act) return;
    act();
    hold();
    event.preventDefault();
  });

  // ---- controls ----

  const repaint = () => {
    readColours();
    paintAtlas();
    draw();
  };
  const paintBy = (cache) => {
    byCache = cache;
    document.body.classList.toggle("by-cache", cache);
    $("by-use").setAttribute("aria-pressed", !cache);
    $("by-cache").setAttribute("aria-pressed", cache);
    repaint();
  };
  const choose = (group) => {
    chosen = group;
    for (const row of document.querySelectorAll(".row")) {
      row.setAttribute("aria-pressed", Number(row.dataset.group) === group);
    }
    repaint();
  };
  const jump = (value) => {
    if (!(indexOf(value) >= 0)) return false;
    marked = value;
    view.scale = Math.max(view.least, Math.min(400, width * 0.8));
    const [x, y] = position(value);
    [view.x, view.y] = [x - width / view.scale / 2, y - height / view.scale / 2];
    hold();
    show((x - view.x) * view.scale, (y - view.y) * view.scale);
    return true;
  };
  const answer = (words) => { $("answer").textContent = words; };
  const find = (text) => {
    if (/^(0x)?[0-9a-f]{5,}$/i.test(text)) {
      return answer(jump(parseInt(text.replace(/^0x/i, ""), 16)) ? "" : "not on the map");
    }
    const lower = text.toLowerCase(), named = (group) => groups[group].name.toLowerCase();
    const exact = head.ranked.find((group) => named(group) === lower);
    const group = exact ?? head.ranked.find((group) => named(group).includes(lower));
    if (group === undefined) return answer("no such cache");
    choose(group);
    zoom(0);
    const slabs = runs.filter((run) => run.group === group).length;
    answer(`${groups[group].name}: ${slabs} ${groups[group].slab ? "slabs" : "runs"}`);
  };
  $("search").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("what").value.trim();
    if (text) find(text); else choose(-1);
  });
  $("by-use").addEventListener("click", () => paintBy(false));
  $("by-cache").addEventListener("click", () => paintBy(true));
  $("in").addEventListener("click", () => zoom(2));
  $("out").addEventListener("click", () => zoom(0.5));
  $("all").addEventListener("click", () => {
    marked = null;
    tip.hidden = true;
    answer("");
    choose(-1);
    zoom(0);
  });
  for (const row of document.querySelectorAll(".row")) {
    const group = Number(row.dataset.group);
    row.style.setProperty("--own", `var(--cache-${rank.get(group)})`);
    row.addEventListener("click", () => choose(chosen === group ? -1 : group));
  }
  for (const row of document.querySelectorAll(".jump")) {
    row.addEventListener("click", () => {
      canvas.scrollIntoView({ block: "nearest" });
      jump(parseInt(row.dataset.address, 16));
    });
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  new ResizeObserver(() => { if (canvas.clientWidth !== width) fit(); }).observe(canvas);
  repaint();
  fit();
})();
