// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Maps, storages, lists and trees, and the memory that they take.
 *
 * A map's object, as the scheduler declares it, is a row of pointers. The loader gives each its description
 * (`schedtwin_scx_define_map`), of which the object's first word holds the address.
 */
#include <schedtwin/scx_inside.h>

/* ---- memory that can be given back -------------------------------------------------------------------------------------- */

/* Before each piece its class, and on the list of its class the next one. Pieces of a class are powers of two long. */
struct piece {
	u64 class;
	struct piece *next;
};
static struct piece *unused[40];

void *schedtwin_new(size_t bytes)
{
	u64 class = 64 - __builtin_clzll(bytes + sizeof(struct piece) - 1);
	struct piece *piece = unused[class];

	if (piece)
		unused[class] = piece->next;
	else
		piece = schedtwin_allocate(1ULL << class);
	memset(piece, 0, 1ULL << class);
	piece->class = class;
	return piece + 1;
}

void schedtwin_drop(void *memory)
{
	struct piece *piece = (struct piece *)memory - 1;

	if (!memory)
		return;
	piece->next = unused[piece->class];
	unused[piece->class] = piece;
}

/* ---- maps ------------------------------------------------------------------------------------------------------------- */

#define OWNED_MAX 16

struct schedtwin_map {
	int type, key, value, entries;
	/* Bytes from a value to the next. */
	int stride;
	/* Arrays: their values, as many for each CPU. Queues and stacks: a ring. Made at the first use. */
	char *memory;
	u32 head, count;
	/* Hashes: entries by the lowest bits of their key's hash, and all of them from the latest to the first. */
	struct entry **buckets;
	/* Storages: their values by the number of the task or of the cgroup. */
	void **by_number;
	u32 capacity;
	/* Where its values have pointers that the map owns (kptrs): an update leaves them alone. */
	u32 owned[OWNED_MAX], owned_count;
	/* Arrays of maps: those that the scheduler has put in, and what the others are like. */
	void ***values;
	struct schedtwin_map *inner;
};

struct entry {
	struct entry *next;
	char bytes[];
};

#define BUCKETS 256

OFFERED struct schedtwin_map *schedtwin_scx_define_map(void **object, int type, int key, int value, int entries, void ***values,
						       int given, struct schedtwin_map *inner)
{
	struct schedtwin_map *map = schedtwin_allocate(sizeof(*map));

	map->type = type;
	map->key = key;
	map->value = value;
	map->stride = (value + 7) & ~7;
	map->entries = entries;
	map->inner = inner;
	if (type == BPF_MAP_TYPE_ARRAY_OF_MAPS) {
		/* The object has memory for those that it begins with alone. */
		map->values = schedtwin_allocate(entries * sizeof(*map->values));
		memcpy(map->values, values, (given < entries ? given : entries) * sizeof(*map->values));
	}
	if (object)
		*object = map;
	return map;
}

OFFERED void schedtwin_scx_own(void **object, u32 offset)
{
	struct schedtwin_map *map = *object;

	if (map->owned_count == OWNED_MAX)
		schedtwin_refuse("more pointers in a value of a map than are offered:", OWNED_MAX);
	map->owned[map->owned_count++] = offset;
}

/* Copies a value, but for the pointers that the map owns. */
static void put_value(struct schedtwin_map *map, char *to, char const *value)
{
	u64 owned[OWNED_MAX];
	u32 i;

	for (i = 0; i < map->owned_count; i++)
		memcpy(&owned[i], to + map->owned[i], sizeof(u64));
	memcpy(to, value, map->value);
	for (i = 0; i < map->owned_count; i++)
		memcpy(to + map->owned[i], &owned[i], sizeof(u64));
}

static char *memory_of(struct schedtwin_map *map)
{
	size_t copies = map->type == BPF_MAP_TYPE_PERCPU_ARRAY ? schedtwin_nr_cpus : 1;

	if (!map->memory)
		map->memory = schedtwin_allocate(copies * map->entries * map->stride);
	return map->memory;
}

int schedtwin_key_of(struct schedtwin_map *map, void const *at) { return ((char *)at - map->memory) / map->stride; }

static bool is_hash(struct schedtwin_map *map) { return map->type == BPF_MAP_TYPE_HASH || map->type == BPF_MAP_TYPE_LRU_HASH; }

static bool same(char const *a, char const *b, int bytes)
{
	while (bytes--)
		if (*a++ != *b++)
			return false;
	return true;
}

/* Where the entry of a key is linked, or would be. */
static struct entry **find(struct schedtwin_map *map, char const *key)
{
	u64 hash = 0xcbf29ce484222325ULL;
	struct entry **at;
	int i;

