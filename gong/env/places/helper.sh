# The helper in a place: reads requests from standard input and answers on standard output.
#
# It needs a POSIX sh, coreutils, find and grep, and no file of its own. `G` (a word nobody can
# guess) is set before this text; `messages.py` has the form of requests and answers.
#
#   outer sh ─┬─ guard ─┬─ main ── one subshell for each request ── its command
#             │         └─ (ends whatever carries the mark, when main has ended)
#             └─ cat, so that answers go through a pipe, where short writes are not mixed
#
# Commands carry a mark in their environment. However main ends, the guard ends all that has the
# mark; where the guard was killed, main does so, or what ended main since no beat came. A file that
# is being written is finished.

# Names that this text uses and the place has as variables: commands get them back.
covered= GONG_ALL=$(env)
for v in n v c f g i j k l m p r s t w b d B1 F G R S W st to at dir pid err old new name path part rest \
  root made mode kind keep kept left line size me main seen table found alive grown group parent state \
  hops below before after folder depth count body where why swapped code tool temporary missing better \
  covered undo_made flag guard asked requests; do
  case $v in G | v | covered) continue ;; esac
  case "
$GONG_ALL" in *"
$v="*)
    eval "c=\${$v-}"
    covered="$covered $v=$(printf %s "$c" | sed "s/'/'\\\\''/g; 1s/^/'/; \$s/\$/'/"); export $v;"
    unset "$v"
    ;;
  esac
done
unset GONG_ALL
n='
'
case ${PATH-} in '') PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin ;; esac
command -v stat >/dev/null 2>&1 || PATH=$PATH:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin
export PATH
# Below sshd each bash of level 1 would read ~/.bashrc; the login shell has done so already.
case ${SHLVL-0} in 0 | 1) SHLVL=2; export SHLVL ;; esac
W= S=
if [ "$(printf abcdef | base64 -w 3800 2>/dev/null)" = YWJjZGVm ]; then W='-w 3800'; fi
if command -v setsid >/dev/null 2>&1; then S=setsid; fi
F='%f %s %Y %Z %i %h %u %g'
case $(LC_ALL=C stat -c %.9Y / 2>/dev/null) in *.?????????) F='%f %s %.9Y %.9Z %i %h %u %g' ;; esac

say() { printf '%s\n' "$*" >&6; }
encode() { printf %s "$1" | base64 | tr -d '\n'; }
fail() { # ID TEXT: the last line of a program's complaint
  say "$1 x $(encode "$2")"
}
nap() { sleep 0.1 2>/dev/null || sleep 1; }

relay() { # ID STREAM: standard input, in numbered lines; fails where its programs do
  r=0
  while c=$( { { dd bs=65536 count=1 2>/dev/null || echo ! >&8; } | base64 $W || echo !; } 8>&1) &&
    [ -n "$c" ]; do
    case $c in *!*) return 1 ;; esac
    for l in $c; do
      printf '%s\n' "$1 $2 $r $l" >&6
      r=$((r + 1))
    done
  done
  say "$1 z$2 $r"
}

# --- processes ---

find_marked() { # MARK SESSION: sets `found` to the processes that carry a mark or come of those
  found=
  if [ ! -r /proc/self/stat ]; then
    find_by_ps "$2"
    return
  fi
  for f in $(list_marked "$1"); do
    f=${f#/proc/}
    found="$found ${f%/environ}"
  done
  table=
  for f in /proc/[0-9]*/stat; do
    # A process that ends meanwhile leaves an empty line.
    st=
    { IFS= read -r st <"$f"; } 2>/dev/null
    pid=${f#/proc/}
    set -- "$1" "$2" "${pid%/stat}" ${st##*) }
    case ${4-Z} in Z | X) continue ;; esac
    if [ "$2" != 0 ] && { [ "${7-}" = "$2" ] || [ "$3" = "$2" ]; }; then found="$found $3"; fi
    table="$table$3 ${5-0}$n"
  done
  add_children
}

list_marked() { # MARK: the files of the environments that hold it
  if printf 'a\0b' | grep -qsF b; then
    grep -lsF "$1" /proc/[0-9]*/environ 2>/dev/null
    return
  fi
  # This grep reads no further than a zero byte.
  head -c 200000 /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' |
    grep -F -e '==> /proc/' -e "$1" | while IFS= read -r l; do
    case $l in '==> /proc/'*) at=${l#==> } ;; "$1"*) echo "${at% <==}" ;; esac
  done
}

find_by_ps() {
  table=
  while read -r pid parent group state; do
    case $state in Z*) continue ;; esac
    if [ "$group" = "$1" ] || [ "$pid" = "$1" ]; then found="$found $pid"; fi
    table="$table$pid $parent$n"
  done <<PS
$(ps -A -o pid= -o ppid= -o pgid= -o stat= 2>/dev/null)
PS
  add_children
}

add_children() {
  grown=1 alive=
  while [ "$grown" ]; do
    grown=
    while read -r pid parent; do
      case " $found " in *" $pid "*) continue ;; *" $parent "*) found="$found $pid" grown=1 ;; esac
    done <<TABLE
