#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What a device says about itself, as files for schedtwin @VERSION@.
#
#   schedtwin capture > capture.sh;  sh capture.sh [DIRECTORY]
#   schedtwin capture | ssh HOST sh -s -- DIRECTORY
#   schedtwin capture | adb shell su 0 sh -s -- /data/local/tmp/capture
#
# Writes DIRECTORY/machine.toml and DIRECTORY/kernel.toml (DIRECTORY: schedtwin-capture if left out) and
# nothing else. What the device did not say is marked `# estimated`. As root, and with debugfs mounted, it
# says more: the energy model, voltages, scheduler features.
#
# Needs a POSIX shell, mkdir, mv, rm and cat; zcat, sleep and uname help. Numbers stay below 2^31, which is all that
# the shell of Android computes with. SCHEDTWIN_ROOT: where to read instead of / (for tests).

# shellcheck disable=SC2034,SC2154  # variables per CPU and clock are set and read by eval
set -u
LC_ALL=C
export LC_ALL
unset -v IFS 2>/dev/null || :
ROOT=${SCHEDTWIN_ROOT:-}
CPU=/sys/devices/system/cpu
DEBUG=/sys/kernel/debug
NEWLINE='
'
BUILTIN='@BUILTIN@'
# Scheduler features: the name in a kernel file, and the kernel's own.
FEATURES='@FEATURES@'

# ---- reading -----------------------------------------------------------------------------------

