// SPDX-License-Identifier: GPL-2.0-or-later
/* init of the emulated board: runs the tasks of /mnt/wl.txt, leaves /mnt/trace.txt and /mnt/meta.txt. Static, no shell.
 *
 * wl.txt, a line each; # begins a comment.
 *
 *   seconds N            how long the tasks run
 *   gov teo|menu         idle governor
 *   features NAME        a sched_features name; again for more
 *   rate_limit_us N      schedutil's
 *   fair_server 0|1
 *   slice_us N           base slice of the fair class
 *   eas 0|1              energy aware scheduling
 *   fast 0|1             fast switch, or schedutil's thread; this, latency_us and probes go onto the kernel's command line
 *   latency_us N         transition latency
 *   scx NAME [VARIABLE=VALUE...]                    runs all tasks under the sched_ext scheduler NAME (scx.c, build-scx)
 *   probes 0|1           print the kernel's signals; 0: only switches, wakeups, migrations, idle states and frequencies
 *   group NAME [WEIGHT]  a task group (cpu.weight, 100 if not given); NAME may be PARENT/NAME after its parent; needs a kernel with CGROUPS
 *   messaging GROUPS LOOPS unix|pipe [FDS]          FDS (20) senders and receivers a group, as perf bench sched messaging -t and hackbench -T have them; ends the run
 *   netperf PAIRS LOOPS tcp|udp                     LOOPS times a byte there and a byte back, over loopback; ends the run
 *   schbench MESSAGES WORKERS LOOPS US              MESSAGES message threads with WORKERS each, which LOOPS times wait to be woken, sleep 100 us and work US under a lock of the CPU; ends the run
 *   task NAME COUNT MASK NICE UMIN UMAX WHAT...     MASK hex, 0 = all; UMIN UMAX -1 = unclamped
 *
 * WHAT is attributes, then steps, which go round:
 *
 *   start:US  fifo:PRIO  slice:US  group:NAME       start offset; SCHED_FIFO in place of NICE; slice of its own; a member of the group
 *   LOOPS:RUN_US:PERIOD_US[>NAME]   LOOPS times: work, wake the tasks called NAME, sleep to the period's end. Period 0 = sleep 1 us, -1 = no sleep at all
 *   LOOPS:RUN_US:wait[>NAME]        LOOPS times: wait for a wake (they are counted, none is lost), work, wake NAME
 *   wait:RUN_US[>NAME]              short for 1:RUN_US:wait[>NAME]
 *   cpus:MASK  nice:N               changes its own affinity (hex, 0 = all), its own nice
 *   fork:COUNT:RUN_US               starts COUNT children, which inherit all, work RUN_US each and end; does not wait for them
 *
 * RUN_US and PERIOD_US may be N, N~ (drawn anew each time: evenly from 1 to 2 N) or A..B (rises evenly from the first of the LOOPS to the last);
 * start may be A..B (from the first of the COUNT tasks to the last). Work is in us at capacity 1024 and full speed: it advances by time x
 * capacity x frequency / fmax while the task has the CPU. A period missed is not made up: the next begins at the end of the work.
 * A pause is a step without work: "8:300:2000 1:0:40000" is a burst of eight, then 40 ms more of sleep. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/rseq.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TRACING "/sys/kernel/tracing/"
#define CPU "/sys/devices/system/cpu/"
#define DEBUG "/sys/kernel/debug/"
#define GROUPS "/cgroup/"
#define CPUS_MAX 16
#define TASKS_MAX 256
#define STEPS_MAX 32

static const volatile struct { uint32_t khz[CPUS_MAX], khz_max[CPUS_MAX], cap[CPUS_MAX], nev[CPUS_MAX]; } *board;	/* vdvfs.h */

/* N (from == to), A..B, or N~ (drawn). */
struct number { long from, to; int drawn; };
enum kind { PERIODIC, WAIT, CPUS, NICE, FORK };
struct step { enum kind kind; int loops; struct number run, period; long value; char wakes[16]; };
struct task {
	char name[16], base[16], group[32];
	unsigned mask; int nice, umin, umax, fifo, steps; long slice, start;
	struct step step[STEPS_MAX];
	uint64_t random;
	uint32_t pending;	/* wakes not yet worked off */
	int pid; uint64_t began, ended; double done; unsigned long loops, late, chunks, cut, forks;	/* the log */
};
static struct task tasks[TASKS_MAX];
static int task_count, cpu_count;
static uint64_t start_ns;
static volatile int stop;

