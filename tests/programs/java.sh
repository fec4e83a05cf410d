commands="javac java jar"
packages="default-jdk-headless"
version="java -version 2>&1"
checks="javac and java -jar with threads, direct buffers, zip and three collectors: class files and output"
seconds=240
processes="java javac"

source='
import java.nio.*; import java.util.*; import java.util.concurrent.*; import java.util.stream.*; import java.util.zip.*;
public class Work {
    record Item(int n, String text, List<Integer> list) {}
    static long one(int n) throws Exception {
        ByteBuffer[] kept = new ByteBuffer[64]; long sum = 0; CRC32 crc = new CRC32();
        for (int i = 0; i < 3000; i++) {
            ByteBuffer b = ByteBuffer.allocateDirect(1 + (i * 7919 * n & 0x7fff)); while (b.hasRemaining()) b.put((byte) i);
            b.flip(); kept[i & 63] = b; crc.update(b); sum += crc.getValue();
        }
        Map<String, Item> map = new TreeMap<>();
        for (int i = 0; i < 60000; i++) map.put("k" + i * n % 20011, new Item(i, "t".repeat(i % 30), IntStream.range(0, i % 5).boxed().toList()));
        byte[] text = map.values().stream().map(Item::toString).collect(Collectors.joining()).getBytes();
        for (int level = 1; level < 10; level += 4) {
            Deflater d = new Deflater(level); d.setInput(text); d.finish(); byte[] out = new byte[text.length];
            int length = d.deflate(out); d.end(); Inflater in = new Inflater(); in.setInput(out, 0, length);
            byte[] back = new byte[text.length]; in.inflate(back); in.end();
            if (!Arrays.equals(text, back)) throw new Exception("zip"); sum = sum * 31 + length;
        }
        return sum;
    }
    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(6); List<Future<Long>> all = new ArrayList<>();
        for (int n = 1; n <= 12; n++) { int k = n; all.add(pool.submit(() -> one(k))); }
        for (Future<Long> f : all) System.out.println(f.get());
        pool.shutdown();
        List<Thread> threads = new ArrayList<>(); var counts = new ConcurrentHashMap<Integer, Integer>();
        for (int n = 0; n < 200; n++) { int k = n; Thread t = new Thread(() -> { for (int i = 0; i < 2000; i++) counts.merge(i * k % 97, 1, Integer::sum); }); t.start(); threads.add(t); }
        for (Thread t : threads) t.join();
        System.out.println(new TreeMap<>(counts));
        System.out.println(IntStream.range(0, 500000).parallel().mapToObj(i -> "s" + i % 1000).distinct().count());
    }
}'
build() {
    local collector
    mkdir classes
    echo "$source" >Work.java
    javac -d classes Work.java
    sums classes/*
    jar --create --file work.jar --main-class Work -C classes .
    for collector in G1 Serial Parallel; do
        java -Xmx400m "-XX:+Use${collector}GC" -XX:-UsePerfData -XX:+HeapDumpOnOutOfMemoryError -jar work.jar
    done
    java -XX:TieredStopAtLevel=1 -Xmx400m -XX:-UsePerfData -jar work.jar
}
program() { both java build; }