$table
TABLE
  done
  # What has ended meanwhile, or is collected by nobody, is no process any more.
  for pid in $found; do
    case "$n$table" in *"$n$pid "*) case " $alive " in *" $pid "*) ;; *) alive="$alive $pid" ;; esac ;; esac
  done
  found=$alive
}

end_marked() { # MARK SESSION: asks first, kills what is left two seconds later
  find_marked "$1" "$2"
  [ "$found" ] || return 0
  kill -TERM $found 2>/dev/null
  kill -CONT $found 2>/dev/null
  t=0
  while [ $t -lt 20 ]; do
    nap
    find_marked "$1" "$2"
    [ "$found" ] || return 0
    t=$((t + 1))
  done
  while [ $t -lt 60 ]; do
    kill -STOP $found 2>/dev/null
    kill -KILL $found 2>/dev/null
    nap
    find_marked "$1" "$2"
    [ "$found" ] || return 0
    t=$((t + 1))
  done
}

run() { # ID MODE FOLDER PROGRAM ARGUMENT…: MODE is m, or s for separate streams; input is in B1
  i=$1 mode=$2
  if ! go "$3"; then fail "$i" "$err"; return; fi
  shift 3
  case ${B1+x} in
  x) printf %s "$B1" | base64 -d 2>/dev/null | start "$@" ;;
  *) start "$@" </dev/null ;;
  esac
}
start() {
  if [ $mode = s ]; then
    { watch_command "$@" | relay "$i" o 5>&-; } 5>&1 | relay "$i" e
  else
    watch_command "$@" 5>&1 | relay "$i" o
  fi
  say "$i z"
}
watch_command() {
  exec 7<&0
  (
    exec <&7 2>&5 5>&- 6>&- 7<&-
    eval "$covered"
    GONG_CALL=$G.$i.
    export GONG_CALL
    exec $S "$@"
  ) &
  p=$!
  exec 7<&- 5>&- </dev/null
  say "$i p $p"
  wait $p
  say "$i e $?"
}
stop() { # ID CALL SESSION
  end_marked "GONG_CALL=$G.$2." "$3"
  say "$1 z"
}

# --- files ---

hand_over() { # standard input as the output of request `i`; else its answer says so
  relay "$i" o || { fail "$i" 'Input/output error'; return 1; }
}