	for (i = 0; i < map->key; i++)
		hash = (hash ^ (u8)key[i]) * 0x100000001b3ULL;
	if (!map->buckets)
		map->buckets = schedtwin_allocate(BUCKETS * sizeof(*map->buckets));
	at = &map->buckets[hash % BUCKETS];
	while (*at && !same((*at)->bytes + map->stride, key, map->key))
		at = &(*at)->next;
	return at;
}

void *schedtwin_map_lookup(void *object, void const *key, int cpu)
{
	struct schedtwin_map *map = *(struct schedtwin_map **)object;
	size_t index;

	if (!key)
		return NULL;
	if (is_hash(map)) {
		struct entry *entry = *find(map, key);

		schedtwin_spend(COST_HASH_LOOKUP);
		return entry ? entry->bytes : NULL;
	}
	index = *(u32 *)key;
	if (index >= (u32)map->entries)
		return NULL;
	if (map->type == BPF_MAP_TYPE_ARRAY_OF_MAPS) {
		if (!map->values[index] && map->inner) {
			map->values[index] = schedtwin_allocate(sizeof(void *));
			*map->values[index] = schedtwin_scx_define_map(NULL, map->inner->type, map->inner->key, map->inner->value,
								       map->inner->entries, NULL, 0, NULL);
		}
		return map->values[index];
	}
	if (map->type == BPF_MAP_TYPE_PERCPU_ARRAY) {
		if (cpu < 0)
			cpu = schedtwin_cpu;
		if ((u32)cpu >= schedtwin_nr_cpus)
			return NULL;
		index += (size_t)cpu * map->entries;
	}
	return memory_of(map) + index * map->stride;
}

long schedtwin_map_update(void *object, void const *key, void const *value, u64 flags)
{
	struct schedtwin_map *map = *(struct schedtwin_map **)object;
	struct entry **at;

	if (!is_hash(map)) {
		void *there = schedtwin_map_lookup(object, key, -1);

		if (!there)
			return -E2BIG;
		if (flags == BPF_NOEXIST)
			return -EEXIST;
		put_value(map, there, value);
		return 0;
	}
	schedtwin_spend(COST_HASH_UPDATE);
	at = find(map, key);
	if (*at && flags == BPF_NOEXIST)
		return -EEXIST;
	if (!*at) {
		if (flags == BPF_EXIST)
			return -ENOENT;
		if (map->count >= (u32)map->entries)
			return -E2BIG;
		*at = schedtwin_new(sizeof(**at) + map->stride + map->key);
		map->count++;
		memcpy((*at)->bytes + map->stride, key, map->key);
	}
	put_value(map, (*at)->bytes, value);
	return 0;
}

/* What a loader puts into the value of a map: a number of so many bytes at an offset. A new value is all zeros. */
OFFERED void schedtwin_scx_fill_map(void *object, void const *key, u32 offset, u32 bytes, u64 number)
{
	struct schedtwin_map *map = *(struct schedtwin_map **)object;
	char *value = schedtwin_map_lookup(object, key, -1);

	if (!value && is_hash(map)) {
		struct entry **at = find(map, key);

		if (map->count >= (u32)map->entries)
			return;
		*at = schedtwin_new(sizeof(**at) + map->stride + map->key);
		map->count++;
		memcpy((*at)->bytes + map->stride, key, map->key);
		value = (*at)->bytes;
	}
	if (value && offset + bytes <= (u32)map->value)
		memcpy(value + offset, &number, bytes);
}

long schedtwin_map_delete(void *object, void const *key)
{
	struct schedtwin_map *map = *(struct schedtwin_map **)object;
	struct entry **at, *entry;

	if (!is_hash(map))
		return -EINVAL;
	schedtwin_spend(COST_HASH_DELETE);
	at = find(map, key);
	entry = *at;
	if (!entry)
		return -ENOENT;
	*at = entry->next;
	map->count--;
	schedtwin_drop(entry);
	return 0;
}

OFFERED long schedtwin_map_push(void *object, void const *value, u64 flags)
{
	struct schedtwin_map *map = *(struct schedtwin_map **)object;
	u32 at;

	schedtwin_spend(COST_QUEUE);
	if (map->count >= (u32)map->entries) {
		if (!(flags & BPF_EXIST))
			return -E2BIG;
		/* The oldest one goes. */
		map->head = (map->head + 1) % map->entries;
		map->count--;
	}
	at = (map->head + map->count++) % map->entries;
	memcpy(memory_of(map) + (size_t)at * map->stride, value, map->value);
	return 0;
}

