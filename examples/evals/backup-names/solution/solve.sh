#!/bin/bash
cat > backup.sh <<'SH'
#!/bin/bash
# Usage: backup.sh SOURCE TARGET
if [ $# -ne 2 ] || [ ! -d "$1" ]; then
    echo "Usage: backup.sh SOURCE TARGET" >&2
    exit 2
fi
case $1 in /*) source=$1 ;; *) source=$PWD/$1 ;; esac
case $2 in /*) target=$2 ;; *) target=$PWD/$2 ;; esac
copied=0 failed=0
while IFS= read -r -d '' name; do
    from=$source/$name to=$target/$name
    if [ -f "$to" ] && [ ! -L "$to" ] && cmp -s -- "$from" "$to"; then
        continue
    fi
    if mkdir -p -- "${to%/*}" && cp -pT -- "$from" "$to"; then
        copied=$((copied + 1))
    else
        printf 'cannot copy %s\n' "$name" >&2
        failed=1
    fi
done < <(find "$source" -type f -printf '%P\0')
echo "copied $copied"
exit "$failed"
SH