# The first line of a file in LINE; fails if it cannot be read or is empty.
line() {
    LINE=
    [ -r "$ROOT$1" ] || return 1
    case $1 in
    # These give their value to the first read only, and some shells read a byte at a time.
    /proc/sys/*)
        LINE=$(cat "$ROOT$1" 2>/dev/null)
        LINE=${LINE%%"$NEWLINE"*}
        ;;
    *) { IFS= read -r LINE <"$ROOT$1"; } 2>/dev/null ;;
    esac
    [ -n "$LINE" ]
}

# Whether $1 is a whole number of at most nine digits: without its leading zeros in NUMBER.
whole() {
    NUMBER=$1
    case $NUMBER in '' | *[!0-9]*) return 1 ;; esac
    while :; do
        case $NUMBER in 0?*) NUMBER=${NUMBER#0} ;; *) break ;; esac
    done
    [ ${#NUMBER} -le 9 ]
}

# The number in a file's first line, in NUMBER.
number() {
    line "$1" || return 1
    whole "${LINE%%[!0-9]*}"
}

# $1 with everything strange replaced, at most $2 letters, in CLEAN.
clean() {
    CLEAN=
    tail=$1
    while [ -n "$tail" ] && [ ${#CLEAN} -lt "$2" ]; do
        letter=${tail%"${tail#?}"}
        tail=${tail#?}
        case $letter in
        [A-Za-z0-9_.+-]) CLEAN=$CLEAN$letter ;;
        ' ') CLEAN="$CLEAN " ;;
        *) CLEAN=${CLEAN}_ ;;
        esac
    done
}

# The CPUs of a list such as "0-3,6" or "0 1", below NCPU, in LIST.
expand() {
    LIST=
    text=$1
    while [ -n "$text" ]; do
        piece=${text%%[, ]*}
        case $text in *[,\ ]*) text=${text#*[, ]} ;; *) text= ;; esac
        whole "${piece%%-*}" || continue
        from=$NUMBER
        whole "${piece#*-}" || continue
        while [ "$from" -le "$NUMBER" ] && [ "$from" -lt "$NCPU" ]; do
            LIST="$LIST $from"
            from=$((from + 1))
        done
    done
}

# Numbers in rising order, none twice, in SORTED.
sorted() {
    SORTED=
    for new in "$@"; do
        ordered=
        placed=
        for old in $SORTED; do
            if [ -z "$placed" ] && [ "$new" -le "$old" ]; then
                [ "$new" -eq "$old" ] || ordered="$ordered $new"
                placed=1
            fi
            ordered="$ordered $old"
        done
        [ -n "$placed" ] || ordered="$ordered $new"
        SORTED=$ordered
    done
}

# ---- what there is -----------------------------------------------------------------------------

read_release() {
    RELEASE=unknown
    MAJOR=0
    MINOR=0
    if line /proc/sys/kernel/osrelease; then
        clean "$LINE" 60
        RELEASE=$CLEAN
        whole "${RELEASE%%.*}" && MAJOR=$NUMBER
        rest=${RELEASE#*.}
        whole "${rest%%[!0-9]*}" && MINOR=$NUMBER
        [ "$MAJOR" -le 999 ] || MAJOR=999
        [ "$MINOR" -le 999 ] || MINOR=999
    fi
    VERSION=$((MAJOR * 1000 + MINOR))
    # The newest built-in kernel that is no newer, else the oldest.
    NEAREST=
    for built_in in $BUILTIN; do
        number=$((${built_in%.*} * 1000 + ${built_in#*.}))
        if [ -z "$NEAREST" ] || [ "$number" -le "$VERSION" ]; then NEAREST=$built_in; fi
    done
}

read_cpus() {
    NCPU=0
    while [ -d "$ROOT$CPU/cpu$NCPU" ] && [ "$NCPU" -lt 256 ]; do NCPU=$((NCPU + 1)); done
    CPUS_ESTIMATED=
    if [ "$NCPU" -eq 0 ]; then
        NCPU=1
        CPUS_ESTIMATED=' # estimated: the device shows no CPUs'
    fi
    SMT=
    # Whose code makes domains; kernels before 6.1 have no file for it.
    ARCH=
    line /proc/sys/kernel/arch || { [ -z "$ROOT" ] && LINE=$(uname -m 2>/dev/null); }
    case $LINE in
    x86_64 | i?86) ARCH=x86 ;;
    ppc64*) ARCH=powerpc ;;
    ?*) ARCH=arm64 ;;
    esac
    cpu=0
    while [ "$cpu" -lt "$NCPU" ]; do
        topology=$CPU/cpu$cpu/topology
        package=none
        number "$topology/physical_package_id" && package=$NUMBER
        cluster=none
        # 65535: the firmware knows none.
        number "$topology/cluster_id" && [ "$NUMBER" -ne 65535 ] && cluster=$NUMBER
        core=none
        if line "$topology/thread_siblings_list"; then
            expand "$LINE"
            case $LIST in ' '*' '*) SMT=1 core=$LIST ;; esac
        fi
        l2=none
        cache=none
        deepest=0
        index=0
        while [ -d "$ROOT$CPU/cpu$cpu/cache/index$index" ] && [ "$index" -lt 16 ]; do
            if number "$CPU/cpu$cpu/cache/index$index/level" && [ "$NUMBER" -ge "$deepest" ]; then
                level=$NUMBER
                if line "$CPU/cpu$cpu/cache/index$index/shared_cpu_list"; then
                    expand "$LINE"
                    cache=$LIST
                    deepest=$level
                    [ "$level" -ne 2 ] || l2=$LIST
                fi
            fi
            index=$((index + 1))
        done
        node=0
        for directory in "$ROOT$CPU/cpu$cpu"/node[0-9]*; do
            [ -d "$directory" ] && whole "${directory##*node}" && node=$NUMBER
        done
        eval "package_$cpu=\$package cluster_$cpu=\$cluster cache_$cpu=\$cache node_$cpu=\$node"
        eval "core_$cpu=\$core l2_$cpu=\$l2"
        cpu=$((cpu + 1))
    done
}

# Clocks: CPUs that a cpufreq policy holds together; without cpufreq, those of equal capacity.
read_clocks() {
    CLOCKS=0
    MOST=0
    known=' '
    cpu=0
    while [ "$cpu" -lt "$NCPU" ]; do
        case $known in
        *" $cpu "*) ;;
        *)
            policy=$CPU/cpufreq/policy$cpu
            [ -d "$ROOT$policy" ] || policy=$CPU/cpu$cpu/cpufreq
            capacity=none
            number "$CPU/cpu$cpu/cpu_capacity" && [ "$NUMBER" -gt 0 ] && capacity=$NUMBER
            if [ "$capacity" != none ] && [ "$capacity" -gt 1000000 ]; then capacity=none; fi
            LIST=
            alike=
            if line "$policy/related_cpus"; then
                expand "$LINE"
            elif [ ! -d "$ROOT$policy" ]; then
                alike=' # estimated: no cpufreq; CPUs of equal capacity share a clock'
                other=$cpu
                while [ "$other" -lt "$NCPU" ]; do
                    theirs=none
                    number "$CPU/cpu$other/cpu_capacity" && theirs=$NUMBER
                    if [ ! -d "$ROOT$CPU/cpu$other/cpufreq" ] && [ "$theirs" = "$capacity" ]; then
                        LIST="$LIST $other"
                    fi
                    other=$((other + 1))
                done
            fi
            members=$cpu
            known="$known$cpu "
            for other in $LIST; do
                case $known in
                *" $other "*) ;;
                *)
                    members="$members,$other"
                    known="$known$other "
                    ;;
                esac
            done
            eval "first_$CLOCKS=\$cpu policy_$CLOCKS=\$policy members_$CLOCKS=\$members"
            eval "capacity_$CLOCKS=\$capacity alike_$CLOCKS=\$alike"
            if [ "$capacity" != none ] && [ "$capacity" -gt "$MOST" ]; then MOST=$capacity; fi
            CLOCKS=$((CLOCKS + 1))
            ;;
        esac
        cpu=$((cpu + 1))
    done
    # The kernel makes the largest capacity 1024; where it did not, this does.
    clock=0
    while [ "$clock" -lt "$CLOCKS" ]; do
        eval "capacity=\$capacity_$clock"
        if [ "$capacity" = none ]; then
            eval "capacity_$clock=1024 told_$clock=' # estimated: the device does not say'"
        elif [ "$MOST" -eq 1024 ]; then
            eval "told_$clock="
        else
            # Neither is above 1000000, so the product fits 31 bits.
            capacity=$((capacity * 1024 / MOST))
            [ "$capacity" -gt 0 ] || capacity=1
            eval "capacity_$clock=\$capacity told_$clock=' # estimated: scaled, the largest said was $MOST'"
        fi
        clock=$((clock + 1))
    done
}

# Threads that schedutil has only where the driver cannot switch fast. Who may not see the kernel's threads
# at all has learnt nothing.
read_sugov() {
    SUGOV=' '
    THREADS=
    for file in "$ROOT"/proc/[0-9]*/comm; do
        [ -r "$file" ] || continue
        LINE=
        { IFS= read -r LINE <"$file"; } 2>/dev/null
        case $LINE in
        kthreadd) THREADS=1 ;;
        sugov:*) SUGOV="$SUGOV${LINE#sugov:} " ;;
        esac
    done
}