real() { # PATH: sets `R` to where it leads through all links
  R= rest=$1 hops=0
  while [ "$rest" ]; do
    part=${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
    case $part in
    '' | .) ;;
    ..) R=${R%/*} ;;
    *)
      if [ -L "$R/$part" ] && [ $hops -lt 40 ]; then
        hops=$((hops + 1))
        to=$(readlink "$R/$part" && echo .) || to="$part$n."
        to=${to%"$n."}
        case $to in /*) R= ;; esac
        rest=$to/$rest
      else
        R=$R/$part
      fi
      ;;
    esac
  done
  R=${R:-/}
}
reals() { # ID PATH…
  i=$1
  shift
  for path; do
    real "$path"
    say "$i r $(encode "$R")"
  done
  say "$i z"
}

go() { # FOLDER: into it; sets `err` if it cannot
  cd -P "$1" 2>/dev/null && return
  if [ -d "$1" ]; then err='Permission denied'
  elif [ -e "$1" ]; then err='Not a directory'
  elif ! err=$(LC_ALL=C stat -L -c "$F" "$1" 2>&1); then :
  else err='No such file or directory'; fi
  return 1
}

enter() { # ROOT FOLDER MAKE: into a folder below a root, through no link; sets `err` if it cannot
  go "$1" || return 1
  at=$1 rest=$2 made=
  [ "$at" = / ] && at=
  while [ "$rest" ]; do
    part=${rest%%/*}
    case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
    [ "$part" ] || continue
    at=$at/$part
    if [ "$3" ] && [ ! -e "./$part" ] && [ ! -L "./$part" ]; then
      err=$(LC_ALL=C mkdir "./$part" 2>&1) || [ -d "./$part" ] || return 1
      made="$at$n$made"
    fi
    if [ -L "./$part" ]; then
      err='Too many levels of symbolic links'
      return 1
    fi
    go "./$part" || return 1
    if [ "$PWD" != "$at" ]; then
      err='Too many levels of symbolic links'
      return 1
    fi
  done
}

locate() { # ROOT PATH MAKE: the folder of a path becomes the current one, its last part `name`
  case $2 in / | "$1" | "$1/") err='Is a directory'; return 1 ;; esac
  below=${2#"${1%/}"}
  name=${below##*/}
  enter "$1" "${below%/*}" "$3"
}

explain() { # PATH: sets `err` to why there is no regular file that can be read
  if ! err=$(LC_ALL=C stat -L -c "$F" "$1" 2>&1); then return; fi
  if [ -d "$1" ]; then err='Is a directory'; return; fi
  if [ ! -f "$1" ]; then err='Not a regular file'; return; fi
  err=$(LC_ALL=C cat "$1" 2>&1 >/dev/null)
}

fetch() { # ID ROOT LIMIT PATH: state and bytes of a regular file; of a larger one only the state
  i=$1 path=$4
  if [ "$2" ]; then
    if ! locate "$2" "$4" ''; then fail "$i" "$err"; return; fi
    path=./$name
    if [ -L "$path" ]; then fail "$i" 'Too many levels of symbolic links'; return; fi
  fi
  if [ ! -f "$path" ] || [ ! -r "$path" ]; then
    explain "$path"
    fail "$i" "${err:-Permission denied}"
    return
  fi
  if ! st=$(LC_ALL=C stat -L -c "$F" "$path" 2>&1); then fail "$i" "$st"; return; fi
  say "$i s 0 $st"
  set -- $st "$3"
  if [ "$9" = - ] || [ "$2" -le "$9" ]; then hand_over <"$path" || return; fi
  say "$i z"
}

