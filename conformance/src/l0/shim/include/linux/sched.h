/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Empty on purpose: idle/world.h declares what is needed before it includes the kernel's file. */
