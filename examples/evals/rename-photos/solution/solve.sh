#!/bin/bash
cat > rename.sh <<'SH'
#!/bin/bash
# Usage: rename.sh [-n] FOLDER
set -e
look=
if [ "$1" = -n ]; then
    look=1
    shift
fi
cd -- "$1"
export LC_ALL=C TZ=UTC0
declare -A photo=() number=()
old=() new=()
list() {
    find . -mindepth 1 -maxdepth 1 -type f ! -name '.*' \
        \( -iname '*.jpg' -o -iname '*.jpeg' -o -iname '*.png' \) -printf '%T@ %TY-%Tm-%Td %P\0' |
        sort -z -k1,1n -k3
}
while IFS= read -r -d '' line; do
    line=${line#* } name=${line#* }
    photo[x$name]=1
    old+=("$name")
    new+=("${line%% *}")
done < <(list)
for i in "${!old[@]}"; do
    end=${old[i]##*.} end=${end,,} day=${new[i]}
    end=${end/jpeg/jpg}
    while :; do
        number[$day]=$((${number[$day]:-0} + 1))
        new[i]=$(printf '%s_%03d.%s' "$day" "${number[$day]}" "$end")
        # A name is free if no one has it, or a photo that gets another one.
        if [ -n "${photo[x${new[i]}]}" ] || ! { [ -e "${new[i]}" ] || [ -L "${new[i]}" ]; }; then
            break
        fi
    done
done
if [ -n "$look" ]; then
    for i in "${!old[@]}"; do
        [ "${old[i]}" = "${new[i]}" ] || printf '%s -> %s\n' "${old[i]}" "${new[i]}"
    done
    exit
fi
for i in "${!old[@]}"; do mv -nT -- "./${old[i]}" "./.renaming.$$.$i"; done
for i in "${!old[@]}"; do mv -nT -- "./.renaming.$$.$i" "./${new[i]}"; done
SH
