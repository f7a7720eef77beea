#!/bin/sh
# From a table to a model, a report and predictions on the command line; then algorithms and other libraries compared.
set -eu
out=${1:-out}

run() {
    printf '\n$ %s\n' "$*"
    "$@"
}

python examples/make_table.py "$out"
printf '$ head -4 %s\n' "$out/train.csv"
head -4 "$out/train.csv"
run gce fit "$out/train.csv" --target leaves --test "$out/test.csv" --out "$out/model.safetensors" --report "$out/report.html"
run gce inspect "$out/model.safetensors"
run gce predict "$out/model.safetensors" "$out/test.csv" --proba --out "$out/predictions.csv"
printf '$ head -4 %s\n' "$out/predictions.csv"
head -4 "$out/predictions.csv"
printf '\n'
python examples/demo.py --out "$out"
