/* SPDX-License-Identifier: GPL-2.0 */
/* The page shared by the board's driver (vdvfs.c), its probes (vdvfs_tp.c) and the tasks (init.c has the same layout), one entry per CPU. */
#define VDVFS_CPUS 16
struct vdvfs_page {
	u32 khz[VDVFS_CPUS], khz_max[VDVFS_CPUS], capacity[VDVFS_CPUS];
	u32 nev[VDVFS_CPUS];	/* switches and interrupts so far: whatever takes the CPU from its task */
};
extern struct vdvfs_page *vdvfs_page;
extern int vdvfs_probes;