# ---- machine.toml ------------------------------------------------------------------------------

# CPUs whose variable $1_N (or the words of all variables named) are equal, as a list for TOML, in PARTS.
# CPUs with "none" for the last are in no part.
parts() {
    PARTS=
    seen=$NEWLINE
    cpu=0
    while [ "$cpu" -lt "$NCPU" ]; do
        key_of "$cpu" "$@"
        case $KEY in *'|none') cpu=$((cpu + 1)) && continue ;; esac
        case $seen in
        *"$NEWLINE$KEY$NEWLINE"*) ;;
        *)
            seen="$seen$KEY$NEWLINE"
            mine=$KEY
            list=
            other=$cpu
            while [ "$other" -lt "$NCPU" ]; do
                key_of "$other" "$@"
                [ "$KEY" != "$mine" ] || list="$list,$other"
                other=$((other + 1))
            done
            PARTS="$PARTS, \"${list#,}\""
            ;;
        esac
        cpu=$((cpu + 1))
    done
    PARTS="[${PARTS#, }]"
}

key_of() {
    of=$1
    shift
    KEY=
    for variable in "$@"; do eval "KEY=\"\$KEY|\$${variable}_$of\""; done
}

write_topology() {
    estimated=
    cpu=0
    while [ "$cpu" -lt "$NCPU" ]; do
        eval "package=\$package_$cpu cache=\$cache_$cpu"
        if [ "$package" = none ]; then
            eval "package_$cpu=0"
            estimated=' # estimated: the device does not say'
        fi
        [ "$cache" != none ] || eval "cache_$cpu=unknown"
        # Up to 5.19, kernels with a device tree call a leaf cluster a package.
        if [ "$VERSION" -lt 6000 ] && [ -d "$ROOT/sys/firmware/devicetree/base" ]; then
            eval "cluster_$cpu=\$package_$cpu package_$cpu=0"
            estimated=' # estimated: one socket; this kernel calls clusters packages'
        fi
        cpu=$((cpu + 1))
    done
    echo '[topologies.captured]'
    parts package
    echo "package = $PARTS$estimated"
    # A cache reaches over neither packages nor nodes.
    parts package node cache
    case $cache_0 in
    unknown) echo "llc = $PARTS # estimated: the device does not say" ;;
    *) echo "llc = $PARTS" ;;
    esac
    kind=
    case $ARCH in
    x86 | powerpc)
        echo "architecture = \"$ARCH\""
        parts package node cache l2
        [ "$PARTS" = '[]' ] || echo "l2 = $PARTS"
        kind=l2
        ;;
    *)
        parts package node cache cluster
        [ "$PARTS" = '[]' ] || echo "cluster = $PARTS"
        kind=cluster
        ;;
    esac
    if [ -n "$SMT" ]; then
        parts package node cache $kind core
        echo "core = $PARTS"
        echo 'kernel_smt = true'
    fi
    parts node
    case $PARTS in
    *'", "'*)
        if distances; then
            echo "node = $PARTS"
            echo "distances = $DISTANCES"
        else
            echo "node = $PARTS # estimated: how far they are from each other"
        fi
        ;;
    esac
    [ -z "$SMT" ] || cat <<'END'

[smt]
second_permille = 150 # estimated
speed_permille = [1000, 650] # estimated
END
}