fetch_all() { # ID PATH…: several at once; a file that changes meanwhile gets an x
  i=$1 k=0
  shift
  for path; do
    if [ -f "$path" ] && [ -r "$path" ]; then
      set -- "$@" "$path"
      say "$i k $k"
    else
      explain "$path"
      say "$i n $k $(encode "${err:-Permission denied}")"
    fi
    shift
    k=$((k + 1))
  done
  if [ $# -gt 0 ]; then
    before=$(LC_ALL=C stat -L -c "$F" "$@" 2>&1)
    LC_ALL=C cat "$@" 2>/dev/null | hand_over || return
    after=$(LC_ALL=C stat -L -c "$F" "$@" 2>&1)
    if [ "$before" != "$after" ]; then fail "$i" 'Stale file handle'; return; fi
    printf '%s\n' "$before" | while IFS= read -r st; do say "$i s 0 $st"; done
  fi
  say "$i z"
}

states() { # ID FLAG PATH…: FLAG is -L to follow links
  i=$1 flag=$2 k=0
  [ "$flag" = -L ] || flag=
  shift 2
  for path; do
    if [ -e "$path" ] || { [ ! "$flag" ] && [ -L "$path" ]; }; then
      set -- "$@" "$path"
      say "$i k $k"
    else
      err=$(LC_ALL=C stat $flag -c "$F" "$path" 2>&1)
      say "$i n $k $(encode "$err")"
    fi
    shift
    k=$((k + 1))
  done
  if [ $# -gt 0 ]; then
    if ! st=$(LC_ALL=C stat $flag -c "$F" "$@" 2>&1); then fail "$i" "$st"; return; fi
    printf '%s\n' "$st" | while IFS= read -r line; do say "$i s 0 $line"; done
  fi
  say "$i z"
}

look() { # ID LIMIT PATH…: where paths lead, their states, and the first one if it is a small file
  i=$1 size=$2 k=0 body=
  shift 2
  for path; do
    real "$path"
    say "$i r $(encode "$R")"
    if st=$(LC_ALL=C stat -L -c "$F" "$path" 2>&1); then
      say "$i k $k"
      say "$i s 0 $st"
      left=${st#* }
      if [ $k = 0 ] && [ -f "$path" ] && [ -r "$path" ] && [ "${left%% *}" -le "$size" ]; then body=$path; fi
    else
      say "$i n $k $(encode "$st")"
    fi
    k=$((k + 1))
  done
  if [ "$body" ]; then
    say "$i y"
    hand_over <"$body" || return
  fi
  say "$i z"
}

links() { # ID PATH…: the texts of links
  i=$1
  shift
  for path; do
    if to=$(readlink "$path" && echo .); then say "$i r $(encode "${to%"$n."}")"; else say "$i r -"; fi
  done
  say "$i z"
}

exists() { # ID ROOT PATH
  i=$1 path=$3
  if [ "$2" ]; then
    if ! locate "$2" "$3" ''; then
      case $err in 'Is a directory') say "$i y" ;; *) say "$i f" ;; esac
      say "$i z"
      return
    fi
    path=./$name
    if [ -L "$path" ]; then say "$i f"; say "$i z"; return; fi
  fi
  if [ -e "$path" ]; then say "$i y"; else say "$i f"; fi
  say "$i z"
}

walk() { # ID ROOT FOLDER DEPTH PRUNE…: one record for each thing below a folder; DEPTH 0 is no end
  i=$1 root=$2 folder=$3 depth=$4
  shift 4
  if [ "$root" ]; then
    below=${folder#"${root%/}"}
    if ! enter "$root" "$below" ''; then fail "$i" "$err"; return; fi
  elif ! go "$folder"; then
    fail "$i" "$err"
    return
  fi
  if [ ! -r . ]; then fail "$i" 'Permission denied'; return; fi
  m=
  [ "$depth" = 0 ] || m="-maxdepth $depth"
  {
    LC_ALL=C find . $m "$@" ! -name . -exec stat -c "@$G $F %n" {} + 2>/dev/null
    say "$i e $?"
  } | hand_over || return
  say "$i z"
}

program() { # ID FOLDER PROGRAM ARGUMENT…: what it prints, given B1, and its exit code
  i=$1
  if ! go "$2"; then fail "$i" "$err"; return; fi
  shift 2
  {
    printf %s "$B1" | base64 -d | (
      eval "$covered"
      GONG_CALL=$G.$i.
      export GONG_CALL
      exec "$@" 2>/dev/null 6>&-
    )
    say "$i e $?"
  } | hand_over || return
  say "$i z"
}

filter() { # ID FOLDER PROGRAM ARGUMENT…: names of files (B1, ended by zero bytes) through xargs -0
  i=$1
  if ! go "$2"; then fail "$i" "$err"; return; fi
  shift 2
  {
    printf %s "$B1" | base64 -d | LC_ALL=C xargs -0 "$@" 2>/dev/null
    say "$i e $?"
  } | hand_over || return
  say "$i z"
}

check_before() { # EXPECTED: none, -, or a digest; sets `err` if the file `name` is another
  case $1 in
  none) return 0 ;;
  -)
    if [ -e "./$name" ] || [ -L "./$name" ]; then err='Stale file handle'; return 1; fi
    return 0
    ;;
  esac
  if [ ! -e "./$name" ] && [ ! -L "./$name" ]; then err='No such file or directory'; return 1; fi
  if [ -L "./$name" ] || [ ! -f "./$name" ]; then err='Stale file handle'; return 1; fi
  d=$(LC_ALL=C sha256sum <"./$name" 2>&1)
  case $d in "$1 "*) return 0 ;; esac
  case $d in *': '*) err=$d ;; *) err='Stale file handle' ;; esac
  return 1
}

check_writable() { # whether the file `name` may be replaced; sets `err` and `old` (mode and owner)
  old=
  if [ -L "./$name" ]; then err='Too many levels of symbolic links'; return 1; fi
  [ -e "./$name" ] || return 0
  if [ -d "./$name" ]; then err='Is a directory'; return 1; fi
  if [ ! -f "./$name" ]; then err='Not a regular file'; return 1; fi
  if ! err=$( (LC_ALL=C; : >>"./$name") 2>&1); then return 1; fi
  old=$(LC_ALL=C stat -c '%a %u:%g' "./$name") || { err='Input/output error'; return 1; }
}