OFFERED long schedtwin_map_pop(void *object, void *value, bool take)
{
	struct schedtwin_map *map = *(struct schedtwin_map **)object;
	bool last = map->type == BPF_MAP_TYPE_STACK;
	u32 at;

	schedtwin_spend(COST_QUEUE);
	if (!map->count) {
		memset(value, 0, map->value);
		return -ENOENT;
	}
	at = last ? (map->head + map->count - 1) % map->entries : map->head;
	memcpy(value, memory_of(map) + (size_t)at * map->stride, map->value);
	if (take) {
		map->count--;
		if (!last)
			map->head = (map->head + 1) % map->entries;
	}
	return 0;
}

/* ---- storages of tasks and of cgroups ------------------------------------------------------------------------------------- */

static void *storage_get(void *object, u32 number, bool create)
{
	struct schedtwin_map *map = *(struct schedtwin_map **)object;
	u32 capacity;
	void **larger;

	schedtwin_spend(COST_CALL);
	if (number >= map->capacity) {
		if (!create)
			return NULL;
		for (capacity = map->capacity ? map->capacity : 64; capacity <= number; capacity *= 2)
			;
		larger = schedtwin_new(capacity * sizeof(*larger));
		memcpy(larger, map->by_number, map->capacity * sizeof(*larger));
		schedtwin_drop(map->by_number);
		map->by_number = larger;
		map->capacity = capacity;
	}
	if (!map->by_number[number] && create)
		map->by_number[number] = schedtwin_new(map->value);
	return map->by_number[number];
}

static long storage_delete(void *object, u32 number)
{
	struct schedtwin_map *map = *(struct schedtwin_map **)object;

	if (number >= map->capacity || !map->by_number[number])
		return -ENOENT;
	schedtwin_drop(map->by_number[number]);
	map->by_number[number] = NULL;
	return 0;
}

void *schedtwin_task_storage(void *map, struct task_struct *p, bool create)
{
	return p ? storage_get(map, p->pid, create) : NULL;
}

long schedtwin_task_storage_delete(void *map, struct task_struct *p) { return p ? storage_delete(map, p->pid) : -EINVAL; }

void *schedtwin_cgrp_storage(void *map, struct cgroup *cgrp, bool create)
{
	return cgrp ? storage_get(map, cgrp->number, create) : NULL;
}

long schedtwin_cgrp_storage_delete(void *map, struct cgroup *cgrp) { return cgrp ? storage_delete(map, cgrp->number) : -EINVAL; }

/* A task is gone: what storages have of it goes, too. */
OFFERED void schedtwin_scx_forget(void **map, u32 pid) { storage_delete(map, pid); }

void *schedtwin_kptr_xchg(void **field, void *value)
{
	void *before = *field;

	*field = value;
	return before;
}

/* ---- lists ------------------------------------------------------------------------------------------------------------ */

int schedtwin_list_push(struct bpf_list_head *head, struct bpf_list_node *node, bool front)
{
	struct bpf_list_node *next = front ? head->first : NULL, *prev = front ? NULL : head->last;

	schedtwin_spend(COST_LIST);
	if (node->owner)
		return -EINVAL;
	node->owner = head;
	node->next = next;
	node->prev = prev;
	*(prev ? &prev->next : &head->first) = node;
	*(next ? &next->prev : &head->last) = node;
	return 0;
}

struct bpf_list_node *schedtwin_list_pop(struct bpf_list_head *head, bool front)
{
	struct bpf_list_node *node = front ? head->first : head->last;

	schedtwin_spend(COST_LIST);
	if (!node)
		return NULL;
	*(node->prev ? &node->prev->next : &head->first) = node->next;
	*(node->next ? &node->next->prev : &head->last) = node->prev;
	node->owner = NULL;
	return node;
}

/* ---- trees ------------------------------------------------------------------------------------------------------------ */

/*
 * In order, as a list: what a scheduler sees of a tree is its first node. An equal one goes behind. Found from the end,
 * because schedulers add what is due late.
 */
int schedtwin_rbtree_add(struct bpf_rb_root *root, struct bpf_rb_node *node, bool (*less)(struct bpf_rb_node *, struct bpf_rb_node const *))
{
	struct bpf_rb_node *before = root->last, *behind;

	schedtwin_spend(COST_TREE);
	if (node->owner)
		return -EINVAL;
	while (before && less(node, before))
		before = before->prev;
	behind = before ? before->next : root->first;
	node->owner = root;
	node->prev = before;
	node->next = behind;
	*(before ? &before->next : &root->first) = node;
	*(behind ? &behind->prev : &root->last) = node;
	return 0;
}

struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root) { return root->first; }

struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root, struct bpf_rb_node *node)
{
	schedtwin_spend(COST_TREE);
	if (node->owner != root)
		return NULL;
	*(node->prev ? &node->prev->next : &root->first) = node->next;
	*(node->next ? &node->next->prev : &root->last) = node->prev;
	node->owner = NULL;
	return node;
}