static void put(const char *path, const char *text)
{
	int file = open(path, O_WRONLY);
	if (file < 0) { printf("cannot open %s\n", path); return; }
	if (write(file, text, strlen(text)) < 0) printf("write %s to %s: %s\n", text, path, strerror(errno));
	close(file);
}
static uint64_t now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1000000000ull + t.tv_nsec; }
static void sleep_to(uint64_t t)
{
	struct timespec at = { t / 1000000000ull, t % 1000000000ull };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0);
}
static unsigned all_cpus(void) { return (1u << cpu_count) - 1; }
static void pin(unsigned mask)
{
	cpu_set_t set; CPU_ZERO(&set);
	for (int i = 0; i < cpu_count; i++) if ((mask ? mask : all_cpus()) >> i & 1) CPU_SET(i, &set);
	if (sched_setaffinity(0, sizeof set, &set)) printf("cpus %x: %s\n", mask, strerror(errno));
}

/* Work without system calls: the CPU from rseq, the time from the vDSO, and the kernel's count of switches and interrupts on this CPU.
 * A chunk that one of those fell into counts for its usual length at most. The yield hands the turn to the next emulated CPU. */
#define CHUNK_NS 3000
struct stamp { unsigned cpu; uint32_t events; uint64_t time; };
static unsigned this_cpu(void) { return *(volatile uint32_t *)((char *)__builtin_thread_pointer() + __rseq_offset + offsetof(struct rseq, cpu_id)); }
static struct stamp stamp(void)
{
	struct stamp s;
	do { s.cpu = this_cpu(); s.events = board->nev[s.cpu]; s.time = now(); } while (this_cpu() != s.cpu || board->nev[s.cpu] != s.events);
	return s;
}
static void work(struct task *k, long us)
{
	double left = us * 1000.0; struct stamp a = stamp();
	while (left > 0 && !stop) {
		double rate = (double)board->cap[a.cpu] / 1024 * board->khz[a.cpu] / board->khz_max[a.cpu];
		for (volatile int i = 0; i < 500; i++) ;
		__asm__ volatile("yield");
		struct stamp b = stamp(); uint64_t d = b.time - a.time;
		k->chunks++;
		if (b.cpu != a.cpu || b.events != a.events) { k->cut++; if (d > CHUNK_NS) d = CHUNK_NS; }
		left -= d * rate; k->done += d * rate / 1000; a = b;
	}
}
static void wake(const char *name)
{
	for (int i = 0; *name && i < task_count; i++)
		if (!strcmp(tasks[i].base, name)) {
			__atomic_add_fetch(&tasks[i].pending, 1, __ATOMIC_SEQ_CST);
			syscall(SYS_futex, &tasks[i].pending, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
		}
}
static void wait_for_wake(struct task *k)
{
	while (!__atomic_load_n(&k->pending, __ATOMIC_SEQ_CST) && !stop) syscall(SYS_futex, &k->pending, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
	__atomic_sub_fetch(&k->pending, 1, __ATOMIC_SEQ_CST);
}
static long value(struct task *k, struct number n, int loop, int loops)
{
	if (n.drawn) {	/* splitmix64 */
		uint64_t z = k->random += 0x9e3779b97f4a7c15ull;
		z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull; z = (z ^ z >> 27) * 0x94d049bb133111ebull;
		return 1 + (z ^ z >> 31) % (2 * n.from);
	}
	return loops > 1 ? n.from + (n.to - n.from) * loop / (loops - 1) : n.from;
}

struct sched_attr_ { uint32_t size, policy; uint64_t flags; int32_t nice; uint32_t prio; uint64_t runtime, deadline, period; uint32_t umin, umax; };
static void set_attributes(struct task *k, int nice)
{
	struct sched_attr_ a = { .size = sizeof a, .nice = nice, .runtime = k->slice * 1000 };
	if (k->fifo) a = (struct sched_attr_){ .size = sizeof a, .policy = SCHED_FIFO, .prio = k->fifo };
	if (k->umin >= 0 || k->umax >= 0) { a.flags = 0x60; a.umin = k->umin < 0 ? 0 : k->umin; a.umax = k->umax < 0 ? 1024 : k->umax; }
	if (syscall(SYS_sched_setattr, 0, &a, 0)) printf("setattr %s: %s\n", k->name, strerror(errno));
}
static void start_thread(void *(*body)(void *), void *with)
{
	pthread_t thread; pthread_attr_t a;
	pthread_attr_init(&a); pthread_attr_setstacksize(&a, 65536); pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &a, body, with)) printf("no thread\n");
	pthread_attr_destroy(&a);
}
struct child { struct task log; long run; };
static void *child(void *a) { struct child *c = a; work(&c->log, c->run); free(c); return 0; }
static void fork_children(struct task *k, struct step *s)
{
	for (int i = 0; i < s->loops; i++) {
		struct child *c = calloc(1, sizeof *c);
		c->run = value(k, s->run, i, s->loops); k->forks++;
		start_thread(child, c);
	}
}
static void *body(void *a)
{
	struct task *k = a; uint64_t next = start_ns + k->start * 1000ull;
	prctl(PR_SET_NAME, k->name); k->pid = syscall(SYS_gettid);
	if (*k->group) { char path[80], pid[16]; snprintf(path, sizeof path, GROUPS "%s/cgroup.threads", k->group); snprintf(pid, sizeof pid, "%d", k->pid); put(path, pid); }
	if (k->mask) pin(k->mask);
	set_attributes(k, k->nice);
	sleep_to(next); k->began = now();
	for (int i = 0; !stop; i = (i + 1) % k->steps) {
		struct step *s = &k->step[i];
		if (s->kind == CPUS) { pin(s->value); continue; }
		if (s->kind == NICE) { set_attributes(k, s->value); continue; }
		if (s->kind == FORK) { fork_children(k, s); continue; }
		for (int l = 0; l < s->loops && !stop; l++) {
			long run = value(k, s->run, l, s->loops), period = value(k, s->period, l, s->loops);
			if (s->kind == WAIT) { wait_for_wake(k); if (stop) break; }
			work(k, run); wake(s->wakes); k->loops++; k->ended = now();
			if (s->kind == WAIT || period < 0) { next = k->ended; continue; }
			if (!period) { sleep_to(k->ended + 1000); next = now(); continue; }
			next += period * 1000ull;
			if (k->ended < next) sleep_to(next); else { k->late++; next = k->ended; }
		}
	}
	return 0;
}