# How far nodes are from each other, in DISTANCES: nodes with CPUs, in the order of their lowest CPUs. Fails unless every node
# says so, and says what Linux would take.
distances() {
    known=' '
    nodes=
    cpu=0
    while [ "$cpu" -lt "$NCPU" ]; do
        eval "node=\$node_$cpu"
        case $known in *" $node "*) ;; *) known="$known$node " nodes="$nodes $node" ;; esac
        cpu=$((cpu + 1))
    done
    # A row has a number for each node that is online, also for those without CPUs.
    line /sys/devices/system/node/online || return 1
    expand "$LINE"
    online=$LIST
    DISTANCES=
    for from in $nodes; do
        line "/sys/devices/system/node/node$from/distance" || return 1
        row=
        for to in $nodes; do
            column=0
            place=
            for node in $online; do
                column=$((column + 1))
                [ "$node" -ne "$to" ] || place=$column
            done
            [ -n "$place" ] || return 1
            column=0
            found=
            for distance in $LINE; do
                column=$((column + 1))
                [ "$column" -ne "$place" ] || found=$distance
            done
            whole "$found" && [ "$NUMBER" -ge 10 ] && [ "$NUMBER" -le 255 ] || return 1
            if [ "$from" -eq "$to" ]; then
                [ "$NUMBER" -eq 10 ] || return 1
            else
                [ "$NUMBER" -ne 10 ] || return 1
            fi
            row="$row, $NUMBER"
        done
        DISTANCES="$DISTANCES, [${row#, }]"
    done
    DISTANCES="[${DISTANCES#, }]"
}

# The timer that wakes CPUs whose own timers stop.
write_broadcast() {
    line /sys/devices/system/clockevents/broadcast/current_device || return 0
    echo
    echo '[broadcast]'
    clean "$LINE" 40
    case $LINE in
    bc_hrtimer) echo 'device = "hrtimer"' ;;
    *)
        echo "device = \"$CLEAN\""
        echo 'moves = true # estimated: whether its interrupt goes to the CPU with the earliest event'
        ;;
    esac
}

write_idle() {
    eval "first=\$first_$1"
    echo
    echo "[core.core$1]"
    echo 'idle = ['
    index=0
    count=0
    polls=
    names=' '
    least_latency=0
    least_residency=0
    while [ -d "$ROOT$CPU/cpu$first/cpuidle/state$index" ] && [ "$index" -lt 10 ]; do
        state=$CPU/cpu$first/cpuidle/state$index
        notes=
        clean state"$index" 31
        if line "$state/name"; then clean "$LINE" 28; else notes="$notes name"; fi
        name=$CLEAN
        case $names in *" $name "*) name=$name+$index ;; esac
        if number "$state/latency" && [ "$NUMBER" -le 1000000 ]; then
            latency=$NUMBER
        else
            latency=$least_latency
            notes="$notes latency"
        fi
        if number "$state/residency" && [ "$NUMBER" -le 1000000 ]; then
            residency=$NUMBER
        else
            residency=$((latency * 2))
            [ "$residency" -le 1000000 ] || residency=1000000
            notes="$notes residency"
        fi
        if [ "$name" = POLL ] && [ "$index" -eq 0 ]; then
            echo '  { name = "POLL", entry_ns = 0, exit_ns = 0, residency_us = 0, power = "active", polling = true }, # estimated: exit, power'
            names="${names}POLL "
            polls=1
        elif number "$state/disable" && [ "$NUMBER" -ne 0 ]; then
            echo "  # $name is left out: it is switched off (latency $latency us, residency $residency us)"
        else
            if [ "$count$polls" = 0 ] && [ "$residency" -gt 1 ]; then
                notes="$notes residency-said-$residency"
                residency=1
            fi
            if [ "$latency" -lt "$least_latency" ]; then
                notes="$notes latency-said-$latency"
                latency=$least_latency
            fi
            if [ "$residency" -lt "$least_residency" ]; then
                notes="$notes residency-said-$residency"
                residency=$least_residency
            fi
            entry=$((latency / 3))
            exit=$((latency - entry))
            [ "$entry" -eq 0 ] || entry=${entry}000
            [ "$exit" -eq 0 ] || exit=${exit}000
            printf '  { name = "%s", entry_ns = %s, exit_ns = %s, residency_us = %s, ' \
                "$name" "$entry" "$exit" "$residency"
            if [ "$count" -eq 0 ]; then
                printf 'power = "wfi" }, # estimated: entry, power%s\n' "$notes"
            else
                stops=
                # The firmware's node has the name of the state.
                stop=$ROOT/sys/firmware/devicetree/base/cpus/idle-states/$name/local-timer-stop
                [ ! -e "$stop" ] || stops=' local_timer_stops = true,'
                printf 'power = "off",%s deep = true }, # estimated: entry, power, deep%s\n' "$stops" "$notes"
            fi
            names="$names$name "
            least_latency=$latency
            least_residency=$residency
            count=$((count + 1))
        fi
        index=$((index + 1))
    done
    if [ "$count" -eq 0 ]; then
        echo '  { name = "WFI", entry_ns = 0, exit_ns = 1_000, residency_us = 1, power = "wfi" }, # estimated: no cpuidle'
    fi
    echo ']'
}

