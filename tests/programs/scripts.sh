commands="perl lua5.4 ruby php"
packages="perl lua5.4 ruby php-cli"
version="echo perl \$(perl -e 'print \$^V'), \$(lua5.4 -v | cut -d' ' -f1,2), \$(ruby -v | cut -d' ' -f1,2), php \$(php -r 'echo PHP_VERSION;')"
checks="perl with threads, Lua, Ruby with threads and compaction, PHP with USE_ZEND_ALLOC=0: output of a script each"
seconds=240
processes="perl lua5.4 ruby[0-9.]* php[0-9.]*"

in_perl='
use threads; use threads::shared;
srand(5); my %h; for my $i (1..300000) { my $k = int(rand(50000)); $h{"key$k"} .= chr(97 + $i % 26) }
for my $k (sort keys %h) { delete $h{$k} if length($h{$k}) % 3 }
print scalar(keys %h), " ", join(",", map { "$_=$h{$_}" } (sort keys %h)[0..50]), "\n";
my @l = sort { $a <=> $b } map { int(rand(1e9)) } 1..200000; print "$l[0] $l[50000] $l[-1]\n";
my $text = join(" ", map { "w" . ($_ * 7919 % 1000) x ($_ % 5 + 1) } 1..30000);
my %count; $count{length $1}++ while $text =~ /(w(\d+?)\2*)/g; print map { "$_ $count{$_}\n" } sort { $a <=> $b } keys %count;
my @t = map { my $n = $_; threads->create(sub { my %m; $m{$_ % 977} .= "$_;" for $n * 1000 .. $n * 1000 + 30000;
    return unpack("%32C*", join "", map { $m{$_} } sort { $a <=> $b } keys %m) }) } 1..6;
print join(" ", map { $_->join } @t), "\n";
my @tree; push @{$tree[$_ % 300]}, { n => $_, l => [1 .. $_ % 9] } for 1..60000; my $s = 0;
for my $b (@tree) { $s += $_->{n} * @{$_->{l}} for @$b } print "$s\n"; printf "%.200s\n", sprintf("%s", 2 ** 60) x 50;
'
in_lua='
local words, s = {}, 7
local function random(n) s = (s * 1103515245 + 12345) % 2147483648; return s % n end
for i = 1, 200000 do local k = "key" .. random(30000); words[k] = (words[k] or "") .. string.char(97 + i % 26) end
local keys = {} for k in pairs(words) do keys[#keys + 1] = k end table.sort(keys)
local sum = 0 for i, k in ipairs(keys) do sum = (sum * 31 + #words[k] + k:byte(-1)) % 1000000007 end print(#keys, sum)
for round = 1, 30 do
  local tree = {} for i = 1, 20000 do tree[i] = { i, tostring(i):rep(i % 20), { round } } end
  local co = coroutine.wrap(function() for i = 1, #tree, 7 do coroutine.yield(#tree[i][2]) end end)
  local n = 0 for len in co do n = n + len end print(round, n)
  if round % 5 == 0 then collectgarbage(round % 10 == 0 and "generational" or "incremental") collectgarbage() end
end
print((("x"):rep(100000):gsub("x", "yz"):gsub("(y)(z)", "%2%1")):sub(1, 50), #string.format("%q", ("\0\n"):rep(5000)))
'
in_ruby='
require "json"; require "set"; require "digest"; require "zlib"
r = Random.new(5)
h = Hash.new { |t, k| t[k] = +"" }
300_000.times { |i| h["key#{r.rand(40_000)}"] << (97 + i % 26).chr }
puts h.size, Digest::SHA256.hexdigest(h.sort.flatten.join(","))
text = JSON.generate(h.sort.first(20_000).map { |k, v| { k => [v, v.size, nil, 1.5] } })
puts Zlib.crc32(text), JSON.parse(text).size, text.scan(/[aeiou]{2,}/).tally.sort.first(20).inspect
GC.start; GC.compact
puts (1..6).map { |n| Thread.new { (1..60_000).each_with_object({}) { |i, m| (m[i % 977] ||= []) << i * n }.sum { |k, v| k * v.last } } }.map(&:value).inspect
puts Zlib::Inflate.inflate(Zlib::Deflate.deflate(text * 5)).size, (2**20_000).to_s.size, (1..3000).inject(:*).to_s.size
pid = fork { puts h.values.map(&:size).sum; $stdout.flush; exit! }; Process.wait(pid)
ObjectSpace.garbage_collect; puts Set.new(h.keys.map { |k| k[-2..] }).size
'
in_php='
mt_srand(5); $h = [];
for ($i = 0; $i < 300000; $i++) { $k = "key" . mt_rand(0, 40000); $h[$k] = ($h[$k] ?? "") . chr(97 + $i % 26); }
ksort($h); echo count($h), " ", md5(json_encode($h)), "\n";
class Node { public $next; public $data; function __construct($d) { $this->data = $d; $this->next = $this; } }
for ($i = 0; $i < 200000; $i++) { $n = new Node(str_repeat("x", $i % 50)); } echo gc_collect_cycles() > 0 ? "cycles\n" : "none\n";
$copy = unserialize(serialize($h)); var_dump($copy === $h); usort($copy, fn($a, $b) => strlen($a) <=> strlen($b) ?: strcmp($a, $b));
echo md5(implode(",", $copy)), "\n", preg_match_all("/([a-m]+)([n-z]+)/", implode(" ", $copy), $m), " ", count($m[1]), "\n";
function gen($n) { for ($i = 0; $i < $n; $i++) yield $i => array_fill(0, $i % 30, "v$i"); } $s = 0;
foreach (gen(50000) as $k => $v) $s += count($v) * $k; echo $s, "\n", strlen(var_export(array_slice($h, 0, 5000), true)), "\n";
'
run_php() { USE_ZEND_ALLOC=0 php -n -d memory_limit=-1 -r "$in_php"; }

program() {
    both perl perl -e "$in_perl"
    both lua lua5.4 -e "$in_lua"
    both ruby ruby -e "$in_ruby"
    both php run_php
}