write_body() { # BODY FILE OPTION…: its bytes, all of them, by dd; sets `err` where they are not
  b=$1 to=$2 size=$((${#1} / 4 * 3))
  shift 2
  case $b in *==) size=$((size - 2)) ;; *=) size=$((size - 1)) ;; esac
  if ! err=$(printf %s "$b" | base64 -d 2>/dev/null | LC_ALL=C dd of="$to" bs=65536 "$@" 2>&1); then
    err=$(printf '%s\n' "$err" | grep '^dd:' | tail -n 1)
    return 1
  fi
  case $n$err in *"$n$size bytes"*) return 0 ;; esac
  [ "$(LC_ALL=C stat -c %s "$to" 2>/dev/null)" = "$size" ] && return 0
  err='Input/output error'
  return 1
}

stage() { # BODY MODE: writes `new` beside the file, synced, with a mode, else that of `old`
  new=.gong-$G-$i-$k.tmp
  if ! write_body "$1" "./$new" conv=fsync; then
    rm -f "./$new"
    return 1
  fi
  if [ "$old" ]; then
    chown "${old#* }" "./$new" 2>/dev/null
    chmod "${old% *}" "./$new" 2>/dev/null
  fi
  [ "$2" ] && chmod "$2" "./$new"
  return 0
}

put() { # ID ROOT PATH EXPECTED MODE: the bytes in B1 become a file, whole or not at all
  i=$1 k=0 root=$2 path=$3
  if [ ! "$root" ]; then
    real "$path"
    path=$R root=/
  fi
  if ! locate "$root" "$path" make; then fail "$i" "$err"; return; fi
  if check_writable && check_before "$4" && stage "$B1" "$5"; then
    if err=$(LC_ALL=C mv -f "./$new" "./$name" 2>&1); then
      say "$i s 0 $(LC_ALL=C stat -c "$F" "./$name")"
      say "$i z"
      return
    fi
    rm -f "./$new"
  fi
  remove_made
  fail "$i" "$err"
}

remove_made() {
  printf '%s' "$made" | while IFS= read -r at; do rmdir "$at" 2>/dev/null; done
}

# Many changes, all or none: each is staged, then swapped in; a failure undoes all, the last first.
# steps: lines of "w FOLDER-AND-NAME" are in T (new files), K (old files kept).
change() { # ID ROOT (KIND PATH EXPECTED MODE LIKE)…: KIND is w or d; the k-th body is Bk
  i=$1 root=$2 k=0 count=0 undo_made=
  shift 2
  while [ $# -gt 0 ]; do
    k=$((k + 1)) kind=$1 path=$2
    [ "$kind" = w ] && keep=make || keep=
    if ! locate "$root" "$path" "$keep"; then undo_change; return; fi
    undo_made="$made$undo_made"
    old=
    if [ "$kind" = w ] && ! check_writable; then
      [ -L "./$name" ] || case $err in *'Is a dir'* | *'Not a reg'*) err='Stale file handle' ;; esac
      undo_change
      return
    fi
    if ! check_before "$3"; then undo_change; return; fi
    if [ "$kind" = w ]; then
      if [ "$5" ]; then old=$(LC_ALL=C stat -c '%a %u:%g' "$5" 2>/dev/null) || old=; fi
      eval "body=\$B$k"
      if ! stage "$body" "$4"; then undo_change; return; fi
    fi
    eval "P$k=\$path N$k=\$name D$k=\$PWD Y$k=\$kind X$k=\$3"
    count=$k
    shift 5
  done
  k=1
  while [ $k -le $count ]; do
    eval "path=\$P$k name=\$N$k folder=\$D$k kind=\$Y$k before=\$X$k"
    new=.gong-$G-$i-$k.tmp kept=.gong-$G-$i-$k.old
    if ! go "$folder"; then undo_change; return; fi
    if [ "$before" != - ]; then
      if [ "$kind" = d ] || ! ln "./$name" "./$kept" 2>/dev/null; then
        if ! err=$(LC_ALL=C mv -f "./$name" "./$kept" 2>&1); then undo_change; return; fi
      fi
    fi
    eval "Z$k=1"
    if [ "$kind" = w ]; then
      if ! err=$(LC_ALL=C mv -f "./$new" "./$name" 2>&1); then undo_change; return; fi
    fi
    k=$((k + 1))
  done
  k=1
  while [ $k -le $count ]; do
    eval "folder=\$D$k"
    cd "$folder" && rm -f "./.gong-$G-$i-$k.old"
    k=$((k + 1))
  done
  say "$i z"
}
undo_change() { # `path` and `err` say where it failed and why
  why=$err where=$path left=
  made="$made$undo_made"
  while [ $count -gt 0 ]; do
    k=$count
    eval "name=\$N$k folder=\$D$k before=\$X$k swapped=\${Z$k-} path=\$P$k"
    if cd "$folder"; then
      rm -f "./.gong-$G-$i-$k.tmp"
      if [ "$swapped" ]; then
        if [ "$before" = - ]; then
          rm -f "./$name" || left="$left $(encode "$path")"
        elif mv -f "./.gong-$G-$i-$k.old" "./$name" 2>/dev/null; then
          rm -f "./.gong-$G-$i-$k.old"
        else
          left="$left $(encode "$path")"
        fi
      fi
    fi
    count=$((count - 1))
  done
  remove_made
  for l in $left; do say "$i l $l"; done
  say "$i r $(encode "$where")"
  fail "$i" "$why"
}

