commands="z3 cadical python3"
packages="z3 cadical python3"
version="echo \$(z3 --version | cut -d' ' -f1-3), cadical \$(cadical --version)"
checks="answers, models and proofs of generated formulas"
seconds=300
processes="z3 cadical"

formulas() {
    python3 -c '
import random
random.seed(5)
for number, (names, clauses) in enumerate([(200, 852), (180, 800), (250, 1000)]):
    with open(f"{number}.cnf", "w") as file:
        print("p cnf", names, clauses, file=file)
        for _ in range(clauses):
            print(*[v * random.choice((1, -1)) for v in random.sample(range(1, names + 1), 3)], 0, file=file)
with open("pigeons.cnf", "w") as file: # 9 pigeons, 8 holes
    rows = [[p * 8 + h + 1 for h in range(8)] for p in range(9)]
    rows += [[-(p * 8 + h + 1), -(q * 8 + h + 1)] for h in range(8) for p in range(9) for q in range(p)]
    print("p cnf", 72, len(rows), *["\n" + " ".join(map(str, r)) + " 0" for r in rows], file=file)
with open("a.smt2", "w") as file:
    print("(set-option :produce-models true)", file=file)
    for i in range(60): print(f"(declare-const x{i} Int)(declare-const y{i} (_ BitVec 16))(declare-const s{i} String)", file=file)
    for i in range(60):
        a, b = random.sample(range(60), 2)
        print(f"(assert (< (+ x{i} (* 3 x{a})) (+ {i * 7 + 50} (* 2 x{b}))))(assert (> x{i} {i - 100}))", file=file)
        if i: print(f"(assert (= (bvmul y{i} #x{2 * i + 3:04x}) (bvadd y{i - 1} #x{i * 977 % 65536:04x})))", file=file)
        if i < 12: print(f"(assert (= (str.len s{i}) {i + 3}))(assert (str.contains s{i} \"ab\"))", file=file)
    print("(check-sat)(get-model)(push)(assert (forall ((k Int)) (=> (> k x0) (> (* k k) x1))))(check-sat)(pop)(check-sat)", file=file)
'
}
solve() {
    local file status
    formulas
    for file in *.cnf; do
        status=0
        cadical -q "$file" "$file.proof" || status=$?
        [ $status = 10 ] || [ $status = 20 ]
        cksum <"$file.proof"
    done
    for file in 0.cnf 1.cnf 2.cnf; do z3 -T:100 "$file"; done
    z3 -T:100 a.smt2
}
program() {
    both solvers solve
    grep -x sat with.out >/dev/null
    grep -x 's UNSATISFIABLE' with.out # the answer for pigeons.cnf
}
