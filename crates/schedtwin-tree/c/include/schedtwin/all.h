/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What every header of the kernel that is offered leads to. */
#ifdef SCHEDTWIN_FREQUENCY
#include <schedtwin/cpufreq.h>
#else
#include <schedtwin/cpuidle.h>
#endif
