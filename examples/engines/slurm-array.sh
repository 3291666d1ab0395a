#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# A sweep as an array of Slurm: each task performs a shard, all write into one folder.
#
#   mkdir -p parts
#   array=$(sbatch --parsable slurm-array.sh)
#   sbatch --dependency=afterok:$array --wrap 'schedtwin merge parts/part-*.csv -o runs.csv'
#
# A task that was pre-empted or timed out is queued again, and goes on where it stopped: finished runs are in part-K.csv.runs.
#SBATCH --job-name=schedtwin
#SBATCH --array=1-40
#SBATCH --cpus-per-task=2
#SBATCH --mem=2G
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --output=parts/slurm-%a.log
set -eu

exec "${SCHEDTWIN:-schedtwin}" sweep --quiet --threads "${SLURM_CPUS_PER_TASK:-1}" \
    -m pixel6 -w ui-phone -k 'linux-7.3:hz={100,250,1000},schedutil.rate_limit_us={500,1000,2000}' -n 100 \
    --shard "$SLURM_ARRAY_TASK_ID/${SLURM_ARRAY_TASK_MAX:-$SLURM_ARRAY_TASK_COUNT}" -o "parts/part-$SLURM_ARRAY_TASK_ID.csv"
