#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A sweep in shards with GNU parallel, on this computer or, with PARALLEL=--sshlogin..., on several. A shard that failed is begun
# again, and goes on where it stopped.
#
#   SHARDS=8 ./parallel.sh runs.csv -m pixel6 -w ui-phone -k 'linux-7.3:hz={100,250,1000}' -n 20
set -eu

out="$1"
shift
shards="${SHARDS:-$(nproc)}"
parts="$(mktemp -d "$out.parts.XXXXXX")"
# -q: arguments stay what they are. One thread a shard: parallel has as many at once as there are CPUs.
seq "$shards" | parallel -q -I @SHARD@ --retries 3 --halt soon,fail=1 \
    "${SCHEDTWIN:-schedtwin}" sweep --quiet --threads 1 --shard "@SHARD@/$shards" -o "$parts/part-@SHARD@.csv" "$@" > "$parts/log"
"${SCHEDTWIN:-schedtwin}" merge "$parts"/part-*.csv -o "$out"
rm -r "$parts"