# The frequencies of clock $1 in SORTED, and in NOTE where they come from if not from cpufreq.
frequencies() {
    eval "first=\$first_$1 policy=\$policy_$1"
    NOTE=
    found=
    count=0
    line "$policy/scaling_available_frequencies" && found=$LINE
    line "$policy/scaling_boost_frequencies" && found="$found $LINE"
    if [ -z "$found" ]; then
        for directory in "$ROOT$DEBUG/energy_model/cpu$first"/ps:*; do
            [ ! -d "$directory" ] || found="$found ${directory##*ps:}"
        done
    fi
    good=
    for khz in $found; do
        if whole "$khz" && [ "$NUMBER" -gt 0 ] && [ "$NUMBER" -le 10000000 ] && [ "$count" -lt 256 ]; then
            good="$good $NUMBER"
            count=$((count + 1))
        fi
    done
    if [ -z "$good" ]; then
        high=1000000
        NOTE=' # estimated: the device names no frequency'
        if number "$policy/cpuinfo_max_freq" && [ "$NUMBER" -gt 0 ] && [ "$NUMBER" -le 10000000 ]; then
            high=$NUMBER
            NOTE=' # estimated: the device names only its limits'
        fi
        low=$high
        if number "$policy/cpuinfo_min_freq" && [ "$NUMBER" -gt 0 ] && [ "$NUMBER" -lt "$high" ]; then
            low=$NUMBER
        fi
        step=0
        while [ "$step" -le 7 ]; do
            # shellcheck disable=SC2017  # the product would not fit 31 bits
            good="$good $((low + (high - low) / 7 * step))"
            step=$((step + 1))
        done
        good="$good $high"
    fi
    # shellcheck disable=SC2086  # numbers, each a word
    sorted $good
}

# Whether schedutil can switch clock $1 in the scheduler's context.
fast_switch() {
    eval "first=\$first_$1 policy=\$policy_$1"
    governor=
    line "$policy/scaling_governor" && governor=$LINE
    driver=unknown
    line "$policy/scaling_driver" && clean "$LINE" 40 && driver=$CLEAN
    case $SUGOV in *" $first "*) echo "fast_switch = false # a thread sugov:$first is there" && return ;; esac
    if [ "$governor" = schedutil ] && [ -n "$THREADS" ]; then
        echo 'fast_switch = true # schedutil runs and has no thread'
        return
    fi
    case $driver in
    acpi-cpufreq | intel_cpufreq | intel_pstate | amd-pstate* | cppc_cpufreq | scmi | powernv-cpufreq)
        echo "fast_switch = true # estimated: driver $driver usually can"
        ;;
    *) echo "fast_switch = false # estimated: driver $driver" ;;
    esac
}

write_clock() {
    eval "first=\$first_$1 policy=\$policy_$1 members=\$members_$1 capacity=\$capacity_$1"
    eval "told=\$told_$1 alike=\$alike_$1"
    echo
    echo "[cpu.group$1]"
    echo "cpus = \"$members\"$CPUS_ESTIMATED"
    echo "core = \"core$1\""
    echo "capacity = $capacity$told"
    echo
    echo "[domain.policy$first]"
    echo "cpus = \"$members\"$alike"
    fast_switch "$1"
    latency=
    # In nanoseconds, so up to ten digits: cut before it is a number. 4294967295, unknown, is beyond the limit.
    if line "$policy/cpuinfo_transition_latency"; then
        case $LINE in ? | ?? | ???) LINE=0 ;; *) LINE=${LINE%???} ;; esac
        whole "$LINE" && [ "$NUMBER" -le 1000000 ] && latency=$NUMBER
    fi
    if [ -n "$latency" ]; then
        echo "transition_latency_us = $latency"
    else
        echo 'transition_latency_us = 1_000 # estimated: the device does not say'
    fi
    frequencies "$1"
    unit=
    [ "$VERSION" -ge 6000 ] || unit=000
    scale=
    if line "$DEBUG/energy_model/cpu$first/flags"; then
        case $LINE in *[4567]) scale=' # estimated: the energy model is of no unit' ;; esac
    fi
    highest=1
    for khz in $SORTED; do highest=$khz; done
    highest=$((highest / 1000))
    [ "$highest" -gt 0 ] || highest=1
    echo "opp = [$NOTE"
    for khz in $SORTED; do
        ratio=$((khz / 1000 * 1000 / highest))
        [ "$ratio" -le 1000 ] || ratio=1000
        power=
        if number "$DEBUG/energy_model/cpu$first/ps:$khz/power" && [ "$NUMBER" -gt 0 ]; then
            # Milliwatts before 6.0.
            whole "$NUMBER$unit" && power=$NUMBER
        fi
        marks=
        if [ -z "$power" ]; then
            # 2 W for the strongest, with the square of the frequency.
            # shellcheck disable=SC2017  # the product would not fit 31 bits
            power=$((capacity * 2000 * ratio / 1000 * ratio / 1000))
            [ "$power" -gt 0 ] || power=1
            marks='em_uw, '
        fi
        volts=
        supply=$DEBUG/opp/cpu$first/opp:${khz}000/supply-0
        if number "$supply/u_volt_target" && [ "$NUMBER" -gt 0 ]; then volts=" uv = $NUMBER,"; fi
        echo "  { khz = $khz,$volts em_uw = $power, active_uw = $power, wfi_uw = $((power / 20)) }, # estimated: ${marks}active_uw, wfi_uw$scale"
    done
    echo ']'
}

