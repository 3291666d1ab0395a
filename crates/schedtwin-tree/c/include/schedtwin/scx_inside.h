/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the twin's own C units behind a scheduler share, and the scheduler does not see. */
#ifndef SCHEDTWIN_SCX_INSIDE_H
#define SCHEDTWIN_SCX_INSIDE_H

#include <schedtwin/scx.h>

#define OFFERED __attribute__((__visibility__("default")))

void schedtwin_refuse(char const *what, long value);
/* The index of the value of a map that holds `at`. */
int schedtwin_key_of(struct schedtwin_map *map, void const *at);
u32 schedtwin_mask_distribute(struct cpumask const *mask);

#endif
