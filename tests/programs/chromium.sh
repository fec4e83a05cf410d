commands="chromium"
packages="chromium"
version="chromium --version"
checks="headless: --dump-dom of a page that scripts build, and a screenshot, bytes compared"
seconds=240
processes=
own="(chromium|headless_shell)"

page='<!DOCTYPE html><meta charset="utf-8"><title>page</title><style>li:nth-child(3n) { color: teal; } canvas { border: 1px solid }</style>
<svg width="200" height="60"><circle cx="30" cy="30" r="25" fill="orange"/></svg><canvas id="c" width="300" height="100"></canvas><ul id="l"></ul>
<script>
const list = document.getElementById("l");
for (let i = 0; i < 3000; i++) { const e = document.createElement("li"); e.textContent = "item " + i * 7919 % 10007; e.dataset.n = i; list.append(e); }
[...list.children].filter((e) => e.dataset.n % 7 == 0).forEach((e) => e.remove());
const sorted = [...list.children].sort((a, b) => a.textContent.localeCompare(b.textContent)); list.replaceChildren(...sorted);
const x = document.getElementById("c").getContext("2d"); for (let i = 0; i < 500; i++) { x.fillStyle = `hsl(${i * 7}, 80%, 50%)`; x.fillRect(i * 13 % 300, i * 7 % 100, 9, 9); }
let map = new Map(); for (let i = 0; i < 300000; i++) map.set("k" + i % 50000, { i, s: "x".repeat(i % 20) });
document.title = [...map.values()].reduce((a, b) => (a * 31 + b.s.length + b.i) % 1000000007, 7);
</script>'
options_of_chromium="--headless --disable-gpu --no-first-run --disable-dev-shm-usage --disable-background-networking
--disable-component-update --disable-extensions --force-device-scale-factor=1 --hide-scrollbars --window-size=800,600"
[ "$(id -u)" != 0 ] || options_of_chromium+=" --no-sandbox"

render() {
    echo "$page" >page.html
    export HOME=$PWD XDG_CONFIG_HOME=$PWD/config XDG_CACHE_HOME=$PWD/cache
    chromium $options_of_chromium --user-data-dir="$PWD/a" --dump-dom "file://$PWD/page.html" 2>log
    chromium $options_of_chromium --user-data-dir="$PWD/b" --screenshot="$PWD/shot.png" "file://$PWD/page.html" >log 2>&1
    sums shot.png
}
program() { both chromium render; }
