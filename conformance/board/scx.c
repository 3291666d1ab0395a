// SPDX-License-Identifier: GPL-2.0-or-later
/* Loads a sched_ext scheduler on the emulated board, says so, and waits: scx NAME [VARIABLE=VALUE...] [.SECTION*N...].
 *
 * NAME is /NAME.bpf.o. VARIABLE is one of its constants; .SECTION*N gives an array that its loader sizes N elements. The names of the kernel's
 * own constants (__SCX_...) get their values from the kernel's BTF. Static; linked with the libbpf of the kernel's tree. */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char *what, const char *which)
{
	printf("scx: %s %s\n", what, which);
	fflush(stdout);
	exit(1);
}
static int say(enum libbpf_print_level level, const char *form, va_list args)
{
	return level == LIBBPF_DEBUG ? 0 : vprintf(form, args);
}
/* A constant of the kernel by its name. */
static int find_enum(const struct btf *btf, const char *name, __u64 *value)
{
	for (unsigned id = 1; id < btf__type_cnt(btf); id++) {
		const struct btf_type *t = btf__type_by_id(btf, id);
		for (unsigned i = 0; i < btf_vlen(t) && btf_is_enum(t); i++)
			if (!strcmp(btf__name_by_offset(btf, btf_enum(t)[i].name_off), name)) { *value = (__u32)btf_enum(t)[i].val; return 1; }
		for (unsigned i = 0; i < btf_vlen(t) && btf_is_enum64(t); i++)
			if (!strcmp(btf__name_by_offset(btf, btf_enum64(t)[i].name_off), name)) { *value = btf_enum64_value(&btf_enum64(t)[i]); return 1; }
	}
	return 0;
}
static int is_section(const struct bpf_map *map, const char *section)
{
	const char *name = bpf_map__name(map);
	size_t length = strlen(name), end = strlen(section);
	return length >= end && !strcmp(name + length - end, section);
}
/* Sets the variables of the constant section: those named, and the kernel's constants. */
static void set_variables(struct bpf_object *object, struct bpf_map *map, int count, char **settings)
{
	static const struct btf *kernel;
	const struct btf *btf = bpf_object__btf(object);
	const struct btf_type *section = btf__type_by_id(btf, bpf_map__btf_value_type_id(map));
	size_t size;
	char *data = bpf_map__initial_value(map, &size);
	if (!data || !section || !btf_is_datasec(section)) return;
	for (unsigned i = 0; i < btf_vlen(section); i++) {
		const struct btf_var_secinfo *at = &btf_var_secinfos(section)[i];
		const char *name = btf__name_by_offset(btf, btf__type_by_id(btf, at->type)->name_off);
		__u64 value; int is_set = 0;
		if (!strncmp(name, "__SCX_", 6)) {
			if (!kernel && !(kernel = btf__load_vmlinux_btf())) fail("no BTF of", "the kernel");
			is_set = find_enum(kernel, name + 2, &value);
		}
		for (int k = 0; k < count; k++) {
			size_t length = strcspn(settings[k], "=");
			if (settings[k][length] && strlen(name) == length && !strncmp(settings[k], name, length)) {
				value = strtoull(settings[k] + length + 1, 0, 0); is_set = 1; settings[k] = "";
			}
		}
		if (is_set) memcpy(data + at->offset, &value, at->size < 8 ? at->size : 8);
	}
}
/* Leaves ops.exit() out: it reads texts with helpers that need BPF_EVENTS, and decides nothing. */
static void leave_out_exit(struct bpf_object *object, struct bpf_map *ops)
{
	const struct btf *btf = bpf_object__btf(object);
	const struct btf_type *t = btf__type_by_id(btf, btf__find_by_name_kind(btf, "sched_ext_ops", BTF_KIND_STRUCT));
	size_t size;
	char *data = bpf_map__initial_value(ops, &size);
	for (unsigned i = 0; t && data && i < btf_vlen(t); i++) {
		const struct btf_member *member = &btf_members(t)[i];
		if (strcmp(btf__name_by_offset(btf, member->name_off), "exit")) continue;
		struct bpf_program **program = (void *)(data + member->offset / 8);
		if (*program) bpf_program__set_autoload(*program, 0);
		*program = 0;
	}
}
int main(int argc, char **argv)
{
	char path[64];
	if (argc < 2) fail("which", "scheduler?");
	setvbuf(stdout, 0, _IONBF, 0);
	libbpf_set_print(say);
	snprintf(path, sizeof path, "/%s.bpf.o", argv[1]);
	/* Constants of the kernel's configuration (CONFIG_HZ) have their values from the one that it was built with. */
	static char config[1 << 20];
	FILE *file = fopen("/config", "r");
	if (file) { size_t length = fread(config, 1, sizeof config - 1, file); config[length] = 0; fclose(file); }
	LIBBPF_OPTS(bpf_object_open_opts, options, .kconfig = config);
	struct bpf_object *object = bpf_object__open_file(path, &options);
	if (!object) fail("cannot open", path);
	struct bpf_map *map, *ops = 0;
	bpf_object__for_each_map(map, object) {
		if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS) { ops = map; continue; }
		for (int k = 2; k < argc; k++) {
			char section[64]; unsigned n;
			if (sscanf(argv[k], "%63[^*=]*%u", section, &n) == 2 && is_section(map, section)) {
				bpf_map__set_value_size(map, bpf_map__value_size(map) * n); argv[k] = "";
			}
		}
		if (is_section(map, ".rodata")) set_variables(object, map, argc - 2, argv + 2);
	}
	for (int k = 2; k < argc; k++) if (*argv[k]) fail("no such variable:", argv[k]);
	if (!ops) fail("no struct_ops in", path);
	/* Programs beside the callbacks trace functions, which this kernel is built without. */
	struct bpf_program *program;
	bpf_object__for_each_program(program, object)
		bpf_program__set_autoload(program, bpf_program__type(program) == BPF_PROG_TYPE_STRUCT_OPS);
	leave_out_exit(object, ops);
	if (bpf_object__load(object)) fail("cannot load", path);
	if (!bpf_map__attach_struct_ops(ops)) fail("cannot attach", path);
	printf("loaded\n");
	for (;;) pause();
}
