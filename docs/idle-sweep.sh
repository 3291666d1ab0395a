#!/bin/sh
# Package power of a desktop that does next to nothing, over the frequency of its little work: the sweep of the
# discussion of teo's utilisation awareness. Prints the tables of docs/idle-sweep.md, and writes the figure where
# the first argument says. SCHEDTWIN names the program, N the runs of each point.
#
#   cargo build --release -p schedtwin-cli && SCHEDTWIN=target/release/schedtwin docs/idle-sweep.sh docs/idle-sweep.svg
set -eu
schedtwin=${SCHEDTWIN:-schedtwin}
runs=${N:-5}
figure=${1:-/dev/null}
set_up=cpufreq=performance,hz=1000

# A line for each kernel: the mean power of the package, W.
watts() {
    "$schedtwin" compare -q -m i5-10600k -w "$1" -n "$runs" --format csv \
        -k "linux-6.0:cpuidle=menu,$set_up" -k "linux-6.0:cpuidle=teo,$set_up" \
        -k "linux-6.0+teo-util:$set_up" -k "linux-6.0+teo-util-step:$set_up" \
        -k "linux-6.0+teo-util-gradual:$set_up" |
        sed -n 's/.*,power,mean,package=package,mW,[a-z]*,[0-9]*,\([0-9.]*\),.*/\1/p' |
        awk '{ printf " %.2f", $1 / 1000 }'
}

# One table: title, what its first column is, the workload with @ for it, and the values of that column.
table() {
    title=$1 column=$2 workload=$3
    shift 3
    printf '## %s\n\n| %s | menu | teo | teo-util | teo-util-step | teo-util-gradual |\n|---|---|---|---|---|---|\n' \
        "$title" "$column"
    for value; do
        echo "$value$(watts "$(echo "$workload" | sed "s/@/$value/")")"
    done | tee "$points" | awk '{ gsub(/ /, " | "); print "| " $0 " |" }'
    echo
}

points=$(mktemp)
trap 'rm -f "$points"' EXIT
table "One thread, 1 % of a CPU" Hz "periodic -f @ -t 1 -d 1" 5 10 20 37 73 113 211 411

# Both axes are logarithmic: 5 to 411 Hz, 1 to 10 W.
awk '
    function x(hz) { return 50 + 430 * log(hz / 5) / log(411 / 5) }
    function y(watts) { return 250 - 230 * log(watts) / log(10) }
    BEGIN {
        split("menu teo teo-util teo-util-step teo-util-gradual", name, " ")
        split("#888 #06c #c30 #293 #93c", colour, " ")
    }
    { for (k = 1; k <= 5; k++) line[k] = line[k] " " sprintf("%.0f,%.0f", x($1), y($(k + 1))); at[NR] = $1 }
    END {
        print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 640 290\" font-family=\"sans-serif\" font-size=\"11\">"
        for (w = 1; w <= 10; w += w < 2 ? 1 : (w < 5 ? 3 : 5))
            printf "<path d=\"M50 %.0fH480\" stroke=\"#ddd\"/><text x=\"44\" y=\"%.0f\" text-anchor=\"end\">%d W</text>\n", y(w), y(w) + 4, w
        for (n = 1; n <= NR; n++)
            printf "<text x=\"%.0f\" y=\"268\" text-anchor=\"middle\">%s</text>\n", x(at[n]), at[n]
        print "<text x=\"265\" y=\"285\" text-anchor=\"middle\">Hz</text>"
        for (k = 1; k <= 5; k++) {
            printf "<polyline fill=\"none\" stroke-width=\"2\" stroke=\"%s\" points=\"%s\"/>\n", colour[k], substr(line[k], 2)
            printf "<text x=\"495\" y=\"%d\" fill=\"%s\">%s</text>\n", 30 + 18 * k, colour[k], name[k]
        }
        print "</svg>"
    }' "$points" > "$figure"

table "Twelve threads, 1 % of a CPU each" Hz "periodic -f @ -t 12 -d 1" 5 20 73 211 411
table "One thread at 73 Hz" "% of a CPU" "periodic -f 73 -t 1 -d @" 0.1 0.5 1 1.5 2 3 5 10
table "Twelve threads at 73 Hz" "% of a CPU each" "periodic -f 73 -t 12 -d @" 0.1 0.5 1 1.5 2 3 5 10
