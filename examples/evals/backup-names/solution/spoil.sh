#!/bin/bash
# Quotes everything, and still reads names by lines and compares times.
cat > backup.sh <<'SH'
#!/bin/bash
if [ $# -ne 2 ] || [ ! -d "$1" ]; then
    exit 2
fi
copied=0
find "./$1" -type f | while read -r file; do
    to="./$2/${file#./"$1"/}"
    if [ ! -e "$to" ] || [ "$file" -nt "$to" ]; then
        mkdir -p "$(dirname "$to")" && cp -p "$file" "$to" && copied=$((copied + 1))
    fi
done
echo "copied $copied"
SH