# What a virtual machine cannot say of itself.
tell_of_hypervisor() {
    virtual=
    { while IFS= read -r entry; do
        case $entry in
        flags*' hypervisor'*) virtual=1 ;;
        # CPUs are alike in this.
        '') break ;;
        esac
    done <"$ROOT/proc/cpuinfo"; } 2>/dev/null
    [ -n "$virtual" ] || return 0
    steal='not told'
    if line /proc/stat; then
        # user nice system idle iowait irq softirq steal
        # shellcheck disable=SC2086  # these are fields
        set -- $LINE
        [ $# -lt 9 ] || steal="$9 jiffies so far"
    fi
    clock=unknown
    line /sys/devices/system/clocksource/clocksource0/current_clocksource && clock=$LINE
    polls='none'
    number /sys/module/haltpoll/parameters/guest_halt_poll_ns && polls="$NUMBER ns"
    clean "$steal" 40
    cat <<END
# A virtual machine. Its hypervisor hides clocks and the real idle states; an idle CPU leaves to it, which shows in
# wakeups: \`schedtwin calibrate machine\` measures them. It may take CPUs away (steal time): $CLEAN.
END
    clean "$clock" 40
    echo "# Clock source: $CLEAN. Polling before a halt: $polls."
}

write_machine() {
    what='a device'
    for file in /sys/firmware/devicetree/base/model /sys/class/dmi/id/product_name; do
        if line $file; then
            clean "$LINE" 60
            what=$CLEAN
            break
        fi
    done
    cat <<END
# Written by schedtwin capture @VERSION@ on a device that runs Linux $RELEASE.
# Lines, or the keys named there, that are marked "estimated" are not what the device said.
END
    tell_of_hypervisor
    cat <<END

name = "captured"
description = "$what, captured"
topology = "captured"
coupling = false # estimated: clocks do not say so
ns_per_loop = 50 # estimated: what rt-app's calibration finds on the strongest CPU

# For clocks that say nothing of their own.
transition_latency_us = 1_000 # estimated
settle_us = 100 # estimated
fast_switch = false # estimated
dvfs_possible_from_any_cpu = true # estimated

END
    write_topology
    clock=0
    while [ "$clock" -lt "$CLOCKS" ]; do
        write_idle "$clock"
        write_clock "$clock"
        clock=$((clock + 1))
    done
    write_broadcast
    cat <<'END'

@COSTS@
# end
END
}

# File $1 with the number of its lines that hold an estimate, which is known only when all are written.
counted() {
    estimates=0
    while IFS= read -r entry; do
        case $entry in *' # estimated'*) estimates=$((estimates + 1)) ;; esac
    done <"$1"
    while IFS= read -r entry; do
        printf '%s\n' "$entry"
        case $entry in 'description = '*) echo "estimated = $estimates" ;; esac
    done <"$1"
}

# ---- kernel.toml -------------------------------------------------------------------------------

# Sets key $1 of the kernel file to $2.
put() { PUTS="$PUTS$NEWLINE$1=$2$NEWLINE"; }

# The same for the number in file $2 if it is within $3 and $4.
put_number() {
    number "$2" && [ "$NUMBER" -ge "$3" ] && [ "$NUMBER" -le "$4" ] && put "$1" "$NUMBER"
}

read_config() {
    CONFIG=$({
        if [ -r "$ROOT/proc/config.gz" ]; then
            zcat "$ROOT/proc/config.gz"
        else
            cat "$ROOT/boot/config-$RELEASE"
        fi
    } 2>/dev/null | while IFS= read -r entry; do
        case $entry in
        CONFIG_HZ=* | CONFIG_PREEMPT*=y | CONFIG_IRQ_TIME_ACCOUNTING=y | CONFIG_SCHED_CLUSTER=y | \
            CONFIG_FAIR_GROUP_SCHED=y | CONFIG_UCLAMP_TASK=y | CONFIG_SMP=y) printf '%s\n' "$entry" ;;
        esac
    done)
    CONFIG=$NEWLINE$CONFIG$NEWLINE
}

# Whether the configuration has $1. Fails, too, if there is none.
has() {
    case $CONFIG in *"$NEWLINE$1$NEWLINE"*) return 0 ;; esac
    return 1
}

