#!/bin/sh
# version_test.sh CMAKE: tools/deb gives each commit's packages a version that sorts behind those of commits before it and before the release, and
# cmake/commit.cmake names the commit of a work tree, of an archive, and none of sources without git. In a repository of its own.
set -eu
cmake=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
for program in git dpkg; do command -v $program >/dev/null || { echo "skipped: no $program"; exit 77; }; done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() {
  echo "packaging_version: $*" >&2
  exit 1
}

export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@a.example GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@a.example
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
mkdir -p "$work/tree/tools" "$work/tree/packaging/debian" "$work/tree/cmake"
cd "$work/tree"
cp "$root/tools/deb" tools/
cp "$root/cmake/commit.cmake" "$root/cmake/commit.txt" cmake/
cp "$root/.gitattributes" .
names() { # VERSION: what the two files that have it say
  echo "project(stag VERSION $1 LANGUAGES CXX)" >CMakeLists.txt
  echo "stag ($1) unstable; urgency=medium" >packaging/debian/changelog
}
commit() { # DATE
  git add -A
  GIT_COMMITTER_DATE=$1 git commit -q --allow-empty -m "$1"
}
sorts_before() { dpkg --compare-versions "$1" lt "$2" || fail "$1 does not sort before $2"; }
built_commit() { # FOLDER: what a program of it says
  "$cmake" -Droot="$1" -Dto="$work/commit.cc" -P "$1/cmake/commit.cmake"
  sed -n 's/.*return "\(.*\)";/\1/p' "$work/commit.cc"
}
is() { test "$1" = "$2" || fail "'$1', not '$2'"; }

git init -q
names 1.2.3
# Later in the day by the clock of the one, earlier by that of the other.
commit "2026-03-01T23:30:00+0200"
first=$(tools/deb --version)
commit "2026-03-01T21:30:01+0000"
second=$(tools/deb --version)
sorts_before "$first" "$second"
sorts_before "$second" 1.2.3
is "$second" "1.2.3~git20260301213001.$(git rev-parse --short=12 HEAD)"
git tag v1.2.3
is "$(tools/deb --version)" 1.2.3
commit "2026-03-02T00:00:00+0000"
! tools/deb --version >/dev/null 2>&1 || fail "a commit behind the release has a version before it"
names 1.2.4
commit "2026-03-02T00:00:01+0000"
sorts_before 1.2.3 "$(tools/deb --version)"

head=$(git rev-parse --short=12 HEAD)
is "$(built_commit "$PWD")" "$head"
touch -d 2001-02-03 "$work/commit.cc"
is "$(built_commit "$PWD")" "$head"
is "$(date -r "$work/commit.cc" +%Y)" 2001
echo >>CMakeLists.txt
is "$(built_commit "$PWD")" "$head-dirty"
# Below another work tree, as a package's build is.
mkdir archive without
git archive HEAD | tar -x -C archive
is "$(built_commit "$PWD/archive")" "$head"
cp -r cmake without/
is "$(built_commit "$PWD/without")" ""
