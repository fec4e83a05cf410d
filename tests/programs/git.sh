commands="git"
packages="git"
version="git --version"
checks="a generated repository: merges, clone, gc --aggressive, fsck, blame, grep, bundle; logs and files"
seconds=300
processes="git"

repository() {
    export GIT_AUTHOR_DATE="2020-01-01T00:00:00Z" GIT_COMMITTER_DATE="2020-01-01T00:00:00Z"
    git init -q -b main one
    cd one
    git config user.email a@b
    git config user.name c
    git config pack.threads 2
    local i k
    for i in $(seq 50); do
        mkdir -p "d$((i % 7))"
        for k in 1 2 3 4; do seq $((i * k)) $((i * k + 1200)) | sed "s/7$/$i/" >"d$((i % 7))/f$k"; done
        head -c $((i * 2000)) /dev/zero | tr '\0' "$((i % 10))" >"big$((i % 3))"
        git add .
        git commit -qm "number $i"
        if [ $((i % 10)) = 5 ]; then
            git checkout -qb "side$i" HEAD~3
            seq "$i" >side
            echo "$i" >>"other$i"
            git add .
            git commit -qm "side $i"
            git checkout -q main
            git merge -q -X ours -m "merge $i" "side$i"
        fi
    done
    git repack -adfq --depth=30 --window=20
    git -c gc.aggressiveWindow=40 gc -q --aggressive --prune=now
    git fsck --strict --full
    git clone -q --no-local . ../two
    git bundle create -q ../all.bundle --all
    git clone -q -b main ../all.bundle ../three
    cd ../two
    git log --graph --stat -M -C
    git log -p --all | cksum
    git blame d1/f1 | cksum
    git grep -n -E '99+8' | cksum
    git rebase -q --onto HEAD~20 HEAD~10 || git rebase --abort
    git rev-parse HEAD
    git diff --minimal HEAD~8 HEAD | cksum
    git archive HEAD | cksum
    diff -r --exclude .git . ../three | cksum
}
program() { both git repository; }