/* ---- messages: the system calls of perf bench sched messaging -t ---- */
#define ENDS_MAX 40
#define MESSAGE 100
static struct { int groups, loops, pipes, fds; } talk = { .fds = 20 };
static int ready[2], go[2];
struct talker { int ends[ENDS_MAX], sends; pthread_t thread; };
/* The yield hands the turn to the next emulated CPU; the kernel's side of a call never does. */
static void turn(void) { __asm__ volatile("yield"); }
static void channel(int ends[2]) { if (talk.pipes ? pipe(ends) : socketpair(AF_UNIX, SOCK_STREAM, 0, ends)) printf("channel: %s\n", strerror(errno)); }
static void transfer(int file, int writes)
{
	char data[MESSAGE] = { 0 };
	for (ssize_t done = 0, r; done < MESSAGE; done += r) {
		r = writes ? write(file, data + done, MESSAGE - done) : read(file, data + done, MESSAGE - done);
		if (r <= 0) { printf("message: %s\n", strerror(errno)); return; }
	}
	turn();
}
static void *talker(void *a)
{
	struct talker *t = a; struct pollfd wait = { .fd = go[0], .events = POLLIN };
	prctl(PR_SET_NAME, t->sends ? "sender" : "receiver");
	if (write(ready[1], "R", 1) != 1 || poll(&wait, 1, -1) != 1) printf("ready: %s\n", strerror(errno));
	for (int i = 0; i < talk.loops; i++)
		for (int j = 0; j < talk.fds; j++) transfer(t->sends ? t->ends[j] : t->ends[0], t->sends);
	return 0;
}
static void start_talker(struct talker *t)
{
	pthread_attr_t a;
	pthread_attr_init(&a); pthread_attr_setstacksize(&a, 65536);
	if (pthread_create(&t->thread, &a, talker, t)) printf("no thread\n");
	pthread_attr_destroy(&a);
}
/* What one message costs if nobody waits, on one CPU: written and read at once. */
static void price(FILE *meta)
{
	int ends[2]; channel(ends);
	uint64_t begun = now();
	for (int i = 0; i < 1000; i++) { transfer(ends[1], 1); transfer(ends[0], 0); }
	uint64_t moved = now();
	for (int i = 0; i < 1000; i++) syscall(SYS_getppid);
	fprintf(meta, "message %s ns %llu syscall ns %llu\n", talk.pipes ? "pipe" : "unix", (unsigned long long)(moved - begun) / 1000, (unsigned long long)(now() - moved) / 1000);
	/* The same if the reader is on another CPU, so that what one has allocated another frees: 200 at a time, which fit. */
	uint64_t spent[2] = { 0, 0 };
	for (int round = 0; round < 20; round++)
		for (int reads = 0; reads < 2; reads++) {
			pin(reads ? 4 : 2);
			begun = now();
			for (int i = 0; i < 200; i++) transfer(ends[!reads], !reads);
			spent[reads] += now() - begun;
		}
	fprintf(meta, "apart: write ns %llu read ns %llu\n", (unsigned long long)spent[0] / 4000, (unsigned long long)spent[1] / 4000);
	close(ends[0]); close(ends[1]);
}
static void messages(FILE *meta)
{
	static struct talker all[16][2 * ENDS_MAX]; char byte; uint64_t begun;
	prctl(PR_SET_NAME, "main");
	channel(ready); channel(go);
	for (int g = 0; g < talk.groups; g++) {
		int written[ENDS_MAX];
		for (int i = 0; i < talk.fds; i++) { int ends[2]; channel(ends); all[g][i].ends[0] = ends[0]; written[i] = ends[1]; start_talker(&all[g][i]); }
		for (int i = talk.fds; i < 2 * talk.fds; i++) { memcpy(all[g][i].ends, written, sizeof written); all[g][i].sends = 1; start_talker(&all[g][i]); }
	}
	for (int i = 0; i < talk.groups * 2 * talk.fds; i++) if (read(ready[0], &byte, 1) != 1) printf("ready: %s\n", strerror(errno));
	begun = now();
	if (write(go[1], "G", 1) != 1) printf("go: %s\n", strerror(errno));
	for (int g = 0; g < talk.groups; g++) for (int i = 0; i < 2 * talk.fds; i++) pthread_join(all[g][i].thread, 0);
	fprintf(meta, "Time: %.6f\n", (now() - begun) / 1e9);
}

