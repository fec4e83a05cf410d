commands="node"
packages="nodejs"
version="node --version"
checks="workers, buffers, zlib, crypto and child processes: output of a script"
seconds=180
processes="node"

script='
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
const zlib = require("zlib"), crypto = require("crypto"), { execFileSync } = require("child_process"), fs = require("fs");
const hash = (b) => crypto.createHash("sha256").update(b).digest("hex");
function work(n) {
    let kept = [], sum = 0;
    for (let i = 0; i < 4000; i++) {
        const b = Buffer.allocUnsafeSlow(1 + (i * 7919 * n) % 20000).fill(i % 251);
        kept[(i * 31) % 97] = b; sum = (sum * 31 + b[b.length >> 1] + b.length) % 1000000007;
        if (i % 50 == 0) sum = (sum + zlib.inflateSync(zlib.deflateSync(Buffer.concat(kept.filter(Boolean)))).length) % 1000000007;
    }
    const map = new Map(); for (let i = 0; i < 100000; i++) map.set("k" + (i * n) % 30011, { i, s: String(i).repeat(i % 5) });
    return [n, sum, map.size, hash(JSON.stringify([...map]))];
}
if (!isMainThread) parentPort.postMessage(work(workerData));
else {
    Promise.all([1, 2, 3, 4, 5].map((n) => new Promise((ok, no) => {
        const w = new Worker(__filename, { workerData: n }); w.on("message", ok); w.on("error", no);
    }))).then(async (all) => {
        all.forEach((a) => console.log(a.join(" ")));
        const text = Buffer.from("the quick brown fox ".repeat(50000));
        for (const c of ["gzip", "brotliCompress", "deflateRaw"])
            console.log(c, hash(await new Promise((ok, no) => zlib[c](text, (e, r) => e ? no(e) : ok(r)))));
        console.log(hash(crypto.pbkdf2Sync("a", "b", 20000, 64, "sha512")), hash(crypto.scryptSync("a", "b", 64)));
        const k = crypto.createECDH("prime256v1"), l = crypto.createECDH("prime256v1"); k.generateKeys(); l.generateKeys();
        console.log(k.computeSecret(l.getPublicKey()).equals(l.computeSecret(k.getPublicKey())));
        console.log(execFileSync(process.execPath, ["-p", "[...Array(1e5).keys()].reduce((a, b) => a + b)"]).toString().trim());
        const m = new WebAssembly.Memory({ initial: 10, maximum: 100 }); m.grow(50); console.log(m.buffer.byteLength);
        await Promise.all([...Array(50).keys()].map((i) => fs.promises.writeFile("f" + i, text.subarray(0, i * 999))));
        console.log(fs.readdirSync(".").filter((f) => /^f\d/.test(f)).map((f) => hash(fs.readFileSync(f)).slice(0, 6)).join(" "));
        console.log(new Intl.NumberFormat("de").format(1234567.8), "\u00e9".normalize("NFD").length);
    });
}
'
run_node() {
    echo "$script" >script.js
    node script.js
}
program() { both node run_node; }