tidy() { # ID CALL PATH…: removes what a write that was ended has begun beside its files
  i=$1 c=$2
  shift 2
  for path; do rm -f "${path%/*}/.gong-$G-$c-"*.tmp; done
  say "$i z"
}

restore() { # ID TOP PATH EXPECTED KIND MODE: KIND is w (a file), l (a link) or d (nothing)
  i=$1 k=0 top=$2 path=$3
  case $5 in d) keep= ;; *) keep=make ;; esac
  root=/
  case $path in "${top%/}"/*) root=$top ;; esac
  if ! locate "$root" "$path" "$keep"; then fail "$i" "$err"; return; fi
  if ! check_state "$4"; then remove_made; fail "$i" "$err"; return; fi
  new=.gong-$G-$i-$k.tmp old=
  case $5 in
  d) err=$(LC_ALL=C rm -f "./$name" 2>&1) || { fail "$i" "$err"; return; } ;;
  l)
    to=$(printf %s "$B1" | base64 -d && echo .)
    err=$(LC_ALL=C ln -s "${to%.}" "./$new" 2>&1) && swap_in ||
      { rm -f "./$new"; remove_made; fail "$i" "$err"; return; }
    ;;
  *)
    if [ -d "./$name" ] && [ ! -L "./$name" ]; then
      err=$(LC_ALL=C rmdir "./$name" 2>&1) || { fail "$i" "$err"; return; }
    fi
    stage "$B1" "$6" && swap_in ||
      { rm -f "./$new"; remove_made; fail "$i" "$err"; return; }
    ;;
  esac
  if [ "$5" = d ]; then # folders that are empty now go, too, as in git
    at=$PWD
    while cd -P .. && [ "$at" != "$top" ] && [ "$at" != / ] && rmdir "$at" 2>/dev/null; do at=$PWD; done
  fi
  say "$i z"
}
swap_in() { # `new` becomes `name`; a link to a folder goes first, else it would be moved into that
  if [ -L "./$name" ] && [ -d "./$name" ]; then err=$(LC_ALL=C rm -f "./$name" 2>&1) || return 1; fi
  err=$(LC_ALL=C mv -f "./$new" "./$name" 2>&1)
}
check_state() { # EXPECTED: as for `check_before`, or l and the digest of a link's text
  case $1 in
  l*)
    [ -L "./$name" ] || { err='Stale file handle'; return 1; }
    to=$(readlink "./$name" && echo .)
    d=$(printf %s "${to%"$n."}" | sha256sum)
    case $d in "${1#l } "*) return 0 ;; esac
    err='Stale file handle'
    return 1
    ;;
  *) check_before "$1" ;;
  esac
}

make_temporary() { # ID FOLDER: the bytes in B1 become a new file of its own there
  i=$1
  if ! path=$(umask 077 && LC_ALL=C mktemp "$2/gong-XXXXXX" 2>&1); then fail "$i" "$path"; return; fi
  if ! write_body "$B1" "$path"; then
    rm -f "$path"
    fail "$i" "$err"
    return
  fi
  say "$i r $(encode "$path")"
  say "$i z"
}
extend_file() { # ID PATH: the bytes in B1 are added to a file
  i=$1
  if ! err=$( (printf %s "$B1" | base64 -d >>"$2") 2>&1); then fail "$i" "$err"; return; fi
  say "$i z"
}

# --- requests ---

read_body() { # LENGTH: sets `b` to so many characters of standard input
  b= left=$1
  while [ "$left" -gt 0 ]; do
    size=$left
    [ "$size" -le 65536 ] || size=65536
    c=$(dd bs="$size" count=1 2>/dev/null)
    [ -n "$c" ] || exit 0
    b=$b$c
    left=$((left - ${#c}))
  done
}

watch_beats() { # PID of main: ends it when no beat came for a while
  seen=1
  trap 'seen=1' USR1
  trap 'kill $s; exit 0' TERM
  while [ "$seen" ] && kill -0 "$1"; do
    seen=
    GONG_CALL=$G.watch. sleep "$BEATS" &
    s=$!
    while kill -0 $s; do wait $s; done
  done 2>/dev/null
  kill -KILL "$1" 2>/dev/null
  kill -0 "$guard" 2>/dev/null || end_marked "GONG_CALL=$G." 0
}

tell_ended() { # says which requests have ended since; one that has not answered never will
  alive=
  for c in $requests; do
    if kill -0 "${c#*:}" 2>/dev/null; then alive="$alive $c"; else say "${c%:*} d"; fi
  done
  requests=$alive
}

serve() {
  w= asked=0 requests=
  while IFS= read -r line; do
    jobs >/dev/null 2>&1 # collects what has ended
    k=${line%% *} line=${line#* }
    case $k in
    beat)
      tell_ended
      say 0 y
      [ "$w" ] && { kill -USR1 "$w" 2>/dev/null || w=; }
      continue
      ;;
    quit) break ;;
    esac
    j=1
    while [ "$j" -le "$k" ]; do
      IFS= read -r size || exit 0
      read_body "$size"
      eval "B$j=\$b"
      j=$((j + 1))
    done
    if [ ! "$w" ]; then
      me=$(exec sh -c 'echo $PPID')
      watch_beats "$me" </dev/null >/dev/null 2>&1 6>&- &
      w=$!
    fi
    (eval "$line") </dev/null >&6 2>/dev/null &
    asked=$((asked + 1)) requests="$requests $asked:$!"
    if [ "$j" -gt 1 ]; then unset b c; while [ "$j" -gt 1 ]; do j=$((j - 1)); unset "B$j"; done; fi
  done
  [ "$w" ] && kill -TERM "$w" 2>/dev/null
  kill -0 "$guard" 2>/dev/null || end_marked "GONG_CALL=$G." 0
}

greet() {
  missing=
  for tool in base64 dd find stat mv ln rm mkdir chmod readlink tr tail sleep cat grep sha256sum xargs mktemp; do
    command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
  done
  better=
  for tool in bash git rg python3 setsid; do
    command -v "$tool" >/dev/null 2>&1 && better="$better $tool"
  done
  temporary=${TMPDIR:-/tmp}
  [ -d "$temporary" ] && [ -w "$temporary" ] || temporary=
  say "gong $G" "$(printf '%s\0' "$(uname -s)" "$(uname -r)" "$(pwd -P)" "${HOME-}" "$temporary" \
    "$missing" "$better" "$(id -u)" "$(date +%s)" "$(id -un)" "${HOSTNAME:-$(uname -n)}" | base64 | tr -d '\n')"
}

trap : HUP INT TERM
exec 3<&0 </dev/null
{
  exec 6>&1
  greet
  guard=$(exec sh -c 'echo $PPID')
  serve <&3 3<&- 2>/dev/null &
  main=$!
  exec 3<&- >/dev/null
  wait $main || say lost
  # A signal may end the waiting early.
  while kill -0 $main 2>/dev/null; do nap; done
  end_marked "GONG_CALL=$G." 0
} 2>/dev/null | cat