# Ticks per second, from the configuration or by waiting for a second.
read_hz() {
    case $CONFIG in
    *"${NEWLINE}CONFIG_HZ="*)
        hz=${CONFIG#*CONFIG_HZ=}
        hz=${hz%%"$NEWLINE"*}
        if whole "$hz" && [ "$NUMBER" -ge 24 ] && [ "$NUMBER" -le 10000 ]; then put hz "$NUMBER"; fi
        return
        ;;
    esac
    # The second line of schedstat has the jiffies; the last six digits tell a second's worth.
    [ -z "$ROOT" ] && jiffies && before=$DIGITS && sleep 1 2>/dev/null && jiffies || return
    ticks=$(((DIGITS - before + 1000000) % 1000000))
    for hz in 100 250 300 1000; do
        # Sleeping takes a little longer, never shorter.
        if [ "$ticks" -ge $((hz * 99 / 100)) ] && [ "$ticks" -le $((hz * 110 / 100)) ]; then
            put hz "$hz # measured"
        fi
    done
}

jiffies() {
    DIGITS=
    { while IFS= read -r entry; do
        case $entry in timestamp\ *)
            DIGITS=${entry#timestamp }
            break
            ;;
        esac
    done </proc/schedstat; } 2>/dev/null
    while [ ${#DIGITS} -gt 6 ]; do DIGITS=${DIGITS#?}; done
    whole "$DIGITS" && DIGITS=$NUMBER
}

# A number of nanoseconds that the kernel has multiplied for its CPUs, divided again.
put_unscaled() {
    factor=1
    if number $DEBUG/sched/tunable_scaling; then
        case $NUMBER in
        1) for some in 2 4 8; do [ "$NCPU" -lt $some ] || factor=$((factor + 1)); done ;;
        2) factor=$NCPU && [ "$factor" -le 8 ] || factor=8 ;;
        esac
    else
        return
    fi
    if number "$2" && [ "$NUMBER" -ge 80000 ]; then put "$1" $((NUMBER / factor)); fi
}

read_kernel() {
    PUTS=
    IDLE_NOTE=
    clean "$RELEASE" 60
    put name "\"captured\""
    put description "\"Linux $CLEAN as captured, by the rules of linux-$NEAREST\""
    read_config
    read_hz
    if line $DEBUG/sched/preempt; then
        case $LINE in
        *'(none)'*) put preempt '"none"' ;;
        *'(voluntary)'*) put preempt '"voluntary"' ;;
        *'(full)'*) put preempt '"full"' ;;
        *'(lazy)'*) put preempt '"lazy"' ;;
        esac
    elif has CONFIG_PREEMPT_LAZY=y; then
        put preempt '"lazy"'
    elif has CONFIG_PREEMPT=y; then
        put preempt '"full"'
    elif has CONFIG_PREEMPT_VOLUNTARY=y; then
        put preempt '"voluntary"'
    elif has CONFIG_PREEMPT_NONE=y; then
        put preempt '"none"'
    fi
    # What is not in a configuration that is there is off.
    if has CONFIG_SMP=y; then
        for pair in irq_time_accounting:IRQ_TIME_ACCOUNTING sched_cluster:SCHED_CLUSTER \
            fair_group_sched:FAIR_GROUP_SCHED; do
            if has "CONFIG_${pair#*:}=y"; then put "${pair%:*}" true; else put "${pair%:*}" false; fi
        done
        has CONFIG_UCLAMP_TASK=y || put uclamp '"compiled-out"'
    fi
    eval "policy=\$policy_0"
    if line "$policy/scaling_governor"; then
        case $LINE in
        schedutil) put cpufreq '"schedutil"' ;;
        performance | powersave)
            governor=$LINE
            # The names mean something else with the driver intel_pstate.
            line "$policy/scaling_driver"
            [ "$LINE" = intel_pstate ] || put cpufreq "\"$governor\""
            ;;
        esac
    fi
    # A machine with CPUs and without cpufreq runs as fast as it can: virtual ones do.
    if [ -d "$ROOT$CPU/cpu0" ] && [ ! -d "$ROOT$policy" ]; then put cpufreq '"performance"'; fi
    line $CPU/cpuidle/current_governor || line $CPU/cpuidle/current_governor_ro
    case $LINE in
    teo | menu | ladder | haltpoll) put cpuidle "\"$LINE\"" ;;
    ?*) clean "$LINE" 40 && IDLE_NOTE="; the device says $CLEAN, which is not modelled" ;;
    esac
    for file in "$policy/schedutil" $CPU/cpufreq/schedutil; do
        if number "$file/rate_limit_us" && [ "$NUMBER" -le 10000000 ]; then
            put schedutil.rate_limit_us "\"$NUMBER\""
            break
        fi
    done
    put_number guest_halt_poll_ns /sys/module/haltpoll/parameters/guest_halt_poll_ns 0 999999999
    put_number migration_cost_ns $DEBUG/sched/migration_cost_ns 0 999999999
    put_number migration_cost_ns /proc/sys/kernel/sched_migration_cost_ns 0 999999999
    put_number nr_migrate $DEBUG/sched/nr_migrate 1 1024
    put_number nr_migrate /proc/sys/kernel/sched_nr_migrate 1 1024
    put_number rt_period_us /proc/sys/kernel/sched_rt_period_us 1000 4000000
    if line /proc/sys/kernel/sched_rt_runtime_us && [ "$LINE" = -1 ]; then
        put rt_runtime_us -1
    else
        put_number rt_runtime_us /proc/sys/kernel/sched_rt_runtime_us 1 4000000
    fi
    put_number cfs_bandwidth_slice_us /proc/sys/kernel/sched_cfs_bandwidth_slice_us 1 4294967
    put_number uclamp_min_rt_default /proc/sys/kernel/sched_util_clamp_min_rt_default 0 1024
    put_number timer_slack_ns /proc/self/timerslack_ns 0 999999999
    if number /proc/sys/kernel/sched_energy_aware; then
        if [ "$NUMBER" -eq 0 ]; then put energy_aware false; else put energy_aware true; fi
    fi
    if has CONFIG_FAIR_GROUP_SCHED=y && number /proc/sys/kernel/sched_autogroup_enabled; then
        if [ "$NUMBER" -eq 0 ]; then put sched_autogroup false; else put sched_autogroup true; fi
    fi
    if number /proc/sys/vm/stat_interval && [ "$NUMBER" -le 120 ]; then
        put stat_interval_ms $((NUMBER * 1000))
    fi
    put_unscaled eevdf.base_slice_unscaled_ns $DEBUG/sched/base_slice_ns
    put_unscaled cfs.latency_ns $DEBUG/sched/latency_ns
    put_unscaled cfs.min_granularity_ns $DEBUG/sched/min_granularity_ns
    put_unscaled cfs.wakeup_granularity_ns $DEBUG/sched/wakeup_granularity_ns
    put_number cfs.idle_min_granularity_ns $DEBUG/sched/idle_min_granularity_ns 10000 999999999
    features=
    line $DEBUG/sched/features && features=" $LINE "
    [ -n "$features" ] || { line $DEBUG/sched_features && features=" $LINE "; }
    if [ -n "$features" ]; then
        for pair in $FEATURES; do
            case $features in
            *" ${pair#*:} "*) put "features.${pair%:*}" true ;;
            *) put "features.${pair%:*}" false ;;
            esac
        done
    fi
}