/* ---- requests and responses: the system calls of netperf TCP_RR and UDP_RR ---- */
static struct { int pairs, loops, udp; } ask;
struct asker { int end, serves; pthread_t thread; };
static void lo_up(void)
{
	struct ifreq r = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING }; int s = socket(AF_INET, SOCK_DGRAM, 0);
	if (s < 0 || ioctl(s, SIOCSIFFLAGS, &r)) printf("lo: %s\n", strerror(errno));
	close(s);
}
static int bound(int kind, struct sockaddr_in *at)
{
	socklen_t length = sizeof *at; int s = socket(AF_INET, kind, 0);
	*at = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (s < 0 || bind(s, (void *)at, sizeof *at) || getsockname(s, (void *)at, &length)) printf("bind: %s\n", strerror(errno));
	return s;
}
static void connection(int ends[2])
{
	struct sockaddr_in at[2]; int one = 1, bad = 0;
	if (ask.udp) {
		for (int i = 0; i < 2; i++) ends[i] = bound(SOCK_DGRAM, &at[i]);
		for (int i = 0; i < 2; i++) bad |= connect(ends[i], (void *)&at[!i], sizeof *at);
	} else {
		int listens = bound(SOCK_STREAM, &at[0]);
		ends[0] = bound(SOCK_STREAM, &at[1]);
		bad = listen(listens, 1) || connect(ends[0], (void *)&at[0], sizeof *at) || (ends[1] = accept(listens, 0, 0)) < 0;
		for (int i = 0; i < 2; i++) bad |= setsockopt(ends[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
		close(listens);
	}
	if (bad) printf("connection: %s\n", strerror(errno));
}
static void byte(int end, int sends)
{
	char data = 0;
	if ((sends ? send(end, &data, 1, 0) : recv(end, &data, 1, 0)) != 1) printf("byte: %s\n", strerror(errno));
	turn();
}
static void *asker(void *a)
{
	struct asker *t = a;
	prctl(PR_SET_NAME, t->serves ? "netserver" : "netperf");
	for (int i = 0; i < ask.loops; i++) { byte(t->end, !t->serves); byte(t->end, t->serves); }
	return 0;
}
/* What a byte costs if nobody waits, sent and received in turn there and back, the reading of the clock taken off. */
static void price_of_byte(FILE *meta)
{
	int ends[2]; uint64_t begun, clock, spent[2] = { 0, 0 };
	connection(ends); pin(1);
	begun = now();
	for (int i = 0; i < 1000; i++) now();
	clock = (now() - begun) / 1000;
	for (int i = 0; i < 1000; i++)
		for (int step = 0; step < 4; step++) { begun = now(); byte(ends[(step + 1) / 2 % 2], step % 2 == 0); spent[step % 2] += now() - begun - clock; }
	fprintf(meta, "byte %s: send ns %llu recv ns %llu\n", ask.udp ? "udp" : "tcp", (unsigned long long)spent[0] / 2000, (unsigned long long)spent[1] / 2000);
	begun = now();
	for (int i = 0; i < 1000; i++) syscall(SYS_getppid);
	fprintf(meta, "syscall ns %llu\n", (unsigned long long)(now() - begun) / 1000);
	close(ends[0]); close(ends[1]); pin(0);
}
static void asks(FILE *meta)
{
	static struct asker all[64][2]; int ends[2]; uint64_t begun = now();
	prctl(PR_SET_NAME, "main");
	for (int i = 0; i < ask.pairs; i++) {
		connection(ends);
		for (int j = 0; j < 2; j++) {
			all[i][j] = (struct asker){ .end = ends[j], .serves = !j };
			if (pthread_create(&all[i][j].thread, 0, asker, &all[i][j])) printf("no thread\n");
		}
	}
	for (int i = 0; i < ask.pairs; i++) for (int j = 0; j < 2; j++) pthread_join(all[i][j].thread, 0);
	fprintf(meta, "Time: %.6f\n", (now() - begun) / 1e9);
}

/* ---- workers: the system calls of schbench ---- */
#define CREWS_MAX 8
#define WORKERS_MAX 32
static struct { int crews, workers, loops; long us; } crew_of;
struct worker { struct crew *crew; struct worker *next; uint32_t woken; struct task log; pthread_t thread; };
struct crew { struct worker *list; uint32_t posted; int over; pthread_t thread; struct worker workers[WORKERS_MAX]; };
static uint32_t cpu_lock[CPUS_MAX];
static void post(uint32_t *word)
{
	if (!__atomic_exchange_n(word, 1, __ATOMIC_SEQ_CST)) syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}
static void wait_for(uint32_t *word)
{
	while (!__atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST)) syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
}
static void *message_thread(void *a)
{
	struct crew *c = a;
	prctl(PR_SET_NAME, "schbench");
	while (!c->over) {
		struct worker *all = __atomic_exchange_n(&c->list, 0, __ATOMIC_SEQ_CST);
		while (all) { struct worker *next = all->next; post(&all->woken); all = next; }
		turn(); wait_for(&c->posted);
	}
	return 0;
}
static void *worker(void *a)
{
	struct worker *w = a;
	prctl(PR_SET_NAME, "schbench-worker");
	for (int i = 0; i < crew_of.loops; i++) {
		w->next = __atomic_load_n(&w->crew->list, __ATOMIC_SEQ_CST);
		while (!__atomic_compare_exchange_n(&w->crew->list, &w->next, w, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) ;
		post(&w->crew->posted); wait_for(&w->woken);
		struct timespec pause = { 0, 100000 };
		nanosleep(&pause, 0);
		uint32_t *lock = &cpu_lock[this_cpu()];
		while (__atomic_exchange_n(lock, 1, __ATOMIC_SEQ_CST)) turn();
		work(&w->log, crew_of.us);
		__atomic_store_n(lock, 0, __ATOMIC_SEQ_CST);
	}
	return 0;
}
static void works(FILE *meta)
{
	static struct crew all[CREWS_MAX]; uint64_t begun = now();
	prctl(PR_SET_NAME, "main");
	for (int i = 0; i < crew_of.crews; i++) {
		if (pthread_create(&all[i].thread, 0, message_thread, &all[i])) printf("no thread\n");
		for (int j = 0; j < crew_of.workers; j++) {
			all[i].workers[j].crew = &all[i];
			if (pthread_create(&all[i].workers[j].thread, 0, worker, &all[i].workers[j])) printf("no thread\n");
		}
	}
	for (int i = 0; i < crew_of.crews; i++) {
		for (int j = 0; j < crew_of.workers; j++) pthread_join(all[i].workers[j].thread, 0);
		all[i].over = 1; post(&all[i].posted); pthread_join(all[i].thread, 0);
	}
	fprintf(meta, "Time: %.6f\n", (now() - begun) / 1e9);
}

/* ---- the workload ---- */
static int read_number(const char *s, struct number *n)
{
	char *end; n->from = n->to = strtol(s, &end, 10); n->drawn = 0;
	if (end == s) return 0;
	if (!strcmp(end, "~")) { n->drawn = 1; return n->from > 0; }
	if (!strncmp(end, "..", 2)) n->to = strtol(end + 2, &end, 10);
	return !*end;
}
static int read_step(char *word, struct step *s)
{
	char *part[4] = { 0 }, *wakes = strchr(word, '>'); int parts = 0;
	*s = (struct step){ .loops = 1 };
	if (wakes) { *wakes = 0; snprintf(s->wakes, sizeof s->wakes, "%s", wakes + 1); }
	for (char *save, *p = strtok_r(word, ":", &save); p && parts < 4; p = strtok_r(0, ":", &save)) part[parts++] = p;
	if (parts == 2 && !strcmp(part[0], "cpus")) { s->kind = CPUS; s->value = strtoul(part[1], 0, 16); return 1; }
	if (parts == 2 && !strcmp(part[0], "nice")) { s->kind = NICE; s->value = atoi(part[1]); return 1; }
	if (parts == 2 && !strcmp(part[0], "wait")) { s->kind = WAIT; return read_number(part[1], &s->run); }
	if (parts != 3) return 0;
	if (!strcmp(part[0], "fork")) { s->kind = FORK; s->loops = atoi(part[1]); return read_number(part[2], &s->run); }
	s->loops = atoi(part[0]);
	if (s->loops < 1 || !read_number(part[1], &s->run)) return 0;
	if (!strcmp(part[2], "wait")) { s->kind = WAIT; return 1; }
	return read_number(part[2], &s->period);
}
static void read_task(char **rest)
{
	char *f[6]; struct task k = { 0 }; struct number start = { 0 }; int runs = 0;
	for (int i = 0; i < 6; i++) if (!(f[i] = strtok_r(0, " \n", rest))) { printf("a task needs NAME COUNT MASK NICE UMIN UMAX WHAT\n"); return; }
	int count = atoi(f[1]);
	k.mask = strtoul(f[2], 0, 16); k.nice = atoi(f[3]); k.umin = atoi(f[4]); k.umax = atoi(f[5]); snprintf(k.base, sizeof k.base, "%s", f[0]);
	for (char *w; (w = strtok_r(0, " \n", rest)) && *w != '#';) {
		char whole[64]; snprintf(whole, sizeof whole, "%s", w);
		if (!strncmp(w, "start:", 6) && read_number(w + 6, &start)) continue;
		if (sscanf(w, "fifo:%d", &k.fifo) == 1 || sscanf(w, "slice:%ld", &k.slice) == 1 || sscanf(w, "group:%31s", k.group) == 1) continue;
		if (k.steps == STEPS_MAX || !read_step(w, &k.step[k.steps])) { printf("what is %s\n", whole); continue; }
		runs |= k.step[k.steps++].kind <= WAIT;
	}
	if (!runs) { printf("task %s never works\n", k.base); return; }
	for (int i = 0; i < count && task_count < TASKS_MAX; i++) {
		k.start = count > 1 ? start.from + (start.to - start.from) * i / (count - 1) : start.from;
		k.random = task_count * 1000003ull + (getenv("seed") ? atoi(getenv("seed")) : 0);
		memset(k.name, 0, sizeof k.name); snprintf(k.name, sizeof k.name, "%.11s-%d", k.base, i & 255);
		tasks[task_count++] = k;
	}
}
static void make_group(const char *name, const char *weight)
{
	static int mounted; char path[96];
	if (!mounted++) {
		mkdir(GROUPS, 0755);
		if (mount("cg", GROUPS, "cgroup2", 0, 0)) printf("groups need a kernel with CGROUPS, CGROUP_SCHED and FAIR_GROUP_SCHED: %s\n", strerror(errno));
		put(GROUPS "cgroup.subtree_control", "+cpu");
	}
	const char *slash = strrchr(name, '/');	/* the parent hands its CPU time on */
	if (slash) { snprintf(path, sizeof path, GROUPS "%.*s/cgroup.subtree_control", (int)(slash - name), name); put(path, "+cpu"); }
	snprintf(path, sizeof path, GROUPS "%s", name); mkdir(path, 0755);
	snprintf(path, sizeof path, GROUPS "%s/cgroup.type", name); put(path, "threaded");
	if (weight) { snprintf(path, sizeof path, GROUPS "%s/cpu.weight", name); put(path, weight); }
}
/* The kernel forgot the servers' bandwidth when it rebuilt the root domain, so admission has to be off; and from each CPU itself: a server
 * changed while it is active on an idle CPU leaves its bandwidth behind. */
static void stop_fair_servers(void)
{
	char path[80];
	put("/proc/sys/kernel/sched_rt_runtime_us", "-1");
	for (int i = 0; i < cpu_count; i++) { pin(1 << i); snprintf(path, sizeof path, DEBUG "sched/fair_server/cpu%d/runtime", i); put(path, "0"); }
	pin(0);
}
/* Starts the program that loads a scheduler, and waits until it is loaded; what it says otherwise is told. */
static void load_scheduler(char *name, char **rest)
{
	char *words[16] = { "/scx", name }; int count = 2, ends[2]; char line[256];
	for (char *w; count < 15 && (w = strtok_r(0, " \n", rest)) && *w != '#';) words[count++] = w;
	if (pipe(ends)) return;
	if (!fork()) {
		dup2(ends[1], 1); dup2(ends[1], 2); close(ends[0]);
		execv(words[0], words); printf("no /scx: build-scx\n"); _exit(1);
	}
	close(ends[1]);
	FILE *said = fdopen(ends[0], "r");
	while (said && fgets(line, sizeof line, said) && strcmp(line, "loaded\n")) printf("%s", line);
}
struct workload { int seconds, probes; };
static struct workload read_workload(void)
{
	struct workload wl = { 5, 1 }; char line[1024], path[128]; FILE *f = fopen("/mnt/wl.txt", "r");
	if (!f) printf("no workload\n");
	while (f && fgets(line, sizeof line, f)) {
		char *rest, *word = strtok_r(line, " \n", &rest);
		if (!word || *word == '#') continue;
		if (!strcmp(word, "task")) { read_task(&rest); continue; }
		char *v = strtok_r(0, " \n", &rest);
		if (!v) { printf("%s needs a value\n", word); continue; }
		if (!strcmp(word, "messaging")) {
			char *loops = strtok_r(0, " \n", &rest), *over = strtok_r(0, " \n", &rest), *fds = strtok_r(0, " \n", &rest);
			talk.groups = atoi(v); talk.loops = loops ? atoi(loops) : 0; talk.pipes = over && !strcmp(over, "pipe");
			if (fds) talk.fds = atoi(fds);
			if (talk.groups < 1 || talk.groups > 16 || talk.loops < 1 || talk.fds < 1 || talk.fds > ENDS_MAX) { printf("messaging needs GROUPS (1 to 16) LOOPS unix|pipe [FDS (1 to 40)]\n"); talk.groups = 0; }
		}
		else if (!strcmp(word, "netperf")) {
			char *loops = strtok_r(0, " \n", &rest), *over = strtok_r(0, " \n", &rest);
			ask.pairs = atoi(v); ask.loops = loops ? atoi(loops) : 0; ask.udp = over && !strcmp(over, "udp");
			if (ask.pairs < 1 || ask.pairs > 64 || ask.loops < 1) { printf("netperf needs PAIRS (1 to 64) LOOPS tcp|udp\n"); ask.pairs = 0; }
		}
		else if (!strcmp(word, "schbench")) {
			char *workers = strtok_r(0, " \n", &rest), *loops = strtok_r(0, " \n", &rest), *us = strtok_r(0, " \n", &rest);
			crew_of.crews = atoi(v); crew_of.workers = workers ? atoi(workers) : 0; crew_of.loops = loops ? atoi(loops) : 0; crew_of.us = us ? atoi(us) : 0;
			if (crew_of.crews < 1 || crew_of.crews > CREWS_MAX || crew_of.workers < 1 || crew_of.workers > WORKERS_MAX || crew_of.loops < 1) { printf("schbench needs MESSAGES (1 to 8) WORKERS (1 to 32) LOOPS US\n"); crew_of.crews = 0; }
		}
		else if (!strcmp(word, "scx")) load_scheduler(v, &rest);
		else if (!strcmp(word, "seconds")) wl.seconds = atoi(v);
		else if (!strcmp(word, "gov")) put(CPU "cpuidle/current_governor", v);
		else if (!strcmp(word, "features")) put(DEBUG "sched/features", v);
		else if (!strcmp(word, "slice_us")) { snprintf(path, sizeof path, "%s000", v); put(DEBUG "sched/base_slice_ns", path); }
		else if (!strcmp(word, "fair_server")) { if (*v == '0') stop_fair_servers(); }
		else if (!strcmp(word, "rate_limit_us"))
			for (int i = 0; i < cpu_count; i++) { snprintf(path, sizeof path, CPU "cpufreq/policy%d/schedutil/rate_limit_us", i); if (!access(path, W_OK)) put(path, v); }
		else if (!strcmp(word, "eas")) put("/proc/sys/kernel/sched_energy_aware", v);
		else if (!strcmp(word, "probes")) wl.probes = *v != '0';
		else if (!strcmp(word, "group")) make_group(v, strtok_r(0, " \n", &rest));
		else if (strcmp(word, "fast") && strcmp(word, "latency_us")) printf("what is %s\n", word);
	}
	return wl;
}

/* ---- the recording ---- */
/* Copies a file, or all files of a folder, as "path = text" with the lines joined by |. */
static void report(FILE *out, const char *path)
{
	struct stat st;
	if (lstat(path, &st)) { fprintf(out, "%s: none\n", path); return; }
	if (S_ISDIR(st.st_mode)) {
		struct dirent **e; int count = scandir(path, &e, 0, alphasort);
		for (int i = 0; i < count; i++)
			if (e[i]->d_name[0] != '.') { char below[512]; snprintf(below, sizeof below, "%s/%s", path, e[i]->d_name); report(out, below); }
	} else if (S_ISREG(st.st_mode)) {
		static char text[65536]; int file = open(path, O_RDONLY), r, length = 0;
		if (file < 0) return;
		while (length < (int)sizeof text - 1 && (r = read(file, text + length, sizeof text - 1 - length)) > 0) length += r;
		close(file);
		while (length && text[length - 1] == '\n') length--;
		text[length] = 0;
		for (char *c = text; *c; c++) if (*c == '\n') *c = '|';
		fprintf(out, "%s = %s\n", path, text);
	}
}
static void describe(FILE *meta)
{
	static const char *const about[] = { "/proc/version", "/proc/cmdline", CPU "cpuidle/current_governor", DEBUG "sched/features", DEBUG "sched/base_slice_ns",
		DEBUG "sched/tunable_scaling", DEBUG "sched/migration_cost_ns", DEBUG "sched/nr_migrate", DEBUG "sched/fair_server", DEBUG "sched/domains",
		DEBUG "sched/llc_balancing", "/sys/kernel/sched_ext",
		"/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/sched_util_clamp_min_rt_default", "/proc/sys/kernel/sched_energy_aware",
		CPU "cpufreq", DEBUG "energy_model", DEBUG "vdvfs" };
	char path[128];
	for (unsigned i = 0; i < sizeof about / sizeof *about; i++) report(meta, about[i]);
	/* Idle states are reported for the first CPU of each policy. */
	for (int i = 0; i < cpu_count; i++) {
		snprintf(path, sizeof path, CPU "cpufreq/policy%d", i);
		if (!access(path, F_OK)) { snprintf(path, sizeof path, CPU "cpu%d/cpuidle", i); report(meta, path); }
	}
	for (int i = 0; i < cpu_count; i++) { snprintf(path, sizeof path, CPU "cpu%d/cpu_capacity", i); report(meta, path); }
}
static void enable_events(int all)
{
	static const char *const events[] = { "sched/sched_switch", "sched/sched_waking", "sched/sched_wakeup", "sched/sched_wakeup_new", "sched/sched_migrate_task",
		"power/cpu_idle", "power/cpu_idle_miss", "power/cpu_frequency", 0,
		"sched/sched_process_fork", "sched/sched_process_exit", "timer/hrtimer_start", "timer/hrtimer_cancel", "timer/hrtimer_expire_entry",
		"timer/timer_start", "timer/timer_cancel", "timer/timer_expire_entry", "timer/tick_stop", "irq/softirq_entry", "irq/softirq_exit",
		"sched_ext/sched_ext_exit" };
	char path[128];
	for (unsigned i = 0; i < sizeof events / sizeof *events && (events[i] || all); i++)
		if (events[i]) { snprintf(path, sizeof path, TRACING "events/%s/enable", events[i]); if (strncmp(events[i], "sched_ext", 9) || !access(path, F_OK)) put(path, "1"); }
}
static void copy_trace(void)
{
	static char text[1 << 20]; ssize_t r = 1;
	int in = open(TRACING "trace", O_RDONLY), out = open("/mnt/trace.txt", O_CREAT | O_TRUNC | O_WRONLY, 0644);
	while (r > 0) {
		size_t length = 0;
		while (length < sizeof text && (r = read(in, text + length, sizeof text - length)) > 0) length += r;
		if (write(out, text, length) != (ssize_t)length) { printf("trace.txt: %s\n", strerror(errno)); break; }
	}
	close(out);
}
int main(void)
{
	mount("p", "/proc", "proc", 0, 0); mount("s", "/sys", "sysfs", 0, 0); mount("d", "/dev", "devtmpfs", 0, 0);
	mount("t", "/sys/kernel/tracing", "tracefs", 0, 0); mount("g", "/sys/kernel/debug", "debugfs", 0, 0);
	if (mount("host", "/mnt", "9p", 0, "trans=virtio,version=9p2000.L,msize=262144")) printf("9p: %s\n", strerror(errno));
	int page = open("/dev/vdvfs", O_RDONLY);
	board = mmap(0, 4096, PROT_READ, MAP_SHARED, page, 0);
	if (board == MAP_FAILED) { printf("no /dev/vdvfs\n"); reboot(RB_POWER_OFF); }
	cpu_count = sysconf(_SC_NPROCESSORS_ONLN);

	FILE *meta = fopen("/mnt/meta.txt", "w");
	if (!meta) { printf("no /mnt/meta.txt\n"); reboot(RB_POWER_OFF); }
	/* Another clock empties the buffers. */
	int from_boot = getenv("from_boot") != 0;
	put(TRACING "buffer_size_kb", "65536"); if (!from_boot) put(TRACING "trace_clock", "mono"); put("/proc/sys/kernel/printk", "4"); put(DEBUG "sched/verbose", "Y");
	struct workload wl = read_workload();
	describe(meta);
	enable_events(wl.probes);
	/* The work begins a second from now or later, at a place in the tick that the seed chooses. */
	start_ns = (now() / 1000000000 + (now() % 1000000000 > 500000000 ? 2 : 1)) * 1000000000 + (getenv("seed") ? atoi(getenv("seed")) : 0) * 1234567ull % 1000000000;
	if (talk.groups) { pin(1); price(meta); pin(0); }
	if (ask.pairs) { lo_up(); price_of_byte(meta); }
	if (talk.groups || ask.pairs || crew_of.crews) sleep_to(start_ns);
	if (!from_boot) put(TRACING "trace", " ");
	put(TRACING "tracing_on", "1");
	for (int i = 0; i < task_count; i++) start_thread(body, &tasks[i]);
	if (talk.groups) messages(meta); else if (ask.pairs) asks(meta); else if (crew_of.crews) works(meta); else sleep_to(start_ns + wl.seconds * 1000000000ull);
	put(TRACING "tracing_on", "0"); stop = 1;
	for (int i = 0; i < cpu_count; i++) { char path[80]; snprintf(path, sizeof path, TRACING "per_cpu/cpu%d/stats", i); report(meta, path); }
	for (int i = 0; i < task_count; i++) {
		struct task *k = &tasks[i];
		fprintf(meta, "task %s pid %d start %.6f end %.6f done_us %.1f loops %lu late %lu chunks %lu cut %lu forks %lu\n", k->name, k->pid,
			k->began / 1e9, k->ended / 1e9, k->done, k->loops, k->late, k->chunks, k->cut, k->forks);
	}
	fclose(meta); copy_trace(); sync(); reboot(RB_POWER_OFF);
	return 0;
}