write_kernel() {
    cat <<END
# Written by schedtwin capture @VERSION@ on a device that runs Linux $RELEASE.
# The rules are those of linux-$NEAREST, the nearest that schedtwin knows; what is marked "estimated" is
# not what the device said.

END
    section=
    kernel_text "$NEAREST" | while IFS= read -r entry; do
        case $entry in
        '#'*) ;;
        '['*)
            section=${entry#?}
            section=${section%%]*}.
            echo "${entry%% #*}"
            ;;
        *' = '*)
            key=${entry%% = *}
            case $PUTS in
            *"$NEWLINE$section$key="*)
                value=${PUTS##*"$NEWLINE$section$key="}
                echo "$key = ${value%%"$NEWLINE"*}"
                ;;
            *)
                note=
                [ "$key" != cpuidle ] || note=$IDLE_NOTE
                echo "${entry%% #*} # estimated: as linux-$NEAREST$note"
                ;;
            esac
            ;;
        *) echo "$entry" ;;
        esac
    done
    echo '# end'
}

kernel_text() {
    case $1 in
@KERNELS@
    esac
}

# ---- writing -----------------------------------------------------------------------------------

# Whether a file was written to its end.
ends_well() {
    last=
    while IFS= read -r entry; do last=$entry; done <"$1"
    [ "$last" = '# end' ]
}

main() {
    out=${1:-schedtwin-capture}
    case $out in -*) out=./$out ;; esac
    mkdir -p "$out" || return 1
    # Some shells keep here-documents in files.
    [ -n "${TMPDIR:-}" ] || TMPDIR=$out
    export TMPDIR
    trap 'rm -f "$out/.told.toml.$$" "$out/.machine.toml.$$" "$out/.kernel.toml.$$"' EXIT
    trap 'exit 1' HUP INT TERM
    read_release
    read_cpus
    read_clocks
    read_sugov
    read_kernel
    if write_machine >"$out/.told.toml.$$" && ends_well "$out/.told.toml.$$" &&
        counted "$out/.told.toml.$$" >"$out/.machine.toml.$$" && ends_well "$out/.machine.toml.$$" &&
        write_kernel >"$out/.kernel.toml.$$" && ends_well "$out/.kernel.toml.$$" &&
        mv -f "$out/.machine.toml.$$" "$out/machine.toml" &&
        mv -f "$out/.kernel.toml.$$" "$out/kernel.toml"; then
        :
    else
        echo "failed to write to $out" >&2
        return 1
    fi
    echo "Linux $RELEASE, $NCPU CPUs, $CLOCKS clocks: wrote $out/machine.toml and $out/kernel.toml"
    echo 'What is marked "estimated" there is not what the device said. Then, where schedtwin is:'
    echo "  schedtwin run -m $out/machine.toml -k $out/kernel.toml -w ui-phone"
}

main "$@"
